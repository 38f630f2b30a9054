//===- ChoosePlacement.h - the order of the grid axes -----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_COST_CHOOSEPLACEMENT_H
#define DROVER_COST_CHOOSEPLACEMENT_H

#include "drover/Cost/Collectives.h"

namespace drover::cost {

/// What one rank exchanges along some axes in a step, as calls of one kind.
struct AxisTraffic {
  cluster::AxisSet axes;
  std::optional<CollectiveKind> kind; // absent: a message to the next rank of the axis
  double bytes = 0;                   // of one call: a collective's whole tensor
  double calls = 0;
  double overlapSeconds = 0; // of one call: work that may run beside it, so that latency and bytes are hidden
  Algorithm algorithm = Algorithm::Auto;
};

/// One order of the axes and what its traffic costs a rank in a step.
struct OrderCost {
  cluster::AxisOrder order;
  double exposedSeconds; // what no work hides
  double seconds;        // all
};

/// Seconds of one call of this traffic where its axes are placed so.
double callSeconds(const cluster::Placement &placement, const AxisTraffic &traffic);

/// The cost of one order, its traffic priced one call after the other.
OrderCost costOfOrder(const cluster::Cluster &cluster, const cluster::Grid &grid,
                      const std::vector<AxisTraffic> &traffic, cluster::SpanCache *cache = nullptr);

/// All orders that place the axes differently, best first: by exposed seconds, then by seconds, then as near to
/// [TP, CP, PP, DP] as the alphabet of axes has it. Axes of size one stay where that order has them. `sizes` must fit
/// on the cluster; its own order is not looked at.
std::vector<OrderCost> choosePlacement(const cluster::Cluster &cluster, cluster::Grid sizes,
                                       const std::vector<AxisTraffic> &traffic, cluster::SpanCache *cache = nullptr);

} // namespace drover::cost

#endif // DROVER_COST_CHOOSEPLACEMENT_H
