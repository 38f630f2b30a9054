//===- EmitActions.cpp - the actions of one global batch ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "BatchPlacer.h"
#include <algorithm>
#include <cassert>

using namespace drover::schedule;

void BatchPlacer::push(uint32_t stageIndex, const drover_action &action, const Binding &binding,
                       HazardTracker::Pending &pending) {
  StageState &state = states[stageIndex];
  Stage &stage = state.stage;
  drover_action &added = state.add(action, binding);
  added.first_wait = static_cast<uint32_t>(stage.waits.size());
  hazards.schedule(pending, stage.waits);
  added.num_waits = static_cast<uint32_t>(stage.waits.size()) - added.first_wait;
  if (added.num_waits == 0)
    added.first_wait = 0;
}

void BatchPlacer::emitItem(const GlobalItem &item) {
  StageState &state = states[item.stage];
  for (uint32_t instance : state.buckets.gatherBefore[item.ordinal])
    emitGather({static_cast<int32_t>(item.stage)}, state.buckets.parameters[instance].bucket, {instance});
  Binding dying;
  HazardTracker::Pending pending = emitRun(item, dying);
  hazards.finish(pending);
  if (hasEdges())
    emitTransfer(item, dying);
  if (!(dying == Binding())) {
    drover_action action = actionOf(DROVER_FREE, DROVER_STREAM_COMPUTE, item.chunk);
    action.phase = static_cast<uint16_t>(item.phase);
    action.microbatch = item.microbatch;
    state.add(action, dying); // says what is over: it neither waits nor is waited for
    ++sequence;
    release(item, dying);
  }
  for (uint32_t instance : state.buckets.reduceBehind[item.ordinal])
    emitReduce({static_cast<int32_t>(item.stage)}, state.buckets.accumulators[instance].bucket, {instance});
  for (auto [last, bucket] : sharedReductions)
    if (last == &item) {
      std::vector<int32_t> holders = step.stagesOf(step.buckets[bucket]);
      std::vector<uint32_t> instances;
      for (int32_t holder : holders)
        instances.push_back(states[holder].buckets.accumulatorsOf[bucket].front());
      emitReduce(holders, bucket, instances);
    }
}

HazardTracker::Pending BatchPlacer::emitRun(const GlobalItem &item, Binding &dying) {
  StageState &state = states[item.stage];
  HazardTracker::Pending pending = begin(item.stage, DROVER_STREAM_COMPUTE);
  drover_action action = actionOf(DROVER_RUN, DROVER_STREAM_COMPUTE, item.chunk);
  action.phase = static_cast<uint16_t>(item.phase);
  action.microbatch = item.microbatch;
  Binding binding;
  for (Space space : SlotPlan::kSpaces) {
    SlotPlan::Slot slot = state.slots->find(space, item);
    if (slot.offset < 0)
      continue;
    binding[space] = slot.offset;
    if (slot.isLast && space != Space::Output)
      dying[space] = slot.offset;
    if (slot.isFirst && space == Space::Input)
      action.flags |= DROVER_ACTION_LOAD;
  }
  if (hasEdges())
    for (Space space : {Space::X, Space::Y, Space::DY, Space::DX})
      useBoundary(item, space, pending, binding, dying);
  useBuckets(item, pending, binding, dying, action.flags);
  const PhaseAccess &access = accesses[item.chunk][action.phase];
  if (access.uses(Space::Scratch))
    binding[Space::Scratch] = state.scratchOffset;
  binding[Space::Scalar] = 0;
  push(item.stage, action, binding, pending);
  ++sequence;
  return pending;
}

void BatchPlacer::useBoundary(const GlobalItem &item, Space space, HazardTracker::Pending &pending, Binding &binding,
                              Binding &dying) {
  auto phase = static_cast<size_t>(item.phase);
  int64_t bytes = boundaryBytes(space, item.chunk);
  if (bytes == 0 || !accesses[item.chunk][phase].uses(space))
    return;
  StageState &state = states[item.stage];
  int32_t &slot = slotOf(space, item.chunk, item.microbatch);
  if (slot < 0) { // y and dx begin here, x and dy with their receives
    slot = static_cast<int32_t>(state.pools->take(space, bytes));
    hazards.write(pending, (*state.pools)[slot].resource);
  } else {
    hazards.read(pending, (*state.pools)[slot].resource);
  }
  binding[space] = (*state.pools)[slot].offset;
  // What is sent on lives until its send, at the least.
  bool sentNow = (space == Space::Y && phase == 0) || (space == Space::DX && phase == 1);
  if (!sentNow && boundaries[item.chunk].lastPhase[static_cast<size_t>(space)] == static_cast<int>(phase))
    dying[space] = binding[space];
}

void BatchPlacer::useBuckets(const GlobalItem &item, HazardTracker::Pending &pending, Binding &binding, Binding &dying,
                             uint16_t &flags) {
  StageState &state = states[item.stage];
  const PhaseAccess &access = accesses[item.chunk][static_cast<size_t>(item.phase)];
  int32_t own = step.chunks[item.chunk].bucket;
  auto current = [&](const std::vector<BucketInstance> &instances, const std::vector<std::vector<uint32_t>> &byBucket,
                     std::vector<uint32_t> &cursor, int32_t bucket) {
    while (instances[byBucket[bucket][cursor[bucket]]].last < item.ordinal)
      ++cursor[bucket];
    return byBucket[bucket][cursor[bucket]];
  };
  for (int32_t bucket : access.parameters) {
    uint32_t i = current(state.buckets.parameters, state.buckets.parametersOf, state.parameterCursor, bucket);
    hazards.read(pending, state.parameters[i]);
    const BucketInstance &instance = state.buckets.parameters[i];
    if (bucket == own)
      binding[Space::Parameter] = instance.offset;
    if (hasDynamicParameters(step, step.buckets[bucket]) && instance.last == item.ordinal)
      dying[Space::Parameter] = instance.offset;
  }
  for (int32_t bucket : access.accumulators) {
    uint32_t i = current(state.buckets.accumulators, state.buckets.accumulatorsOf, state.accumulatorCursor, bucket);
    const BucketInstance &instance = state.buckets.accumulators[i];
    // The first action of each phase of each chunk overwrites what it is the first to write.
    if (item.microbatch == 0 || (startsGroup[item.microbatch] && reducesEveryRun(step, step.buckets[bucket])))
      flags |= DROVER_ACTION_FIRST;
    if (instance.first == item.ordinal)
      for (uint32_t old : instance.predecessors)
        hazards.replace(pending, state.accumulators[old]);
    hazards.write(pending, state.accumulators[i]);
    if (bucket == own)
      binding[Space::Accumulator] = instance.offset;
  }
}

/// A send and its receive, one element of the sequence right behind their producer.
void BatchPlacer::emitTransfer(const GlobalItem &item, Binding &dying) {
  bool forward = item.phase == Phase::Forward;
  bool isEnd = forward ? item.chunk + 1 == step.chunks.size() : item.chunk == 0;
  Space from = forward ? Space::Y : Space::DX, to = forward ? Space::X : Space::DY;
  if (item.phase == Phase::WeightGradient || isEnd || boundaryBytes(from, item.chunk) == 0)
    return;
  uint32_t target = forward ? item.chunk + 1 : item.chunk - 1;
  auto targetStage = static_cast<uint32_t>(step.stageOf(target));
  const ChunkBoundaries &boundary = boundaries[item.chunk];
  int32_t slot = slotOf(boundary.passes ? (forward ? Space::X : Space::DY) : from, item.chunk, item.microbatch);
  assert(slot >= 0 && "a boundary is made before it is sent");
  StageState &state = states[item.stage], &other = states[targetStage];

  drover_action action =
      actionOf(DROVER_SEND, forward ? DROVER_STREAM_FORWARD_SEND : DROVER_STREAM_BACKWARD_SEND, item.chunk);
  action.phase = static_cast<uint16_t>(item.phase);
  action.microbatch = item.microbatch;
  action.peer = peerOf(item.stage, targetStage, forward);
  Binding binding;
  binding[from] = (*state.pools)[slot].offset;
  HazardTracker::Pending send = begin(item.stage, static_cast<drover_stream>(action.stream));
  hazards.read(send, (*state.pools)[slot].resource);
  push(item.stage, action, binding, send);
  if (boundary.lastPhase[static_cast<size_t>(from)] <= static_cast<int>(item.phase))
    dying[from] = binding[from];

  int32_t &received = slotOf(to, target, item.microbatch);
  received = static_cast<int32_t>(other.pools->take(to, boundaryBytes(to, target)));
  action.kind = DROVER_RECEIVE;
  action.stream = forward ? DROVER_STREAM_FORWARD_RECEIVE : DROVER_STREAM_BACKWARD_RECEIVE;
  action.chunk = static_cast<uint16_t>(target);
  Binding place;
  place[to] = (*other.pools)[received].offset;
  HazardTracker::Pending receive = begin(targetStage, static_cast<drover_stream>(action.stream));
  hazards.write(receive, (*other.pools)[received].resource);
  push(targetStage, action, place, receive);
  ++sequence;
  hazards.finish(send);
  hazards.finish(receive, {&send});
}

/// Boundary slots go back to their pools.
void BatchPlacer::release(const GlobalItem &item, const Binding &dying) {
  if (!hasEdges())
    return;
  const ChunkBoundaries &boundary = boundaries[item.chunk];
  for (Space space : {Space::X, Space::Y, Space::DY, Space::DX}) {
    if (dying[space] < 0)
      continue;
    Space kind = !boundary.passes ? space : space == Space::Y ? Space::X : Space::DY;
    int32_t slot = slotOf(kind, item.chunk, item.microbatch);
    states[item.stage].pools->giveBack(kind, boundaryBytes(kind, item.chunk), static_cast<uint32_t>(slot));
  }
}

void BatchPlacer::emitGather(const std::vector<int32_t> &stageIndices, int32_t bucket,
                             const std::vector<uint32_t> &instances) {
  drover_action action = actionOf(DROVER_GATHER, DROVER_STREAM_GATHER, static_cast<uint32_t>(bucket));
  action.peer = tieOf(step, step.buckets[bucket]);
  std::vector<HazardTracker::Pending> pending;
  for (size_t i = 0; i < stageIndices.size(); ++i) {
    StageState &state = states[stageIndices[i]];
    uint32_t instance = stageIndices.size() > 1 ? state.buckets.parametersOf[bucket].front() : instances[i];
    Binding places = state.stage.buckets[bucket];
    places[Space::Parameter] = state.buckets.parameters[instance].offset;
    pending.push_back(begin(static_cast<uint32_t>(stageIndices[i]), DROVER_STREAM_GATHER));
    if (places[Space::Master] >= 0)
      hazards.read(pending.back(), state.masters[bucket]);
    if (places[Space::Master] != places[Space::Parameter]) {
      for (uint32_t old : state.buckets.parameters[instance].predecessors)
        hazards.replace(pending.back(), state.parameters[old]);
      hazards.write(pending.back(), state.parameters[instance]);
    }
    push(static_cast<uint32_t>(stageIndices[i]), action, places, pending.back());
  }
  ++sequence;
  // Holders are ascending; the owner, from which the parameters flow, is anywhere among them.
  for (size_t i = 0; i < pending.size(); ++i)
    if (stageIndices[i] == step.ownerOf(step.buckets[bucket]))
      for (HazardTracker::Pending &member : pending)
        hazards.finish(member, {&pending[i]});
}

void BatchPlacer::emitReduce(const std::vector<int32_t> &stageIndices, int32_t bucket,
                             const std::vector<uint32_t> &instances) {
  drover_action action = actionOf(DROVER_REDUCE, DROVER_STREAM_REDUCE, static_cast<uint32_t>(bucket));
  action.peer = tieOf(step, step.buckets[bucket]);
  std::vector<HazardTracker::Pending> pending;
  std::vector<Binding> freed;
  for (size_t i = 0; i < stageIndices.size(); ++i) {
    auto stage = static_cast<uint32_t>(stageIndices[i]);
    StageState &state = states[stage];
    bool isLater = instances[i] != state.buckets.accumulatorsOf[bucket].front();
    action.flags = isLater ? DROVER_ACTION_ADD : 0;
    Binding places = state.stage.buckets[bucket];
    places[Space::Accumulator] = state.buckets.accumulators[instances[i]].offset;
    pending.push_back(begin(stage, DROVER_STREAM_REDUCE));
    hazards.write(pending.back(), state.accumulators[instances[i]]);
    if (places[Space::Gradient] != places[Space::Accumulator])
      hazards.write(pending.back(), state.gradients[bucket]);
    push(stage, action, places, pending.back());
    Binding &dying = freed.emplace_back();
    if (hasDynamicAccumulators(step, step.buckets[bucket]))
      dying[Space::Accumulator] = places[Space::Accumulator];
  }
  ++sequence;
  hazards.finishTogether(pending);
  for (size_t i = 0; i < stageIndices.size(); ++i) {
    if (freed[i] == Binding())
      continue;
    auto owner = static_cast<uint32_t>(step.buckets[bucket].chunks.front());
    states[stageIndices[i]].add(actionOf(DROVER_FREE, DROVER_STREAM_COMPUTE, owner), freed[i]);
    ++sequence;
  }
}

void BatchPlacer::emitOnAllStages(drover_action_kind kind) {
  Binding binding;
  binding[Space::Scalar] = 0;
  std::vector<HazardTracker::Pending> pending;
  for (uint32_t stage = 0; stage < states.size(); ++stage) {
    pending.push_back(begin(stage, DROVER_STREAM_COMPUTE));
    push(stage, actionOf(kind, DROVER_STREAM_COMPUTE, 0), binding, pending.back());
  }
  ++sequence;
  hazards.finishTogether(pending);
}

/// Norms at the owners, the clip coefficient, updates.
void BatchPlacer::emitEnd() {
  auto emitAtOwners = [&](drover_action_kind kind) {
    for (uint32_t b = 0; b < step.buckets.size(); ++b) {
      if (!step.buckets[b].trainable())
        continue;
      auto stage = static_cast<uint32_t>(step.ownerOf(step.buckets[b]));
      StageState &state = states[stage];
      HazardTracker::Pending pending = begin(stage, DROVER_STREAM_COMPUTE);
      hazards.read(pending, state.gradients[b]);
      if (kind == DROVER_UPDATE)
        hazards.write(pending, state.masters[b]);
      push(stage, actionOf(kind, DROVER_STREAM_COMPUTE, b), state.stage.buckets[b], pending);
      hazards.finish(pending);
      ++sequence;
    }
  };
  emitAtOwners(DROVER_NORM);
  if (step.grid.ranks() > 1)
    emitOnAllStages(DROVER_CLIP);
  emitAtOwners(DROVER_UPDATE);
}
