//===- Calibrate.cpp - a cluster's constants from measurements ------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Every fit minimizes the squares of log(formula / measured). Scales have a closed form (the mean of the logarithms);
// what they multiply is looked for on a grid.
#include "drover/Cost/Calibrate.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

using namespace drover;
using namespace drover::cost;
using cluster::Device;
using cluster::Precision;
using schedule::Error;
using schedule::Result;

namespace {

struct Deviation {
  double mean = 0, squares = std::numeric_limits<double>::infinity(); // of logarithms, about the mean

  double sigma(size_t count) const { return std::sqrt(squares / static_cast<double>(count)); }
};

Deviation deviationOf(const std::vector<double> &logarithms) {
  Deviation deviation{0, 0};
  for (double value : logarithms)
    deviation.mean += value / static_cast<double>(logarithms.size());
  for (double value : logarithms)
    deviation.squares += (value - deviation.mean) * (value - deviation.mean);
  return deviation;
}

/// log(formula / measured) of every matmul of a format.
std::vector<double> matmulLogs(const Device &device, Precision precision, const std::vector<MeasuredMatmul> &matmuls) {
  std::vector<double> logs;
  for (const MeasuredMatmul &one : matmuls)
    if (one.precision == precision)
      logs.push_back(std::log(matmulSeconds(device, precision, one.m, one.n, one.k) / one.seconds));
  return logs;
}

double attentionSecondsOf(const Device &device, const MeasuredAttention &one) {
  AttentionShape shape{one.length, one.length * (one.length + 1) / 2, one.heads, one.headSize};
  return attentionSeconds(device, device.attention.front(), Precision::F32, one.phase, shape);
}

void fitMemory(const Measurements &measured, Device &device) {
  device.memoryBytes = measured.totalBytes;
  device.usableBytes = measured.availableBytes;
  device.contextBytes = measured.contextBytes;
  std::vector<double> rates;
  for (const MeasuredPass &pass : measured.passes)
    rates.push_back(pass.bytes / pass.seconds);
  device.memoryBandwidth = *std::max_element(rates.begin(), rates.end());
  double sum = 0;
  for (double rate : rates)
    sum += 1 / rate;
  device.memoryFraction = static_cast<double>(rates.size()) / sum / device.memoryBandwidth;
}

/// The peak is what the fastest product reached.
void fitMatmul(const Measurements &measured, Precision precision, Device &device) {
  auto format = static_cast<size_t>(precision);
  double &peak = device.peak[format];
  for (const MeasuredMatmul &one : measured.matmuls)
    if (one.precision == precision)
      peak = std::max(peak, 2 * one.m * one.n * one.k / one.seconds);
  if (!(peak > 0))
    return;
  cluster::MatmulRates &rates = device.matmul[format], best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t tileM : {1, 2, 4, 6, 8, 12, 16, 32})
    for (int64_t tileN : {1, 8, 16, 32, 64})
      for (double halfK = 0; halfK <= 512; halfK = halfK < 1 ? 1 : halfK * 1.08) {
        rates = {1, halfK, tileM, tileN};
        // At a fraction of 1 the formula is too fast by the fraction; twice, since what memory bounds has none.
        for (int i = 0; i < 2; ++i) {
          Deviation all = deviationOf(matmulLogs(device, precision, measured.matmuls));
          rates.fraction = std::min(1.0, rates.fraction * std::exp(all.mean));
        }
        double squares = 0;
        for (double value : matmulLogs(device, precision, measured.matmuls))
          squares += value * value;
        if (squares < least)
          least = squares, best = rates;
      }
  rates = best;
}

void fitAttention(const Measurements &measured, Device &device) {
  device.attention.assign(1, {});
  cluster::AttentionRates &rates = device.attention.front();
  rates.kernel = "generated";
  rates.forward = rates.backward = 1;
  // A size that kernels are built for, and one that is no multiple of it.
  rates.headSizeMultiple = measured.attention.front().headSize;
  auto fitted = [&](AttentionPhase phase, bool usual) {
    std::vector<double> logs;
    for (const MeasuredAttention &one : measured.attention)
      if (one.phase == phase && (one.headSize % rates.headSizeMultiple == 0) == usual)
        logs.push_back(std::log(attentionSecondsOf(device, one) / one.seconds));
    return deviationOf(logs);
  };
  double least = std::numeric_limits<double>::infinity(), best = 0;
  for (double half = 0; half <= 2048; half = half < 1 ? 1 : half * 1.1) {
    rates.halfSequence = half;
    double squares = fitted(AttentionPhase::Forward, true).squares + fitted(AttentionPhase::Backward, true).squares;
    if (squares < least)
      least = squares, best = half;
  }
  rates.halfSequence = best;
  double forward = std::exp(fitted(AttentionPhase::Forward, true).mean);
  double backward = std::exp(fitted(AttentionPhase::Backward, true).mean);
  rates.forward = std::min(1.0, forward);
  rates.backward = std::min(2.0, backward / rates.forward);
  double odd = (fitted(AttentionPhase::Forward, false).mean + fitted(AttentionPhase::Backward, false).mean) / 2;
  rates.oddHeadPenalty = std::max(1.0, std::exp(-odd));
}

/// Latency and bandwidth of a group: seconds = a + b bytes, each size as weighty as the others.
cluster::MeasuredCollective fitLine(const std::vector<MeasuredExchange> &sizes) {
  double sw = 0, sx = 0, sxx = 0, sy = 0, sxy = 0;
  for (const MeasuredExchange &one : sizes) {
    double weight = 1 / (one.seconds * one.seconds);
    sw += weight, sx += weight * one.bytes, sxx += weight * one.bytes * one.bytes;
    sy += weight * one.seconds, sxy += weight * one.bytes * one.seconds;
  }
  double slope = (sw * sxy - sx * sy) / (sw * sxx - sx * sx), start = (sy - slope * sx) / sw;
  // Noise may tilt the line below what can be.
  const MeasuredExchange &largest = sizes.back();
  if (!(start >= 0))
    start = 0, slope = sxy / sxx;
  if (!(slope > 0))
    slope = largest.seconds / largest.bytes;
  cluster::MeasuredCollective line;
  line.backend = largest.backend, line.kind = largest.kind, line.ranks = largest.ranks;
  line.latency = start, line.bandwidth = 1 / slope;
  return line;
}

using ExchangeKey = std::tuple<std::string, std::string, int64_t>;
std::map<ExchangeKey, std::vector<MeasuredExchange>> bySeries(const std::vector<MeasuredExchange> &exchanges) {
  std::map<ExchangeKey, std::vector<MeasuredExchange>> series;
  for (const MeasuredExchange &one : exchanges)
    series[{one.backend, one.kind, one.ranks}].push_back(one);
  for (auto &[key, sizes] : series)
    std::sort(sizes.begin(), sizes.end(),
              [](const MeasuredExchange &a, const MeasuredExchange &b) { return a.bytes < b.bytes; });
  return series;
}

std::optional<Error> fitLevel(const Measurements &measured, const std::string &backend, cluster::Level &level) {
  level.name = "host";
  level.members = measured.ranks;
  level.backend = backend;
  const cluster::MeasuredCollective *message = nullptr;
  for (const auto &[key, sizes] : bySeries(measured.exchanges))
    level.collectives.push_back(fitLine(sizes));
  for (const cluster::MeasuredCollective &one : level.collectives)
    if (one.backend == backend && one.kind == "message" && !message)
      message = &one;
  if (!message)
    return Error{"no message of " + backend + " was measured"};
  level.bandwidth = message->bandwidth;
  level.latency = message->latency;
  return std::nullopt;
}
} // namespace

Result<cluster::Cluster> cost::fitCluster(const Measurements &measured, const std::string &backend) {
  if (measured.matmuls.empty() || measured.attention.empty() || measured.passes.empty())
    return Error{"matmuls, attention and passes over memory are needed, of which one was not measured"};
  cluster::Cluster result;
  result.name = "this-host";
  Device &device = result.device;
  device.name = "a core of this host";
  device.kind = "host";
  device.sharedCores = measured.cores;
  device.launchSeconds = measured.emptyCallSeconds;
  std::vector<double> logs;
  for (double seconds : measured.sameOnEachCore)
    logs.push_back(std::log(seconds));
  device.spread = logs.empty() ? 0 : std::min(0.5, deviationOf(logs).sigma(logs.size()));
  fitMemory(measured, device);
  for (Precision precision : {Precision::F32, Precision::BF16})
    fitMatmul(measured, precision, device);
  if (!(device.peakOf(Precision::F32) > 0))
    return Error{"no f32 product was measured"};
  fitAttention(measured, device);
  result.levels.resize(1);
  if (std::optional<Error> error = fitLevel(measured, backend, result.levels.front()))
    return *error;
  if (std::optional<Error> error = cluster::checkCluster(result))
    return *error;
  return result;
}

FitQuality cost::qualityOf(const cluster::Cluster &cluster, const Measurements &measured) {
  FitQuality quality;
  auto rootMeanSquare = [](const std::vector<double> &logs) {
    double squares = 0;
    for (double value : logs)
      squares += value * value;
    return logs.empty() ? 0 : std::sqrt(squares / static_cast<double>(logs.size()));
  };
  std::vector<double> logs;
  for (Precision precision : {Precision::F32, Precision::BF16})
    for (double value : matmulLogs(cluster.device, precision, measured.matmuls))
      logs.push_back(value);
  quality.matmul = rootMeanSquare(logs);
  logs.clear();
  for (const MeasuredAttention &one : measured.attention)
    logs.push_back(std::log(attentionSecondsOf(cluster.device, one) / one.seconds));
  quality.attention = rootMeanSquare(logs);
  logs.clear();
  for (const MeasuredExchange &one : measured.exchanges)
    for (const cluster::MeasuredCollective &line : cluster.levels.front().collectives)
      if (line.backend == one.backend && line.kind == one.kind && line.ranks == one.ranks)
        logs.push_back(std::log((line.latency + one.bytes / line.bandwidth) / one.seconds));
  quality.collectives = rootMeanSquare(logs);
  return quality;
}
