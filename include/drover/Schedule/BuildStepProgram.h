//===- BuildStepProgram.h - from calls to actions and slots -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_SCHEDULE_BUILDSTEPPROGRAM_H
#define DROVER_SCHEDULE_BUILDSTEPPROGRAM_H

#include "drover/Schedule/StepProgram.h"

namespace drover::schedule {

struct BuildOptions {
  /// Slots for boundary tensors, of each kind and stage, beyond those that are in use at once. With one a receive is
  /// posted, and an output written, without waiting for the slot's last reader (benchmarks/slot_loss).
  int64_t spareSlots = 1;
};

/// Cuts the calls into chunks, lays parameters out in buckets, orders the work of every global batch and places
/// its slots in the arena. Expects a plan that `checkPlan` accepts, with `microbatch` and `globalBatches` set.
Result<StepProgram> buildStepProgram(const MicrobatchProgram &program, const Plan &plan,
                                     const BuildOptions &options = {});

/// Sets what the stages' memory says of workspace, after lowering has told the bodies' `workspaceBytes`.
void measureWorkspace(StepProgram &step);

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_BUILDSTEPPROGRAM_H
