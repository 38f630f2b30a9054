//===- GlobalOrder.h - one sequence of all stages' work ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_SCHEDULE_GLOBALORDER_H
#define DROVER_SCHEDULE_GLOBALORDER_H

#include "drover/Schedule/StepProgram.h"

namespace drover::schedule {

/// A phase of a chunk, counted over the whole pipeline, for one microbatch.
struct GlobalItem {
  uint32_t stage, chunk, microbatch;
  Phase phase;
  uint32_t ordinal; // place among the items of its stage
};

/// The work of all stages in the order in which it ends where every chunk takes equally long and communication is
/// free. Every item stands behind what it depends on, and a stage's items keep their order. Any such order would be
/// free of cycles; this one posts a receive when its data would come.
std::vector<GlobalItem> orderGlobally(const StepProgram &step, const Batch &batch);

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_GLOBALORDER_H
