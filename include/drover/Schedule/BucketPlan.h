//===- BucketPlan.h - where and when a stage holds its buckets --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_SCHEDULE_BUCKETPLAN_H
#define DROVER_SCHEDULE_BUCKETPLAN_H

#include "drover/Schedule/Access.h"
#include "drover/Schedule/GlobalOrder.h"

namespace drover::schedule {

/// A bucket's parameters from a gather to the last use, or its accumulators from the first contribution to their
/// reduction. Times are ordinals of the stage's items.
struct BucketInstance {
  int32_t bucket = 0;
  int64_t first = 0, last = 0;
  int64_t offset = -1;                // in the arena
  std::vector<uint32_t> predecessors; // instances whose memory it takes over
};

/// Of one stage and batch.
struct BucketPlan {
  std::vector<BucketInstance> parameters, accumulators;
  /// By bucket: its instances in order of time. Buckets of other stages have none.
  std::vector<std::vector<uint32_t>> parametersOf, accumulatorsOf;
  /// By item: instances to gather before it and to reduce behind it. What several stages hold is not listed: it is
  /// gathered first of all, and reduced behind the last item of all holders.
  std::vector<std::vector<uint32_t>> gatherBefore, reduceBehind;
};

/// Places what the stage's buckets keep all the time: first of all what lasts from step to step, in one place for every
/// batch. Fills `stage.buckets` and the bucket categories of its memory; returns the end.
int64_t placeLastingSpaces(const StepProgram &step, int32_t stageIndex, Stage &stage);

/// Plans gathers and reductions, and places from `base` on what comes and goes; advances `base`.
BucketPlan planBuckets(const StepProgram &step, const Batch &batch, const std::vector<ChunkAccess> &accesses,
                       const std::vector<const GlobalItem *> &items, Stage &stage, int64_t &base);

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_BUCKETPLAN_H
