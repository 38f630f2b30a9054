//===- rank_context.h - a rank among the others -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_RANK_CONTEXT_H
#define DROVER_RT_RANK_CONTEXT_H

#include "drover/rt/communicator.h"
#include "drover/rt/rank_plan.h"

namespace drover::rt {

/// A rank's part of the program and its groups, all of which are created here, in the order of their ids.
class RankContext {
public:
  /// Collective over the ranks of the world. Throws Error.
  RankContext(const Program &program, World &world);
  RankContext(const RankContext &) = delete;
  RankContext &operator=(const RankContext &) = delete;

  /// Null where the group would have one member.
  Communicator *find(int id) const { return handles.find(id); }
  Communicator *worldGroup() const { return find(DROVER_COMM_WORLD); }
  /// As compiled code has it; null where there is one rank.
  drover_communicators *bodies() { return groups.empty() ? nullptr : &handles; }

  bool isFirst() const { return plan.rank == 0; }
  /// Of one value a rank, over the world.
  double sum(double value) const;
  int64_t sum(int64_t value) const;
  int64_t maximum(int64_t value) const;
  /// Values of all ranks, by rank.
  std::vector<int64_t> all(int64_t value) const;

  const Program &program;
  World &world;
  const RankPlan plan;

private:
  void compareExecutables() const;

  std::vector<std::unique_ptr<Communicator>> groups;
  drover_communicators handles;
};

/// What one communicator moved, in words, for the end of a log.
std::string describeCounts(const RankContext &rank);

} // namespace drover::rt

#endif // DROVER_RT_RANK_CONTEXT_H
