//===- ReadCluster.cpp - cluster files ------------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cluster/Yaml/ReadCluster.h"
#include "ReadDevice.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace drover;
using namespace drover::cluster;

namespace {
constexpr Bounds kBandwidth = {1e5, 1e15}, kLatency = {0, 1}, kOversubscription = {1, 1000}, kWrite = {1e6, 1e16};
constexpr Bounds kObservation = {60, 1e9}, kPause = {0, 1e6};
/// A hundred times the largest cluster in use; products of sizes stay numbers.
constexpr int64_t kMostGpus = 1 << 24;

std::string quote(int64_t value) { return std::to_string(value); }

MeasuredCollective readCollective(FileErrors &errors, const YamlNode &node) {
  MeasuredCollective measured;
  MapReader reader(errors, node, "a measured collective", {"backend", "kind", "ranks", "latency", "bandwidth"});
  reader.readChoice("backend", measured.backend, {"inproc", "mpi"});
  reader.readChoice("kind", measured.kind, {"all_gather", "reduce_scatter", "all_reduce", "broadcast", "message"});
  reader.readCount("ranks", measured.ranks, 2, kMostGpus);
  reader.readQuantity("latency", measured.latency, Quantity::Seconds, kLatency);
  reader.readQuantity("bandwidth", measured.bandwidth, Quantity::BytesPerSecond, kBandwidth);
  return measured;
}

/// Kinds in any order, each with more ranks from line to line.
void readCollectives(FileErrors &errors, MapReader &reader, Level &level) {
  for (const YamlNode &item : reader.readList("collectives", false)) {
    MeasuredCollective measured = readCollective(errors, item);
    for (const MeasuredCollective &before : level.collectives)
      if (before.backend == measured.backend && before.kind == measured.kind && before.ranks >= measured.ranks)
        errors.report(item.place, measured.backend + "'s " + measured.kind + " of " + quote(measured.ranks) +
                                      " ranks stands behind that of " + quote(before.ranks) +
                                      ": expected more ranks from line to line");
    level.collectives.push_back(std::move(measured));
  }
  if (level.collectives.empty()) {
    if (reader.find("backend"))
      errors.report(reader.placeOf("backend"),
                    "'backend' says whose measured collectives ranks use: expected 'collectives' beside it");
    return;
  }
  reader.readChoice("backend", level.backend, {"inproc", "mpi"});
  bool any = false;
  for (const MeasuredCollective &measured : level.collectives)
    any |= measured.backend == level.backend;
  if (!any)
    errors.report(reader.placeOf("backend"), "'backend' is " + level.backend + ", of which no collective is listed");
}

Level readLevel(FileErrors &errors, const YamlNode &node) {
  Level level;
  MapReader reader(errors, node, "a level",
                   {"name", "members", "bandwidth", "achieved", "latency", "oversubscription", "flows", "in_network",
                    "backend", "collectives"});
  reader.readText("name", level.name);
  reader.readCount("members", level.members, 1, kMostGpus);
  reader.readQuantity("bandwidth", level.bandwidth, Quantity::BytesPerSecond, kBandwidth);
  reader.readQuantity("achieved", level.achieved, Quantity::Number, kFraction);
  reader.readQuantity("latency", level.latency, Quantity::Seconds, kLatency);
  reader.readQuantity("oversubscription", level.oversubscription, Quantity::Number, kOversubscription, false);
  reader.readCount("flows", level.flows, 1, 4096, false);
  reader.readQuantity("in_network", level.inNetwork, Quantity::Number, kFraction, false);
  readCollectives(errors, reader, level);
  return level;
}

void readLevels(FileErrors &errors, MapReader &file, Cluster &cluster) {
  for (const YamlNode &item : file.readList("levels")) {
    if (cluster.levels.size() == kMostLevels)
      errors.report(item.place, "a cluster has up to " + quote(kMostLevels) + " levels");
    Level level = readLevel(errors, item);
    for (const Level &seen : cluster.levels)
      if (seen.name == level.name)
        errors.report(item.place, "the level '" + level.name + "' is listed twice");
    if (cluster.levels.empty() && level.oversubscription > 1)
      errors.report(item.place, "the innermost level '" + level.name +
                                    "' is oversubscribed, but joins GPUs with links of their own");
    if (errors.any())
      return;
    cluster.levels.push_back(std::move(level));
    int64_t total = 1;
    for (const Level &each : cluster.levels) {
      if (each.members > kMostGpus / total) {
        errors.report(item.place, "the levels up to '" + each.name + "' hold more than " + quote(kMostGpus) + " GPUs");
        return;
      }
      total *= each.members;
    }
  }
  int64_t gpus = 0;
  file.readCount("gpus", gpus, 1, kMostGpus);
  if (errors.any() || cluster.levels.empty() || gpus == cluster.gpus())
    return;
  std::string product;
  for (const Level &level : cluster.levels)
    product += (product.empty() ? "" : " * ") + quote(level.members);
  errors.report(file.placeOf("gpus"), "'gpus' is " + quote(gpus) + ", but the members of the levels are " + product +
                                          " = " + quote(cluster.gpus()));
}

Storage readStorage(FileErrors &errors, const YamlNode &node) {
  Storage storage;
  MapReader reader(errors, node, "the storage", {"sustained_write", "peak_write", "host_copy"});
  reader.readQuantity("sustained_write", storage.sustainedWrite, Quantity::BytesPerSecond, kWrite);
  reader.readQuantity("peak_write", storage.peakWrite, Quantity::BytesPerSecond, kWrite);
  reader.readQuantity("host_copy", storage.hostCopy, Quantity::BytesPerSecond, kWrite, false);
  if (storage.peakWrite < storage.sustainedWrite)
    errors.report(reader.placeOf("peak_write"), "'peak_write' is below 'sustained_write', " +
                                                    printQuantity(storage.peakWrite, Quantity::BytesPerSecond) +
                                                    " and " +
                                                    printQuantity(storage.sustainedWrite, Quantity::BytesPerSecond));
  return storage;
}

TrafficClasses readTrafficClasses(FileErrors &errors, const YamlNode &node) {
  TrafficClasses classes;
  MapReader reader(errors, node, "'traffic_classes'", {"urgent", "bulk", "control"});
  reader.readCount("urgent", classes.urgent, 0, 255);
  reader.readCount("bulk", classes.bulk, 0, 255);
  reader.readCount("control", classes.control, 0, 255);
  return classes;
}

Failures readFailures(FileErrors &errors, const YamlNode &node) {
  Failures failures;
  MapReader reader(errors, node, "the failures", {"observed", "detection", "restart", "causes"});
  reader.readQuantity("detection", failures.detectionSeconds, Quantity::Seconds, kPause);
  reader.readQuantity("restart", failures.restartSeconds, Quantity::Seconds, kPause);
  const YamlNode *observed = reader.require("observed");
  int64_t gpus = 1;
  double &seconds = failures.observedSeconds;
  if (observed) {
    MapReader run(errors, *observed, "what was observed", {"gpus", "time"});
    run.readCount("gpus", gpus, 1, kMostGpus);
    run.readQuantity("time", seconds, Quantity::Seconds, kObservation);
  }
  failures.observedGpus = static_cast<double>(gpus);
  for (const YamlNode &item : reader.readList("causes")) {
    FailureCause cause;
    int64_t count = 0;
    MapReader entry(errors, item, "a cause", {"name", "count", "planned"});
    entry.readText("name", cause.name);
    entry.readCount("count", count, 0, 1000000);
    entry.readFlag("planned", cause.planned);
    for (const FailureCause &seen : failures.causes)
      if (seen.name == cause.name)
        errors.report(item.place, "the cause '" + cause.name + "' is listed twice");
    cause.perGpuHour = static_cast<double>(count) / (failures.observedGpus * seconds / 3600);
    failures.causes.push_back(std::move(cause));
  }
  return failures;
}

/// A mapping, or the name of a file beside this one that holds it.
void readDeviceOrFile(FileErrors &errors, MapReader &file, Cluster &cluster) {
  const YamlNode *node = file.require("device");
  if (!node)
    return;
  if (node->kind != YamlNode::Kind::Scalar) {
    cluster.device = readDevice(errors, *node);
    return;
  }
  llvm::SmallString<128> path(llvm::sys::path::parent_path(errors.getPath()));
  llvm::sys::path::append(path, node->text);
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer) {
    errors.report(node->place,
                  "cannot read the device file '" + path.str().str() + "': " + buffer.getError().message());
    return;
  }
  FileErrors inside(path.str().str());
  schedule::Result<YamlNode> tree = parseYaml((*buffer)->getBuffer().str(), inside.getPath());
  if (tree)
    cluster.device = readDevice(inside, *tree);
  else
    inside.take(tree.error());
  if (inside.any())
    errors.take(inside.error().message);
}
} // namespace

schedule::Result<Cluster> cluster::readClusterText(const std::string &text, const std::string &path) {
  schedule::Result<YamlNode> tree = parseYaml(text, path);
  if (!tree)
    return schedule::Error{tree.error()};
  FileErrors errors(path);
  Cluster cluster;
  MapReader file(errors, *tree, "a cluster file",
                 {"name", "published_as", "gpus", "device", "levels", "traffic_classes", "storage", "failures"});
  if (errors.any())
    return errors.error();
  file.readText("name", cluster.name);
  for (const YamlNode &item : file.readList("published_as", false)) {
    if (item.kind != YamlNode::Kind::Scalar)
      errors.report(item.place, "'published_as' lists something else than names");
    cluster.publishedAs.push_back(item.text);
  }
  readDeviceOrFile(errors, file, cluster);
  readLevels(errors, file, cluster);
  if (const YamlNode *node = file.find("traffic_classes"))
    cluster.trafficClasses = readTrafficClasses(errors, *node);
  if (const YamlNode *node = file.find("storage"))
    cluster.storage = readStorage(errors, *node);
  if (const YamlNode *node = file.find("failures"))
    cluster.failures = readFailures(errors, *node);
  if (errors.any())
    return errors.error();
  assert(!checkCluster(cluster) && "the reader holds less than the check");
  return cluster;
}

schedule::Result<Cluster> cluster::readClusterFile(const std::string &path) {
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return errorAt(path, {}, "cannot read the cluster file: " + buffer.getError().message());
  return readClusterText((*buffer)->getBuffer().str(), path);
}
