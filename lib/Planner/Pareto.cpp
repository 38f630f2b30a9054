//===- Pareto.cpp - memory against speed ----------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "PlaceAxes.h"
#include "drover/Planner/Report.h"

using namespace drover;
using namespace drover::planner;
using schedule::Result;

/// Of the limit before.
constexpr double kNextLimit = 0.9;
constexpr size_t kMostPoints = 16;

Result<std::vector<ParetoPoint>> planner::paretoOf(const Problem &problem, const Solution &solution,
                                                   const Progress &progress) {
  std::vector<ParetoPoint> points;
  if (solution.plans.empty() || !solution.plans.front().fits)
    return std::move(points);
  const cluster::Device &device = problem.cluster.device;
  points.push_back({solution.plans.front(), device.usableBytes - device.contextBytes});
  std::vector<double> limits(1, kNextLimit * solution.plans.front().peakBytes());
  while (limits.size() + 1 < kMostPoints)
    limits.push_back(kNextLimit * limits.back());
  Problem limited = problem;
  limited.top = 1;
  Result<std::vector<std::optional<RankedPlan>>> fastest = solveWithin(limited, limits, progress);
  if (!fastest)
    return schedule::Error{fastest.error()};
  for (size_t i = 0; i < limits.size() && (*fastest)[i]; ++i) {
    // One layout may be the fastest within several limits: the least of them says most.
    if (i > 0 && (*fastest)[i]->peakBytes() == points.back().plan.peakBytes())
      points.back().limitBytes = limits[i];
    else
      points.push_back({std::move(*(*fastest)[i]), limits[i]});
  }
  return std::move(points);
}
