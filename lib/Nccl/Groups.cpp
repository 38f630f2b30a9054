//===- Groups.cpp - where a dimension's groups lie ------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Groups.h"
#include <algorithm>

using namespace drover;
using namespace drover::nccl;
using cluster::Axis;

namespace {
/// Axes whose groups contain those of the dimension.
cluster::AxisSet axesOf(const Demand &demand) {
  if (demand.name == "world")
    return {Axis::TP, Axis::CP, Axis::PP, Axis::DP};
  if (demand.name == "tp" || demand.name == "kv" || demand.name == "replica")
    return Axis::TP;
  if (demand.name == "cp")
    return Axis::CP;
  if (demand.name == "fsdp")
    return {Axis::CP, Axis::DP};
  if (demand.name == "dp")
    return Axis::DP;
  return Axis::PP;
}

/// Units that the groups of the dimension lie in, counted rank by rank: the most of a group, by level.
class UnitCount {
public:
  UnitCount(const cluster::Placement &placement, int64_t kv, const Demand &demand)
      : placement(placement), demand(demand), axes(axesOf(demand)),
        replicas(kv ? placement.getGrid().size(Axis::TP) / kv : 1) {}

  std::vector<int64_t> count() {
    const cluster::Cluster &cluster = placement.getCluster();
    for (size_t level = 0; level < cluster.levels.size(); ++level)
      unit.push_back(cluster.gpusIn(level));
    most.assign(unit.size(), 1);
    if (demand.stages.empty())
      countAll({});
    for (const std::vector<int32_t> &stages : demand.stages)
      countAll(stages);
    return most;
  }

private:
  /// The first rank of the group that a rank is in.
  int64_t groupOf(std::array<int64_t, cluster::kNumAxes> place) const {
    int64_t &tp = place[static_cast<size_t>(Axis::TP)];
    if (demand.name == "kv")
      tp %= replicas;
    else if (demand.name == "replica")
      tp = tp / replicas * replicas;
    else
      for (size_t axis = 0; axis < place.size(); ++axis)
        if (axes.contains(static_cast<Axis>(axis)))
          place[axis] = 0;
    return placement.rankAt(place);
  }

  /// Of the ranks of some stages; empty: of all.
  void countAll(const std::vector<int32_t> &stages) {
    std::vector<std::pair<int64_t, int64_t>> places; // group and rank
    for (int64_t rank = 0; rank < placement.getGrid().ranks(); ++rank) {
      auto place = placement.coordinatesOf(rank);
      int64_t stage = place[static_cast<size_t>(Axis::PP)];
      if (stages.empty() || std::find(stages.begin(), stages.end(), stage) != stages.end())
        places.emplace_back(groupOf(place), rank);
    }
    std::sort(places.begin(), places.end());
    for (size_t level = 0; level < unit.size(); ++level) {
      int64_t units = 0;
      for (size_t i = 0; i < places.size(); ++i) {
        bool sameGroup = i > 0 && places[i].first == places[i - 1].first;
        bool sameUnit = sameGroup && places[i].second / unit[level] == places[i - 1].second / unit[level];
        units = !sameGroup ? 1 : units + !sameUnit;
        most[level] = std::max(most[level], units);
      }
    }
  }

  const cluster::Placement &placement;
  const Demand &demand;
  cluster::AxisSet axes;
  int64_t replicas;
  std::vector<int64_t> unit, most;
};
} // namespace

int64_t nccl::countGroups(const cluster::Grid &grid, const Demand &demand) {
  if (demand.stages.empty())
    return grid.ranks() / demand.members;
  return static_cast<int64_t>(demand.stages.size()) * (grid.ranks() / grid.size(Axis::PP));
}

Lie nccl::lieOf(const cluster::Placement &placement, int64_t kv, const Demand &demand) {
  Lie lie;
  lie.groups = countGroups(placement.getGrid(), demand);
  lie.units = UnitCount(placement, kv, demand).count();
  lie.span = placement.spanOf(axesOf(demand));
  if (lie.span.ranks == demand.members && demand.stages.empty())
    return lie;
  // A part of the axes' group leaves no unit that the whole does not leave, and has no more ranks anywhere.
  lie.span.ranks = demand.members;
  lie.span.outermost = -1;
  int64_t ranksBelow = 1;
  for (size_t level = 0; level < cluster::kMostLevels; ++level) {
    int64_t units = level < lie.units.size() ? lie.units[level] : 1;
    int64_t unitsBelow = level == 0 ? demand.members : lie.units[std::min(level - 1, lie.units.size() - 1)];
    lie.span.ranksIn[level] =
        std::max(ranksBelow, std::min(lie.span.ranksIn[level], (demand.members + units - 1) / units));
    lie.span.fanout[level] = std::min(lie.span.fanout[level], unitsBelow);
    if (units < unitsBelow) {
      lie.span.fanout[level] = std::max<int64_t>(2, lie.span.fanout[level]);
      lie.span.outermost = static_cast<int>(level);
    } else {
      lie.span.fanout[level] = 1;
    }
    ranksBelow = lie.span.ranksIn[level];
  }
  return lie;
}
