//===- SharedCores.h - ranks that share the cores of a host -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_PLANNER_SHAREDCORES_H
#define DROVER_LIB_PLANNER_SHAREDCORES_H

#include "drover/Planner/Replay.h"

namespace drover::planner {

/// How many cores there are, and how many of them a stage at work would use.
struct CoreDemand {
  double cores = 1, ofStage = 1;
};

/// The makespan of a replay where stages share cores. A fair scheduler slows down all threads alike, so that the order
/// of what happens stays and time itself is stretched: where a stages are at work at once, by a * ofStage / cores.
double sharedMakespan(const ReplayProgram &program, const ReplayCosts &costs, const ReplayTimes &times,
                      const CoreDemand &demand);

} // namespace drover::planner

#endif // DROVER_LIB_PLANNER_SHAREDCORES_H
