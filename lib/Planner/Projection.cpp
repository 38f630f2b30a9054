//===- Projection.cpp - how long a layout's step takes --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Planner/Projection.h"
#include "SharedCores.h"
#include <algorithm>

using namespace drover;
using namespace drover::planner;
using schedule::Result;

namespace {

/// What the replay of a plan does, whose own zero 3 is not what the software does.
schedule::Plan replayedPlan(const Layout &layout, const Software &software) {
  schedule::Plan plan = layout.plan;
  if (software.fineBuckets)
    plan.zero = std::min<int64_t>(plan.zero, 1);
  return plan;
}

/// Work of a stage in a step, by part.
Breakdown partsOfStage(const LayoutCosts &costs, int64_t stage, int64_t stages) {
  Breakdown parts;
  auto count = static_cast<double>(costs.microbatches);
  for (size_t chunk = static_cast<size_t>(stage); chunk < costs.chunks.size(); chunk += static_cast<size_t>(stages)) {
    for (size_t phase = 0; phase < 2; ++phase) {
      const BodySeconds &seconds = costs.chunks[chunk][phase];
      parts.matmul += count * seconds.matmul;
      parts.attention += count * seconds.attention;
      parts.memoryBound += count * seconds.memoryBound;
      parts.tpExposed += count * seconds.tpExposed;
      parts.cpExposed += count * seconds.cpExposed;
      parts.launch += count * seconds.launch;
      parts.head += count * costs.ends[chunk][phase];
    }
    parts.dpExposed += count * costs.layerExchange[chunk];
  }
  return parts;
}
/// Seconds of a stage's gathers and reductions in a step, hidden or not.
double exchangeOfStage(const LayoutCosts &costs, const ReplayProgram &program, int64_t stage) {
  double seconds = 0;
  for (const ReplayProgram::Event &event : program.getEvents())
    if (event.kind != ReplayProgram::Event::Join && event.stages[0] == stage)
      seconds += costs.exchange[event.bucket][event.kind == ReplayProgram::Event::Reduce];
  return seconds;
}
} // namespace

std::vector<std::pair<const char *, double>> planner::partsOf(const Breakdown &parts) {
  return {{"matmul", parts.matmul},
          {"attention", parts.attention},
          {"memory_bound", parts.memoryBound},
          {"head", parts.head},
          {"tp_exposed", parts.tpExposed},
          {"cp_exposed", parts.cpExposed},
          {"pp_exposed", parts.ppExposed},
          {"dp_exposed", parts.dpExposed},
          {"bubble", parts.bubble},
          {"optimizer", parts.optimizer},
          {"launch", parts.launch},
          {"imbalance", parts.imbalance},
          {"core_sharing", parts.sharing}};
}

double Projection::flopsPerSecondPerGpu(cost::FlopsCount count) const {
  double flops = count == cost::FlopsCount::Causal ? causalFlops
                 : count == cost::FlopsCount::Full ? fullFlops
                                                   : hardwareFlops;
  return flops / stepSeconds / static_cast<double>(ranks);
}

Result<Projection> planner::project(const cost::ModelShape &shape, const cluster::Cluster &cluster,
                                    const Layout &layout, const Software &software) {
  Result<LayoutCosts> priced = priceLayout(shape, cluster, layout, software);
  if (!priced)
    return schedule::Error{priced.error()};
  Result<ReplayProgram> program =
      ReplayProgram::build(replayedPlan(layout, software), priced->microbatches, priced->shape);
  if (!program)
    return schedule::Error{program.error()};
  return project(shape, cluster, layout.plan, *priced, *program);
}

Projection planner::project(const cost::ModelShape &shape, const cluster::Cluster &cluster, const schedule::Plan &plan,
                            const LayoutCosts &costs, const ReplayProgram &program) {
  // Three replays tell apart what waits for order, for messages and for DP.
  ReplayTimes times;
  ReplayCosts free = costs.replay;
  free.transfers.clear();
  free.gathers.clear();
  free.reductions.clear();
  replay(program, free, times);
  double alone = times.makespan;
  free.transfers = costs.replay.transfers;
  replay(program, free, times);
  double withMessages = times.makespan;
  replay(program, costs.replay, times);
  double makespan = times.makespan;

  int64_t busiest = 0;
  double most = -1;
  for (int64_t stage = 0; stage < plan.pp; ++stage)
    if (double work = partsOfStage(costs, stage, plan.pp).total(); work > most)
      most = work, busiest = stage;
  Projection result;
  Breakdown &parts = result.breakdown;
  parts = partsOfStage(costs, busiest, plan.pp);
  parts.bubble = alone - most;
  parts.ppExposed = withMessages - alone;
  double exchange = exchangeOfStage(costs, program, busiest);
  double shown = makespan - withMessages;
  // What runs beside compute takes some of it.
  double beside = costs.contention * std::max(0.0, exchange - shown);
  parts.dpExposed += shown + beside + costs.dpSerial;
  parts.imbalance = costs.slowest * makespan + costs.documents;
  parts.optimizer = costs.optimizer;
  result.ranks = plan.tp * plan.cp * plan.pp * plan.dp;
  const cluster::Device &device = cluster.device;
  if (device.sharedCores > 0) {
    auto cores = static_cast<double>(device.sharedCores), ranks = static_cast<double>(result.ranks);
    auto threads = static_cast<double>(device.threadsOf(result.ranks));
    double shared =
        sharedMakespan(program, costs.replay, times, {cores, ranks / static_cast<double>(plan.pp) * threads});
    parts.sharing = shared - makespan + costs.optimizer * (std::max(1.0, ranks * threads / cores) - 1);
  }
  result.stepSeconds = costs.stepSeconds(makespan) + beside + parts.sharing;
  result.bubbleRatio = schedule::expectedBubbleRatio(plan.schedule(), plan.pp, plan.chunks, costs.microbatches);

  result.tokens = static_cast<double>(plan.globalBatches.front()) * static_cast<double>(plan.sequenceLength);
  result.causalFlops = result.tokens * shape.flopsPerToken(plan.sequenceLength, cost::FlopsCount::Causal);
  result.fullFlops = result.tokens * shape.flopsPerToken(plan.sequenceLength, cost::FlopsCount::Full);
  result.hardwareFlops = costs.hardwareFlops;
  result.peak =
      device.peakOf(device.peakOf(cluster::Precision::BF16) > 0 ? cluster::Precision::BF16 : cluster::Precision::F32);
  if (device.sharedCores > 0) // a rank's part of the host
    result.peak *= static_cast<double>(device.sharedCores) / static_cast<double>(result.ranks);
  return result;
}
