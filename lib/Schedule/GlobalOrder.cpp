//===- GlobalOrder.cpp - one sequence of all stages' work -----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/GlobalOrder.h"
#include <algorithm>
#include <cassert>
#include <tuple>

using namespace drover::schedule;

std::vector<GlobalItem> drover::schedule::orderGlobally(const StepProgram &step, const Batch &batch) {
  int64_t stages = step.grid.pp, chunks = step.plan.chunks;
  ScheduleKind kind = step.plan.schedule();
  std::vector<std::vector<WorkItem>> orders;
  for (int64_t stage = 0; stage < stages; ++stage) {
    orders.push_back(orderOfRank(kind, stages, chunks, batch.groups, stage));
    auto isBackward = [](const WorkItem &item) { return item.phase != Phase::Forward; };
    if (!step.train)
      orders.back().erase(std::remove_if(orders.back().begin(), orders.back().end(), isBackward), orders.back().end());
  }
  PhaseCosts costs;
  if (kind == ScheduleKind::ZeroBubbleH1)
    costs = {1, 1, 1, {}};
  Replay replay = replayOrders(stages, chunks, batch.microbatches, orders, costs);
  assert(!replay.deadlock && "groups that `groupsOf` accepts do not deadlock");

  std::vector<std::pair<double, GlobalItem>> items;
  for (uint32_t stage = 0; stage < orders.size(); ++stage)
    for (uint32_t i = 0; i < orders[stage].size(); ++i) {
      const WorkItem &item = orders[stage][i];
      auto chunk = static_cast<uint32_t>(item.chunk * stages + stage);
      items.push_back({replay.ends[stage][i], {stage, chunk, item.microbatch, item.phase, i}});
    }
  std::sort(items.begin(), items.end(), [](const auto &a, const auto &b) {
    return std::make_tuple(a.first, a.second.stage, a.second.ordinal) <
           std::make_tuple(b.first, b.second.stage, b.second.ordinal);
  });
  std::vector<GlobalItem> sequence;
  sequence.reserve(items.size());
  for (const auto &[end, item] : items)
    sequence.push_back(item);
  return sequence;
}
