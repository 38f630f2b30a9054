//===- grid.h - ranks by their place on the grid ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_GRID_H
#define DROVER_RT_GRID_H

#include "drover/rt/abi.h"
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace drover::rt {

/// By drover_axis; kv * replicas + replica is the tp index.
using Coordinates = std::array<int32_t, DROVER_NUM_AXES>;

constexpr int numGridAxes = 4; // tp, cp, pp, dp; the others are factors of tp

const char *axisName(int axis);
std::optional<int> axisFromName(std::string_view name);

/// TP x CP x PP x DP ranks.
class Grid {
public:
  /// `order` has the four axes, innermost first. `kv` parts of tp, 0 where tp is not split: then every tp index is a kv
  /// group of its own.
  Grid(std::array<int64_t, numGridAxes> sizes, std::array<int, numGridAxes> order, int64_t kv);
  Grid() : Grid({1, 1, 1, 1}, {0, 1, 2, 3}, 0) {}

  int64_t ranks() const { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }
  int64_t size(int axis) const;
  bool isSplit() const { return split; }

  Coordinates coordinates(int64_t rank) const;
  /// Of the coordinates tp, cp, pp and dp.
  int64_t rankAt(const Coordinates &place) const;

  /// World ranks, ascending, of the ranks that agree with `rank` in all but `axes` (DROVER_AXIS_KV: the kv part of tp).
  std::vector<int32_t> group(int64_t rank, const std::vector<int> &axes) const;

private:
  int64_t stride(int axis) const;

  std::array<int64_t, numGridAxes> sizes;
  std::array<int, numGridAxes> order;
  bool split;
  int64_t kvGroups;
};

} // namespace drover::rt

#endif // DROVER_RT_GRID_H
