//===- ChoosePlacement.cpp - the order of the grid axes -------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cost/ChoosePlacement.h"
#include <algorithm>
#include <tuple>

using namespace drover;
using namespace drover::cost;
using cluster::Axis;
using cluster::AxisOrder;
using cluster::Grid;
using cluster::Placement;
using cluster::Span;

double cost::callSeconds(const Placement &placement, const AxisTraffic &traffic) {
  Span span = placement.spanOf(traffic.axes);
  if (traffic.kind)
    return collectiveSeconds(placement.getCluster(), *traffic.kind, traffic.bytes, span, traffic.algorithm);
  // The widest hop: a pipeline waits for its slowest edge. Of each group that leaves a unit one rank sends.
  int64_t senders = span.outermost > 0 ? span.sharing[span.outermost] : 1;
  return messageSeconds(placement.getCluster(), traffic.bytes, span.outermost, senders);
}

OrderCost cost::costOfOrder(const cluster::Cluster &cluster, const Grid &grid, const std::vector<AxisTraffic> &traffic,
                            cluster::SpanCache *cache) {
  Placement placement(cluster, grid, cache);
  OrderCost cost{grid.order, 0, 0};
  for (const AxisTraffic &each : traffic) {
    double seconds = callSeconds(placement, each);
    cost.seconds += each.calls * seconds;
    cost.exposedSeconds += each.calls * std::max(0., seconds - each.overlapSeconds);
  }
  return cost;
}

std::vector<OrderCost> cost::choosePlacement(const cluster::Cluster &cluster, Grid sizes,
                                             const std::vector<AxisTraffic> &traffic, cluster::SpanCache *cache) {
  std::vector<Axis> placed;
  for (Axis axis : cluster::kDefaultOrder)
    if (sizes.size(axis) > 1)
      placed.push_back(axis);
  std::vector<OrderCost> costs;
  // Permutations of the axes that have ranks, from the default order on.
  do {
    AxisOrder order = cluster::kDefaultOrder;
    auto next = placed.begin();
    for (Axis &axis : order)
      if (sizes.size(axis) > 1)
        axis = *next++;
    sizes.order = order;
    costs.push_back(costOfOrder(cluster, sizes, traffic, cache));
  } while (std::next_permutation(placed.begin(), placed.end()));
  std::sort(costs.begin(), costs.end(), [](const OrderCost &a, const OrderCost &b) {
    return std::tie(a.exposedSeconds, a.seconds, a.order) < std::tie(b.exposedSeconds, b.seconds, b.order);
  });
  return costs;
}
