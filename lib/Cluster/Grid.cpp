//===- Grid.cpp - grid axes and their order -------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cluster/Placement.h"

using namespace drover;
using namespace drover::cluster;

namespace {
struct AxisName {
  const char *upper, *lower;
};
constexpr AxisName kAxisNames[kNumAxes] = {{"TP", "tp"}, {"CP", "cp"}, {"PP", "pp"}, {"DP", "dp"}};
} // namespace

const char *cluster::nameOf(Axis axis) { return kAxisNames[static_cast<size_t>(axis)].upper; }

std::optional<Axis> cluster::parseAxis(const std::string &name) {
  for (size_t i = 0; i < kNumAxes; ++i)
    if (name == kAxisNames[i].upper || name == kAxisNames[i].lower)
      return static_cast<Axis>(i);
  return std::nullopt;
}

std::string AxisSet::str() const {
  std::string text;
  for (size_t i = 0; i < kNumAxes; ++i)
    if (contains(static_cast<Axis>(i)))
      text += (text.empty() ? "" : " x ") + std::string(kAxisNames[i].upper);
  return text;
}

std::string cluster::str(const AxisOrder &order) {
  std::string text;
  for (Axis axis : order)
    text += (text.empty() ? "" : ",") + std::string(kAxisNames[static_cast<size_t>(axis)].lower);
  return text;
}

std::array<std::string, kNumAxes> cluster::namesOf(const AxisOrder &order) {
  std::array<std::string, kNumAxes> names;
  for (size_t i = 0; i < kNumAxes; ++i)
    names[i] = kAxisNames[static_cast<size_t>(order[i])].lower;
  return names;
}

schedule::Result<AxisOrder> cluster::parseOrder(const std::string &text) {
  AxisOrder order;
  AxisSet seen;
  size_t count = 0;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::optional<Axis> axis = parseAxis(text.substr(begin, end - begin));
    if (!axis || seen.contains(*axis) || count == kNumAxes)
      return schedule::Error{"order '" + text + "' has the entry '" + text.substr(begin, end - begin) +
                             "': expected tp, cp, pp and dp once each, innermost first"};
    order[count++] = *axis;
    seen = seen | *axis;
    begin = end + 1;
  }
  if (count != kNumAxes)
    return schedule::Error{"order '" + text + "' has " + std::to_string(count) +
                           " axes: expected tp, cp, pp and dp once each, innermost first"};
  return order;
}

int64_t Grid::size(AxisSet axes) const {
  int64_t product = 1;
  for (size_t i = 0; i < kNumAxes; ++i)
    if (axes.contains(static_cast<Axis>(i)))
      product *= sizes[i];
  return product;
}

int64_t Grid::ranks() const { return size({Axis::TP, Axis::CP, Axis::PP, Axis::DP}); }

int64_t Grid::stride(Axis axis) const {
  int64_t product = 1;
  for (Axis inner : order) {
    if (inner == axis)
      return product;
    product *= size(inner);
  }
  return product;
}

std::optional<schedule::Error> cluster::checkGrid(const Cluster &cluster, const Grid &grid) {
  for (size_t i = 0; i < kNumAxes; ++i)
    if (grid.sizes[i] < 1)
      return schedule::Error{std::string(kAxisNames[i].lower) + " is " + std::to_string(grid.sizes[i]) +
                             ": expected 1 or more"};
  // Axis by axis, so that a product of absurd sizes does not overflow.
  int64_t ranks = 1, gpus = cluster.gpus();
  for (int64_t size : grid.sizes) {
    if (size > gpus / ranks)
      return schedule::Error{"tp * cp * pp * dp = " + std::to_string(grid.sizes[0]) + " * " +
                             std::to_string(grid.sizes[1]) + " * " + std::to_string(grid.sizes[2]) + " * " +
                             std::to_string(grid.sizes[3]) + " is more than the " + std::to_string(gpus) +
                             " GPUs of cluster '" + cluster.name + "'"};
    ranks *= size;
  }
  return std::nullopt;
}
