//===- RankContext.cpp - a rank among the others --------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/rank_context.h"

namespace drover::rt {

RankContext::RankContext(const Program &program, World &world)
    : program(program), world(world), plan(program, world.rank()) {
  if (world.size() != program.grid.ranks())
    fail("a world of ", world.size(), " ranks for a program of ", program.grid.ranks());
  for (const GroupPlan &group : plan.groups) {
    groups.push_back(world.createCommunicator(group.id, group.name, {group.members.begin(), group.members.end()}));
    handles.set(group.id, groups.back().get());
  }
}

double RankContext::sum(double value) const {
  if (Communicator *group = worldGroup())
    group->allReduce(&value, &value, 1, DROVER_F64, ReduceOp::Sum).wait();
  return value;
}

int64_t RankContext::sum(int64_t value) const {
  if (Communicator *group = worldGroup())
    group->allReduce(&value, &value, 1, DROVER_I64, ReduceOp::Sum).wait();
  return value;
}

int64_t RankContext::maximum(int64_t value) const {
  if (Communicator *group = worldGroup())
    group->allReduce(&value, &value, 1, DROVER_I64, ReduceOp::Max).wait();
  return value;
}

std::vector<int64_t> RankContext::all(int64_t value) const {
  std::vector<int64_t> values(size_t(world.size()), value);
  if (Communicator *group = worldGroup())
    group->allGather(&value, values.data(), DROVER_I64, {1, 1, 1, false}).wait();
  return values;
}

/// A JSON list: what the rank issued, by communicator, kind and dtype.
std::string describeCounts(const RankContext &rank) {
  std::string list;
  for (const auto &[key, count] : rank.world.counts()) {
    const auto &[id, kind, dtype] = key;
    const Communicator *group = rank.find(id);
    list += concat(list.empty() ? "" : ", ", "{\"communicator\": ", id, ", \"name\": \"", group ? group->name() : "",
                   "\", \"kind\": \"", operationName(kind), "\", \"dtype\": \"", dtypeName(dtype),
                   "\", \"count\": ", count.operations, ", \"bytes\": ", count.bytes, ", \"sent\": ", count.sent, "}");
  }
  return "[" + list + "]";
}

} // namespace drover::rt
