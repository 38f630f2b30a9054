//===- Check.h - the proof of a step program --------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_SCHEDULE_CHECK_H
#define DROVER_SCHEDULE_CHECK_H

#include "drover/Schedule/StepProgram.h"

namespace drover::schedule {

/// What a proof took: it is to be linear in the actions, and the same for any number of ranks of a stage.
struct CheckWork {
  uint64_t edges = 0;  // of the order of events; each is followed once, over all streams
  uint64_t ranges = 0; // of arenas, each time that one is read, written or released
};

/// Proves a step program for every kind of rank, from the program alone (docs/proof.md). Owns what holds whatever the
/// timing and whatever the bodies compute; that calls and operands are those of the model is Verify.h's. For each global
/// batch:
/// - each send has its receive, in order, of one microbatch, chunk and size; operations of the world and of tied
///   buckets match over the stages in order and kind;
/// - no cycle among streams, waits, issue order and rendezvous: the step ends;
/// - accesses to the arena that conflict are ordered by streams, waits and messages, whatever the timing;
/// - each read sees its own write: space, chunk or bucket, and microbatch; none reads what was freed;
/// - each phase of each chunk runs once a microbatch; each contribution to a gradient is reduced once, counted in the
///   norm once and used by one update, which comes after the clip coefficient;
/// - every access lies inside the arena.
/// Ranks that differ in tp, cp or dp alone run the same list and are compared once. Returns at most `limit` faults,
/// each naming stage and action; none where the program is proven. Linear in the number of actions: `work` counts.
std::vector<std::string> checkStepProgram(const StepProgram &step, size_t limit = 8, CheckWork *work = nullptr);

/// What begins each fault of a batch here and in Verify.h: "global batch 8: ". Faults of the program begin otherwise.
std::string faultPrefix(const Batch &batch);

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_CHECK_H
