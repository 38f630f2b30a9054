//===- Print.h - a cluster as the text of a cluster file --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_CLUSTER_PRINT_H
#define DROVER_CLUSTER_PRINT_H

#include "drover/Cluster/Cluster.h"

namespace drover::cluster {

/// The text of a file that reads back as this cluster, the device in it. `comment` (lines without `#`) goes on top.
std::string printCluster(const Cluster &cluster, const std::string &comment = "");

} // namespace drover::cluster

#endif // DROVER_CLUSTER_PRINT_H
