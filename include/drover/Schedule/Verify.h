//===- Verify.h - prove a step program by running its accesses --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_SCHEDULE_VERIFY_H
#define DROVER_SCHEDULE_VERIFY_H

#include "drover/Schedule/StepProgram.h"

namespace drover::schedule {

/// Runs every action of every batch on an arena of tags in place of values. Reports, at most `limit` messages:
/// a read that does not see its own write (value, chunk and microbatch), operands of one call that overlap, a range
/// outside the arena, a phase that runs twice or never, an accumulator that is overwritten after its first
/// contribution or added to before it, a bucket whose norm or update is missing, doubled or too early.
std::vector<std::string> verifyStepProgram(const MicrobatchProgram &program, const StepProgram &step, size_t limit = 8);

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_VERIFY_H
