//===- ReplayStep.cpp - a step program in time ----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/ReplayStep.h"
#include <algorithm>
#include <tuple>

using namespace drover::schedule;

double StepReplay::busiest() const { return *std::max_element(work.begin(), work.end()); }

std::vector<std::pair<uint32_t, uint32_t>> drover::schedule::sequenceOf(const StepProgram &step, const Batch &batch) {
  std::vector<std::pair<uint32_t, uint32_t>> order;
  for (uint32_t stage = 0; stage < batch.stages.size(); ++stage)
    for (uint32_t i = 0; i < batch.stages[stage].numActions; ++i)
      order.emplace_back(stage, i);
  auto keyOf = [&](const std::pair<uint32_t, uint32_t> &place) {
    const drover_action &action = step.actions[batch.stages[place.first].firstAction + place.second];
    // Of a transfer the send comes first.
    return std::make_tuple(action.sequence, action.kind == DROVER_RECEIVE, place);
  };
  std::sort(order.begin(), order.end(), [&](const auto &a, const auto &b) { return keyOf(a) < keyOf(b); });
  return order;
}

StepReplay drover::schedule::replayStep(const StepProgram &step, const Batch &batch, const StepCosts &costs) {
  StepReplay replay;
  replay.work.assign(batch.stages.size(), 0);
  std::vector<std::array<double, DROVER_NUM_STREAMS>> streams(batch.stages.size());
  std::vector<std::vector<double>> ends;
  for (const Stage &stage : batch.stages)
    ends.emplace_back(stage.numActions, 0.0);
  for (auto &stream : streams)
    stream.fill(0);

  std::vector<std::pair<uint32_t, uint32_t>> order = sequenceOf(step, batch);
  auto actionAt = [&](size_t i) -> const drover_action & {
    return step.actions[batch.stages[order[i].first].firstAction + order[i].second];
  };
  for (size_t first = 0; first < order.size();) {
    // Members of one element end together.
    size_t last = first;
    double start = 0, cost = 0;
    for (; last < order.size() && actionAt(last).sequence == actionAt(first).sequence; ++last) {
      auto [s, place] = order[last];
      const Stage &stage = batch.stages[s];
      const drover_action &action = actionAt(last);
      start = std::max(start, streams[s][action.stream]);
      for (uint32_t w = 0; w < action.num_waits; ++w)
        start = std::max(start, ends[s][stage.waits[action.first_wait + w]]);
      if (action.kind == DROVER_RUN) {
        cost = costs.phases[action.chunk][action.phase];
        replay.work[s] += cost;
      } else if (action.kind == DROVER_SEND) {
        cost = costs.transfer;
      } else if (action.kind == DROVER_GATHER && !costs.gathers.empty()) {
        cost = costs.gathers[action.chunk];
      } else if (action.kind == DROVER_REDUCE && !costs.reductions.empty()) {
        cost = costs.reductions[action.chunk];
      }
    }
    for (size_t i = first; i < last; ++i) {
      auto [s, place] = order[i];
      streams[s][actionAt(i).stream] = ends[s][place] = start + cost;
    }
    replay.makespan = std::max(replay.makespan, start + cost);
    first = last;
  }
  return replay;
}

StepCosts drover::schedule::evenCosts(const StepProgram &step) {
  bool isSplit = step.plan.schedule() == ScheduleKind::ZeroBubbleH1;
  StepCosts costs;
  costs.phases.assign(step.chunks.size(), {1.0, isSplit ? 1.0 : 2.0, 1.0});
  return costs;
}

StepCosts drover::schedule::flopCosts(const StepProgram &step) {
  StepCosts costs;
  for (const StepChunk &chunk : step.chunks) {
    std::array<double, 3> &phases = costs.phases.emplace_back();
    phases.fill(0);
    for (size_t phase = 0; phase < chunk.phases.size(); ++phase)
      for (const StepCall &call : chunk.phases[phase])
        phases[phase] += static_cast<double>(step.bodies[call.body].flops);
  }
  return costs;
}

/// The order of a stage's phases, read off its list.
static std::vector<WorkItem> orderOf(const StepProgram &step, const Stage &stage) {
  std::vector<WorkItem> order;
  for (uint64_t i = 0; i < stage.numActions; ++i)
    if (const drover_action &action = step.actions[stage.firstAction + i]; action.kind == DROVER_RUN)
      order.push_back(
          {static_cast<Phase>(action.phase), action.chunk / static_cast<uint32_t>(step.grid.pp), action.microbatch});
  return order;
}

double drover::schedule::bubbleRatio(const StepProgram &step, const Batch &batch) {
  bool isSplit = step.plan.schedule() == ScheduleKind::ZeroBubbleH1;
  std::vector<std::vector<WorkItem>> orders;
  for (const Stage &stage : batch.stages)
    orders.push_back(orderOf(step, stage));
  return replayOrders(step.grid.pp, step.plan.chunks, batch.microbatches, orders, {1, isSplit ? 1.0 : 2.0, 1, {}})
      .bubbleRatio();
}

double drover::schedule::bubbleRatioWeighted(const StepProgram &step, const Batch &batch) {
  StepReplay replay = replayStep(step, batch, flopCosts(step));
  return replay.busiest() > 0 ? replay.bubbleRatio() : 0;
}
