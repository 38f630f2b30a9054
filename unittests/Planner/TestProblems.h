//===- TestProblems.h - problems for tests ----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_PLANNER_TESTPROBLEMS_H
#define DROVER_UNITTESTS_PLANNER_TESTPROBLEMS_H

#include "TestClusters.h"
#include "drover/Planner/Search.h"

namespace drover::planner {

inline cluster::Device makeH100() {
  cluster::Device device;
  device.name = "H100 80 GB";
  device.kind = "H100";
  device.peak[static_cast<size_t>(cluster::Precision::F32)] = 67e12;
  device.peak[static_cast<size_t>(cluster::Precision::BF16)] = 989e12;
  device.memoryBytes = 80e9;
  device.usableBytes = 79e9;
  device.contextBytes = 1.2e9;
  device.memoryBandwidth = 3.35e12;
  device.sms = 132;
  device.attention.push_back({"flash3", 0.6, 0.75, 500, 1.3, 64});
  device.launchSeconds = 3e-6;
  device.spread = 0.01;
  return device;
}

/// A model of 7 billion parameters in 12 wide layers, on servers of 8.
inline Problem makeProblem(int64_t gpus) {
  Problem problem;
  problem.model.layers = 12;
  problem.model.hidden = 8192;
  problem.model.heads = 64;
  problem.model.kvHeads = 8;
  problem.model.headSize = 128;
  problem.model.ffnHidden = 22016;
  problem.model.vocabulary = 32000;
  problem.model.gated = true;
  problem.cluster = cluster::makeDgxH100((gpus + 7) / 8);
  problem.cluster.device = makeH100();
  problem.gpus = gpus;
  problem.sequence = 4096;
  problem.globalBatch = 32;
  problem.rest.computeType = "bf16";
  return problem;
}

} // namespace drover::planner

#endif // DROVER_UNITTESTS_PLANNER_TESTPROBLEMS_H
