//===- ClusterOption.h - the cluster that a program is for ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_TOOLS_DROVER_CLUSTEROPTION_H
#define DROVER_TOOLS_DROVER_CLUSTEROPTION_H

#include "CommandLine.h"
#include "drover/Cluster/Cluster.h"
#include "drover/Pipelines/Compile.h"

namespace drover::tool {

/// Reads a cluster file. A fault is printed, with its place in the file.
std::optional<cluster::Cluster> readClusterOption(const CommandLine &line);

/// Holds the ranks of compile's and check's plan against --cluster. Where neither --order nor a plan file says how
/// ranks are numbered, the traffic of the axes on the levels of the network does, as in `drover plan`. False after a
/// fault, which is printed. `cluster` stays empty where the option was not given.
bool placeOnCluster(const CommandLine &line, CompileOptions &options, std::optional<cluster::Cluster> &cluster);

/// Where the axes of a plan lie, line by line, and whether the fullest stage fits on a device.
struct PlacedProgram {
  std::vector<std::string> placement;
  int64_t peakBytes = 0, usableBytes = 0;
  bool fits() const { return peakBytes <= usableBytes; }
};
PlacedProgram describePlacement(const cluster::Cluster &cluster, const schedule::StepProgram &step);

} // namespace drover::tool

#endif // DROVER_TOOLS_DROVER_CLUSTEROPTION_H
