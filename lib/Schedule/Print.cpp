//===- Print.cpp - the step program for people ----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/Serialize.h"
#include <sstream>

using namespace drover::schedule;

namespace {
constexpr const char *kPhaseNames[] = {"forward", "backward", "weight_gradient"};
constexpr const char *kKindNames[] = {"run", "send", "receive", "gather", "reduce", "norm", "update", "free"};

void printShape(std::ostream &os, const std::vector<int64_t> &shape, DType dtype) {
  for (int64_t size : shape)
    os << size << "x";
  os << nameOf(dtype);
}

void printCall(std::ostream &os, const StepProgram &step, const StepCall &call) {
  os << "    " << step.bodies[call.body].name;
  if (call.layer >= 0)
    os << " layer " << call.layer;
  os << " (";
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Operand &operand = call.operands[i];
    os << (i ? ", " : "") << nameOf(operand.space) << "+" << operand.offset;
    if (operand.bucket >= 0)
      os << " of bucket " << operand.bucket;
  }
  os << ")" << (call.alwaysAccumulate ? " accumulate" : "");
  for (const BucketRange &range : call.clears)
    os << " clear bucket " << range.bucket << "+" << range.offset << " x " << range.elements;
  os << "\n";
}

void printBinding(std::ostream &os, const Binding &binding) {
  for (size_t space = 0; space < kNumSpaces; ++space)
    if (binding.offsets[space] >= 0)
      os << " " << nameOf(static_cast<Space>(space)) << "@" << binding.offsets[space];
}

void printBatch(std::ostream &os, const StepProgram &step, const Batch &batch) {
  os << "batch " << batch.globalBatch << ": " << batch.microbatches << " microbatches in groups of";
  for (int64_t size : batch.groups)
    os << " " << size;
  const Memory &memory = batch.memory;
  os << ", arena " << batch.arenaBytes << " bytes\n  memory: parameters " << memory.parameters << ", gradients "
     << memory.gradients << ", optimizer " << memory.optimizer << ", stash " << memory.stash << ", boundary "
     << memory.boundary << ", scratch " << memory.scratch << ", workspace " << memory.workspace << ", inputs "
     << memory.inputs << ", logits " << memory.logits << "\n";
  for (uint64_t i = 0; i < batch.numActions; ++i) {
    const drover_action &action = step.actions[batch.firstAction + i];
    os << "  " << action.sequence << " " << kKindNames[action.kind] << " chunk " << action.chunk;
    if (action.kind == DROVER_RUN)
      os << " " << kPhaseNames[action.phase] << " microbatch " << action.microbatch;
    if (action.flags & DROVER_ACTION_LOAD)
      os << " load";
    if (action.flags & DROVER_ACTION_FIRST)
      os << " first";
    os << " :";
    printBinding(os, batch.bindings[action.binding]);
    os << "\n";
  }
}
} // namespace

std::string drover::schedule::printStepProgram(const StepProgram &step) {
  std::ostringstream os;
  os << "step program: " << (step.train ? "train" : "forward") << ", " << nameOf(step.computeType) << ", "
     << nameOf(step.plan.schedule()) << ", " << step.chunks.size() << " chunks, " << step.bodies.size() << " bodies\n";
  for (const PlacedTensor &input : step.inputs) {
    os << "input " << input.name << " ";
    printShape(os, input.shape, input.dtype);
    os << " at " << input.offset << "\n";
  }
  for (const PlacedTensor &output : step.outputs) {
    os << "output " << output.name << " ";
    printShape(os, output.shape, output.dtype);
    os << " at " << output.offset << "\n";
  }
  for (const Bucket &bucket : step.buckets)
    os << "bucket of chunk " << bucket.chunk << ": " << bucket.elements << " elements, " << bucket.decayElements
       << " decay, " << bucket.elements - bucket.trainableElements << " frozen\n";
  for (const PlacedParameter &placed : step.parameters) {
    os << "parameter " << placed.parameter.name << " ";
    printShape(os, placed.parameter.shape, step.computeType);
    os << " in bucket " << placed.bucket << " at " << placed.offset << "\n";
  }
  for (size_t chunk = 0; chunk < step.chunks.size(); ++chunk)
    for (size_t phase = 0; phase < step.chunks[chunk].phases.size(); ++phase) {
      if (step.chunks[chunk].phases[phase].empty())
        continue;
      os << "chunk " << chunk << " " << kPhaseNames[phase] << "\n";
      for (const StepCall &call : step.chunks[chunk].phases[phase])
        printCall(os, step, call);
    }
  for (const Batch &batch : step.batches)
    printBatch(os, step, batch);
  return os.str();
}
