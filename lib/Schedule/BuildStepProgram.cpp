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
  Builder(const MicrobatchProgram &program, const Plan &plan, const BuildOptions &options)
      : program(program), options(options) {
    step.plan = plan;
  }

  Result<StepProgram> run();

private:
  void describe();
  void layOutTensors();
  void buildCalls();
  void listCommunicators();
  void markAccumulation(StepCall &call, const Call &source, std::set<std::pair<int32_t, int32_t>> &written,
                        uint32_t chunk);
  Operand resolve(uint32_t value, uint32_t chunk) const;

  const MicrobatchProgram &program;
  const BuildOptions &options;
  StepProgram step;
  ChunkCut cut;
};

Result<StepProgram> Builder::run() {
  if (std::optional<Error> error = checkPlan(step.plan))
    return *error;
  const Plan &plan = step.plan;
  bool isSplit =
      std::any_of(program.calls.begin(), program.calls.end(), [](const Call &c) { return c.weightGradient; });
  if (program.train && plan.schedule() == ScheduleKind::ZeroBubbleH1 && !isSplit)
    return Error{"schedule zb-h1 needs bodies whose backward is split into input and weight gradients; accepted are "
                 "1f1b, interleaved and bfs"};
  if (isSplit && plan.schedule() != ScheduleKind::ZeroBubbleH1)
    return Error{std::string("schedule ") + nameOf(plan.schedule()) +
                 " runs whole backwards: split ones are for zb-h1"};
  std::vector<int64_t> layers =
      plan.layersPerChunk.empty() ? spreadLayers(program.numLayers(), plan.pp * plan.chunks) : plan.layersPerChunk;
  Result<ChunkCut> result = cutIntoChunks(program, layers, step.chunks);
  if (!result)
    return Error{result.error()};
  cut = std::move(*result);
  step.grid = {plan.tp, plan.cp, plan.pp, plan.dp, program.kv, plan.order};
  describe();
  layOutTensors();
  layOutBuckets(program, cut, step);
  buildCalls();
  listCommunicators();
  for (int64_t globalBatch : plan.globalBatches)
    if (std::optional<Error> error = placeBatch(program, step, globalBatch, options))
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
  step.addBody = program.addBody;
  // Model FLOPs count a backward as twice its forward, recompute apart (docs/tfm.md, Cost).
  double forward = 0;
  for (const Call &call : program.calls)
    if (!call.backward)
      forward += static_cast<double>(program.bodies[call.body].flops);
  // Bodies are one rank's part: tp and cp of them make a microbatch.
  forward *= static_cast<double>(step.plan.tp * step.plan.cp);
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
  std::set<std::pair<int32_t, int32_t>> written; // stage, parameter
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
    markAccumulation(call, source, written, chunk);
    step.chunks[chunk].phases[phaseOf(source)].push_back(std::move(call));
  }
}

/// Edges that boundary tensors and their gradients travel, then ties, one a set of stages.
void Builder::listCommunicators() {
  auto add = [&](Communicator communicator) {
    communicator.id = DROVER_COMM_FIRST_LISTED + static_cast<uint32_t>(step.communicators.size());
    step.communicators.push_back(std::move(communicator));
  };
  auto pp = static_cast<int32_t>(step.grid.pp);
  for (bool forward : {true, false})
    for (int32_t from = 0; from < pp && pp > 1; ++from) {
      int32_t to = (from + (forward ? 1 : pp - 1)) % pp;
      auto travels = [&](uint32_t c) {
        if (step.stageOf(c) != from)
          return false;
        return forward ? c + 1 < step.chunks.size() && step.chunks[c].yBytes > 0
                       : step.train && c > 0 && step.chunks[c].dxBytes > 0;
      };
      bool used = false;
      for (uint32_t c = 0; c < step.chunks.size(); ++c)
        used |= travels(c);
      if (used)
        add({0, false, from, to, forward, {}});
    }
  std::set<std::vector<int32_t>> ties;
  for (const Bucket &bucket : step.buckets)
    if (std::vector<int32_t> holders = step.stagesOf(bucket); step.train && holders.size() > 1)
      ties.insert(std::move(holders));
  for (const std::vector<int32_t> &holders : ties)
    add({0, true, -1, -1, true, holders});
}

/// The first call of a stage into an accumulator overwrites it in the first microbatch. A call that also adds to one
/// which an earlier call of the microbatch wrote (a tied table) cannot do both: its fresh accumulators are zeroed
/// instead.
void Builder::markAccumulation(StepCall &call, const Call &source, std::set<std::pair<int32_t, int32_t>> &written,
                               uint32_t chunk) {
  std::vector<BucketRange> fresh;
  bool old = false;
  for (uint32_t operand : source.operands) {
    const Value &value = program.values[cut.root[operand]];
    if (value.kind != ValueKind::Accumulator)
      continue;
    if (!written.insert({step.stageOf(chunk), value.index}).second) {
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

Result<StepProgram> drover::schedule::buildStepProgram(const MicrobatchProgram &program, const Plan &plan,
                                                       const BuildOptions &options) {
  return Builder(program, plan, options).run();
}

void drover::schedule::measureWorkspace(StepProgram &step) {
  for (Batch &batch : step.batches)
    for (size_t s = 0; s < batch.stages.size(); ++s) {
      int64_t &bytes = batch.stages[s].memory.workspace = 0;
      for (int32_t body : {step.updateBody, step.normBody, step.castBody, step.addBody})
        if (body >= 0)
          bytes = std::max(bytes, step.bodies[body].workspaceBytes);
      for (uint32_t chunk = 0; chunk < step.chunks.size(); ++chunk)
        for (const std::vector<StepCall> &phase : step.chunks[chunk].phases)
          for (const StepCall &call : phase)
            if (step.stageOf(chunk) == static_cast<int32_t>(s))
              bytes = std::max(bytes, step.bodies[call.body].workspaceBytes);
    }
}
