//===- Space.h - the layouts of a problem -----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_PLANNER_SPACE_H
#define DROVER_LIB_PLANNER_SPACE_H

#include "drover/Planner/Problem.h"
#include <map>

namespace drover::planner {

/// Layouts that share the work of every stage, and so the bound of their time: what differs is the order of the work
/// (schedule and run) and what is sharded. Compact, since there are hundreds of thousands.
struct LayoutGroup {
  int32_t tp = 1, cp = 1, pp = 1, dp = 1, microbatch = 1, chunks = 1;
  uint8_t layers = 0, recompute = 0, tpOverlap = 0; // which of the space's variants
  float bound = 0;                                  // seconds of a step, rounded down
};

/// Enumerates the layouts of a problem.
class Space {
public:
  explicit Space(const Problem &problem);

  /// Groups in a fixed order. What is left out, and why, is counted in `rejections`.
  void forEachGroup(const std::function<void(const LayoutGroup &)> &visit);
  /// A group as a plan whose schedule, run and zero are open.
  schedule::Plan planOf(const LayoutGroup &group) const;
  const std::vector<int64_t> &layersOf(const LayoutGroup &group) const {
    return variants.at(int64_t{group.pp} * group.chunks)[group.layers];
  }
  const std::string &recomputeOf(const LayoutGroup &group) const { return recomputes[group.recompute]; }
  const std::string &tpOverlapOf(const LayoutGroup &group) const { return tpOverlaps[group.tpOverlap]; }
  int64_t microbatchesOf(const LayoutGroup &group) const {
    return problem.globalBatch / (int64_t{group.microbatch} * group.dp);
  }
  /// Whether a group has layouts with split backwards.
  bool hasSplit(const LayoutGroup &group) const;
  /// The layouts of a group; or of each of its schedules and runs the one that shards most, which holds least.
  std::vector<schedule::Plan> expand(const LayoutGroup &group, bool mostSharded = false) const;
  /// How many `expand` gives.
  int64_t countLayouts(const LayoutGroup &group) const;

  /// By constraint: how many grids or layouts it keeps out, with the first of them.
  struct Rejection {
    int64_t count = 0;
    std::string example;
  };
  const std::map<std::string, Rejection> &getRejections() const { return rejections; }

  /// The heuristic cuts that narrow this problem's space, for readers.
  std::string describeLimits() const;

private:
  /// What is open in a group: the schedule, its run and what is sharded.
  struct Opening {
    schedule::ScheduleKind kind;
    int64_t run, zero;
  };
  std::vector<Opening> openingsOf(const LayoutGroup &group, bool mostSharded = false) const;
  void visitGrid(LayoutGroup group, const std::function<void(const LayoutGroup &)> &visit);
  void visitChunks(LayoutGroup group, const std::function<void(const LayoutGroup &)> &visit);
  void reject(const char *constraint, const std::string &example);
  std::vector<int64_t> divisors(const std::vector<int64_t> &chosen, int64_t limit) const;
  void findLayers(int64_t chunks);

  const Problem &problem;
  std::map<std::string, Rejection> rejections;
  std::vector<std::string> recomputes, tpOverlaps;
  std::map<int64_t, std::vector<std::vector<int64_t>>> variants; // layers per chunk, by the number of chunks
};

} // namespace drover::planner

#endif // DROVER_LIB_PLANNER_SPACE_H
