//===- RankPlan.cpp - what a rank's coordinates make of a program ---------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/rank_plan.h"
#include <algorithm>

namespace drover::rt {

const char *fixedCommunicatorName(int id) {
  static constexpr const char *names[] = {"world", "tp", "kv", "replica", "cp", "fsdp", "dp"};
  return names[id];
}

ElementRange ElementRange::intersect(const ElementRange &other) const {
  int64_t begin = std::max(first, other.first);
  return {begin, std::max<int64_t>(0, std::min(end(), other.end()) - begin)};
}

/// The axes over which the members of a communicator with a fixed id differ.
static std::vector<int> axesOf(int id) {
  switch (id) {
  case DROVER_COMM_WORLD:
    return {DROVER_AXIS_TP, DROVER_AXIS_CP, DROVER_AXIS_PP, DROVER_AXIS_DP};
  case DROVER_COMM_TP:
    return {DROVER_AXIS_TP};
  case DROVER_COMM_KV:
    return {DROVER_AXIS_KV};
  case DROVER_COMM_REPLICA:
    return {DROVER_AXIS_REPLICA};
  case DROVER_COMM_CP:
    return {DROVER_AXIS_CP};
  case DROVER_COMM_FSDP:
    return {DROVER_AXIS_CP, DROVER_AXIS_DP};
  default:
    return {DROVER_AXIS_DP};
  }
}

static int64_t fsdpIndexOf(const Grid &grid, int64_t rank) {
  std::vector<int32_t> fsdp = grid.group(rank, axesOf(DROVER_COMM_FSDP));
  return std::lower_bound(fsdp.begin(), fsdp.end(), int32_t(rank)) - fsdp.begin();
}

RankPlan::RankPlan(const Program &program, int64_t rank)
    : rank(rank), place(program.grid.coordinates(rank)), stage(place[DROVER_AXIS_PP]) {
  auto add = [&](int32_t id, std::string name, std::vector<int32_t> members) {
    if (members.size() > 1)
      groups.push_back({id, std::move(name), std::move(members)});
  };
  for (int id = DROVER_COMM_WORLD; id <= DROVER_COMM_DP; ++id)
    if (program.grid.isSplit() || (id != DROVER_COMM_KV && id != DROVER_COMM_REPLICA))
      add(id, fixedCommunicatorName(id), program.grid.group(rank, axesOf(id)));
  for (const ListedCommunicator &listed : program.communicators) {
    std::vector<int32_t> members;
    for (int64_t other : listed.stages) {
      Coordinates there = place;
      there[DROVER_AXIS_PP] = int32_t(other);
      members.push_back(int32_t(program.grid.rankAt(there)));
    }
    std::sort(members.begin(), members.end());
    if (std::find(listed.stages.begin(), listed.stages.end(), stage) != listed.stages.end())
      add(listed.id, listed.name, std::move(members));
  }
  std::sort(groups.begin(), groups.end(), [](const GroupPlan &a, const GroupPlan &b) { return a.id < b.id; });
  fsdpSize = program.grid.size(DROVER_AXIS_CP) * program.grid.size(DROVER_AXIS_DP);
  fsdpIndex = fsdpIndexOf(program.grid, rank);
}

ElementRange RankPlan::shard(const BucketInfo &bucket) const {
  int64_t elements = bucket.elements / fsdpSize;
  return {fsdpIndex * elements, elements};
}

ElementRange shardOf(const Grid &grid, int64_t rank, const BucketInfo &bucket) {
  int64_t elements = bucket.elements / (grid.size(DROVER_AXIS_CP) * grid.size(DROVER_AXIS_DP));
  return {fsdpIndexOf(grid, rank) * elements, elements};
}

bool RankPlan::holds(const Program &program, int64_t bucket) const {
  const std::vector<int64_t> &chunks = program.buckets[size_t(bucket)].chunks;
  return std::any_of(chunks.begin(), chunks.end(), [&](int64_t chunk) { return program.stageOf(chunk) == stage; });
}

} // namespace drover::rt
