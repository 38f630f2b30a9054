//===- Groups.h - where a dimension's groups lie ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_NCCL_GROUPS_H
#define DROVER_LIB_NCCL_GROUPS_H

#include "drover/Nccl/Settings.h"

namespace drover::nccl {

/// How the groups of a dimension lie on the network.
struct Lie {
  cluster::Span span; // as the cost of collectives has it
  int64_t groups = 1;
  std::vector<int64_t> units; // as Dimension's
};

/// `kv` parts of TP where that is split, else 0.
Lie lieOf(const cluster::Placement &placement, int64_t kv, const Demand &demand);

/// How many groups there are, where no cluster says where they lie.
int64_t countGroups(const cluster::Grid &grid, const Demand &demand);

} // namespace drover::nccl

#endif // DROVER_LIB_NCCL_GROUPS_H
