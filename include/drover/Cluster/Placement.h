//===- Placement.h - where grid axes fall on the network --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_CLUSTER_PLACEMENT_H
#define DROVER_CLUSTER_PLACEMENT_H

#include "drover/Cluster/Cluster.h"
#include <initializer_list>
#include <map>

namespace drover::cluster {

enum class Axis : uint8_t { TP, CP, PP, DP };
constexpr size_t kNumAxes = 4;
const char *nameOf(Axis axis);
std::optional<Axis> parseAxis(const std::string &name);

/// Axes that one communicator spans, such as CP x DP.
class AxisSet {
public:
  AxisSet() = default;
  AxisSet(Axis axis) : bits(1u << static_cast<unsigned>(axis)) {}
  AxisSet(std::initializer_list<Axis> axes) {
    for (Axis axis : axes)
      bits |= 1u << static_cast<unsigned>(axis);
  }
  bool contains(Axis axis) const { return bits >> static_cast<unsigned>(axis) & 1u; }
  AxisSet operator|(AxisSet other) const {
    AxisSet both;
    both.bits = bits | other.bits;
    return both;
  }
  /// `CP x DP`.
  std::string str() const;
  bool operator==(AxisSet other) const { return bits == other.bits; }

private:
  unsigned bits = 0;
};

/// Axes innermost first.
using AxisOrder = std::array<Axis, kNumAxes>;
/// Llama 3's (arXiv 2407.21783, section 3.3.2), and the default.
constexpr AxisOrder kDefaultOrder = {Axis::TP, Axis::CP, Axis::PP, Axis::DP};
/// `tp,cp,pp,dp`.
std::string str(const AxisOrder &order);
schedule::Result<AxisOrder> parseOrder(const std::string &text);
/// As plans name them: `tp`, ..
std::array<std::string, kNumAxes> namesOf(const AxisOrder &order);

struct Grid {
  std::array<int64_t, kNumAxes> sizes = {1, 1, 1, 1}; // by Axis
  AxisOrder order = kDefaultOrder;

  int64_t size(Axis axis) const { return sizes[static_cast<size_t>(axis)]; }
  int64_t size(AxisSet axes) const;
  int64_t ranks() const;
  /// Distance of neighbours on an axis, in ranks.
  int64_t stride(Axis axis) const;
};

/// How the groups of some axes lie on the levels. Where groups or units differ, each number is the worst one.
struct Span {
  int64_t ranks = 1; // of a group
  /// Units of level l-1 (level 0: GPUs) that a group has in one unit of level l, where it has most.
  std::array<int64_t, kMostLevels> fanout = {1, 1, 1, 1, 1, 1};
  /// Ranks of a group in one unit of level l, where it has most: the product of the fanouts where units are filled
  /// evenly.
  std::array<int64_t, kMostLevels> ranksIn = {1, 1, 1, 1, 1, 1};
  /// Groups that leave one unit of level l-1, and so share its links upward; 0 for level 0, whose links are a GPU's
  /// own.
  std::array<int64_t, kMostLevels> sharing = {};
  /// Outermost level crossed, or -1 for groups of one rank.
  int outermost = -1;

  bool crosses(size_t level) const { return fanout[level] > 1; }
};

/// A group of `ranks` neighbours in one unit of the innermost level that holds them.
Span spanOfNeighbours(const Cluster &cluster, int64_t ranks);

/// Spans of one cluster that had to be counted rank by rank: placements that share it count each only once. Keyed by
/// what a span depends on: runs of ranks along the order that belong to a group or not.
class SpanCache {
  friend class Placement;
  std::map<std::vector<int64_t>, Span> known;
};

/// A grid on a cluster: ranks are numbered along the order, and fill the levels from the first GPU on.
class Placement {
public:
  /// `grid` must have no more ranks than the cluster has GPUs (checkGrid); the cluster must outlive the placement, and
  /// so must the cache, which must be of no other cluster.
  Placement(const Cluster &cluster, const Grid &grid, SpanCache *cache = nullptr);

  const Cluster &getCluster() const { return *cluster; }
  const Grid &getGrid() const { return grid; }

  Span spanOf(AxisSet axes) const;
  /// The same, counted rank by rank: where axes and units do not divide each other, and to test the rest.
  Span countSpan(AxisSet axes) const;
  /// The innermost level with a unit that holds both ranks; -1 for a rank and itself.
  int levelBetween(int64_t a, int64_t b) const;
  /// The rank at some coordinates (by Axis).
  int64_t rankAt(const std::array<int64_t, kNumAxes> &coordinates) const;
  std::array<int64_t, kNumAxes> coordinatesOf(int64_t rank) const;
  /// The ranks of the group that `rank` is in, ascending.
  std::vector<int64_t> groupOf(AxisSet axes, int64_t rank) const;

private:
  Span countOnce(AxisSet axes) const;
  std::optional<int64_t> ranksInUnit(AxisSet axes, int64_t unit) const;

  const Cluster *cluster;
  SpanCache *cache;
  Grid grid;
  size_t numLevels;
  std::array<int64_t, kMostLevels> unit{}; // GPUs in a unit, by level
};

/// Whether the grid fits on the cluster; the error says by how much not.
std::optional<schedule::Error> checkGrid(const Cluster &cluster, const Grid &grid);

} // namespace drover::cluster

#endif // DROVER_CLUSTER_PLACEMENT_H
