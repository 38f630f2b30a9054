//===- StageCheck.h - replays one stage's list ------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_SCHEDULE_CHECK_STAGECHECK_H
#define DROVER_LIB_SCHEDULE_CHECK_STAGECHECK_H

#include "ActionOrder.h"
#include "drover/Schedule/Access.h"

namespace drover::schedule {

/// Facts of the chunks that all stages' checks use.
struct ChunkFacts {
  explicit ChunkFacts(const StepProgram &step);

  /// The boundary before a chunk: the chunk's own, or where the chunks before it pass through, theirs.
  uint32_t boundary(int64_t chunk) const { return canonical[static_cast<size_t>(chunk)]; }

  std::vector<ChunkAccess> accesses; // by chunk
  std::vector<uint32_t> canonical;   // by chunk, and one more
};

/// Replays a stage's list: accesses to the arena, contributions to gradients, norms and updates.
void checkStage(const StepProgram &step, const Batch &batch, size_t stage, const ChunkFacts &facts,
                const ActionOrder &order, Faults &faults, CheckWork &work);

} // namespace drover::schedule

#endif // DROVER_LIB_SCHEDULE_CHECK_STAGECHECK_H
