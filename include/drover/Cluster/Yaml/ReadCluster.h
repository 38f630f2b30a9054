//===- ReadCluster.h - cluster files ----------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_CLUSTER_YAML_READCLUSTER_H
#define DROVER_CLUSTER_YAML_READCLUSTER_H

#include "drover/Cluster/Cluster.h"

namespace drover::cluster {

/// Reads a cluster file (docs/cluster-files.md). The error is one line, `FILE:LINE:COL: error: ..`.
schedule::Result<Cluster> readClusterFile(const std::string &path);

/// The same of a text. `path` names it in errors, and device files are looked up beside it.
schedule::Result<Cluster> readClusterText(const std::string &text, const std::string &path);

} // namespace drover::cluster

#endif // DROVER_CLUSTER_YAML_READCLUSTER_H
