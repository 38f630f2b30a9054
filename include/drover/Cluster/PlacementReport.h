//===- PlacementReport.h - a placement for readers --------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_CLUSTER_PLACEMENTREPORT_H
#define DROVER_CLUSTER_PLACEMENTREPORT_H

#include "drover/Cluster/Placement.h"

namespace drover::cluster {

/// One level that groups cross.
struct Crossing {
  size_t level;
  int64_t units;    // of the level below, that a group spans in one unit of this level; the most
  double meanUnits; // how many it would be with units filled evenly: 5.3 for six pods, of which the last is part full
  int64_t sharing;  // groups that leave a unit of the level below, and share its links
};

/// How the groups of one or several axes lie.
struct AxisPlacement {
  AxisSet axes;
  int64_t groups, members;
  std::vector<Crossing> crossings; // innermost first; empty for groups of one rank

  /// Innermost level whose units hold a whole group; -1 for groups of one rank.
  int within() const { return crossings.empty() ? -1 : static_cast<int>(crossings.back().level); }
};
AxisPlacement describe(const Placement &placement, AxisSet axes);

/// What one rank of the outermost axis holds: all axes within it.
struct Block {
  AxisSet axes;
  Axis outermost;
  int64_t ranks, count;
  /// By level: units that a block fills, or blocks that a unit holds, where either divides; else 0.
  std::array<int64_t, kMostLevels> unitsOfBlock{}, blocksOfUnit{};
};
/// Nothing where only one axis has more than one rank.
std::optional<Block> blockOf(const Placement &placement);

/// Axes with more than one rank, innermost first, those that share a communicator behind them.
std::vector<AxisPlacement> describeAxes(const Placement &placement);

/// The placement in lines for a terminal: the block, each axis, and who crosses oversubscribed links.
std::vector<std::string> printPlacement(const Placement &placement);

} // namespace drover::cluster

#endif // DROVER_CLUSTER_PLACEMENTREPORT_H
