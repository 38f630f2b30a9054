//===- Traffic.h - what each axis of a layout sends -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_PLANNER_TRAFFIC_H
#define DROVER_PLANNER_TRAFFIC_H

#include "drover/Cluster/PlacementReport.h"
#include "drover/Planner/Search.h"

namespace drover::planner {

/// The groups of an axis, what a rank of the stage with most sends in a step, and what of it shows.
struct AxisTraffic {
  cluster::AxisPlacement placement;
  double sentBytes = 0;
  double exposedSeconds = 0;
};

/// Axes with more than one rank, innermost first. FSDP's traffic is that of CP x DP where both have several.
std::vector<AxisTraffic> trafficOf(const Problem &problem, const DetailedPlan &plan);

/// A layout's grid on the problem's cluster.
cluster::Placement placementOf(const Problem &problem, const Layout &layout);

} // namespace drover::planner

#endif // DROVER_PLANNER_TRAFFIC_H
