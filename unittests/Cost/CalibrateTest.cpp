//===- CalibrateTest.cpp - constants from measurements --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Measurements are made by the formulas from constants that are known: the fit must find these again.
#include "drover/Cost/Calibrate.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace drover;
using namespace drover::cost;
using cluster::Precision;

namespace {

cluster::Device knownHost() {
  cluster::Device device;
  device.peak = {60e9, 40e9, 0, 0};
  device.memoryBandwidth = 10e9, device.memoryFraction = 1;
  device.matmul.fill({0.9, 20, 6, 16});
  device.attention = {{"generated", 0.6, 0.8, 50, 1.25, 64}};
  return device;
}

double lineOf(int64_t ranks, double bytes) { return 1e-5 * static_cast<double>(ranks) + bytes / (8e9 / ranks); }

Measurements measurementsOf(const cluster::Device &device) {
  Measurements measured;
  measured.cores = 2, measured.ranks = 4;
  measured.totalBytes = 8e9, measured.availableBytes = 6e9, measured.contextBytes = 1e7;
  measured.passes = {{1e8, 1e8 / 10e9}};
  measured.emptyCallSeconds = 2e-8;
  measured.sameOnEachCore = {1e-3, 1e-3};
  for (Precision precision : {Precision::F32, Precision::BF16})
    for (double m : {16, 64, 250, 512})
      for (double k : {16, 64, 256, 1024})
        measured.matmuls.push_back({precision, m, 300, k, matmulSeconds(device, precision, m, 300, k)});
  for (int64_t headSize : {64, 72})
    for (double length : {32, 128, 512})
      for (AttentionPhase phase : {AttentionPhase::Forward, AttentionPhase::Backward}) {
        AttentionShape shape{length, length * (length + 1) / 2, 4, headSize};
        double seconds = attentionSeconds(device, device.attention.front(), Precision::F32, phase, shape);
        measured.attention.push_back({phase, length, 4, headSize, seconds});
      }
  for (const char *kind : {"all_gather", "message"})
    for (int64_t ranks : {2, 4})
      for (double bytes : {1e3, 1e5, 1e6})
        measured.exchanges.push_back({"inproc", kind, ranks, bytes, lineOf(ranks, bytes)});
  return measured;
}

TEST(Calibrate, findsTheConstantsThatMadeTheMeasurements) {
  cluster::Device known = knownHost();
  Measurements measured = measurementsOf(known);
  schedule::Result<cluster::Cluster> fitted = fitCluster(measured, "inproc");
  ASSERT_TRUE(fitted) << fitted.error();
  const cluster::Device &device = fitted->device;
  for (const MeasuredMatmul &one : measured.matmuls)
    EXPECT_NEAR(matmulSeconds(device, one.precision, one.m, one.n, one.k) / one.seconds, 1, 0.03)
        << one.m << " x " << one.n << " x " << one.k;
  const cluster::AttentionRates &rates = device.attention.front();
  EXPECT_NEAR(rates.oddHeadPenalty, 1.25, 0.01);
  EXPECT_NEAR(rates.backward, 0.8, 0.02);
  EXPECT_NEAR(rates.halfSequence, 50, 5);
  EXPECT_EQ(device.sharedCores, 2);
  EXPECT_EQ(device.spread, 0);
  EXPECT_NEAR(device.memoryBandwidth, 10e9, 1);
  EXPECT_EQ(fitted->gpus(), 4);
  const cluster::Level &level = fitted->levels.front();
  ASSERT_EQ(level.collectives.size(), 4u);
  for (const cluster::MeasuredCollective &line : level.collectives) {
    EXPECT_NEAR(line.latency, 1e-5 * static_cast<double>(line.ranks), 1e-8);
    EXPECT_NEAR(line.bandwidth, 8e9 / static_cast<double>(line.ranks), 1e6);
  }
  FitQuality quality = qualityOf(*fitted, measured);
  EXPECT_LT(quality.matmul, 0.02);
  EXPECT_LT(quality.attention, 0.02);
  EXPECT_LT(quality.collectives, 1e-6);
}

TEST(Calibrate, noiseThatTiltsALineLeavesItPossible) {
  Measurements measured = measurementsOf(knownHost());
  // The larger the faster: no line with a latency does that.
  for (MeasuredExchange &one : measured.exchanges)
    one.seconds = 1e-3 / one.bytes;
  schedule::Result<cluster::Cluster> fitted = fitCluster(measured, "inproc");
  ASSERT_TRUE(fitted) << fitted.error();
  for (const cluster::MeasuredCollective &line : fitted->levels.front().collectives) {
    EXPECT_GE(line.latency, 0);
    EXPECT_GT(line.bandwidth, 0);
  }
}

TEST(Calibrate, whatIsMissingIsSaid) {
  Measurements measured = measurementsOf(knownHost());
  EXPECT_EQ(fitCluster(measured, "mpi").error(), "no message of mpi was measured");
  for (MeasuredMatmul &one : measured.matmuls)
    one.precision = Precision::BF16;
  EXPECT_EQ(fitCluster(measured, "inproc").error(), "no f32 product was measured");
  measured.passes.clear();
  EXPECT_EQ(fitCluster(measured, "inproc").error(),
            "matmuls, attention and passes over memory are needed, of which one was not measured");
}

/// A host whose groups of two and four ranks were measured.
cluster::Cluster measuredHost(int64_t cores) {
  cluster::Cluster host;
  host.device.sharedCores = cores;
  cluster::Level level;
  level.name = "host", level.members = 16, level.bandwidth = 1e9, level.latency = 1e-6, level.backend = "inproc";
  level.collectives = {{"inproc", "all_gather", 2, 1e-5, 4e9},
                       {"inproc", "all_gather", 4, 4e-5, 1e9},
                       {"inproc", "message", 2, 2e-5, 5e9},
                       {"mpi", "all_gather", 2, 1, 1}};
  host.levels = {level};
  return host;
}

TEST(MeasuredCollectives, standInPlaceOfFormulas) {
  cluster::Cluster host = measuredHost(0);
  auto seconds = [&](int64_t ranks) {
    return collectiveSeconds(host, CollectiveKind::AllGather, 1e6, cluster::spanOfNeighbours(host, ranks));
  };
  EXPECT_DOUBLE_EQ(seconds(2), 1e-5 + 1e6 / 4e9);
  EXPECT_DOUBLE_EQ(seconds(4), 4e-5 + 1e6 / 1e9);
  EXPECT_DOUBLE_EQ(seconds(3), (seconds(2) + seconds(4)) / 2) << "between two sizes in proportion";
  EXPECT_DOUBLE_EQ(seconds(8), 2 * seconds(4)) << "beyond the largest as many times";
  EXPECT_DOUBLE_EQ(messageSeconds(host, 1e6, 0), 2e-5 + 1e6 / 5e9);
  // A kind that was not measured has the formula.
  cluster::Cluster formula = host;
  formula.levels.front().collectives.clear();
  cluster::Span span = cluster::spanOfNeighbours(host, 4);
  EXPECT_EQ(collectiveSeconds(host, CollectiveKind::AllReduce, 1e6, span),
            collectiveSeconds(formula, CollectiveKind::AllReduce, 1e6, span));
}

TEST(MeasuredCollectives, ofMoreRanksThanCoresAreThoseOfRanksWithCores) {
  cluster::Cluster host = measuredHost(2), wide = measuredHost(4);
  cluster::Span four = cluster::spanOfNeighbours(host, 4);
  EXPECT_DOUBLE_EQ(collectiveSeconds(host, CollectiveKind::AllGather, 1e6, four),
                   collectiveSeconds(wide, CollectiveKind::AllGather, 1e6, four) / 2);
}

} // namespace
