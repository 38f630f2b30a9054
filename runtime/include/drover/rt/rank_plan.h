//===- rank_plan.h - what a rank's coordinates make of a program -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_RANK_PLAN_H
#define DROVER_RT_RANK_PLAN_H

#include "drover/rt/program.h"

namespace drover::rt {

/// A group that a rank is in.
struct GroupPlan {
  int32_t id;
  std::string name;
  std::vector<int32_t> members; // ranks of the world, ascending
};

/// Elements of a bucket.
struct ElementRange {
  int64_t first, elements;

  int64_t end() const { return first + elements; }
  ElementRange intersect(const ElementRange &other) const;
};

/// One program serves all ranks; this is the part of one.
struct RankPlan {
  RankPlan(const Program &program, int64_t rank);

  int64_t rank;
  Coordinates place;
  int64_t stage;
  std::vector<GroupPlan> groups; // of two or more, by id: the order of their creation
  int64_t fsdpIndex, fsdpSize;   // in the group of cp and dp

  /// The elements of a bucket that this rank reduces to, counts in the norm and updates (with zero 0 it updates all).
  ElementRange shard(const BucketInfo &bucket) const;
  bool owns(const Program &program, int64_t bucket) const { return program.ownerStage(bucket) == stage; }
  bool holds(const Program &program, int64_t bucket) const;
};

/// RankPlan::shard of any rank.
ElementRange shardOf(const Grid &grid, int64_t rank, const BucketInfo &bucket);

/// The name of a communicator with a fixed id.
const char *fixedCommunicatorName(int id);

} // namespace drover::rt

#endif // DROVER_RT_RANK_PLAN_H
