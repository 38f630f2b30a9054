//===- Report.cpp - what a step program moves, computes, holds ------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/Report.h"
#include "drover/Schedule/Check.h"
#include "drover/Schedule/ReplayStep.h"
#include "drover/Schedule/Serialize.h"
#include <algorithm>
#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace drover::schedule;
using Json = nlohmann::ordered_json;

int64_t drover::schedule::membersOf(const StepProgram &step, uint32_t communicator) {
  const Grid &grid = step.grid;
  switch (communicator) {
  case DROVER_COMM_WORLD:
    return grid.ranks();
  case DROVER_COMM_TP:
    return grid.tp;
  case DROVER_COMM_KV:
    return std::max<int64_t>(grid.kv, 1);
  case DROVER_COMM_REPLICA:
    return grid.kv ? grid.tp / grid.kv : 1;
  case DROVER_COMM_CP:
    return grid.cp;
  case DROVER_COMM_FSDP:
    return grid.fsdp();
  case DROVER_COMM_DP:
    return grid.dp;
  }
  for (const Communicator &listed : step.communicators)
    if (listed.id == communicator)
      return listed.isTie ? static_cast<int64_t>(listed.stages.size()) : 2;
  return 1;
}

namespace {

/// Collects collectives by communicator, kind, dtype and size.
class UseSum {
public:
  explicit UseSum(const StepProgram &step) : step(step) {}

  void add(uint32_t communicator, const char *kind, DType dtype, int64_t bytes, int64_t times = 1) {
    if (membersOf(step, communicator) >= 2 && times > 0)
      counts[{communicator, kind, dtype, bytes}] += times;
  }

  std::vector<CollectiveUse> take() const {
    std::vector<CollectiveUse> result;
    for (const auto &[key, count] : counts) {
      const auto &[communicator, kind, dtype, bytes] = key;
      result.push_back({communicator, kind, dtype, bytes, count});
    }
    return result;
  }

private:
  const StepProgram &step;
  std::map<std::tuple<uint32_t, std::string, DType, int64_t>, int64_t> counts;
};

std::string axisOf(const StepProgram &step, uint32_t communicator) {
  static constexpr const char *names[] = {"world", "tp", "kv", "replica", "cp", "cp*dp", "dp"};
  if (communicator == DROVER_COMM_FSDP && step.grid.cp == 1)
    return "dp";
  if (communicator == DROVER_COMM_FSDP && step.grid.dp == 1)
    return "cp";
  return communicator < std::size(names) ? names[communicator] : "pp";
}

/// What a rank sends for one.
int64_t sentBytes(const CollectiveUse &use, int64_t n) {
  if (use.kind == "all_reduce")
    return 2 * use.bytes * (n - 1) / n;
  if (use.kind == "broadcast" || use.kind == "shift") // of a broadcast by its root, of a shift by each
    return use.bytes;
  return use.bytes / n * (n - 1);
}

/// Runs of each phase of each chunk in a stage's list.
std::map<std::pair<uint32_t, uint32_t>, int64_t> countRuns(const StepProgram &step, const Stage &stage) {
  std::map<std::pair<uint32_t, uint32_t>, int64_t> runs;
  for (uint64_t i = 0; i < stage.numActions; ++i)
    if (const drover_action &action = step.actions[stage.firstAction + i]; action.kind == DROVER_RUN)
      ++runs[{action.chunk, action.phase}];
  return runs;
}

void addGather(const StepProgram &step, const drover_action &action, UseSum &sum) {
  const Bucket &bucket = step.buckets[action.chunk];
  int64_t bytes = bucket.elements * bytesOf(step.computeType);
  if (action.peer)
    sum.add(action.peer, "broadcast", step.computeType, step.isSharded() ? bytes / step.grid.fsdp() : bytes);
  if (step.isSharded())
    sum.add(DROVER_COMM_FSDP, "all_gather", step.computeType, bytes);
}

void addReduce(const StepProgram &step, const drover_action &action, UseSum &sum) {
  const Bucket &bucket = step.buckets[action.chunk];
  for (const Section &section : bucket.sections)
    if (section.sum != GridAxis::None)
      sum.add(section.sum == GridAxis::Tp   ? DROVER_COMM_TP
              : section.sum == GridAxis::Kv ? DROVER_COMM_KV
                                            : DROVER_COMM_REPLICA,
              "all_reduce", DType::F32, section.elements * 4);
  sum.add(DROVER_COMM_FSDP, step.isSharded() ? "reduce_scatter" : "all_reduce", DType::F32, bucket.elements * 4);
  if (action.peer)
    sum.add(action.peer, "all_reduce", DType::F32, step.shardElements(bucket) * 4);
}

/// Of each key the traffic of the stage that has most.
std::vector<Traffic> busiestTraffic(const StepProgram &step, const Batch &batch) {
  std::map<std::tuple<std::string, std::string, DType>, Traffic> most;
  for (size_t stage = 0; stage < batch.stages.size(); ++stage)
    for (Traffic &traffic : trafficOf(step, batch, stage)) {
      Traffic &best = most[{traffic.axis, traffic.kind, traffic.dtype}];
      if (traffic.bytesPerRank > best.bytesPerRank)
        best = std::move(traffic);
    }
  std::vector<Traffic> result;
  for (auto &[key, traffic] : most)
    if (traffic.count > 0)
      result.push_back(std::move(traffic));
  return result;
}

double busiestFlops(const StepProgram &step, const Batch &batch) {
  double most = 0;
  for (size_t stage = 0; stage < batch.stages.size(); ++stage)
    most = std::max(most, flopsOf(step, batch, stage));
  return most;
}

} // namespace

std::vector<CollectiveUse> drover::schedule::collectivesOf(const StepProgram &step, const Batch &batch, size_t stage) {
  UseSum sum(step);
  const Stage &program = batch.stages[stage];
  for (const auto &[key, times] : countRuns(step, program))
    for (const StepCall &call : step.chunks[key.first].phases[key.second])
      for (const BodyCollective &collective : step.bodies[call.body].collectives)
        sum.add(collective.communicator, nameOfCollective(collective.kind), collective.dtype, collective.bytes, times);
  for (uint64_t i = 0; i < program.numActions; ++i) {
    const drover_action &action = step.actions[program.firstAction + i];
    if (action.kind == DROVER_GATHER)
      addGather(step, action, sum);
    else if (action.kind == DROVER_REDUCE)
      addReduce(step, action, sum);
    else if (action.kind == DROVER_COUNT)
      sum.add(DROVER_COMM_WORLD, "all_reduce", DType::I64, 8);
    else if (action.kind == DROVER_CLIP)
      sum.add(DROVER_COMM_WORLD, "all_reduce", DType::F64, 16);
  }
  return sum.take();
}

std::vector<Traffic> drover::schedule::trafficOf(const StepProgram &step, const Batch &batch, size_t stage) {
  std::map<std::tuple<std::string, std::string, DType>, Traffic> sums;
  for (const CollectiveUse &use : collectivesOf(step, batch, stage)) {
    std::string axis = axisOf(step, use.communicator);
    Traffic &traffic = sums[{axis, use.kind, use.dtype}];
    traffic.axis = axis;
    traffic.kind = use.kind;
    traffic.dtype = use.dtype;
    traffic.count += use.count;
    traffic.bytesPerRank += use.count * sentBytes(use, membersOf(step, use.communicator));
  }
  std::vector<Traffic> result;
  for (auto &[key, traffic] : sums)
    result.push_back(std::move(traffic));
  return result;
}

int64_t drover::schedule::messageBytes(const StepProgram &step, const drover_action &send) {
  const StepChunk &chunk = step.chunks[send.chunk];
  return send.phase == 0 ? chunk.yBytes : chunk.dxBytes;
}

Messages drover::schedule::messagesOf(const StepProgram &step, const Batch &batch) {
  Messages messages;
  for (const Stage &stage : batch.stages)
    for (uint64_t i = 0; i < stage.numActions; ++i) {
      const drover_action &action = step.actions[stage.firstAction + i];
      if (action.kind != DROVER_SEND)
        continue;
      ++messages.count;
      messages.bytes += messageBytes(step, action);
    }
  return messages;
}

double drover::schedule::flopsOf(const StepProgram &step, const Batch &batch, size_t stage) {
  double flops = 0;
  for (const auto &[key, times] : countRuns(step, batch.stages[stage]))
    for (const StepCall &call : step.chunks[key.first].phases[key.second])
      flops += static_cast<double>(step.bodies[call.body].flops) * static_cast<double>(times);
  return flops;
}

int64_t drover::schedule::peakMemoryOf(const StepProgram &, const Batch &batch, size_t stage) {
  return batch.stages[stage].arenaBytes + batch.stages[stage].memory.workspace;
}

/// The faults of a batch, and those of the program, which are every batch's.
static std::vector<std::string> faultsOf(const StepProgram &step, const Batch &batch,
                                         const std::vector<std::string> &faults) {
  std::vector<std::string> own;
  for (const std::string &fault : faults) {
    auto begins = [&](const Batch &other) { return fault.rfind(faultPrefix(other), 0) == 0; };
    if (begins(batch) || std::none_of(step.batches.begin(), step.batches.end(), begins))
      own.push_back(fault);
  }
  return own;
}

std::string drover::schedule::reportJson(const StepProgram &step, const std::vector<std::string> &faults) {
  Json batches = Json::array();
  for (const Batch &batch : step.batches) {
    Json memory = Json::array(), collectives = Json::array();
    for (size_t stage = 0; stage < batch.stages.size(); ++stage)
      memory.push_back(peakMemoryOf(step, batch, stage));
    for (const Traffic &traffic : busiestTraffic(step, batch))
      collectives.push_back({{"axis", traffic.axis},
                             {"kind", traffic.kind},
                             {"dtype", nameOf(traffic.dtype)},
                             {"count", traffic.count},
                             {"bytes_per_rank", traffic.bytesPerRank}});
    Messages messages = messagesOf(step, batch);
    Json entry = {{"global_batch", batch.globalBatch},
                  {"microbatches", batch.microbatches},
                  {"groups", batch.groups},
                  {"bubble_ratio", bubbleRatio(step, batch)},
                  {"bubble_ratio_weighted", bubbleRatioWeighted(step, batch)},
                  {"flops_per_rank", busiestFlops(step, batch)},
                  {"peak_memory_bytes", memory},
                  {"collectives", collectives},
                  {"sends", {{"count", messages.count}, {"bytes", messages.bytes}}}};
    if (std::vector<std::string> own = faultsOf(step, batch, faults); own.empty())
      entry["proof"] = "ok";
    else
      entry["proof"] = own;
    batches.push_back(std::move(entry));
  }
  Json report = {{"ranks", step.grid.ranks()}, {"plan", Json::parse(serializePlan(step.plan))}, {"batches", batches}};
  return report.dump(2) + "\n";
}

static std::string bytesText(int64_t bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  std::ostringstream text;
  text << std::fixed << std::setprecision(unit ? 1 : 0) << value << " " << units[unit];
  return text.str();
}

static void printMemory(std::ostream &os, const StepProgram &step, const Batch &batch) {
  os << "  memory by stage   total       parameters  gradients   optimizer   stash       boundary    scratch     "
        "workspace   inputs      logits\n";
  for (size_t stage = 0; stage < batch.stages.size(); ++stage) {
    const Memory &memory = batch.stages[stage].memory;
    os << "  " << std::left << std::setw(18) << stage;
    for (int64_t bytes :
         {peakMemoryOf(step, batch, stage), memory.parameters, memory.gradients, memory.optimizer, memory.stash,
          memory.boundary, memory.scratch, memory.workspace, memory.inputs, memory.logits})
      os << std::setw(12) << bytesText(bytes);
    os << "\n";
  }
}

std::string drover::schedule::reportText(const StepProgram &step, const std::vector<std::string> &faults) {
  std::ostringstream os;
  const Grid &grid = step.grid;
  os << grid.ranks() << " ranks: TP " << grid.tp << ", CP " << grid.cp << ", PP " << grid.pp << ", DP " << grid.dp
     << "; " << step.chunks.size() << " chunks, " << step.bodies.size() << " bodies, " << step.actions.size()
     << " actions\n";
  for (const Batch &batch : step.batches) {
    os << "global batch " << batch.globalBatch << ": " << batch.microbatches << " microbatches in groups of";
    for (int64_t size : batch.groups)
      os << " " << size;
    os << "\n  bubble ratio " << bubbleRatio(step, batch) << " (by FLOPs " << bubbleRatioWeighted(step, batch) << "), "
       << busiestFlops(step, batch) << " FLOPs a rank\n";
    printMemory(os, step, batch);
    os << "  collectives       kind              dtype       count       bytes a rank\n";
    for (const Traffic &traffic : busiestTraffic(step, batch))
      os << "  " << std::left << std::setw(18) << traffic.axis << std::setw(18) << traffic.kind << std::setw(12)
         << nameOf(traffic.dtype) << std::setw(12) << traffic.count << bytesText(traffic.bytesPerRank) << "\n";
    Messages messages = messagesOf(step, batch);
    os << "  messages of one pipeline: " << messages.count << ", " << bytesText(messages.bytes) << "\n";
  }
  if (faults.empty())
    os << "proof: ok\n";
  for (const std::string &fault : faults)
    os << "fault: " << fault << "\n";
  return os.str();
}
