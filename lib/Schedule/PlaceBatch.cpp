//===- PlaceBatch.cpp - actions and slots of one global batch -------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "PlaceBatch.h"
#include "SlotAllocator.h"
#include <algorithm>
#include <map>
#include <set>

using namespace drover::schedule;

namespace {

/// Slots that live from action to action, by class.
enum SlotClass { InputSlot, OutputSlot, StashSlot, ForwardSlot, BackwardSlot };

class BatchPlacer {
public:
  BatchPlacer(const MicrobatchProgram &program, StepProgram &step, const BoundaryLife &life)
      : program(program), step(step), life(life) {}

  std::optional<Error> run(int64_t globalBatch);

private:
  using Key = std::tuple<SlotClass, uint32_t, uint32_t>; // class, chunk, microbatch
  void orderWork();
  int64_t placeBuckets();
  void placeDynamic(int64_t base);
  void emitActions();
  void push(drover_action_kind kind, const WorkItem &item, const Binding &binding, uint16_t flags);
  void touch(SlotClass slotClass, uint32_t chunk, uint32_t microbatch, int64_t bytes, int64_t time);
  Binding bindingOf(const WorkItem &item) const;
  int64_t offsetOf(SlotClass slotClass, uint32_t chunk, uint32_t microbatch) const {
    auto found = slots.find({slotClass, chunk, microbatch});
    return found == slots.end() ? -1 : found->second.offset;
  }
  void measure();

  const MicrobatchProgram &program;
  StepProgram &step;
  const BoundaryLife &life;
  Batch batch;
  Stage stage;
  std::vector<WorkItem> order;
  std::map<Key, SlotRequest> slots;
  int64_t scalarOffset = 0, scratchOffset = 0, scratchBytes = 0;
  std::map<std::array<int64_t, kNumSpaces>, uint32_t> bindingIndex;
};

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
  stage.firstAction = step.actions.size();
  orderWork();
  placeDynamic(placeBuckets());
  emitActions();
  measure();
  stage.numActions = step.actions.size() - stage.firstAction;
  batch.stages.push_back(std::move(stage));
  step.batches.push_back(std::move(batch));
  return std::nullopt;
}

void BatchPlacer::orderWork() {
  order = orderOfRank(step.plan.schedule(), 1, static_cast<int64_t>(step.chunks.size()), batch.groups, 0);
  if (!step.train)
    order.erase(std::remove_if(order.begin(), order.end(), [](const WorkItem &i) { return i.phase != Phase::Forward; }),
                order.end());
}

/// What lives all the time comes first, in the same place for every global batch: a step may change from one to
/// another without moving weights.
int64_t BatchPlacer::placeBuckets() {
  int64_t end = 0;
  auto take = [&](int64_t bytes) {
    int64_t offset = end;
    end = alignTo(end + bytes, kSlotAlignment);
    return offset;
  };
  scalarOffset = take(kScalarBytes);
  bool separateMaster = step.train && step.computeType != DType::F32;
  bool moments = step.plan.optimizer == "adamw";
  for (const Bucket &bucket : step.buckets) {
    Binding places;
    int64_t bytes = bucket.elements * bytesOf(step.computeType);
    places[Space::Parameter] = take(bytes);
    stage.memory.parameters += bytes;
    if (step.train) {
      // In f32 on one rank the master weights are the parameters.
      places[Space::Master] = separateMaster ? take(bucket.elements * 4) : places[Space::Parameter];
      stage.memory.optimizer += separateMaster ? bucket.elements * 4 : 0;
      if (bucket.trainable()) {
        places[Space::Accumulator] = take(bucket.elements * 4);
        stage.memory.gradients += bucket.elements * 4;
      }
      if (bucket.trainable() && moments) {
        places[Space::Moment1] = take(bucket.elements * 4);
        places[Space::Moment2] = take(bucket.elements * 4);
        stage.memory.optimizer += bucket.elements * 8;
      }
    }
    places[Space::Scalar] = scalarOffset;
    stage.buckets.push_back(places);
  }
  return end;
}

void BatchPlacer::touch(SlotClass slotClass, uint32_t chunk, uint32_t microbatch, int64_t bytes, int64_t time) {
  if (bytes == 0)
    return;
  auto [slot, isNew] = slots.insert({{slotClass, chunk, microbatch}, SlotRequest{bytes, time, time, 0}});
  if (!isNew)
    slot->second.last = time;
}

/// Colours the slots over the order of work. On one rank a chunk's y is the next one's x, and its dy the next one's
/// dx: one slot each.
void BatchPlacer::placeDynamic(int64_t base) {
  auto last = static_cast<uint32_t>(step.chunks.size() - 1);
  for (size_t i = 0; i < order.size(); ++i) {
    auto [phase, chunk, microbatch] = order[i];
    auto time = static_cast<int64_t>(i);
    const StepChunk &sizes = step.chunks[chunk];
    bool forward = phase == Phase::Forward;
    touch(InputSlot, 0, microbatch, step.inputBytes, time);
    touch(OutputSlot, 0, microbatch, step.outputBytes, time);
    touch(StashSlot, chunk, microbatch, sizes.stashBytes, time);
    if (forward || life.keptHere[chunk])
      touch(ForwardSlot, chunk, microbatch, sizes.yBytes, time);
    if (chunk > 0 && (forward || life.keptByNext[chunk - 1]))
      touch(ForwardSlot, chunk - 1, microbatch, sizes.xBytes, time);
    if (!forward && chunk > 0)
      touch(BackwardSlot, chunk, microbatch, sizes.dxBytes, time);
    if (!forward && chunk < last)
      touch(BackwardSlot, chunk + 1, microbatch, sizes.dyBytes, time);
    scratchBytes = std::max(scratchBytes, sizes.scratchBytes[static_cast<size_t>(phase)]);
  }

  scratchOffset = base;
  int64_t dynamic = alignTo(scratchOffset + scratchBytes, kSlotAlignment);
  std::vector<SlotRequest> requests;
  for (const auto &[key, request] : slots)
    requests.push_back(request);
  stage.arenaBytes = dynamic + placeSlots(requests);
  size_t i = 0;
  for (auto &[key, request] : slots)
    request.offset = dynamic + requests[i++].offset;
}

Binding BatchPlacer::bindingOf(const WorkItem &item) const {
  auto [phase, chunk, microbatch] = item;
  bool forward = phase == Phase::Forward;
  Binding binding;
  const Binding &bucket = stage.buckets[chunk];
  binding[Space::Input] = offsetOf(InputSlot, 0, microbatch);
  binding[Space::Output] = offsetOf(OutputSlot, 0, microbatch);
  binding[Space::Parameter] = bucket[Space::Parameter];
  binding[Space::Accumulator] = forward ? -1 : bucket[Space::Accumulator];
  binding[Space::Stash] = offsetOf(StashSlot, chunk, microbatch);
  if (forward || life.keptHere[chunk])
    binding[Space::Y] = offsetOf(ForwardSlot, chunk, microbatch);
  if (chunk > 0 && (forward || life.keptByNext[chunk - 1]))
    binding[Space::X] = offsetOf(ForwardSlot, chunk - 1, microbatch);
  if (!forward) {
    binding[Space::DX] = chunk > 0 ? offsetOf(BackwardSlot, chunk, microbatch) : -1;
    binding[Space::DY] = offsetOf(BackwardSlot, chunk + 1, microbatch);
  }
  binding[Space::Scratch] = scratchOffset;
  binding[Space::Scalar] = scalarOffset;
  return binding;
}

void BatchPlacer::push(drover_action_kind kind, const WorkItem &item, const Binding &binding, uint16_t flags) {
  auto [known, isNew] = bindingIndex.insert({binding.offsets, static_cast<uint32_t>(stage.bindings.size())});
  if (isNew)
    stage.bindings.push_back(binding);
  drover_action action = {};
  action.kind = static_cast<uint8_t>(kind);
  action.chunk = static_cast<uint16_t>(item.chunk);
  action.phase = static_cast<uint16_t>(item.phase);
  action.flags = flags;
  action.microbatch = item.microbatch;
  action.binding = known->second;
  action.sequence = static_cast<uint32_t>(step.actions.size() - stage.firstAction);
  step.actions.push_back(action);
}

void BatchPlacer::emitActions() {
  auto forEachBucket = [&](drover_action_kind kind) {
    for (uint32_t b = 0; b < step.buckets.size(); ++b)
      if (kind == DROVER_GATHER ? step.buckets[b].elements > 0 : step.buckets[b].trainable())
        push(kind, {Phase::Forward, b, 0}, stage.buckets[b], 0);
  };
  if (step.train && step.computeType != DType::F32)
    forEachBucket(DROVER_GATHER);
  std::set<uint32_t> loaded, accumulated;
  for (const WorkItem &item : order) {
    uint16_t flags = 0;
    if (item.phase == Phase::Backward && accumulated.insert(item.chunk).second)
      flags |= DROVER_ACTION_FIRST;
    if (loaded.insert(item.microbatch).second)
      flags |= DROVER_ACTION_LOAD;
    push(DROVER_RUN, item, bindingOf(item), flags);
  }
  if (step.train) {
    forEachBucket(DROVER_NORM);
    forEachBucket(DROVER_UPDATE);
  }
}

void BatchPlacer::measure() {
  auto peakOf = [&](std::initializer_list<SlotClass> classes) {
    std::vector<SlotRequest> requests;
    for (const auto &[key, request] : slots)
      if (std::find(classes.begin(), classes.end(), std::get<0>(key)) != classes.end())
        requests.push_back(request);
    return peakBytes(requests);
  };
  Memory &memory = stage.memory;
  memory.stash = peakOf({StashSlot});
  memory.boundary = peakOf({ForwardSlot, BackwardSlot});
  memory.inputs = peakOf({InputSlot});
  memory.scratch = scratchBytes;
  for (const Value &value : program.values)
    if (value.kind == ValueKind::Result && value.logits)
      memory.logits = std::max(memory.logits, value.bytes);
}

} // namespace

std::optional<Error> drover::schedule::placeBatch(const MicrobatchProgram &program, StepProgram &step,
                                                  const BoundaryLife &life, int64_t globalBatch) {
  return BatchPlacer(program, step, life).run(globalBatch);
}
