//===- Print.cpp - a cluster as the text of a cluster file ----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cluster/Print.h"
#include "drover/Cluster/Quantity.h"
#include <cmath>
#include <sstream>

using namespace drover;
using namespace drover::cluster;

namespace {
std::string number(double value) { return printQuantity(value, Quantity::Number); }

/// A scalar in single quotes, which need no escapes but their own.
std::string quoted(const std::string &text) {
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? "''" : std::string(1, c);
  return result + "'";
}

void printRates(std::ostream &os, const Device &device) {
  os << "  matmul:\n";
  for (int i = 0; i < kNumPrecisions; ++i) {
    if (!(device.peak[i] > 0))
      continue;
    const MatmulRates &rates = device.matmul[i];
    os << "    " << nameOf(static_cast<Precision>(i)) << ": {fraction: " << number(rates.fraction)
       << ", half_k: " << number(rates.halfK) << ", tile_m: " << rates.tileM << ", tile_n: " << rates.tileN << "}\n";
  }
  os << "  attention:\n";
  for (const AttentionRates &rates : device.attention)
    os << "    - {kernel: " << quoted(rates.kernel) << ", forward: " << number(rates.forward)
       << ", backward: " << number(rates.backward) << ", half_sequence: " << number(rates.halfSequence)
       << ", odd_head_penalty: " << number(rates.oddHeadPenalty) << ", head_size_multiple: " << rates.headSizeMultiple
       << "}\n";
}

void printDevice(std::ostream &os, const Device &device) {
  os << "device:\n  name: " << quoted(device.name) << "\n  kind: " << quoted(device.kind) << "\n  peak:\n";
  for (int i = 0; i < kNumPrecisions; ++i)
    if (device.peak[i] > 0)
      os << "    " << nameOf(static_cast<Precision>(i)) << ": "
         << printQuantity(device.peak[i], Quantity::FlopsPerSecond) << "\n";
  os << "  memory:\n    total: " << printQuantity(device.memoryBytes, Quantity::Bytes)
     << "\n    usable: " << printQuantity(device.usableBytes, Quantity::Bytes)
     << "\n    context: " << printQuantity(device.contextBytes, Quantity::Bytes)
     << "\n    bandwidth: " << printQuantity(device.memoryBandwidth, Quantity::BytesPerSecond)
     << "\n    achieved: " << number(device.memoryFraction) << "\n  sms: " << device.sms << "\n";
  if (device.watts > 0)
    os << "  power: " << printQuantity(device.watts, Quantity::Watts) << "\n";
  if (device.sharedCores > 0)
    os << "  shared_cores: " << device.sharedCores << "\n  core_scaling: " << number(device.coreScaling) << "\n";
  printRates(os, device);
  os << "  launch: " << printQuantity(device.launchSeconds, Quantity::Seconds)
     << "\n  spread: " << number(device.spread) << "\n  pass_cost: " << number(device.passCost)
     << "\n  eager_traffic: " << number(device.eagerTraffic) << "\n  ring_hidden: " << number(device.ringHidden)
     << "\n  contention: " << number(device.contention) << "\n  clock_boost: " << number(device.clockBoost) << "\n";
}

void printLevel(std::ostream &os, const Level &level) {
  os << "  - name: " << quoted(level.name) << "\n    members: " << level.members
     << "\n    bandwidth: " << printQuantity(level.bandwidth, Quantity::BytesPerSecond)
     << "\n    achieved: " << number(level.achieved)
     << "\n    latency: " << printQuantity(level.latency, Quantity::Seconds) << "\n";
  if (level.oversubscription > 1)
    os << "    oversubscription: " << number(level.oversubscription) << "\n";
  if (level.flows > 0)
    os << "    flows: " << level.flows << "\n";
  if (level.inNetwork > 0)
    os << "    in_network: " << number(level.inNetwork) << "\n";
  if (level.collectives.empty())
    return;
  os << "    backend: " << level.backend << "\n    collectives:\n";
  for (const MeasuredCollective &measured : level.collectives)
    os << "      - {backend: " << measured.backend << ", kind: " << measured.kind << ", ranks: " << measured.ranks
       << ", latency: " << printQuantity(measured.latency, Quantity::Seconds)
       << ", bandwidth: " << printQuantity(measured.bandwidth, Quantity::BytesPerSecond) << "}\n";
}

void printFailures(std::ostream &os, const Failures &failures) {
  os << "failures:\n  observed: {gpus: " << number(failures.observedGpus)
     << ", time: " << printQuantity(failures.observedSeconds, Quantity::Seconds)
     << "}\n  detection: " << printQuantity(failures.detectionSeconds, Quantity::Seconds)
     << "\n  restart: " << printQuantity(failures.restartSeconds, Quantity::Seconds) << "\n  causes:\n";
  for (const FailureCause &cause : failures.causes)
    os << "    - {name: " << quoted(cause.name)
       << ", count: " << std::llround(cause.perGpuHour * failures.observedGpus * failures.observedSeconds / 3600)
       << (cause.planned ? ", planned: true" : "") << "}\n";
}
} // namespace

std::string cluster::printCluster(const Cluster &cluster, const std::string &comment) {
  std::ostringstream os;
  std::istringstream lines(comment);
  for (std::string line; std::getline(lines, line);)
    os << "# " << line << "\n";
  os << "name: " << quoted(cluster.name) << "\n";
  if (!cluster.publishedAs.empty()) {
    os << "published_as:\n";
    for (const std::string &name : cluster.publishedAs)
      os << "  - " << quoted(name) << "\n";
  }
  os << "gpus: " << cluster.gpus() << "\n";
  printDevice(os, cluster.device);
  os << "levels:\n";
  for (const Level &level : cluster.levels)
    printLevel(os, level);
  if (cluster.trafficClasses)
    os << "traffic_classes: {urgent: " << cluster.trafficClasses->urgent << ", bulk: " << cluster.trafficClasses->bulk
       << ", control: " << cluster.trafficClasses->control << "}\n";
  if (cluster.storage)
    os << "storage:\n  sustained_write: " << printQuantity(cluster.storage->sustainedWrite, Quantity::BytesPerSecond)
       << "\n  peak_write: " << printQuantity(cluster.storage->peakWrite, Quantity::BytesPerSecond)
       << "\n  host_copy: " << printQuantity(cluster.storage->hostCopy, Quantity::BytesPerSecond) << "\n";
  if (cluster.failures)
    printFailures(os, *cluster.failures);
  return os.str();
}
