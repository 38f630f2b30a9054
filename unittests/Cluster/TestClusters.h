//===- TestClusters.h - clusters for tests ----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_CLUSTER_TESTCLUSTERS_H
#define DROVER_UNITTESTS_CLUSTER_TESTCLUSTERS_H

#include "drover/Cluster/Cluster.h"

namespace drover::cluster {

inline Level makeLevel(const char *name, int64_t members, double bandwidth, double achieved, double latency) {
  Level level;
  level.name = name;
  level.members = members;
  level.bandwidth = bandwidth;
  level.achieved = achieved;
  level.latency = latency;
  return level;
}

/// Servers of 8 H100 on a network of 400 Gb/s a GPU with full bisection.
inline Cluster makeDgxH100(int64_t servers) {
  Cluster cluster;
  cluster.name = "dgx-h100";
  cluster.levels = {makeLevel("server", 8, 450e9, 0.82, 0.6e-6), makeLevel("cluster", servers, 50e9, 0.96, 2.7e-6)};
  cluster.levels[0].inNetwork = 0.686;
  return cluster;
}

/// Servers of 8 A100 on a network of 200 Gb/s a GPU.
inline Cluster makeDgxA100(int64_t servers) {
  Cluster cluster;
  cluster.name = "dgx-a100";
  cluster.levels = {makeLevel("server", 8, 300e9, 0.77, 0.6e-6), makeLevel("cluster", servers, 25e9, 0.96, 2.7e-6)};
  return cluster;
}

/// Llama 3's (arXiv 2407.21783, section 3.3.1): two servers a rack, 192 racks a pod, 8 pods joined by 1:7.
inline Cluster makeLlama3() {
  Cluster cluster;
  cluster.name = "llama3-24k";
  cluster.levels = {makeLevel("server", 8, 450e9, 0.82, 0.6e-6), makeLevel("rack", 2, 50e9, 0.96, 2.7e-6),
                    makeLevel("pod", 192, 50e9, 0.96, 10e-6), makeLevel("cluster", 8, 50e9, 0.96, 30e-6)};
  cluster.levels[3].oversubscription = 7;
  cluster.levels[2].flows = cluster.levels[3].flows = 16;
  return cluster;
}

} // namespace drover::cluster

#endif // DROVER_UNITTESTS_CLUSTER_TESTCLUSTERS_H
