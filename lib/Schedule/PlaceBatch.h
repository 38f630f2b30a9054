//===- PlaceBatch.h - actions and slots of one global batch -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_SCHEDULE_PLACEBATCH_H
#define DROVER_LIB_SCHEDULE_PLACEBATCH_H

#include "drover/Schedule/StepProgram.h"

namespace drover::schedule {

/// Per chunk: whether its backward, and the next chunk's, read the boundary between the two.
struct BoundaryLife {
  const std::vector<bool> &keptHere;
  const std::vector<bool> &keptByNext;
};

/// Appends the batch and its actions to `step`, whose chunks and buckets are complete.
std::optional<Error> placeBatch(const MicrobatchProgram &program, StepProgram &step, const BoundaryLife &life,
                                int64_t globalBatch);

} // namespace drover::schedule

#endif // DROVER_LIB_SCHEDULE_PLACEBATCH_H
