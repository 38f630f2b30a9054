//===- Pareto.cpp - memory against speed ----------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "PlaceAxes.h"
#include "drover/Planner/Report.h"

using namespace drover;
using namespace drover::planner;
using schedule::Result;

/// Of what the point before needs.
constexpr double kNextLimit = 0.9;
constexpr size_t kMostPoints = 12;

Result<std::vector<ParetoPoint>> planner::paretoOf(const Problem &problem, const Solution &solution) {
  std::vector<ParetoPoint> points;
  if (solution.plans.empty() || !solution.plans.front().fits)
    return std::move(points);
  const cluster::Device &device = problem.cluster.device;
  points.push_back({solution.plans.front(), device.usableBytes - device.contextBytes});
  Problem limited = problem;
  limited.top = 1;
  while (points.size() < kMostPoints) {
    double limit = kNextLimit * points.back().plan.peakBytes();
    limited.cluster.device.usableBytes = limit + device.contextBytes;
    Result<Solution> next = solveOnly(limited);
    if (!next)
      return schedule::Error{next.error()};
    if (next->plans.empty() || !next->plans.front().fits)
      break;
    points.push_back({std::move(next->plans.front()), limit});
  }
  return std::move(points);
}
