//===- SharedCoresTest.cpp - ranks that share the cores of a host ---------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Planner/Projection.h"
#include "gtest/gtest.h"

using namespace drover;
using namespace drover::planner;

namespace {

cluster::Cluster hostOf(int64_t cores) {
  cluster::Cluster host;
  host.name = "host";
  cluster::Device &device = host.device;
  device.name = "core", device.kind = "host";
  device.peak = {50e9, 0, 0, 0};
  device.memoryBandwidth = 10e9;
  device.matmul.fill({0.8, 20, 1, 1});
  device.attention = {{"generated", 0.5, 0.8, 50, 1, 1}};
  device.sharedCores = cores, device.coreScaling = 0.9;
  cluster::Level level;
  level.name = "host", level.members = 16, level.bandwidth = 5e9, level.latency = 1e-5;
  host.levels = {level};
  return host;
}

Projection projected(const cluster::Cluster &host, int64_t pp, int64_t dp, int64_t microbatches) {
  cost::ModelShape shape;
  shape.layers = 8, shape.hidden = 256, shape.heads = 8, shape.kvHeads = 4, shape.headSize = 32;
  shape.ffnHidden = 704, shape.vocabulary = 2048, shape.gated = true;
  Layout layout;
  layout.plan.pp = pp, layout.plan.dp = dp, layout.plan.microbatch = 1, layout.plan.sequenceLength = 128;
  layout.plan.globalBatches = {microbatches * dp};
  layout.plan.computeType = "f32";
  schedule::Result<Projection> result = project(shape, host, layout);
  EXPECT_TRUE(result) << result.error();
  EXPECT_NEAR(result->breakdown.total(), result->stepSeconds, 1e-9 * result->stepSeconds);
  return *result;
}

TEST(SharedCores, twiceAsManyRanksAsCoresTakeTwiceAsLong) {
  Projection alone = projected(hostOf(4), 1, 4, 2), shared = projected(hostOf(2), 1, 4, 2);
  EXPECT_EQ(alone.breakdown.sharing, 0);
  EXPECT_NEAR(shared.stepSeconds, 2 * alone.stepSeconds, 1e-9);
  EXPECT_NEAR(shared.breakdown.sharing, alone.stepSeconds, 1e-9);
  EXPECT_NEAR(shared.mfu(), alone.mfu(), 1e-9) << "of half as many cores in twice the time";
}

TEST(SharedCores, stagesThatWaitNeedNone) {
  // With one microbatch one stage is at work, but for the reductions of gradients, which here are of one rank.
  Projection alone = projected(hostOf(4), 4, 1, 1), shared = projected(hostOf(2), 4, 1, 1);
  EXPECT_NEAR(shared.stepSeconds - 2 * shared.breakdown.optimizer, alone.stepSeconds - alone.breakdown.optimizer, 1e-9);
}

TEST(SharedCores, aPipelineLosesLessThanItsRanksAreMore) {
  Projection alone = projected(hostOf(4), 4, 1, 8), shared = projected(hostOf(2), 4, 1, 8);
  double lost = shared.stepSeconds / alone.stepSeconds;
  EXPECT_GT(lost, 1.3) << "its middle keeps four stages busy";
  EXPECT_LT(lost, 1.95) << "its ends do not";
}

TEST(SharedCores, aRankOfItsOwnHasAllCores) {
  // Four threads at 0.9 of four cores.
  EXPECT_NEAR(projected(hostOf(1), 1, 1, 2).stepSeconds / projected(hostOf(4), 1, 1, 2).stepSeconds, 3.6, 1e-6);
  cluster::Device device = hostOf(4).device;
  EXPECT_EQ(device.threadsOf(3), 1);
  EXPECT_EQ(device.threadsOf(2), 2);
  EXPECT_EQ(device.threadsOf(8), 1);
  EXPECT_EQ(device.speedOf(1), 1);
  EXPECT_NEAR(device.speedOf(4), 3.6, 1e-12);
}

} // namespace
