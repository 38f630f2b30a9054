//===- Placement.cpp - where grid axes fall on the network ----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cluster/Placement.h"
#include <algorithm>
#include <numeric>

using namespace drover;
using namespace drover::cluster;

Placement::Placement(const Cluster &cluster, const Grid &grid, SpanCache *cache)
    : cluster(&cluster), cache(cache), grid(grid), numLevels(cluster.levels.size()) {
  assert(!checkGrid(cluster, grid) && "the grid does not fit");
  for (size_t level = 0; level < numLevels; ++level)
    unit[level] = cluster.gpusIn(level);
}

/// The most ranks that a group has in one unit of `size` GPUs, or nothing where axes and units do not divide each
/// other.
std::optional<int64_t> Placement::ranksInUnit(AxisSet axes, int64_t size) const {
  if (size >= grid.ranks())
    return grid.size(axes);
  int64_t inside = 1, stride = 1;
  for (Axis axis : grid.order) {
    int64_t count = grid.size(axis), block = stride * count;
    if (size % block == 0) { // the whole axis, and perhaps some of the next
      inside *= axes.contains(axis) ? count : 1;
      stride = block;
      continue;
    }
    // The unit holds a piece of this axis. Pieces are equal where they divide the axis; along the outermost axis only
    // the last unit may hold less.
    if (size % stride || (count % (size / stride) && block != grid.ranks()))
      return std::nullopt;
    return inside * (axes.contains(axis) ? size / stride : 1);
  }
  return inside;
}

Span Placement::spanOf(AxisSet axes) const {
  Span span;
  span.ranks = grid.size(axes);
  int64_t below = 1, unitBelow = 1;
  for (size_t level = 0; level < kMostLevels; ++level) {
    if (level >= numLevels) {
      span.ranksIn[level] = below;
      continue;
    }
    std::optional<int64_t> inside = ranksInUnit(axes, unit[level]);
    if (!inside)
      return countOnce(axes);
    span.ranksIn[level] = *inside;
    span.fanout[level] = (*inside + below - 1) / below;
    if (level > 0 && below < span.ranks)
      span.sharing[level] = std::min(unitBelow, grid.ranks()) / below;
    if (span.fanout[level] > 1)
      span.outermost = static_cast<int>(level);
    below = *inside;
    unitBelow = unit[level];
  }
  return span;
}

Span Placement::countOnce(AxisSet axes) const {
  if (!cache)
    return countSpan(axes);
  // Sizes of runs along the order, alternately outside and inside of a group.
  std::vector<int64_t> runs = {1};
  bool inside = false;
  for (Axis axis : grid.order) {
    if (grid.size(axis) == 1)
      continue;
    if (axes.contains(axis) != inside) {
      runs.push_back(1);
      inside = !inside;
    }
    runs.back() *= grid.size(axis);
  }
  auto known = cache->known.find(runs);
  if (known == cache->known.end())
    known = cache->known.emplace(runs, countSpan(axes)).first;
  return known->second;
}

Span Placement::countSpan(AxisSet axes) const {
  Span span;
  span.ranks = grid.size(axes);
  AxisSet others;
  for (Axis axis : grid.order)
    if (!axes.contains(axis))
      others = others | axis;
  // Groups are the same offsets from their first ranks.
  const std::vector<int64_t> offsets = groupOf(axes, 0), firsts = groupOf(others, 0);
  // Groups lie on the units in the same way again after the least common multiple of their extent and all units; units
  // that hold every rank have no say.
  int64_t ranks = 1;
  for (Axis axis : grid.order)
    if (axes.contains(axis))
      ranks = grid.stride(axis) * grid.size(axis);
  for (size_t level = 0; level < numLevels && unit[level] < grid.ranks(); ++level)
    ranks = std::min(grid.ranks(), std::lcm(ranks, unit[level]));
  std::vector<int32_t> unitOf(ranks), unitBelowOf(ranks);
  std::iota(unitBelowOf.begin(), unitBelowOf.end(), 0);
  std::array<int64_t, kMostLevels> leavingMost{};
  for (size_t level = 0; level < numLevels; ++level) {
    for (int64_t rank = 0; rank < ranks; ++rank)
      unitOf[rank] = static_cast<int32_t>(rank / unit[level]);
    std::vector<int64_t> leaving(unitOf.back() + 1); // groups with ranks inside and outside of a unit
    for (auto it = firsts.begin(); it != firsts.end() && *it < ranks; ++it)
      for (size_t begin = 0, end = 0; begin < offsets.size(); begin = end) {
        int32_t current = unitOf[*it + offsets[begin]], last = -1;
        int64_t numBelow = 0;
        for (; end < offsets.size() && unitOf[*it + offsets[end]] == current; ++end) {
          int32_t below = unitBelowOf[*it + offsets[end]];
          numBelow += below != last;
          last = below;
        }
        int64_t inside = static_cast<int64_t>(end - begin);
        span.ranksIn[level] = std::max(span.ranksIn[level], inside);
        span.fanout[level] = std::max(span.fanout[level], numBelow);
        leaving[current] += inside < span.ranks;
      }
    leavingMost[level] = *std::max_element(leaving.begin(), leaving.end());
    std::swap(unitOf, unitBelowOf);
  }
  for (size_t level = 0; level < kMostLevels; ++level) {
    if (level >= numLevels)
      span.ranksIn[level] = span.ranksIn[level - 1];
    else if (level > 0)
      span.sharing[level] = leavingMost[level - 1];
    if (span.fanout[level] > 1)
      span.outermost = static_cast<int>(level);
  }
  return span;
}

int Placement::levelBetween(int64_t a, int64_t b) const {
  if (a == b)
    return -1;
  for (size_t level = 0; level < numLevels; ++level)
    if (a / unit[level] == b / unit[level])
      return static_cast<int>(level);
  assert(false && "a rank is outside of the cluster");
  return static_cast<int>(numLevels) - 1;
}

int64_t Placement::rankAt(const std::array<int64_t, kNumAxes> &coordinates) const {
  int64_t rank = 0, stride = 1;
  for (Axis axis : grid.order) {
    rank += coordinates[static_cast<size_t>(axis)] * stride;
    stride *= grid.size(axis);
  }
  return rank;
}

std::array<int64_t, kNumAxes> Placement::coordinatesOf(int64_t rank) const {
  std::array<int64_t, kNumAxes> coordinates;
  for (Axis axis : grid.order) {
    coordinates[static_cast<size_t>(axis)] = rank % grid.size(axis);
    rank /= grid.size(axis);
  }
  return coordinates;
}

std::vector<int64_t> Placement::groupOf(AxisSet axes, int64_t rank) const {
  std::array<int64_t, kNumAxes> at = coordinatesOf(rank);
  for (size_t i = 0; i < kNumAxes; ++i)
    if (axes.contains(static_cast<Axis>(i)))
      at[i] = 0;
  std::vector<int64_t> members = {rankAt(at)};
  // From the innermost axis out, so that ranks ascend.
  for (Axis axis : grid.order) {
    if (!axes.contains(axis))
      continue;
    size_t count = members.size();
    for (int64_t i = 1; i < grid.size(axis); ++i)
      for (size_t j = 0; j < count; ++j)
        members.push_back(members[j] + i * grid.stride(axis));
  }
  return members;
}

Span cluster::spanOfNeighbours(const Cluster &cluster, int64_t ranks) {
  Grid grid;
  grid.sizes = {ranks, 1, 1, 1};
  return Placement(cluster, grid).spanOf(Axis::TP);
}
