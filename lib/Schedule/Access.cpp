//===- Access.cpp - what the phases of a chunk touch ----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/Access.h"
#include <algorithm>
#include <set>

using namespace drover::schedule;

std::vector<ChunkAccess> drover::schedule::findAccesses(const StepProgram &step) {
  std::vector<ChunkAccess> accesses(step.chunks.size());
  for (size_t c = 0; c < step.chunks.size(); ++c)
    for (size_t phase = 0; phase < step.chunks[c].phases.size(); ++phase) {
      PhaseAccess &access = accesses[c][phase];
      std::set<int32_t> parameters, accumulators;
      for (const StepCall &call : step.chunks[c].phases[phase])
        for (const Operand &operand : call.operands) {
          int32_t bucket = operand.bucket >= 0 ? operand.bucket : step.chunks[c].bucket;
          if (operand.space == Space::Parameter)
            parameters.insert(bucket);
          else if (operand.space == Space::Accumulator)
            accumulators.insert(bucket);
          else
            access.spaces |= 1u << static_cast<uint32_t>(operand.space);
        }
      access.parameters.assign(parameters.begin(), parameters.end());
      access.accumulators.assign(accumulators.begin(), accumulators.end());
    }
  return accesses;
}

bool drover::schedule::passesThrough(const StepChunk &chunk) {
  return std::all_of(chunk.phases.begin(), chunk.phases.end(), [](const auto &calls) { return calls.empty(); });
}

bool drover::schedule::needsReduce(const StepProgram &step, const Bucket &bucket) {
  if (!step.train || !bucket.trainable())
    return false;
  bool sums = std::any_of(bucket.sections.begin(), bucket.sections.end(),
                          [](const Section &section) { return section.sum != GridAxis::None; });
  return step.grid.fsdp() > 1 || sums || step.stagesOf(bucket).size() > 1;
}

bool drover::schedule::needsGather(const StepProgram &step, const Bucket &bucket) {
  if (!step.train || bucket.elements == 0)
    return false;
  return step.computeType != DType::F32 || step.isSharded() || step.stagesOf(bucket).size() > 1;
}

bool drover::schedule::hasDynamicAccumulators(const StepProgram &step, const Bucket &bucket) {
  return step.train && bucket.trainable() && step.isSharded() && step.plan.zero >= 2 && !bucket.isShared();
}

bool drover::schedule::hasDynamicParameters(const StepProgram &step, const Bucket &bucket) {
  // A binding names its own bucket's places only; frozen ones are in another.
  return step.train && bucket.trainable() && step.isSharded() && step.plan.zero == 3 && !bucket.isShared();
}

bool drover::schedule::reducesEveryRun(const StepProgram &step, const Bucket &bucket) {
  if (!step.isSharded() || step.plan.reduceEvery != "run" || bucket.isShared())
    return false;
  // The first action into a chunk's accumulators begins all of them: those of a chunk that shares a bucket with another
  // one live through the step like the shared ones.
  int32_t chunk = bucket.chunks.front();
  return std::none_of(step.buckets.begin(), step.buckets.end(), [&](const Bucket &other) {
    return other.trainable() && other.isShared() &&
           std::find(other.chunks.begin(), other.chunks.end(), chunk) != other.chunks.end();
  });
}

uint32_t drover::schedule::tieOf(const StepProgram &step, const Bucket &bucket) {
  std::vector<int32_t> holders = step.stagesOf(bucket);
  if (holders.size() > 1)
    for (const Communicator &communicator : step.communicators)
      if (communicator.isTie && communicator.stages == holders)
        return communicator.id;
  return 0;
}
