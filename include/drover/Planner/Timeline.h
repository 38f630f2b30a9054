//===- Timeline.h - what a pipeline's lanes do, when ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_PLANNER_TIMELINE_H
#define DROVER_PLANNER_TIMELINE_H

#include "drover/Planner/Search.h"

namespace drover::planner {

/// One thing that a lane of a stage does.
struct TimelineSpan {
  enum Kind : uint8_t { Forward, Backward, WeightGradient, Message, Gather, Reduce, Wait, Optimizer } kind = Forward;
  uint16_t stage = 0;
  uint8_t lane = 0;        // ReplayProgram::Lane
  uint32_t chunk = 0;      // of a gather or reduction the bucket
  uint32_t microbatch = 0; // of phases and messages
  double start = 0, end = 0;
};
const char *nameOf(TimelineSpan::Kind kind);

/// A step of one pipeline as the replay has it, by lane and time: phases and messages, gathers and reductions, then the
/// wait for the slowest device (with what exchanges take from the compute beside them) and the optimizer. Ends where
/// the projection does.
std::vector<TimelineSpan> timelineOf(const DetailedPlan &plan);

/// In the format of Chrome's trace viewer and Perfetto: a process a stage, a thread a lane, microseconds.
std::string traceJson(const DetailedPlan &plan);

} // namespace drover::planner

#endif // DROVER_PLANNER_TIMELINE_H
