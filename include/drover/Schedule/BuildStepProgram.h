//===- BuildStepProgram.h - from calls to actions and slots -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_SCHEDULE_BUILDSTEPPROGRAM_H
#define DROVER_SCHEDULE_BUILDSTEPPROGRAM_H

#include "drover/Schedule/StepProgram.h"

namespace drover::schedule {

/// Cuts the calls into chunks, lays parameters out in buckets, orders the work of every global batch and places
/// its slots in the arena. Expects a plan that `checkPlan` accepts, with `microbatch` and `globalBatches` set.
Result<StepProgram> buildStepProgram(const MicrobatchProgram &program, const Plan &plan);

/// Sets what the stages' memory says of workspace, after lowering has told the bodies' `workspaceBytes`.
void measureWorkspace(StepProgram &step);

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_BUILDSTEPPROGRAM_H
