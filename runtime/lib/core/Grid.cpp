//===- Grid.cpp - ranks by their place on the grid ------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/grid.h"
#include <algorithm>

namespace drover::rt {

static constexpr const char *axisNames[DROVER_NUM_AXES] = {"tp", "cp", "pp", "dp", "kv", "replica"};

const char *axisName(int axis) { return axisNames[axis]; }

std::optional<int> axisFromName(std::string_view name) {
  for (int axis = 0; axis < DROVER_NUM_AXES; ++axis)
    if (name == axisNames[axis])
      return axis;
  return std::nullopt;
}

Grid::Grid(std::array<int64_t, numGridAxes> sizes, std::array<int, numGridAxes> order, int64_t kv)
    : sizes(sizes), order(order), split(kv > 0), kvGroups(split ? kv : sizes[DROVER_AXIS_TP]) {}

int64_t Grid::size(int axis) const {
  return axis == DROVER_AXIS_KV        ? kvGroups
         : axis == DROVER_AXIS_REPLICA ? sizes[DROVER_AXIS_TP] / kvGroups
                                       : sizes[size_t(axis)];
}

Coordinates Grid::coordinates(int64_t rank) const {
  Coordinates place = {};
  for (int axis : order) {
    place[size_t(axis)] = int32_t(rank % sizes[size_t(axis)]);
    rank /= sizes[size_t(axis)];
  }
  int32_t replicas = int32_t(size(DROVER_AXIS_REPLICA));
  place[DROVER_AXIS_KV] = place[DROVER_AXIS_TP] / replicas;
  place[DROVER_AXIS_REPLICA] = place[DROVER_AXIS_TP] % replicas;
  return place;
}

int64_t Grid::rankAt(const Coordinates &place) const {
  int64_t rank = 0;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis)
    rank = rank * sizes[size_t(*axis)] + place[size_t(*axis)];
  return rank;
}

/// How far apart the ranks of neighbouring indices of an axis are.
int64_t Grid::stride(int axis) const {
  int gridAxis = axis == DROVER_AXIS_KV || axis == DROVER_AXIS_REPLICA ? DROVER_AXIS_TP : axis;
  int64_t stride = axis == DROVER_AXIS_KV ? size(DROVER_AXIS_REPLICA) : 1;
  for (size_t i = 0; order[i] != gridAxis; ++i)
    stride *= sizes[size_t(order[i])];
  return stride;
}

std::vector<int32_t> Grid::group(int64_t rank, const std::vector<int> &axes) const {
  // Outermost first: the members are ascending then.
  std::vector<std::pair<int64_t, int64_t>> outermostFirst; // stride, size
  for (int axis : axes)
    outermostFirst.emplace_back(stride(axis), size(axis));
  std::sort(outermostFirst.rbegin(), outermostFirst.rend());
  int64_t first = rank;
  for (auto [step, count] : outermostFirst)
    first -= rank / step % count * step;
  std::vector<int32_t> members = {int32_t(first)};
  for (auto [step, count] : outermostFirst) {
    std::vector<int32_t> wider;
    wider.reserve(members.size() * size_t(count));
    for (int32_t member : members)
      for (int64_t i = 0; i < count; ++i)
        wider.push_back(int32_t(member + i * step));
    members = std::move(wider);
  }
  return members;
}

} // namespace drover::rt
