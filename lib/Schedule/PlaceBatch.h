//===- PlaceBatch.h - actions and slots of one global batch -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_SCHEDULE_PLACEBATCH_H
#define DROVER_LIB_SCHEDULE_PLACEBATCH_H

#include "drover/Schedule/BuildStepProgram.h"

namespace drover::schedule {

/// Appends the batch and its actions to `step`, whose chunks, buckets and communicators are complete.
std::optional<Error> placeBatch(const MicrobatchProgram &program, StepProgram &step, int64_t globalBatch,
                                const BuildOptions &options);

} // namespace drover::schedule

#endif // DROVER_LIB_SCHEDULE_PLACEBATCH_H
