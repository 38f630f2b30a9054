//===- Search.h - the best layouts ------------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_PLANNER_SEARCH_H
#define DROVER_PLANNER_SEARCH_H

#include "drover/Planner/Memory.h"
#include "drover/Planner/Problem.h"

namespace drover::planner {

/// A layout with everything that is said of it.
struct RankedPlan {
  Layout layout;
  Projection projection;
  std::vector<StageMemory> memory; // by stage
  bool fits = false;

  /// The stage that holds most.
  const StageMemory &fullest() const;
  double peakBytes() const { return fullest().total(); }
};

/// Why nothing fits, and what would.
struct Infeasibility {
  std::string constraint; // which one, and by how much
  std::string change;     // the nearest feasible change; empty where none was found
};

struct Solution {
  std::vector<RankedPlan> plans; // best first
  std::optional<Infeasibility> infeasible;
  std::optional<Layout> nearest; // where nothing fits for want of memory: what needs least
  int64_t searched = 0;          // layouts of the space
  int64_t priced = 0, replayed = 0;
  /// No layout of the space is faster than this but those listed: the best by construction.
  double provenSeconds = 0;
  std::string limits; // heuristic cuts that apply, for readers; empty where the space is all there is
};

/// Told now and then: layouts looked at, of how many, and the best step so far (0: none).
using Progress = std::function<void(int64_t done, int64_t all, double bestSeconds)>;

/// Expects a problem that `checkProblem` accepts. Every layout of the space is either evaluated or has a bound above
/// the last plan wanted: bounds are of time (work of every stage with the filling of its pipeline) and of memory (what
/// lasts, and the stash before the first backward).
schedule::Result<Solution> solve(const Problem &problem, const Progress &progress = {});

/// All layouts of the space, each evaluated in full, without bounds: for tests and small spaces.
schedule::Result<Solution> solveByEnumeration(const Problem &problem);

/// One layout in full, with what its replay needs. The error is the projection's.
struct DetailedPlan {
  RankedPlan ranked;
  LayoutCosts costs;
  ReplayProgram program;
};
schedule::Result<DetailedPlan> detail(const Problem &problem, const Layout &layout);

/// The same without the replay.
schedule::Result<RankedPlan> evaluate(const Problem &problem, const Layout &layout);

/// The order of the axes that a layout's traffic asks for.
cluster::AxisOrder placeAxes(const Problem &problem, const schedule::Plan &plan);

/// Whether every stage leaves room for the context beside what it holds.
bool fitsOn(const cluster::Device &device, const std::vector<StageMemory> &memory);

/// Recomputes every figure of an answer without the solver's caches and bounds; the error says what differs.
std::optional<schedule::Error> verify(const Problem &problem, const Solution &solution);

} // namespace drover::planner

#endif // DROVER_PLANNER_SEARCH_H
