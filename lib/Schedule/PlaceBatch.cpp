//===- PlaceBatch.cpp - actions and slots of one global batch -------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "PlaceBatch.h"
#include "BatchPlacer.h"
#include <algorithm>
#include <cassert>

using namespace drover::schedule;

//===----------------------------------------------------------------------===//
// Before the first action
//===----------------------------------------------------------------------===//

std::optional<Error> BatchPlacer::run(int64_t globalBatch) {
  Result<int64_t> microbatches = countMicrobatches(step.plan, globalBatch);
  if (!microbatches)
    return Error{microbatches.error()};
  Result<std::vector<int64_t>> groups = groupsOf(step.plan, *microbatches);
  if (!groups)
    return Error{groups.error()};
  batch.globalBatch = globalBatch;
  batch.microbatches = *microbatches;
  batch.groups = std::move(*groups);
  startsGroup.assign(static_cast<size_t>(batch.microbatches), false);
  size_t start = 0;
  for (int64_t size : batch.groups) {
    startsGroup[start] = true;
    start += static_cast<size_t>(size);
  }
  order = orderGlobally(step, batch);
  states.resize(static_cast<size_t>(step.grid.pp));
  for (const GlobalItem &item : order)
    states[item.stage].items.push_back(&item);
  for (int32_t stage = 0; stage < step.grid.pp; ++stage)
    placeStage(stage);
  findBoundaries();
  findSharedReductions();

  if (step.train && step.grid.ranks() > 1)
    emitOnAllStages(DROVER_COUNT);
  for (int32_t b = 0; b < static_cast<int32_t>(step.buckets.size()); ++b) {
    std::vector<int32_t> holders = step.stagesOf(step.buckets[b]);
    if (holders.size() > 1 && needsGather(step, step.buckets[b]))
      emitGather(holders, b, std::vector<uint32_t>(holders.size(), 0));
  }
  for (const GlobalItem &item : order)
    emitItem(item);
  if (step.train)
    emitEnd();
  measure();
  return std::nullopt;
}

void BatchPlacer::placeStage(int32_t index) {
  StageState &state = states[index];
  int64_t end = placeLastingSpaces(step, index, state.stage);
  Memory &memory = state.stage.memory;
  for (uint32_t c = 0; c < step.chunks.size(); ++c)
    for (int64_t bytes : step.chunks[c].scratchBytes)
      if (step.stageOf(c) == index)
        memory.scratch = std::max(memory.scratch, bytes);
  state.scratchOffset = end;
  end = alignTo(end + memory.scratch, kSlotAlignment);
  state.buckets = planBuckets(step, batch, accesses, state.items, state.stage, end);
  state.slots = std::make_unique<SlotPlan>(step, batch, accesses, state.items);
  state.slots->place(memory, end);
  state.pools = std::make_unique<BoundaryPools>(hazards, options.spareSlots);
  state.pools->start(end);

  for (size_t b = 0; b < step.buckets.size(); ++b) {
    state.masters.push_back(hazards.makeResource());
    state.gradients.push_back(hazards.makeResource());
  }
  // One range is one resource.
  auto isOneRange = [&](int32_t b, Space one, Space other) {
    const Binding &places = state.stage.buckets[b];
    return places[one] >= 0 && places[one] == places[other];
  };
  for (const BucketInstance &instance : state.buckets.parameters)
    state.parameters.push_back(isOneRange(instance.bucket, Space::Parameter, Space::Master)
                                   ? state.masters[instance.bucket]
                                   : hazards.makeResource());
  for (const BucketInstance &instance : state.buckets.accumulators)
    state.accumulators.push_back(isOneRange(instance.bucket, Space::Accumulator, Space::Gradient)
                                     ? state.gradients[instance.bucket]
                                     : hazards.makeResource());
  state.parameterCursor.assign(step.buckets.size(), 0);
  state.accumulatorCursor.assign(step.buckets.size(), 0);
}

void BatchPlacer::findBoundaries() {
  boundarySlots.assign(4 * step.chunks.size() * static_cast<size_t>(batch.microbatches), -1);
  for (uint32_t c = 0; c < step.chunks.size(); ++c) {
    ChunkBoundaries &boundary = boundaries.emplace_back();
    boundary.passes = passesThrough(step.chunks[c]);
    boundary.lastPhase.fill(-1);
    for (int phase = 0; phase < 3; ++phase)
      for (Space space : {Space::X, Space::Y, Space::DY, Space::DX})
        if (accesses[c][phase].uses(space))
          boundary.lastPhase[static_cast<size_t>(space)] = phase;
  }
}

void BatchPlacer::findSharedReductions() {
  for (int32_t b = 0; b < static_cast<int32_t>(step.buckets.size()); ++b) {
    const Bucket &bucket = step.buckets[b];
    if (step.stagesOf(bucket).size() < 2 || !needsReduce(step, bucket))
      continue;
    const GlobalItem *last = nullptr;
    for (const GlobalItem &item : order) {
      const std::vector<int32_t> &sums = accesses[item.chunk][static_cast<size_t>(item.phase)].accumulators;
      if (std::find(sums.begin(), sums.end(), b) != sums.end())
        last = &item;
    }
    sharedReductions.emplace_back(last, b);
  }
}

int64_t BatchPlacer::boundaryBytes(Space space, uint32_t chunk) const {
  const StepChunk &sizes = step.chunks[chunk];
  switch (space) {
  case Space::X:
    return sizes.xBytes;
  case Space::Y:
    return sizes.yBytes;
  case Space::DY:
    return sizes.dyBytes;
  default:
    return sizes.dxBytes;
  }
}

uint32_t BatchPlacer::peerOf(uint32_t from, uint32_t to, bool forward) const {
  for (const Communicator &communicator : step.communicators)
    if (!communicator.isTie && communicator.forward == forward && communicator.from == static_cast<int32_t>(from) &&
        communicator.to == static_cast<int32_t>(to))
      return communicator.id;
  assert(false && "no communicator for an edge");
  return 0;
}

//===----------------------------------------------------------------------===//
// Behind the last action
//===----------------------------------------------------------------------===//

void BatchPlacer::measure() {
  std::vector<int64_t> logits(states.size(), 0);
  for (uint32_t c = 0; c < step.chunks.size(); ++c)
    for (const std::vector<StepCall> &phase : step.chunks[c].phases)
      for (const StepCall &call : phase)
        for (uint32_t result : program.calls[call.source].results)
          if (program.values[result].logits)
            logits[step.stageOf(c)] = std::max(logits[step.stageOf(c)], program.values[result].bytes);
  for (size_t i = 0; i < states.size(); ++i) {
    StageState &state = states[i];
    Stage &stage = state.stage;
    stage.memory.logits = logits[i];
    int64_t poolBegin = state.pools->offset();
    if (hasEdges())
      stage.memory.boundary = state.pools->bytes();
    stage.arenaBytes = poolBegin + state.pools->bytes();
    stage.firstAction = step.actions.size();
    stage.numActions = state.actions.size();
    step.actions.insert(step.actions.end(), state.actions.begin(), state.actions.end());
    batch.stages.push_back(std::move(stage));
  }
  step.batches.push_back(std::move(batch));
}

std::optional<Error> drover::schedule::placeBatch(const MicrobatchProgram &program, StepProgram &step,
                                                  int64_t globalBatch, const BuildOptions &options) {
  return BatchPlacer(program, step, options).run(globalBatch);
}
