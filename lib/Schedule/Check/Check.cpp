//===- Check.cpp - the proof of a step program ----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/Check.h"
#include "StageCheck.h"

using namespace drover::schedule;

std::vector<std::string> drover::schedule::checkStepProgram(const StepProgram &step, size_t limit) {
  Faults faults(step, limit);
  ChunkFacts facts(step);
  for (const Batch &batch : step.batches) {
    faults.enter(batch);
    if (batch.stages.size() != static_cast<size_t>(step.grid.pp)) {
      faults.report(batch.stages.size(), " stages, expected ", step.grid.pp);
      continue;
    }
    ActionOrder order(step, batch, faults);
    if (!order.build())
      continue;
    for (size_t stage = 0; stage < batch.stages.size() && !faults.isFull(); ++stage)
      checkStage(step, batch, stage, facts, order, faults);
  }
  return faults.take();
}
