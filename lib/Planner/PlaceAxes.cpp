//===- PlaceAxes.cpp - the order of axes by their traffic -----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "PlaceAxes.h"
#include "drover/Cost/ChoosePlacement.h"

using namespace drover;
using namespace drover::planner;
using cluster::Axis;

cluster::AxisOrder planner::placeAxes(const Problem &problem, const schedule::Plan &plan, cluster::SpanCache &spans) {
  cost::Sizes sizes;
  sizes.tp = plan.tp, sizes.cp = plan.cp;
  sizes.microbatch = plan.microbatch, sizes.sequence = plan.sequenceLength;
  auto microbatches = static_cast<double>(problem.globalBatch / (plan.microbatch * plan.dp));
  double layers = static_cast<double>(problem.model.layers) / static_cast<double>(plan.pp);

  std::vector<cost::AxisTraffic> traffic;
  double flops = 0;
  for (cost::BodyPhase phase : {cost::BodyPhase::Forward, cost::BodyPhase::Backward}) {
    cost::Work work = cost::workOf(problem.model, sizes, cost::BodyKind::Layer, phase);
    flops += cost::flopsOf(work);
    for (const cost::Op &op : work)
      if (const auto *collective = std::get_if<cost::Collective>(&op.what))
        traffic.push_back(
            {collective->axis, collective->kind, collective->bytes, microbatches * layers, 0, cost::Algorithm::Auto});
  }
  // Half of the peak is near enough to say what messages can hide behind.
  double peak = problem.cluster.device.peakOf(cluster::Precision::BF16);
  if (!(peak > 0))
    peak = problem.cluster.device.peakOf(cluster::Precision::F32);
  double chunkSeconds = flops * layers / (0.5 * peak);
  double residual = sizes.tokens() * static_cast<double>(problem.model.hidden) * 2 / static_cast<double>(plan.tp);
  traffic.push_back({Axis::PP, std::nullopt, residual, 2 * microbatches, chunkSeconds / 2, cost::Algorithm::Auto});
  double parameters = static_cast<double>(problem.model.parameters()) / static_cast<double>(plan.tp * plan.pp);
  traffic.push_back({{Axis::CP, Axis::DP},
                     cost::CollectiveKind::AllGather,
                     parameters * 2,
                     1,
                     microbatches * chunkSeconds / 3,
                     cost::Algorithm::Auto});
  traffic.push_back({{Axis::CP, Axis::DP},
                     cost::CollectiveKind::ReduceScatter,
                     parameters * 4,
                     1,
                     microbatches * chunkSeconds / 3,
                     cost::Algorithm::Auto});
  cluster::Grid grid;
  grid.sizes = {plan.tp, plan.cp, plan.pp, plan.dp};
  return cost::choosePlacement(problem.cluster, grid, traffic, &spans).front().order;
}

cluster::AxisOrder planner::placeAxes(const Problem &problem, const schedule::Plan &plan) {
  cluster::SpanCache spans;
  return placeAxes(problem, plan, spans);
}
