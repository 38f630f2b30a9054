//===- Access.h - what the phases of a chunk touch --------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_SCHEDULE_ACCESS_H
#define DROVER_SCHEDULE_ACCESS_H

#include "drover/Schedule/StepProgram.h"

namespace drover::schedule {

/// The spaces and buckets that the calls of one phase of a chunk read or write.
struct PhaseAccess {
  uint32_t spaces = 0;               // bit s: space s, of the binding
  std::vector<int32_t> parameters;   // buckets, ascending
  std::vector<int32_t> accumulators; // buckets, ascending

  bool uses(Space space) const { return spaces >> static_cast<uint32_t>(space) & 1; }
};

using ChunkAccess = std::array<PhaseAccess, 3>;

/// By chunk.
std::vector<ChunkAccess> findAccesses(const StepProgram &step);

/// Whether a chunk has no calls: its y is its x and its dx its dy, received and sent on in one slot.
bool passesThrough(const StepChunk &chunk);

/// Whether a stage's gradients of a bucket need a REDUCE, and its parameters a GATHER.
bool needsReduce(const StepProgram &step, const Bucket &bucket);
bool needsGather(const StepProgram &step, const Bucket &bucket);

/// Whether a bucket's accumulators, or its parameters in the compute dtype, have slots that come and go in a step.
bool hasDynamicAccumulators(const StepProgram &step, const Bucket &bucket);
bool hasDynamicParameters(const StepProgram &step, const Bucket &bucket);

/// Whether a bucket is reduced after each group of microbatches, not once a step.
bool reducesEveryRun(const StepProgram &step, const Bucket &bucket);

/// The communicator over the stages that hold a bucket, in which its gradients are added up and its parameters spread;
/// 0 where one stage holds it.
uint32_t tieOf(const StepProgram &step, const Bucket &bucket);

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_ACCESS_H
