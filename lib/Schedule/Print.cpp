//===- Print.cpp - the step program for people ----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/Serialize.h"
#include <sstream>

using namespace drover::schedule;

namespace {
constexpr const char *kPhaseNames[] = {"forward", "backward", "weight_gradient"};

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

void printAction(std::ostream &os, const StepProgram &step, const Stage &stage, const drover_action &action) {
  os << "  " << action.sequence << " " << drover_action_name(action.kind);
  if (action.kind != DROVER_COUNT && action.kind != DROVER_CLIP)
    os << (drover_action_is_of_bucket(action.kind) ? " bucket " : " chunk ") << action.chunk;
  if (action.kind == DROVER_RUN)
    os << " " << kPhaseNames[action.phase];
  if (action.kind == DROVER_RUN || action.kind == DROVER_SEND || action.kind == DROVER_RECEIVE ||
      action.kind == DROVER_FREE)
    os << " microbatch " << action.microbatch;
  if (action.peer)
    os << " communicator " << action.peer;
  if (action.stream)
    os << " stream " << static_cast<int>(action.stream);
  if (action.flags & DROVER_ACTION_LOAD)
    os << " load";
  if (action.flags & DROVER_ACTION_FIRST)
    os << " first";
  if (action.flags & DROVER_ACTION_ADD)
    os << " add";
  for (uint32_t i = 0; i < action.num_waits; ++i) {
    const drover_action &awaited = step.actions[stage.firstAction + stage.waits[action.first_wait + i]];
    os << (i ? ", " : " after ") << drover_action_name(awaited.kind) << " " << awaited.sequence;
  }
  os << " :";
  if (action.binding < stage.bindings.size())
    printBinding(os, stage.bindings[action.binding]);
  os << "\n";
}

void printBatch(std::ostream &os, const StepProgram &step, const Batch &batch) {
  os << "batch " << batch.globalBatch << ": " << batch.microbatches << " microbatches in groups of";
  for (int64_t size : batch.groups)
    os << " " << size;
  os << "\n";
  for (size_t s = 0; s < batch.stages.size(); ++s) {
    const Stage &stage = batch.stages[s];
    const Memory &memory = stage.memory;
    os << "stage " << s << ": arena " << stage.arenaBytes << " bytes\n  memory: parameters " << memory.parameters
       << ", gradients " << memory.gradients << ", optimizer " << memory.optimizer << ", stash " << memory.stash
       << ", boundary " << memory.boundary << ", scratch " << memory.scratch << ", workspace " << memory.workspace
       << ", inputs " << memory.inputs << ", logits " << memory.logits << "\n";
    for (uint64_t i = 0; i < stage.numActions; ++i)
      printAction(os, step, stage, step.actions[stage.firstAction + i]);
  }
}

void printBucket(std::ostream &os, const Bucket &bucket, size_t index) {
  os << "bucket " << index << " of chunk";
  for (int32_t chunk : bucket.chunks)
    os << " " << chunk;
  os << ": " << bucket.elements << " elements\n";
  for (const Section &section : bucket.sections) {
    os << "  " << section.elements << (section.decay ? " with" : " without") << " decay"
       << (section.trainable ? "" : ", frozen");
    if (section.sum != GridAxis::None)
      os << ", summed over " << nameOf(section.sum);
    if (section.replicated != GridAxis::None)
      os << ", replicated over " << nameOf(section.replicated);
    os << "\n";
  }
}

void printChunkSizes(std::ostream &os, const StepChunk &chunk, size_t index) {
  os << "chunk " << index << ": bytes of a microbatch: stash " << chunk.stashBytes << ", kept " << chunk.keptBytes
     << ", handed " << chunk.handedBytes << ", x " << chunk.xBytes << ", y " << chunk.yBytes << ", dy " << chunk.dyBytes
     << ", dx " << chunk.dxBytes << "\n";
}

void printCommunicator(std::ostream &os, const Communicator &communicator) {
  os << "communicator " << communicator.id << ":";
  if (!communicator.isTie) {
    os << " " << (communicator.forward ? "forward" : "backward") << " edge from stage " << communicator.from << " to "
       << communicator.to << "\n";
    return;
  }
  os << " tie of stages";
  for (int32_t stage : communicator.stages)
    os << " " << stage;
  os << "\n";
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
  if (step.grid.ranks() > 1)
    os << "ranks: tp " << step.grid.tp << ", cp " << step.grid.cp << ", pp " << step.grid.pp << ", dp " << step.grid.dp
       << "\n";
  for (const Communicator &communicator : step.communicators)
    printCommunicator(os, communicator);
  for (size_t i = 0; i < step.buckets.size(); ++i)
    printBucket(os, step.buckets[i], i);
  for (const PlacedParameter &placed : step.parameters) {
    os << "parameter " << placed.parameter.name << " ";
    printShape(os, placed.parameter.localShape.empty() ? placed.parameter.shape : placed.parameter.localShape,
               step.computeType);
    os << " in bucket " << placed.bucket << " at " << placed.offset << "\n";
  }
  for (size_t chunk = 0; chunk < step.chunks.size(); ++chunk) {
    printChunkSizes(os, step.chunks[chunk], chunk);
    for (size_t phase = 0; phase < step.chunks[chunk].phases.size(); ++phase) {
      if (step.chunks[chunk].phases[phase].empty())
        continue;
      os << "chunk " << chunk << " " << kPhaseNames[phase] << "\n";
      for (const StepCall &call : step.chunks[chunk].phases[phase])
        printCall(os, step, call);
    }
  }
  for (const Batch &batch : step.batches)
    printBatch(os, step, batch);
  return os.str();
}
