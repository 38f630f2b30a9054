//===- Cluster.cpp - the machine and what must hold of it -----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cluster/Cluster.h"
#include <algorithm>
#include <cmath>

using namespace drover;
using namespace drover::cluster;

namespace {
constexpr const char *kPrecisionNames[kNumPrecisions] = {"f32", "bf16", "f16", "fp8"};
} // namespace

const char *cluster::nameOf(Precision precision) { return kPrecisionNames[static_cast<size_t>(precision)]; }

std::optional<Precision> cluster::parsePrecision(const std::string &name) {
  for (int i = 0; i < kNumPrecisions; ++i)
    if (name == kPrecisionNames[i])
      return static_cast<Precision>(i);
  return std::nullopt;
}

const AttentionRates *Device::findAttention(const std::string &kernel) const {
  auto found = std::find_if(attention.begin(), attention.end(),
                            [&](const AttentionRates &rates) { return rates.kernel == kernel; });
  return found == attention.end() ? nullptr : &*found;
}

int64_t Device::threadsOf(int64_t ranks) const {
  return std::max<int64_t>(1, sharedCores / std::max<int64_t>(1, ranks));
}

double Device::speedOf(int64_t threads) const {
  if (threads <= 1)
    return 1;
  // What is lost grows with every further thread.
  double lost = (1 - coreScaling) * static_cast<double>(threads - 1) / static_cast<double>(sharedCores - 1);
  return static_cast<double>(threads) * (1 - lost);
}

double Level::effectiveBandwidth() const {
  // F flows of every pair hashed onto as many paths: a path gets a Poisson number X of them and carries at most F, so
  // the fraction that flows is E[min(X, F)] / F = 1 - exp(-F) F^F / F!, here with Stirling's F!. 0.90 for 16 flows.
  double spread = flows > 0 ? 1 - 1 / std::sqrt(2 * M_PI * static_cast<double>(flows)) : 1;
  return bandwidth * achieved * spread;
}

double Failures::rate(bool planned) const {
  double sum = 0;
  for (const FailureCause &cause : causes)
    if (cause.planned == planned)
      sum += cause.perGpuHour;
  return sum;
}

int64_t Cluster::gpusIn(size_t level) const {
  int64_t count = 1;
  for (size_t i = 0; i <= level; ++i)
    count *= levels[i].members;
  return count;
}

std::optional<schedule::Error> cluster::checkCluster(const Cluster &cluster) {
  auto fault = [&](const std::string &message) { return schedule::Error{"cluster '" + cluster.name + "' " + message}; };
  if (cluster.levels.empty() || cluster.levels.size() > kMostLevels)
    return fault("has " + std::to_string(cluster.levels.size()) + " network levels: expected 1 to " +
                 std::to_string(kMostLevels));
  for (const Level &level : cluster.levels)
    if (level.members < 1 || !(level.bandwidth > 0) || !(level.achieved > 0) || level.achieved > 1 ||
        level.latency < 0 || level.oversubscription < 1 || level.inNetwork < 0 || level.inNetwork > 1)
      return fault("has a level '" + level.name +
                   "' out of bounds: expected members, bandwidth and achieved above 0, fractions up to 1, latency of "
                   "0 or more, oversubscription of 1 or more");
  if (cluster.device.usableBytes > cluster.device.memoryBytes)
    return fault("has a device with more usable than total memory");
  return std::nullopt;
}
