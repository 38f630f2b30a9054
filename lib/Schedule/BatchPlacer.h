//===- BatchPlacer.h - a global batch as its lists grow ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_SCHEDULE_BATCHPLACER_H
#define DROVER_LIB_SCHEDULE_BATCHPLACER_H

#include "Hazards.h"
#include "SlotPlan.h"
#include "drover/Schedule/Access.h"
#include "drover/Schedule/BucketPlan.h"
#include "drover/Schedule/BuildStepProgram.h"
#include "drover/Schedule/GlobalOrder.h"
#include <memory>
#include <unordered_map>

namespace drover::schedule {

struct BindingHash {
  size_t operator()(const Binding &binding) const {
    uint64_t hash = 0;
    for (int64_t offset : binding.offsets)
      hash = (hash ^ static_cast<uint64_t>(offset)) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 32);
  }
};

/// A stage's list while it grows.
struct StageState {
  Stage stage;
  std::vector<drover_action> actions;
  std::unordered_map<Binding, uint32_t, BindingHash> bindingIndex;
  std::vector<const GlobalItem *> items;
  std::unique_ptr<SlotPlan> slots;
  std::unique_ptr<BoundaryPools> pools;
  BucketPlan buckets;
  int64_t scratchOffset = 0;
  // Resources of the buckets' spaces.
  std::vector<HazardTracker::Resource> parameters, accumulators; // by instance
  std::vector<HazardTracker::Resource> masters, gradients;       // by bucket
  std::vector<uint32_t> parameterCursor, accumulatorCursor;      // by bucket: the instance of the present

  drover_action &add(const drover_action &action, const Binding &binding) {
    auto known = bindingIndex.find(binding);
    if (known == bindingIndex.end()) {
      known = bindingIndex.emplace(binding, static_cast<uint32_t>(stage.bindings.size())).first;
      stage.bindings.push_back(binding);
    }
    actions.push_back(action);
    actions.back().binding = known->second;
    return actions.back();
  }
};

/// What a chunk's boundary tensors need on a pipeline of several stages.
struct ChunkBoundaries {
  bool passes = false;
  /// The last phase that reads each; -1: none does, beside the send.
  std::array<int, kNumSpaces> lastPhase;
};

/// Builds the actions of one global batch, with their places and waits, stage by stage.
class BatchPlacer {
public:
  BatchPlacer(const MicrobatchProgram &program, StepProgram &step, const BuildOptions &options)
      : program(program), step(step), options(options), accesses(findAccesses(step)),
        hazards(static_cast<size_t>(step.grid.pp)) {}

  std::optional<Error> run(int64_t globalBatch);

private:
  void placeStage(int32_t index);
  void findBoundaries();
  void findSharedReductions();

  void emitItem(const GlobalItem &item);
  HazardTracker::Pending emitRun(const GlobalItem &item, Binding &dying);
  void useBuckets(const GlobalItem &item, HazardTracker::Pending &pending, Binding &binding, Binding &dying,
                  uint16_t &flags);
  void useBoundary(const GlobalItem &item, Space space, HazardTracker::Pending &pending, Binding &binding,
                   Binding &dying);
  void emitTransfer(const GlobalItem &item, Binding &dying);
  void release(const GlobalItem &item, const Binding &dying);
  void emitGather(const std::vector<int32_t> &stageIndices, int32_t bucket, const std::vector<uint32_t> &instances);
  void emitReduce(const std::vector<int32_t> &stageIndices, int32_t bucket, const std::vector<uint32_t> &instances);
  void emitOnAllStages(drover_action_kind kind);
  void emitEnd();

  void push(uint32_t stage, const drover_action &action, const Binding &binding, HazardTracker::Pending &pending);
  HazardTracker::Pending begin(uint32_t stage, drover_stream stream) {
    return hazards.begin(stage, stream, static_cast<uint32_t>(states[stage].actions.size()));
  }
  drover_action actionOf(drover_action_kind kind, drover_stream stream, uint32_t chunk) const {
    drover_action action = {};
    action.kind = static_cast<uint8_t>(kind);
    action.stream = static_cast<uint8_t>(stream);
    action.chunk = static_cast<uint16_t>(chunk);
    action.sequence = sequence;
    return action;
  }
  uint32_t peerOf(uint32_t from, uint32_t to, bool forward) const;
  int64_t boundaryBytes(Space space, uint32_t chunk) const;
  int32_t &slotOf(Space space, uint32_t chunk, uint32_t microbatch) {
    size_t kind = static_cast<size_t>(space) - static_cast<size_t>(Space::X);
    return boundarySlots[(kind * step.chunks.size() + chunk) * static_cast<size_t>(batch.microbatches) + microbatch];
  }
  bool hasEdges() const { return step.grid.pp > 1; }
  void measure();

  const MicrobatchProgram &program;
  StepProgram &step;
  const BuildOptions &options;
  std::vector<ChunkAccess> accesses;
  HazardTracker hazards;
  Batch batch;
  std::vector<GlobalItem> order;
  std::vector<bool> startsGroup; // by microbatch
  std::vector<StageState> states;
  std::vector<ChunkBoundaries> boundaries;
  std::vector<int32_t> boundarySlots;                                   // x, y, dy, dx by chunk and microbatch
  std::vector<std::pair<const GlobalItem *, int32_t>> sharedReductions; // behind which item, bucket
  uint32_t sequence = 0;
};

} // namespace drover::schedule

#endif // DROVER_LIB_SCHEDULE_BATCHPLACER_H
