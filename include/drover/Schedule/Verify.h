//===- Verify.h - prove a step program by running its accesses --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_SCHEDULE_VERIFY_H
#define DROVER_SCHEDULE_VERIFY_H

#include "drover/Schedule/StepProgram.h"

namespace drover::schedule {

/// Owns what only the microbatch program tells: each call is made once, on its own operands and results, and each of its
/// values is where a call reads it. Order, races, messages and who reduces what are Check.h's, which needs the step
/// program alone; where both look (slots, runs, norms) this one sees the one order of issue, and that one all of them.
/// Runs every action of every batch on an arena of tags in place of values. Reports, at most `limit` messages:
/// a read that does not see its own write (value, chunk and microbatch), operands of one call that overlap, a range
/// outside the arena, a phase that runs twice or never, an accumulator that is overwritten after its first
/// contribution or added to before it, a bucket whose norm or update is missing, doubled or too early.
std::vector<std::string> verifyStepProgram(const MicrobatchProgram &program, const StepProgram &step, size_t limit = 8);

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_VERIFY_H
