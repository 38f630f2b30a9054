//===- PlacementReport.cpp - a placement for readers ----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cluster/PlacementReport.h"
#include "drover/Cluster/Quantity.h"
#include <algorithm>
#include <cmath>

using namespace drover;
using namespace drover::cluster;

namespace {
std::string plural(int64_t count, const std::string &noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

/// What a level joins: GPUs, or units of the level below.
std::string unitNameOf(const Cluster &cluster, size_t level) { return level ? cluster.levels[level - 1].name : "GPU"; }

/// With one decimal.
std::string tenths(double value) { return printQuantity(std::round(value * 10) / 10, Quantity::Number); }

std::string crossingText(const Cluster &cluster, const Crossing &crossing) {
  std::string text = plural(crossing.units, unitNameOf(cluster, crossing.level));
  // What is no larger than a unit is cut by the end of one here and there.
  if (crossing.meanUnits <= 1 && crossing.units > 1)
    text = "up to " + text;
  else if (crossing.meanUnits < static_cast<double>(crossing.units))
    text += " (" + tenths(crossing.meanUnits) + ")";
  return text + " of a " + cluster.levels[crossing.level].name;
}

std::string axisText(const Cluster &cluster, const AxisPlacement &axis) {
  std::string text = axis.axes.str() + ": " + plural(axis.groups, "group") + " of " + std::to_string(axis.members);
  for (size_t i = axis.crossings.size(); i-- > 0;)
    text += (i + 1 == axis.crossings.size() ? " over " : ", ") + crossingText(cluster, axis.crossings[i]);
  if (!axis.crossings.empty() && axis.crossings.back().sharing > 0) {
    const Crossing &outer = axis.crossings.back();
    text += "; " + plural(outer.sharing, "group") + " leave" + (outer.sharing == 1 ? "s a " : " a ") +
            unitNameOf(cluster, outer.level);
  }
  return text;
}

std::string blockText(const Placement &placement, const Block &block) {
  const Cluster &cluster = placement.getCluster();
  std::string text = "block " + block.axes.str() + ": " + plural(block.ranks, "GPU");
  for (size_t level = 0; level < cluster.levels.size(); ++level)
    if (block.unitsOfBlock[level] > 0)
      text += ", " + plural(block.unitsOfBlock[level], cluster.levels[level].name);
  text += "; " + plural(block.count, "block");
  for (size_t level = 0; level < cluster.levels.size(); ++level)
    if (block.blocksOfUnit[level] > 1 && block.blocksOfUnit[level] < block.count)
      text += ", " + std::to_string(block.blocksOfUnit[level]) + " in a " + cluster.levels[level].name;
  return text;
}

/// For each oversubscribed level: which axes cross it.
std::vector<std::string> oversubscribedText(const Placement &placement, const std::vector<AxisPlacement> &axes) {
  std::vector<std::string> lines;
  const Cluster &cluster = placement.getCluster();
  for (size_t level = 0; level < cluster.levels.size(); ++level) {
    if (cluster.levels[level].oversubscription <= 1)
      continue;
    std::string who;
    int count = 0;
    for (const AxisPlacement &axis : axes)
      if (axis.within() >= static_cast<int>(level)) {
        who += (who.empty() ? "" : ", ") + axis.axes.str();
        ++count;
      }
    std::string links = "the 1:" + printQuantity(cluster.levels[level].oversubscription, Quantity::Number) +
                        " links of the " + cluster.levels[level].name;
    lines.push_back(count == 0   ? "no traffic crosses " + links
                    : count == 1 ? "only " + who + " crosses " + links
                                 : who + " cross " + links);
  }
  return lines;
}
} // namespace

AxisPlacement cluster::describe(const Placement &placement, AxisSet axes) {
  const Cluster &cluster = placement.getCluster();
  const Grid &grid = placement.getGrid();
  Span span = placement.spanOf(axes);
  AxisPlacement result{axes, grid.ranks() / span.ranks, span.ranks, {}};
  // From a group's first rank to its last, and the ranks between neighbours behind it.
  int64_t extent = 1;
  for (Axis axis : grid.order)
    if (axes.contains(axis) && grid.size(axis) > 1)
      extent = grid.stride(axis) * grid.size(axis);
  for (size_t level = 0; level < cluster.levels.size(); ++level) {
    if (!span.crosses(level))
      continue;
    double even = static_cast<double>(std::min(extent, cluster.gpusIn(level))) /
                  static_cast<double>(level ? cluster.gpusIn(level - 1) : 1);
    result.crossings.push_back({level, span.fanout[level],
                                std::clamp(even, 1., static_cast<double>(span.fanout[level])), span.sharing[level]});
  }
  return result;
}

std::optional<Block> cluster::blockOf(const Placement &placement) {
  const Grid &grid = placement.getGrid();
  Block block{{}, Axis::TP, 1, 1, {}, {}};
  int used = 0;
  for (Axis axis : grid.order)
    if (grid.size(axis) > 1) {
      block.axes = used ? block.axes | AxisSet(block.outermost) : AxisSet();
      block.outermost = axis;
      ++used;
    }
  if (used < 2)
    return std::nullopt;
  block.ranks = grid.stride(block.outermost);
  block.count = grid.size(block.outermost);
  const Cluster &cluster = placement.getCluster();
  for (size_t level = 0; level < cluster.levels.size(); ++level) {
    int64_t unit = cluster.gpusIn(level);
    if (block.ranks % unit == 0)
      block.unitsOfBlock[level] = block.ranks / unit;
    else if (unit % block.ranks == 0)
      block.blocksOfUnit[level] = unit / block.ranks;
  }
  return block;
}

std::vector<AxisPlacement> cluster::describeAxes(const Placement &placement) {
  const Grid &grid = placement.getGrid();
  std::vector<AxisPlacement> axes;
  for (Axis axis : grid.order)
    if (grid.size(axis) > 1)
      axes.push_back(describe(placement, axis));
  // FSDP shards over both.
  if (grid.size(Axis::CP) > 1 && grid.size(Axis::DP) > 1)
    axes.push_back(describe(placement, {Axis::CP, Axis::DP}));
  return axes;
}

std::vector<std::string> cluster::printPlacement(const Placement &placement) {
  const Cluster &cluster = placement.getCluster();
  const Grid &grid = placement.getGrid();
  std::vector<std::string> lines = {"order " + str(grid.order) + " on " + cluster.name + ": " +
                                    std::to_string(grid.ranks()) + " of " + plural(cluster.gpus(), "GPU")};
  if (std::optional<Block> block = blockOf(placement))
    lines.push_back(blockText(placement, *block));
  std::vector<AxisPlacement> axes = describeAxes(placement);
  for (const AxisPlacement &axis : axes)
    lines.push_back(axisText(cluster, axis));
  for (std::string &line : oversubscribedText(placement, axes))
    lines.push_back(std::move(line));
  return lines;
}
