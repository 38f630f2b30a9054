//===- BuildReplay.cpp - from a plan's order to a replay program ----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Planner/Replay.h"
#include "drover/Schedule/BucketPlan.h"
#include "drover/Schedule/BuildStepProgram.h"
#include <algorithm>
#include <deque>

using namespace drover::planner;
using namespace drover::schedule;

namespace {

/// Kinds of boundary tensors, as in `boundarySlots`.
enum Boundary : uint8_t { X, Y, DY, DX, NumBoundaries };

/// Equal slots of one kind on one stage, given back and taken as schedule::BoundaryPools does.
struct SlotPool {
  std::deque<uint32_t> free;
  std::vector<uint32_t> lastUse; // by slot: the time after which it may be written

  uint32_t take(int64_t spare) {
    if (static_cast<int64_t>(free.size()) > spare) {
      uint32_t slot = free.front();
      free.pop_front();
      return slot;
    }
    lastUse.push_back(0);
    return static_cast<uint32_t>(lastUse.size() - 1);
  }
  void giveBack(uint32_t slot, uint32_t time) {
    lastUse[slot] = time;
    free.push_back(slot);
  }
};

uint32_t endOf(size_t item) { return static_cast<uint32_t>(2 * item + 1); }
uint32_t arrivalOf(size_t item) { return static_cast<uint32_t>(2 * item + 2); }

} // namespace

namespace drover::planner {

/// Mirrors schedule's placing of a batch, action for action, without places.
class ReplayBuilder {
public:
  ReplayBuilder(const Plan &plan, const ChunkShape &shape) : shape(shape) {
    step.plan = plan;
    step.train = true;
    step.grid = {plan.tp, plan.cp, plan.pp, plan.dp, 0, {"tp", "cp", "pp", "dp"}};
    step.computeType = plan.computeType == "f32" ? DType::F32 : DType::BF16;
    program.split = plan.schedule() == ScheduleKind::ZeroBubbleH1;
  }

  Result<ReplayProgram> run(int64_t microbatches);

private:
  void describeChunks();
  void describeBuckets();
  bool passes(uint32_t chunk) const { return passesThrough(step.chunks[chunk]); }

  void addItem(const GlobalItem &global, size_t index);
  void addRun(const GlobalItem &global, ReplayProgram::Item &item, size_t index);
  void addTransfer(const GlobalItem &global, ReplayProgram::Item &item, size_t index);
  void useBuckets(const GlobalItem &global);
  void addGather(std::vector<int32_t> holders, int32_t bucket, uint32_t instance);
  void addReduce(const std::vector<int32_t> &holders, int32_t bucket, const std::vector<uint32_t> &instances);
  uint32_t addEvent(ReplayProgram::Event event);
  void join(uint32_t stage, uint32_t time);

  struct StageState {
    std::vector<const GlobalItem *> items;
    std::vector<size_t> places; // of its items in the global order
    BucketPlan buckets;
    std::vector<uint32_t> parameterCursor, accumulatorCursor; // by bucket
    std::vector<uint32_t> gathered;                           // by instance: when, 0 once it was waited for
    std::vector<uint32_t> reduced;                            // by instance
    std::array<SlotPool, NumBoundaries> pools;
  };
  /// The slot of a boundary tensor and the time it was written.
  struct Held {
    int32_t slot = -1;
    uint32_t written = 0;
  };
  Held &held(Boundary kind, uint32_t chunk, uint32_t microbatch) {
    return boundaries[(size_t{kind} * step.chunks.size() + chunk) * static_cast<size_t>(batch.microbatches) +
                      microbatch];
  }

  const ChunkShape &shape;
  StepProgram step; // chunks and buckets without calls' details
  std::vector<ChunkAccess> accesses;
  Batch batch;
  std::vector<GlobalItem> order;
  std::vector<StageState> states;
  std::vector<Held> boundaries;
  int64_t spare = BuildOptions().spareSlots;
  size_t current = 0;    // the item before which events go
  int64_t lastTied = -1; // the last item of all holders that adds to what is tied
  ReplayProgram program;
};

void ReplayBuilder::describeChunks() {
  size_t numChunks = shape.layers.size();
  step.chunks.resize(numChunks);
  for (uint32_t c = 0; c < numChunks; ++c) {
    bool isFirst = c == 0, isLast = c + 1 == numChunks, hasLayers = shape.layers[c] > 0;
    StepChunk &chunk = step.chunks[c];
    chunk.bucket = static_cast<int32_t>(c);
    ChunkAccess &access = accesses.emplace_back();
    if (!isFirst && !isLast && !hasLayers)
      continue; // passes through
    for (int phase = 0; phase < (program.split ? 3 : 2); ++phase)
      chunk.phases[phase].emplace_back();
    // The embedding's backward reads no parameters; weight gradients read what was stashed and dy.
    PhaseAccess &forward = access[0], &backward = access[1], &sums = access[program.split ? 2 : 1];
    forward.parameters = {chunk.bucket};
    if (hasLayers || isLast)
      backward.parameters = {chunk.bucket};
    sums.accumulators = {chunk.bucket};
    if (shape.tiedElements > 0 && numChunks > 1 && (isFirst || isLast)) {
      auto tied = static_cast<int32_t>(numChunks);
      forward.parameters.push_back(tied);
      if (isLast)
        backward.parameters.push_back(tied);
      sums.accumulators.push_back(tied);
    }
  }
}

void ReplayBuilder::describeBuckets() {
  auto add = [&](int64_t elements, std::vector<int32_t> chunks) {
    Bucket bucket;
    bucket.chunks = std::move(chunks);
    bucket.elements = alignTo(elements, kBucketAlignment * step.grid.fsdp());
    // Norms are partial over TP, and every chunk with parameters has one.
    if (bucket.elements > 0)
      bucket.sections.push_back(
          {0, bucket.elements, true, true, step.grid.tp > 1 ? GridAxis::Tp : GridAxis::None, GridAxis::None});
    step.buckets.push_back(std::move(bucket));
  };
  auto numChunks = static_cast<int32_t>(shape.layers.size());
  for (int32_t c = 0; c < numChunks; ++c)
    add(shape.elements[c] + (numChunks == 1 ? shape.tiedElements : 0), {c});
  if (shape.tiedElements > 0 && numChunks > 1)
    add(shape.tiedElements, {0, numChunks - 1});
}

Result<ReplayProgram> ReplayBuilder::run(int64_t microbatches) {
  Result<std::vector<int64_t>> groups = groupsOf(step.plan, microbatches);
  if (!groups)
    return Error{groups.error()};
  // Lanes are numbered in 16 bits.
  constexpr int64_t kMostStages = 1 << 13;
  if (step.grid.pp > kMostStages)
    return Error{"pp is " + std::to_string(step.grid.pp) + ": expected up to " + std::to_string(kMostStages) +
                 " stages"};
  batch.microbatches = microbatches;
  batch.groups = program.groups = *groups;
  describeChunks();
  describeBuckets();
  order = orderGlobally(step, batch);
  states.resize(static_cast<size_t>(step.grid.pp));
  for (size_t i = 0; i < order.size(); ++i) {
    states[order[i].stage].items.push_back(&order[i]);
    states[order[i].stage].places.push_back(i);
  }
  if (auto tied = static_cast<int32_t>(step.chunks.size());
      step.buckets.size() > step.chunks.size() && step.stagesOf(step.buckets[tied]).size() > 1)
    for (size_t i = 0; i < order.size(); ++i) {
      const std::vector<int32_t> &sums = accesses[order[i].chunk][static_cast<size_t>(order[i].phase)].accumulators;
      if (std::find(sums.begin(), sums.end(), tied) != sums.end())
        lastTied = static_cast<int64_t>(i);
    }
  for (int32_t s = 0; s < step.grid.pp; ++s) {
    StageState &state = states[s];
    Stage stage;
    int64_t base = placeLastingSpaces(step, s, stage);
    int64_t begin = base;
    Memory before = stage.memory;
    state.buckets = planBuckets(step, batch, accesses, state.items, stage, base);
    ReplayProgram::Dynamic &dynamic = program.dynamic.emplace_back();
    dynamic.accumulatorElements = (stage.memory.gradients - before.gradients) / 4;
    dynamic.parameterElements = (stage.memory.parameters - before.parameters) / bytesOf(step.computeType);
    int64_t accumulatorEnd = begin;
    for (const BucketInstance &instance : state.buckets.accumulators)
      if (hasDynamicAccumulators(step, step.buckets[instance.bucket]))
        accumulatorEnd = std::max(accumulatorEnd, instance.offset + step.buckets[instance.bucket].elements * 4);
    dynamic.accumulatorSpace = alignTo(accumulatorEnd - begin, kSlotAlignment) / 4;
    dynamic.parameterSpace = (base - begin - dynamic.accumulatorSpace * 4) / bytesOf(step.computeType);
    state.parameterCursor.assign(step.buckets.size(), 0);
    state.accumulatorCursor.assign(step.buckets.size(), 0);
    state.gathered.assign(state.buckets.parameters.size(), 0);
    state.reduced.assign(state.buckets.accumulators.size(), 0);
  }
  size_t cells = step.chunks.size() * static_cast<size_t>(microbatches);
  boundaries.resize(NumBoundaries * cells);

  program.numStages = step.grid.pp;
  program.numChunks = static_cast<int64_t>(step.chunks.size());
  program.items.reserve(order.size());
  for (int32_t b = 0; b < static_cast<int32_t>(step.buckets.size()); ++b) {
    std::vector<int32_t> holders = step.stagesOf(step.buckets[b]);
    if (holders.size() > 1 && needsGather(step, step.buckets[b]))
      addGather(holders, b, 0);
  }
  for (size_t i = 0; i < order.size(); ++i)
    addItem(order[i], i);
  for (StageState &state : states) {
    std::array<int64_t, 4> &counts = program.slots.emplace_back();
    for (size_t kind = 0; kind < NumBoundaries; ++kind)
      counts[kind] = static_cast<int64_t>(state.pools[kind].lastUse.size());
  }
  return std::move(program);
}

uint32_t ReplayBuilder::addEvent(ReplayProgram::Event event) {
  event.before = static_cast<uint32_t>(current);
  program.events.push_back(event);
  return static_cast<uint32_t>(2 * order.size() + program.events.size());
}

void ReplayBuilder::join(uint32_t stage, uint32_t time) {
  ReplayProgram::Event event;
  event.kind = ReplayProgram::Event::Join;
  event.stages = {static_cast<uint16_t>(stage), static_cast<uint16_t>(stage)};
  event.waits = {time, time};
  addEvent(event);
}

void ReplayBuilder::addGather(std::vector<int32_t> holders, int32_t bucket, uint32_t instance) {
  ReplayProgram::Event event;
  event.kind = ReplayProgram::Event::Gather;
  event.bucket = static_cast<uint32_t>(bucket);
  event.stages = {static_cast<uint16_t>(holders.front()), static_cast<uint16_t>(holders.back())};
  if (holders.size() == 1) {
    // It overwrites what others have read.
    StageState &state = states[holders.front()];
    int64_t last = -1;
    for (uint32_t old : state.buckets.parameters[instance].predecessors)
      last = std::max(last, state.buckets.parameters[old].last);
    if (last >= 0)
      event.waits[0] = endOf(state.places[last]);
  }
  uint32_t time = addEvent(event);
  // Whole masters in f32 are the owner's parameters: it has nothing to wait for.
  bool isMaster = step.computeType == DType::F32 && !step.isSharded();
  for (int32_t holder : holders) {
    if (isMaster && holder == step.ownerOf(step.buckets[bucket]))
      continue;
    StageState &state = states[holder];
    state.gathered[holders.size() > 1 ? state.buckets.parametersOf[bucket].front() : instance] = time;
  }
}

void ReplayBuilder::addReduce(const std::vector<int32_t> &holders, int32_t bucket,
                              const std::vector<uint32_t> &instances) {
  ReplayProgram::Event event;
  event.kind = ReplayProgram::Event::Reduce;
  event.bucket = static_cast<uint32_t>(bucket);
  event.stages = {static_cast<uint16_t>(holders.front()), static_cast<uint16_t>(holders.back())};
  for (size_t i = 0; i < holders.size(); ++i) {
    StageState &state = states[holders[i]];
    event.waits[i] = endOf(state.places[state.buckets.accumulators[instances[i]].last]);
  }
  uint32_t time = addEvent(event);
  for (size_t i = 0; i < holders.size(); ++i)
    states[holders[i]].reduced[instances[i]] = time;
}

void ReplayBuilder::addItem(const GlobalItem &global, size_t index) {
  StageState &state = states[global.stage];
  current = index;
  for (uint32_t instance : state.buckets.gatherBefore[global.ordinal])
    addGather({static_cast<int32_t>(global.stage)}, state.buckets.parameters[instance].bucket, instance);
  useBuckets(global);
  ReplayProgram::Item item;
  item.compute = static_cast<uint16_t>(global.stage * ReplayProgram::NumLanes);
  item.cost = static_cast<uint16_t>(global.chunk * 3 + static_cast<uint32_t>(global.phase));
  addRun(global, item, index);
  addTransfer(global, item, index);
  program.items.push_back(item);
  program.microbatches.push_back(global.microbatch);

  current = index + 1;
  for (uint32_t instance : state.buckets.reduceBehind[global.ordinal])
    addReduce({static_cast<int32_t>(global.stage)}, state.buckets.accumulators[instance].bucket, {instance});
  if (static_cast<int64_t>(index) == lastTied) {
    auto tied = static_cast<int32_t>(step.chunks.size());
    std::vector<int32_t> holders = step.stagesOf(step.buckets[tied]);
    std::vector<uint32_t> instances;
    for (int32_t holder : holders)
      instances.push_back(states[holder].buckets.accumulatorsOf[tied].front());
    addReduce(holders, tied, instances);
  }
}

void ReplayBuilder::useBuckets(const GlobalItem &global) {
  StageState &state = states[global.stage];
  const PhaseAccess &access = accesses[global.chunk][static_cast<size_t>(global.phase)];
  auto at = [&](const std::vector<BucketInstance> &instances, const std::vector<std::vector<uint32_t>> &byBucket,
                std::vector<uint32_t> &cursor, int32_t bucket) {
    while (instances[byBucket[bucket][cursor[bucket]]].last < global.ordinal)
      ++cursor[bucket];
    return byBucket[bucket][cursor[bucket]];
  };
  for (int32_t bucket : access.parameters) {
    if (step.buckets[bucket].elements == 0)
      continue;
    uint32_t i = at(state.buckets.parameters, state.buckets.parametersOf, state.parameterCursor, bucket);
    if (uint32_t &time = state.gathered[i]) {
      join(global.stage, time);
      time = 0;
    }
  }
  for (int32_t bucket : access.accumulators) {
    uint32_t i = at(state.buckets.accumulators, state.buckets.accumulatorsOf, state.accumulatorCursor, bucket);
    const BucketInstance &instance = state.buckets.accumulators[i];
    if (instance.first == global.ordinal)
      for (uint32_t old : instance.predecessors)
        if (state.reduced[old])
          join(global.stage, state.reduced[old]);
  }
}

void ReplayBuilder::addRun(const GlobalItem &global, ReplayProgram::Item &item, size_t index) {
  uint32_t c = global.chunk, m = global.microbatch;
  bool hasEdges = step.grid.pp > 1, isFirst = c == 0, isLast = c + 1 == step.chunks.size();
  if (!hasEdges || passes(c))
    return; // one stage's order is all; what passes through is waited for by its send
  StageState &state = states[global.stage];
  auto make = [&](Boundary kind) {
    Held &made = held(kind, c, m);
    made.slot = static_cast<int32_t>(state.pools[kind].take(spare));
    made.written = endOf(index);
    item.slotWait = state.pools[kind].lastUse[made.slot];
  };
  auto drop = [&](Boundary kind) {
    state.pools[kind].giveBack(static_cast<uint32_t>(held(kind, c, m).slot), endOf(index));
  };
  // Weight parts read the inputs of products, and the gradients unless those were gathered and handed over.
  Phase last = program.split ? Phase::WeightGradient : Phase::Backward;
  Phase lastOfGradient = step.plan.tp > 1 ? Phase::Backward : last;
  switch (global.phase) {
  case Phase::Forward:
    if (!isFirst)
      item.wait = held(X, c, m).written;
    if (!isLast)
      make(Y);
    break;
  case Phase::Backward:
    if (!isLast)
      item.wait = held(DY, c, m).written;
    if (!isFirst)
      make(DX);
    break;
  case Phase::WeightGradient:
    break;
  }
  if (global.phase == last && !isFirst)
    drop(X);
  if (global.phase == lastOfGradient && !isLast)
    drop(DY);
}

void ReplayBuilder::addTransfer(const GlobalItem &global, ReplayProgram::Item &item, size_t index) {
  bool forward = global.phase == Phase::Forward;
  uint32_t c = global.chunk, m = global.microbatch;
  bool isEnd = forward ? c + 1 == step.chunks.size() : c == 0;
  auto none = static_cast<uint16_t>(step.grid.pp * ReplayProgram::NumLanes);
  item.send = item.receive = none;
  if (global.phase == Phase::WeightGradient || isEnd || step.grid.pp == 1)
    return;
  uint32_t target = forward ? c + 1 : c - 1;
  auto targetStage = static_cast<uint32_t>(step.stageOf(target));
  Boundary from = passes(c) ? (forward ? X : DY) : (forward ? Y : DX), to = forward ? X : DY;
  Held &sent = held(from, c, m);
  item.sendWait = sent.written;
  item.send = static_cast<uint16_t>(global.stage * ReplayProgram::NumLanes +
                                    (forward ? ReplayProgram::ForwardSend : ReplayProgram::BackwardSend));
  item.receive = static_cast<uint16_t>(targetStage * ReplayProgram::NumLanes +
                                       (forward ? ReplayProgram::ForwardReceive : ReplayProgram::BackwardReceive));
  SlotPool &pool = states[targetStage].pools[to];
  Held &received = held(to, target, m);
  received.slot = static_cast<int32_t>(pool.take(spare));
  received.written = arrivalOf(index);
  item.receiveWait = pool.lastUse[received.slot];
  states[global.stage].pools[from].giveBack(static_cast<uint32_t>(sent.slot), arrivalOf(index));
}

} // namespace drover::planner

Result<ReplayProgram> ReplayProgram::build(const Plan &plan, int64_t microbatches, const ChunkShape &shape) {
  assert(static_cast<int64_t>(shape.layers.size()) == plan.pp * plan.chunks && "a shape of another plan");
  return ReplayBuilder(plan, shape).run(microbatches);
}
