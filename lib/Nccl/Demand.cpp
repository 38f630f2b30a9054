//===- Demand.cpp - what a program's communicators exchange ---------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Nccl/Settings.h"
#include "drover/Schedule/Report.h"
#include <algorithm>

using namespace drover;
using namespace drover::nccl;

namespace {
/// A dimension of communicators with fixed ids, or all edges, or all ties of so many stages.
Demand &demandOf(std::vector<Demand> &demands, const std::string &name, int64_t members) {
  for (Demand &demand : demands)
    if (demand.name == name && demand.members == members)
      return demand;
  demands.push_back({name, {}, {}, members, {}, 0, false});
  return demands.back();
}

Demand *demandOfId(std::vector<Demand> &demands, uint32_t id) {
  for (Demand &demand : demands)
    if (std::find(demand.ids.begin(), demand.ids.end(), id) != demand.ids.end())
      return &demand;
  return nullptr;
}

std::optional<cost::CollectiveKind> kindOf(const std::string &name) {
  for (auto kind : {cost::CollectiveKind::AllGather, cost::CollectiveKind::ReduceScatter,
                    cost::CollectiveKind::AllReduce, cost::CollectiveKind::Broadcast})
    if (name == cost::nameOf(kind))
      return kind;
  return std::nullopt; // a shift is messages
}

void addUse(Demand &demand, const schedule::CollectiveUse &use) {
  std::optional<cost::CollectiveKind> kind = kindOf(use.kind);
  if (!kind) {
    demand.messageBytes = std::max(demand.messageBytes, use.bytes);
    return;
  }
  for (Use &known : demand.uses)
    if (known.collective == *kind) {
      known.mostBytes = std::max(known.mostBytes, use.bytes);
      return;
    }
  demand.uses.push_back({*kind, use.bytes});
}
} // namespace

std::vector<Demand> nccl::demandsOf(const schedule::StepProgram &step) {
  static constexpr const char *names[] = {"world", "tp", "kv", "replica", "cp", "fsdp", "dp"};
  std::vector<Demand> demands;
  for (uint32_t id = DROVER_COMM_WORLD; id <= DROVER_COMM_DP; ++id) {
    bool split = id == DROVER_COMM_KV || id == DROVER_COMM_REPLICA;
    if (schedule::membersOf(step, id) < 2 || (split && !step.grid.kv))
      continue;
    demandOf(demands, names[id], schedule::membersOf(step, id)).ids.push_back(id);
  }
  for (const schedule::Communicator &listed : step.communicators) {
    int64_t members = schedule::membersOf(step, listed.id);
    if (members < 2)
      continue;
    Demand &demand = demandOf(demands, listed.isTie ? "ties" : "edges", members);
    demand.ids.push_back(listed.id);
    demand.stages.push_back(listed.isTie ? listed.stages : std::vector<int32_t>{listed.from, listed.to});
  }
  for (const schedule::Batch &batch : step.batches)
    for (size_t stage = 0; stage < batch.stages.size(); ++stage) {
      for (const schedule::CollectiveUse &use : schedule::collectivesOf(step, batch, stage))
        if (Demand *demand = demandOfId(demands, use.communicator))
          addUse(*demand, use);
      const schedule::Stage &list = batch.stages[stage];
      for (uint64_t i = 0; i < list.numActions; ++i)
        if (const drover_action &action = step.actions[list.firstAction + i]; action.kind == DROVER_SEND)
          if (Demand *demand = demandOfId(demands, action.peer))
            demand->messageBytes = std::max(demand->messageBytes, schedule::messageBytes(step, action));
    }
  // Gathers and reductions of parameters have streams of their own, and so have messages; collectives of bodies are
  // waited for, unless the plan puts them beside matmuls.
  for (Demand &demand : demands)
    demand.beside = demand.name == "fsdp" || demand.name == "dp" || demand.name == "ties" ||
                    (demand.name == "tp" && step.plan.tpOverlap != "none");
  return demands;
}
