//===- Traffic.cpp - what each axis of a layout sends ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Planner/Traffic.h"
#include "drover/Planner/Memory.h"
#include <algorithm>

using namespace drover;
using namespace drover::planner;
using cluster::Axis;
using cluster::AxisSet;

namespace {

/// Of an element that is reduced.
constexpr double kGradientBytes = 4;

/// Of the bodies' collectives over an axis, on the stage with most layers.
double bodyBytes(const Problem &problem, const DetailedPlan &plan, Axis axis) {
  const schedule::Plan &options = plan.ranked.layout.plan;
  cost::Sizes sizes = sizesOf(options, problem.software);
  int64_t ranks = axis == Axis::TP ? options.tp : options.cp;
  auto bytesOf = [&](cost::BodyKind body) {
    double bytes = 0;
    for (cost::BodyPhase phase : {cost::BodyPhase::Forward, cost::BodyPhase::Backward}) {
      cost::Work work = cost::workOf(problem.model, sizes, body, phase);
      for (cost::CollectiveKind kind :
           {cost::CollectiveKind::AllGather, cost::CollectiveKind::ReduceScatter, cost::CollectiveKind::AllReduce})
        bytes += cost::sentBytes(work, axis, kind, ranks);
    }
    return bytes;
  };
  double layer = bytesOf(cost::BodyKind::Layer), embed = bytesOf(cost::BodyKind::Embed),
         head = bytesOf(cost::BodyKind::Head), most = 0;
  const std::vector<int64_t> &layers = plan.costs.shape.layers;
  auto stages = static_cast<size_t>(options.pp);
  for (size_t stage = 0; stage < stages; ++stage) {
    double bytes = (stage == 0 ? embed : 0) + ((layers.size() - 1) % stages == stage ? head : 0);
    for (size_t chunk = stage; chunk < layers.size(); chunk += stages)
      bytes += static_cast<double>(layers[chunk]) * layer;
    most = std::max(most, bytes);
  }
  return most * static_cast<double>(plan.costs.microbatches);
}

/// Messages of the stage that sends most.
double messageBytes(const Problem &problem, const DetailedPlan &plan) {
  const schedule::Plan &options = plan.ranked.layout.plan;
  std::vector<int64_t> sends(static_cast<size_t>(options.pp), 0);
  for (const ReplayProgram::Item &item : plan.program.getItems())
    if (auto stage = static_cast<size_t>(item.send / ReplayProgram::NumLanes); stage < sends.size())
      ++sends[stage];
  double residual = static_cast<double>(options.microbatch * options.sequenceLength * problem.model.hidden) *
                    elementBytes(options) / static_cast<double>(options.cp * options.tp);
  return static_cast<double>(*std::max_element(sends.begin(), sends.end())) * residual;
}

/// Gathers and reductions of the stage that has most, as a ring sends them.
double exchangeBytes(const DetailedPlan &plan) {
  const schedule::Plan &options = plan.ranked.layout.plan;
  std::vector<double> bytes(static_cast<size_t>(options.pp), 0);
  auto ranks = static_cast<double>(options.cp * options.dp);
  const std::vector<int64_t> &elements = plan.costs.shape.elements;
  for (const ReplayProgram::Event &event : plan.program.getEvents()) {
    if (event.kind == ReplayProgram::Event::Join || event.bucket >= elements.size())
      continue;
    bool gathers = event.kind == ReplayProgram::Event::Gather;
    double share = (ranks - 1) / ranks * (gathers || options.isSharded() ? 1 : 2);
    bytes[event.stages[0]] +=
        static_cast<double>(elements[event.bucket]) * share * (gathers ? elementBytes(options) : kGradientBytes);
  }
  return *std::max_element(bytes.begin(), bytes.end());
}
} // namespace

cluster::Placement planner::placementOf(const Problem &problem, const Layout &layout) {
  cluster::Grid grid;
  grid.sizes = {layout.plan.tp, layout.plan.cp, layout.plan.pp, layout.plan.dp};
  grid.order = layout.order;
  return cluster::Placement(problem.cluster, grid);
}

std::vector<AxisTraffic> planner::trafficOf(const Problem &problem, const DetailedPlan &plan) {
  const schedule::Plan &options = plan.ranked.layout.plan;
  const Breakdown &parts = plan.ranked.projection.breakdown;
  AxisSet exchange = options.cp == 1   ? AxisSet(Axis::DP)
                     : options.dp == 1 ? AxisSet(Axis::CP)
                                       : AxisSet{Axis::CP, Axis::DP};
  std::vector<AxisTraffic> traffic;
  for (cluster::AxisPlacement &axis : cluster::describeAxes(placementOf(problem, plan.ranked.layout))) {
    AxisTraffic entry{std::move(axis), 0, 0};
    AxisSet axes = entry.placement.axes;
    if (axes == AxisSet(Axis::TP))
      entry.sentBytes += bodyBytes(problem, plan, Axis::TP), entry.exposedSeconds += parts.tpExposed;
    if (axes == AxisSet(Axis::CP))
      entry.sentBytes += bodyBytes(problem, plan, Axis::CP), entry.exposedSeconds += parts.cpExposed;
    if (axes == AxisSet(Axis::PP))
      entry.sentBytes += messageBytes(problem, plan), entry.exposedSeconds += parts.ppExposed;
    if (axes == exchange)
      entry.sentBytes += exchangeBytes(plan), entry.exposedSeconds += parts.dpExposed;
    // Where FSDP shards over CP too, nothing is sent over DP alone.
    if (entry.sentBytes > 0)
      traffic.push_back(std::move(entry));
  }
  return traffic;
}
