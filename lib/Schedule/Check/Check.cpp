//===- Check.cpp - the proof of a step program ----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/Check.h"
#include "StageCheck.h"

using namespace drover::schedule;

std::string drover::schedule::faultPrefix(const Batch &batch) {
  return joinText("global batch ", batch.globalBatch, ": ");
}

/// The loss is read behind the one forward that writes it.
static void checkLoss(const StepProgram &step, Faults &faults) {
  int32_t expected = -1;
  for (size_t c = 0; c < step.chunks.size(); ++c)
    for (const StepCall &call : step.chunks[c].phases[0])
      for (const Operand &operand : call.operands)
        if (operand.space == Space::Scalar && operand.offset == kLossOffset)
          expected = static_cast<int32_t>(c);
  if (step.train && step.lossChunk != expected)
    faults.report("the loss is taken from chunk ", step.lossChunk, ", expected ", expected, ", which writes it");
}

std::vector<std::string> drover::schedule::checkStepProgram(const StepProgram &step, size_t limit, CheckWork *work) {
  CheckWork ignored, &sum = work ? *work : ignored;
  Faults faults(step, limit);
  ChunkFacts facts(step);
  checkLoss(step, faults);
  for (const Batch &batch : step.batches) {
    faults.enter(batch);
    if (batch.stages.size() != static_cast<size_t>(step.grid.pp)) {
      faults.report(batch.stages.size(), " stages, expected ", step.grid.pp);
      continue;
    }
    ActionOrder order(step, batch, faults, sum);
    if (!order.build())
      continue;
    for (size_t stage = 0; stage < batch.stages.size() && !faults.isFull(); ++stage)
      checkStage(step, batch, stage, facts, order, faults, sum);
  }
  return faults.take();
}
