//===- ClusterOption.cpp - the cluster that a program is for --------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ClusterOption.h"
#include "CommandContext.h"
#include "drover/Cluster/PlacementReport.h"
#include "drover/Cluster/Yaml/ReadCluster.h"
#include "drover/Planner/Search.h"
#include "drover/Schedule/Report.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace drover::tool {

static cluster::Grid gridOf(const schedule::Plan &plan) {
  cluster::Grid grid;
  grid.sizes = {plan.tp, plan.cp, plan.pp, plan.dp};
  for (size_t i = 0; i < cluster::kNumAxes; ++i)
    if (std::optional<cluster::Axis> axis = cluster::parseAxis(plan.order[i]))
      grid.order[i] = *axis;
  return grid;
}

std::optional<cluster::Cluster> readClusterOption(const CommandLine &line) {
  schedule::Result<cluster::Cluster> cluster = cluster::readClusterFile(line.text(OPT_cluster));
  if (cluster)
    return std::move(*cluster);
  errs() << cluster.error() << "\n";
  return std::nullopt;
}

/// The order that the traffic of a model's axes asks for.
static bool orderByTraffic(const cluster::Cluster &cluster, CompileOptions &options) {
  CommandContext context;
  mlir::FailureOr<PlannedModel> model = readPlannedModel(context, options, errs());
  if (failed(model))
    return false;
  planner::Problem problem;
  problem.model = model->shape;
  problem.cluster = cluster;
  problem.sequence = model->sequence;
  schedule::Plan plan = options.plan;
  plan.sequenceLength = model->sequence;
  plan.microbatch = model->microbatch.value_or(std::max<int64_t>(1, plan.microbatch));
  int64_t least = plan.microbatch * plan.dp;
  problem.globalBatch = std::max(least, plan.globalBatches.empty() ? least * plan.pp : plan.globalBatches.front());
  options.plan.order = cluster::namesOf(planner::placeAxes(problem, plan));
  return true;
}

bool placeOnCluster(const CommandLine &line, CompileOptions &options, std::optional<cluster::Cluster> &cluster) {
  if (!line.has(OPT_cluster))
    return true;
  cluster = readClusterOption(line);
  if (!cluster)
    return false;
  cluster::Grid grid = gridOf(options.plan);
  if (std::optional<schedule::Error> error = cluster::checkGrid(*cluster, grid)) {
    failCommand(error->message);
    return false;
  }
  // With one axis there is nothing to order.
  bool several = llvm::count_if(grid.sizes, [](int64_t size) { return size > 1; }) > 1;
  return line.has(OPT_order) || line.has(OPT_plan) || !several || orderByTraffic(*cluster, options);
}

PlacedProgram describePlacement(const cluster::Cluster &cluster, const schedule::StepProgram &step) {
  PlacedProgram placed;
  placed.placement = cluster::printPlacement(cluster::Placement(cluster, gridOf(step.plan)));
  for (const schedule::Batch &batch : step.batches)
    for (size_t stage = 0; stage < static_cast<size_t>(step.plan.pp); ++stage)
      placed.peakBytes = std::max(placed.peakBytes, schedule::peakMemoryOf(step, batch, stage));
  placed.usableBytes = static_cast<int64_t>(cluster.device.usableBytes - cluster.device.contextBytes);
  return placed;
}

} // namespace drover::tool
