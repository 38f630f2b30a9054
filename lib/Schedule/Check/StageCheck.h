//===- StageCheck.h - replays one stage's list ------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_SCHEDULE_CHECK_STAGECHECK_H
#define DROVER_LIB_SCHEDULE_CHECK_STAGECHECK_H

#include "ActionOrder.h"
#include <set>

namespace drover::schedule {

/// What the calls of a phase of a chunk touch.
struct PhaseUse {
  std::array<bool, kNumSpaces> spaces = {};
  std::set<int32_t> parameterBuckets, accumulatorBuckets;
  std::set<int32_t> cleared; // buckets of which a call zeroes a part in the first action
  bool isEmpty = true;
  bool addsAlways = false; // a call adds even in the first action
};

/// Facts of the chunks that all stages' checks use.
struct ChunkFacts {
  explicit ChunkFacts(const StepProgram &step);

  /// The boundary before a chunk: the chunk's own, or where the chunks before it pass through, theirs.
  uint32_t boundary(int64_t chunk) const { return canonical[static_cast<size_t>(chunk)]; }

  std::vector<std::array<PhaseUse, 3>> phases;
  std::vector<uint32_t> canonical; // by chunk, and one more
};

/// Replays a stage's list: accesses to the arena, contributions to gradients, norms and updates.
void checkStage(const StepProgram &step, const Batch &batch, size_t stage, const ChunkFacts &facts,
                const ActionOrder &order, Faults &faults);

} // namespace drover::schedule

#endif // DROVER_LIB_SCHEDULE_CHECK_STAGECHECK_H
