//===- RankContext.cpp - a rank among the others --------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/rank_context.h"
#include <cstdio>

namespace drover::rt {

RankContext::RankContext(const Program &program, World &world)
    : program(program), world(world), plan(program, world.rank()) {
  if (world.size() != program.grid.ranks())
    fail("a world of ", world.size(), " ranks for a program of ", program.grid.ranks());
  for (const GroupPlan &group : plan.groups) {
    groups.push_back(world.createCommunicator(group.id, group.name, {group.members.begin(), group.members.end()}));
    handles.set(group.id, groups.back().get());
    if (group.id == DROVER_COMM_WORLD) // first of all: what follows is read off the program
      compareHashes();
  }
}

/// What is proven of a program is true where all ranks run that one.
void RankContext::compareHashes() const {
  std::vector<int64_t> hashes = all(int64_t(std::stoull(program.hash, nullptr, 16)));
  for (size_t other = 0; other < hashes.size(); ++other)
    if (hashes[other] != hashes[0]) {
      char text[64];
      std::snprintf(text, sizeof(text), "%016llx, rank 0 that of hash %016llx", (unsigned long long)hashes[other],
                    (unsigned long long)hashes[0]);
      fail("rank ", other, " runs the program of hash ", text, ": expected one executable on all ranks");
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
