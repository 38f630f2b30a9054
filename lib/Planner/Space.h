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
/// (schedule and run) and what is sharded.
struct LayoutGroup {
  schedule::Plan plan; // schedule, run and zero are open
  double bound = 0;    // seconds of a step
  size_t index = 0;    // in the space's order
};

/// Enumerates the layouts of a problem.
class Space {
public:
  explicit Space(const Problem &problem);

  /// Groups in a fixed order. What is left out, and why, is counted in `rejections`.
  void forEachGroup(const std::function<void(const schedule::Plan &)> &visit);
  /// The layouts of a group.
  std::vector<schedule::Plan> expand(const schedule::Plan &group) const;
  /// How many `expand` gives.
  int64_t countLayouts(const schedule::Plan &group) const { return static_cast<int64_t>(expand(group).size()); }

  /// By constraint: grids or layouts that it alone keeps out, with one of them as an example.
  struct Rejection {
    int64_t count = 0;
    std::string example;
  };
  const std::map<std::string, Rejection> &getRejections() const { return rejections; }

  /// The heuristic cuts that narrow this problem's space, for readers.
  std::string describeLimits() const;

private:
  void visitGrid(schedule::Plan plan, const std::function<void(const schedule::Plan &)> &visit);
  void visitChunks(const schedule::Plan &plan, const std::function<void(const schedule::Plan &)> &visit);
  void reject(const char *constraint, const std::string &example);
  std::vector<int64_t> divisors(const std::vector<int64_t> &chosen, int64_t limit) const;
  std::vector<std::vector<int64_t>> layersOf(int64_t chunks) const;

  const Problem &problem;
  std::map<std::string, Rejection> rejections;
};

} // namespace drover::planner

#endif // DROVER_LIB_PLANNER_SPACE_H
