//===- BuildStepProgram.cpp - from calls to actions and slots -------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/BuildStepProgram.h"
#include "Buckets.h"
#include "PlaceBatch.h"
#include <algorithm>
#include <set>

using namespace drover::schedule;

namespace {

class Builder {
public:
  Builder(const MicrobatchProgram &program, const Plan &plan) : program(program) { step.plan = plan; }

  Result<StepProgram> run();

private:
  void describe();
  void layOutTensors();
  void buildCalls();
  void markAccumulation(StepCall &call, const Call &source, std::set<int32_t> &written);
  Operand resolve(uint32_t value, uint32_t chunk) const;

  const MicrobatchProgram &program;
  StepProgram step;
  ChunkCut cut;
};

Result<StepProgram> Builder::run() {
  if (std::optional<Error> error = checkPlan(step.plan))
    return *error;
  const Plan &plan = step.plan;
  if (plan.tp * plan.cp * plan.pp * plan.dp != 1)
    return Error{"the step program is built for one rank: tp, cp, pp and dp must be 1"};
  if (program.train && plan.schedule() == ScheduleKind::ZeroBubbleH1)
    return Error{"schedule zb-h1 needs bodies whose backward is split into input and weight gradients; accepted are "
                 "1f1b, interleaved and bfs"};
  std::vector<int64_t> layers =
      plan.layersPerChunk.empty() ? spreadLayers(program.numLayers(), plan.chunks) : plan.layersPerChunk;
  Result<ChunkCut> result = cutIntoChunks(program, layers, step.chunks);
  if (!result)
    return Error{result.error()};
  cut = std::move(*result);
  describe();
  step.grid = {plan.tp, plan.cp, plan.pp, plan.dp, program.kv, {"tp", "cp", "pp", "dp"}};
  layOutTensors();
  layOutBuckets(program, cut, step);
  buildCalls();
  BoundaryLife life{cut.boundaryKept, cut.boundaryKeptByNext};
  for (int64_t globalBatch : plan.globalBatches)
    if (std::optional<Error> error = placeBatch(program, step, life, globalBatch))
      return *error;
  measureWorkspace(step);
  return std::move(step);
}

void Builder::describe() {
  step.train = program.train;
  step.computeType = program.computeType;
  step.tokensPerMicrobatch = program.tokensPerMicrobatch;
  step.vocabulary = program.vocabulary;
  step.bodies = program.bodies;
  step.updateBody = program.updateBody;
  step.normBody = program.normBody;
  step.castBody = program.castBody;
  // Model FLOPs count a backward as twice its forward, recompute apart (docs/tfm.md, Cost).
  double forward = 0;
  for (const Call &call : program.calls)
    if (!call.backward)
      forward += static_cast<double>(program.bodies[call.body].flops);
  if (program.tokensPerMicrobatch > 0)
    step.flopsPerToken = forward * (program.train ? 3 : 1) / static_cast<double>(program.tokensPerMicrobatch);
  if (program.train && program.loss >= 0)
    step.lossChunk = static_cast<int32_t>(cut.places[cut.root[program.loss]].chunk);
}

void Builder::layOutTensors() {
  std::vector<int64_t> inputBytes(program.inputs.size(), 0);
  for (const Value &value : program.values)
    if (value.kind == ValueKind::Input)
      inputBytes[value.index] = value.bytes;
  step.inputInfo = program.inputs;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Input &input = program.inputs[i];
    step.inputs.push_back({input.name, input.dtype, input.shape, step.inputBytes, {}});
    step.inputBytes = alignTo(step.inputBytes + inputBytes[i], kSlotAlignment);
  }
  std::set<uint32_t> done;
  for (const Output &output : program.outputs) {
    uint32_t root = cut.root[output.value];
    if (done.insert(root).second) {
      cut.places[root].offset = step.outputBytes;
      step.outputBytes = alignTo(step.outputBytes + program.values[root].bytes, kSlotAlignment);
    }
    step.outputs.push_back(
        {output.name, program.values[root].dtype, output.shape, cut.places[root].offset, output.cut});
  }
}

Operand Builder::resolve(uint32_t value, uint32_t chunk) const {
  uint32_t root = cut.root[value];
  const Value &info = program.values[root];
  switch (info.kind) {
  case ValueKind::Input:
    return {Space::Input, step.inputs[info.index].offset, -1};
  case ValueKind::Seed:
    return {Space::Scalar, kSeedOffset, -1};
  case ValueKind::Parameter:
  case ValueKind::Accumulator: {
    const PlacedParameter &parameter = step.parameters[info.index];
    Space space = info.kind == ValueKind::Parameter ? Space::Parameter : Space::Accumulator;
    return {space, parameter.offset, parameter.bucket == step.chunks[chunk].bucket ? -1 : parameter.bucket};
  }
  case ValueKind::Result:
    break;
  }
  const ChunkCut::Place &place = cut.places[root];
  Space space = place.space;
  if (chunk != place.chunk && space == Space::Y)
    space = Space::X;
  if (chunk != place.chunk && space == Space::DX)
    space = Space::DY;
  return {space, place.offset, -1};
}

void Builder::buildCalls() {
  std::set<int32_t> written;
  for (size_t i = 0; i < program.calls.size(); ++i) {
    const Call &source = program.calls[i];
    uint32_t chunk = cut.chunkOfCall[i];
    StepCall call;
    call.body = source.body;
    call.layer = source.layer;
    call.source = static_cast<uint32_t>(i);
    for (uint32_t operand : source.operands)
      call.operands.push_back(resolve(operand, chunk));
    for (size_t r = 0; r < source.results.size(); ++r)
      if (source.inPlace[r] < 0)
        call.operands.push_back(resolve(source.results[r], chunk));
    markAccumulation(call, source, written);
    step.chunks[chunk].phases[source.backward].push_back(std::move(call));
  }
}

/// The first call into an accumulator overwrites it in the first microbatch. A call that also adds to one which an
/// earlier call of the microbatch wrote (a tied table) cannot do both: its fresh accumulators are zeroed instead.
void Builder::markAccumulation(StepCall &call, const Call &source, std::set<int32_t> &written) {
  std::vector<BucketRange> fresh;
  bool old = false;
  for (uint32_t operand : source.operands) {
    const Value &value = program.values[cut.root[operand]];
    if (value.kind != ValueKind::Accumulator)
      continue;
    if (!written.insert(value.index).second) {
      old = true;
      continue;
    }
    const PlacedParameter &parameter = step.parameters[value.index];
    fresh.push_back({parameter.bucket, parameter.offset, parameter.parameter.elements()});
  }
  call.alwaysAccumulate = old;
  if (old)
    call.clears = std::move(fresh);
}

} // namespace

Result<StepProgram> drover::schedule::buildStepProgram(const MicrobatchProgram &program, const Plan &plan) {
  return Builder(program, plan).run();
}

void drover::schedule::measureWorkspace(StepProgram &step) {
  for (Batch &batch : step.batches)
    for (size_t s = 0; s < batch.stages.size(); ++s) {
      int64_t &bytes = batch.stages[s].memory.workspace = 0;
      for (int32_t body : {step.updateBody, step.normBody, step.castBody})
        if (body >= 0)
          bytes = std::max(bytes, step.bodies[body].workspaceBytes);
      for (uint32_t chunk = 0; chunk < step.chunks.size(); ++chunk)
        for (const std::vector<StepCall> &phase : step.chunks[chunk].phases)
          for (const StepCall &call : phase)
            if (step.stageOf(chunk) == static_cast<int32_t>(s))
              bytes = std::max(bytes, step.bodies[call.body].workspaceBytes);
    }
}
