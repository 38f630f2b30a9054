//===- StageCheck.cpp - replays one stage's list --------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "StageCheck.h"
#include "ArenaState.h"
#include "drover/Schedule/Access.h"
#include <algorithm>

using namespace drover::schedule;

ChunkFacts::ChunkFacts(const StepProgram &step) : accesses(findAccesses(step)), canonical(step.chunks.size() + 1) {
  for (uint32_t c = 0; c <= step.chunks.size(); ++c)
    canonical[c] = c > 0 && step.chunks[c - 1].phases[0].empty() ? canonical[c - 1] : c;
}

namespace {

/// A range of the arena and what it holds.
struct Range {
  int64_t place, bytes;
  Content content;
};

/// What is known of a bucket's gradients while a list runs.
struct BucketState {
  int64_t contributions = 0; // since the last reduction
  uint8_t phases = 0;        // bit p: phase p is among them
  int64_t reduced = 0;
  bool isNormed = false, isUpdated = false;
  Range gradients = {-1, 0, {}}; // that the norm took
};

class StageReplay {
public:
  StageReplay(const StepProgram &step, const Batch &batch, size_t index, const ChunkFacts &facts,
              const ActionOrder &order, Faults &faults, CheckWork &work)
      : step(step), batch(batch), stage(batch.stages[index]), index(index), facts(facts), faults(faults),
        arena(index, stage.arenaBytes, order, faults, work), buckets(step.buckets.size()) {}

  void run();

private:
  const drover_action &at(uint64_t i) const { return step.actions[stage.firstAction + i]; }
  bool holds(size_t bucket) const {
    const std::vector<int32_t> stages = step.stagesOf(step.buckets[bucket]);
    return std::find(stages.begin(), stages.end(), static_cast<int32_t>(index)) != stages.end();
  }
  int64_t placeOf(size_t bucket, Space space, const drover_action &action) const;
  std::pair<int64_t, int64_t> gradientRange(const drover_action &action) const;
  /// Whether the stage's parameters of the bucket are its masters: a gather only sends them to other holders.
  bool isMaster(size_t bucket) const {
    const Binding &lasting = stage.buckets[bucket];
    return lasting[Space::Master] >= 0 && lasting[Space::Master] == lasting[Space::Parameter];
  }
  int64_t parameterBytes(size_t bucket) const { return step.buckets[bucket].elements * bytesOf(step.computeType); }
  int64_t accumulatorBytes(size_t bucket) const { return step.buckets[bucket].elements * 4; }
  int64_t stateBytes(size_t bucket) const { return step.shardElements(step.buckets[bucket]) * 4; }
  bool isOwner(size_t bucket) const { return step.ownerOf(step.buckets[bucket]) == static_cast<int32_t>(index); }
  std::vector<Range> lastingOf(size_t bucket) const;
  void placeLasting();
  std::vector<bool>::reference ranAt(size_t chunk, size_t phase, size_t microbatch) {
    return ran[(chunk * 3 + phase) * static_cast<size_t>(batch.microbatches) + microbatch];
  }
  void countContributions();
  void runPhase(uint64_t i);
  void read(uint64_t i, int64_t place, int64_t bytes, Content content);
  void write(uint64_t i, int64_t place, int64_t bytes, Content content);
  void contribute(uint64_t i, const std::vector<int32_t> &accumulators);
  Range gradientsOf(const drover_action &action) const;
  void message(uint64_t i);
  void checkTie(uint64_t i);
  void gather(uint64_t i);
  void reduce(uint64_t i);
  void norm(uint64_t i);
  void update(uint64_t i);
  void release(uint64_t i);
  void finish();

  const StepProgram &step;
  const Batch &batch;
  const Stage &stage;
  size_t index;
  const ChunkFacts &facts;
  Faults &faults;
  ArenaState arena;
  std::vector<Range> used; // by the phase that runs
  std::vector<BucketState> buckets;
  std::vector<int64_t> expected; // contributions to a bucket in a step, on this stage
  std::vector<bool> ran;         // by chunk, phase and microbatch
  bool hasRun = false;
  bool isCounted = false, isClipped = false;
};

/// Where a bucket's space lies: in the action's own binding where that has it, else where it lasts.
int64_t StageReplay::placeOf(size_t bucket, Space space, const drover_action &action) const {
  if (action.binding != UINT32_MAX)
    if (int64_t place = stage.bindings[action.binding][space];
        place >= 0 && (action.kind != DROVER_RUN || step.chunks[action.chunk].bucket == static_cast<int32_t>(bucket)))
      return place;
  return stage.buckets[bucket][space];
}

/// Place and bytes of a bucket's reduced gradients: its shard, or the accumulators where they are reduced in place.
std::pair<int64_t, int64_t> StageReplay::gradientRange(const drover_action &action) const {
  int64_t from = placeOf(action.chunk, Space::Accumulator, action);
  int64_t to = placeOf(action.chunk, Space::Gradient, action);
  if (!step.isSharded() && (to < 0 || to == from))
    return {from, accumulatorBytes(action.chunk)};
  return {to, stateBytes(action.chunk)};
}

/// What is there before the step and after it: optimizer state, or the parameters of the forward task. Other parameters
/// must be gathered. Parameters that are their own masters go by their name.
std::vector<Range> StageReplay::lastingOf(size_t bucket) const {
  const Binding &places = stage.buckets[bucket];
  auto b = static_cast<uint32_t>(bucket);
  std::vector<Range> ranges;
  if (!step.train || isMaster(bucket))
    ranges.push_back({places[Space::Parameter], parameterBytes(bucket), {Content::Parameter, b, 0}});
  else
    ranges.push_back({places[Space::Master], stateBytes(bucket), {Content::Master, b, 0}});
  ranges.push_back({places[Space::Moment1], stateBytes(bucket), {Content::Moment1, b, 0}});
  ranges.push_back({places[Space::Moment2], stateBytes(bucket), {Content::Moment2, b, 0}});
  return ranges;
}

void StageReplay::placeLasting() {
  const std::vector<Stage> &first = step.batches.front().stages;
  for (size_t b = 0; b < step.buckets.size(); ++b) {
    const Binding &places = stage.buckets[b];
    for (Space space : {Space::Master, Space::Moment1, Space::Moment2}) {
      if (places[space] >= 0 && (!step.train || !isOwner(b)))
        faults.report("stage ", index, " has a place for the ", nameOf(space), " of bucket ", b, ", which stage ",
                      step.ownerOf(step.buckets[b]), " keeps");
      if (index < first.size() && b < first[index].buckets.size() && first[index].buckets[b][space] != places[space])
        faults.report("stage ", index, ": the ", nameOf(space), " of bucket ", b, " lies at byte ", places[space],
                      ", in global batch ", step.batches.front().globalBatch, " at ", first[index].buckets[b][space]);
    }
    for (const Range &range : lastingOf(b))
      arena.place(range.place, range.bytes, range.content);
  }
}

void StageReplay::countContributions() {
  expected.assign(step.buckets.size(), 0);
  for (size_t c = index; c < step.chunks.size(); c += batch.stages.size())
    for (size_t p = 1; p < 3; ++p)
      for (int32_t bucket : facts.accesses[c][p].accumulators)
        if (bucket >= 0)
          expected[static_cast<size_t>(bucket)] += batch.microbatches;
}

void StageReplay::run() {
  if (stage.buckets.size() != step.buckets.size())
    return faults.report("stage ", index, " has places of ", stage.buckets.size(), " buckets, expected ",
                         step.buckets.size());
  ran.resize(step.chunks.size() * 3 * static_cast<size_t>(batch.microbatches));
  placeLasting();
  countContributions();
  for (uint64_t i = 0; i < stage.numActions && !faults.isFull(); ++i)
    switch (at(i).kind) {
    case DROVER_RUN:
      runPhase(i);
      break;
    case DROVER_SEND:
    case DROVER_RECEIVE:
      message(i);
      break;
    case DROVER_GATHER:
      gather(i);
      break;
    case DROVER_REDUCE:
      reduce(i);
      break;
    case DROVER_NORM:
      norm(i);
      break;
    case DROVER_UPDATE:
      update(i);
      break;
    case DROVER_FREE:
      release(i);
      break;
    case DROVER_COUNT:
      if (isCounted || hasRun)
        faults.report(faults.describe(index, i), ": labels are counted once, before anything runs");
      isCounted = true;
      break;
    case DROVER_CLIP:
      if (isClipped)
        faults.report(faults.describe(index, i), ": the clip coefficient is taken twice");
      isClipped = true;
      break;
    default:
      break;
    }
  finish();
}

void StageReplay::runPhase(uint64_t i) {
  const drover_action &action = at(i);
  if (action.phase > 2 || action.binding == UINT32_MAX || action.microbatch >= batch.microbatches)
    return faults.report(faults.describe(index, i), ": no such phase or microbatch, or no binding");
  if (step.stageOf(action.chunk) != static_cast<int32_t>(index))
    return faults.report(faults.describe(index, i), ": the chunk is stage ", step.stageOf(action.chunk), "'s");
  if (ranAt(action.chunk, action.phase, action.microbatch))
    faults.report(faults.describe(index, i), " runs twice");
  ranAt(action.chunk, action.phase, action.microbatch) = hasRun = true;
  const Binding &binding = stage.bindings[action.binding];
  const StepChunk &chunk = step.chunks[action.chunk];
  const PhaseAccess &access = facts.accesses[action.chunk][action.phase];
  uint32_t c = action.chunk, m = action.microbatch;
  bool forward = action.phase == 0;

  used.clear();
  // Calls come and go within the phase: what they write to and what they read must all be apart.
  if (access.uses(Space::Scratch))
    write(i, binding[Space::Scratch], chunk.scratchBytes[action.phase], {Content::Scratch, c, m});
  if (access.uses(Space::Scalar) || binding[Space::Scalar] >= 0)
    write(i, binding[Space::Scalar], kScalarBytes, {Content::Scalars, c, m});
  Content inputs{Content::Input, 0, m};
  if (action.flags & DROVER_ACTION_LOAD)
    write(i, binding[Space::Input], step.inputBytes, inputs);
  if (access.uses(Space::Input))
    read(i, binding[Space::Input], step.inputBytes, inputs);
  for (int32_t bucket : access.parameters)
    read(i, placeOf(static_cast<size_t>(bucket), Space::Parameter, action), parameterBytes(static_cast<size_t>(bucket)),
         {Content::Parameter, static_cast<uint32_t>(bucket), 0});
  if (access.uses(Space::X))
    read(i, binding[Space::X], chunk.xBytes, {Content::Boundary, facts.boundary(c), m});
  if (!forward && access.uses(Space::Y))
    read(i, binding[Space::Y], chunk.yBytes, {Content::Boundary, facts.boundary(int64_t(c) + 1), m});
  if (!forward && access.uses(Space::Stash))
    read(i, binding[Space::Stash], chunk.stashBytes, {Content::Stash, c, m});
  if (!forward && access.uses(Space::Kept))
    read(i, binding[Space::Kept], chunk.keptBytes, {Content::Kept, c, m});
  if (action.phase == 2 && access.uses(Space::Handed))
    read(i, binding[Space::Handed], chunk.handedBytes, {Content::Handed, c, m});
  if (access.uses(Space::DY))
    read(i, binding[Space::DY], chunk.dyBytes, {Content::BoundaryGradient, facts.boundary(int64_t(c) + 1), m});
  if (!forward)
    contribute(i, access.accumulators);
  if (forward && access.uses(Space::Stash))
    write(i, binding[Space::Stash], chunk.stashBytes, {Content::Stash, c, m});
  if (forward && access.uses(Space::Kept))
    write(i, binding[Space::Kept], chunk.keptBytes, {Content::Kept, c, m});
  if (action.phase == 1 && access.uses(Space::Handed))
    write(i, binding[Space::Handed], chunk.handedBytes, {Content::Handed, c, m});
  if (forward && access.uses(Space::Y))
    write(i, binding[Space::Y], chunk.yBytes, {Content::Boundary, facts.boundary(int64_t(c) + 1), m});
  if (access.uses(Space::Output))
    write(i, binding[Space::Output], step.outputBytes, {Content::Output, 0, m});
  if (action.phase == 1 && access.uses(Space::DX))
    write(i, binding[Space::DX], chunk.dxBytes, {Content::BoundaryGradient, facts.boundary(c), m});
  for (const Range &range : used)
    if (!arena.holds(range.place, range.bytes, range.content) && range.place >= 0)
      faults.report(faults.describe(index, i), " uses ", describe(range.content), " at bytes [", range.place, ", ",
                    range.place + range.bytes, ") and writes something else there");
}

void StageReplay::read(uint64_t i, int64_t place, int64_t bytes, Content content) {
  arena.read(i, place, bytes, content);
  used.push_back({place, bytes, content});
}

void StageReplay::write(uint64_t i, int64_t place, int64_t bytes, Content content) {
  arena.write(i, place, bytes, content);
  used.push_back({place, bytes, content});
}

void StageReplay::contribute(uint64_t i, const std::vector<int32_t> &accumulators) {
  const drover_action &action = at(i);
  bool isFirst = action.flags & DROVER_ACTION_FIRST;
  for (int32_t bucket : accumulators) {
    auto b = static_cast<size_t>(bucket);
    Content sums{Content::Accumulator, static_cast<uint32_t>(bucket), 0};
    int64_t place = placeOf(b, Space::Accumulator, action), bytes = accumulatorBytes(b);
    bool isOwn = bucket == step.chunks[action.chunk].bucket;
    // Each phase has parameters of its own in the bucket of a chunk: it is the first to write these.
    bool isEmpty = buckets[b].contributions == 0;
    bool begins = isOwn ? !(buckets[b].phases >> action.phase & 1) : isEmpty;
    if (isOwn && isFirst && !begins)
      faults.report(faults.describe(index, i), " overwrites ", describe(sums));
    if (begins && !isFirst)
      faults.report(faults.describe(index, i), " adds to ", describe(sums), ", which hold nothing yet");
    if (!isEmpty)
      arena.read(i, place, bytes, sums);
    write(i, place, bytes, sums);
    ++buckets[b].contributions;
    buckets[b].phases |= static_cast<uint8_t>(1u << action.phase);
  }
}

void StageReplay::message(uint64_t i) {
  const drover_action &action = at(i);
  if (action.binding == UINT32_MAX || step.stageOf(action.chunk) != static_cast<int32_t>(index))
    return faults.report(faults.describe(index, i), ": a message of another stage's chunk, or without a binding");
  const Binding &binding = stage.bindings[action.binding];
  const StepChunk &chunk = step.chunks[action.chunk];
  bool forward = action.phase == 0, sends = action.kind == DROVER_SEND;
  auto next = static_cast<int64_t>(action.chunk) + 1;
  // Where a chunk passes its boundary through, what it sends is what it received.
  auto first = [&](Space a, Space b) { return binding[a] >= 0 ? binding[a] : binding[b]; };
  if (sends && forward)
    arena.read(i, first(Space::Y, Space::X), chunk.yBytes,
               {Content::Boundary, facts.boundary(next), action.microbatch});
  else if (sends)
    arena.read(i, first(Space::DX, Space::DY), chunk.dxBytes,
               {Content::BoundaryGradient, facts.boundary(action.chunk), action.microbatch});
  else if (forward)
    arena.write(i, binding[Space::X], chunk.xBytes,
                {Content::Boundary, facts.boundary(action.chunk), action.microbatch});
  else
    arena.write(i, binding[Space::DY], chunk.dyBytes,
                {Content::BoundaryGradient, facts.boundary(next), action.microbatch});
}

/// Every holder of a bucket takes part in what is done with it.
void StageReplay::checkTie(uint64_t i) {
  const drover_action &action = at(i);
  const Bucket &bucket = step.buckets[action.chunk];
  uint32_t tie = tieOf(step, bucket);
  if (tie == 0 && step.stagesOf(bucket).size() > 1)
    faults.report(faults.describe(index, i), ": no communicator is of all stages that hold the bucket");
  else if (action.peer != tie)
    faults.report(faults.describe(index, i), " is over communicator ", action.peer, ", expected ", tie,
                  tie ? ", of all stages that hold the bucket" : ", for one stage holds the bucket");
}

void StageReplay::gather(uint64_t i) {
  const drover_action &action = at(i);
  if (!holds(action.chunk))
    faults.report(faults.describe(index, i), ": the stage does not hold the bucket");
  if (buckets[action.chunk].isUpdated)
    faults.report(faults.describe(index, i), " comes after the update");
  checkTie(i);
  int64_t place = placeOf(action.chunk, Space::Parameter, action);
  Content parameters{Content::Parameter, action.chunk, 0};
  if (isMaster(action.chunk))
    return arena.read(i, place, parameterBytes(action.chunk), parameters);
  Content masters{Content::Master, action.chunk, 0};
  int64_t from = stage.buckets[action.chunk][Space::Master];
  if (isOwner(action.chunk))
    arena.read(i, from, stateBytes(action.chunk), masters);
  arena.write(i, place, parameterBytes(action.chunk), parameters);
  if (isOwner(action.chunk) && !arena.holds(from, stateBytes(action.chunk), masters))
    faults.report(faults.describe(index, i), " writes over ", describe(masters), " at byte ", from);
}

void StageReplay::reduce(uint64_t i) {
  const drover_action &action = at(i);
  BucketState &state = buckets[action.chunk];
  Content sums{Content::Accumulator, action.chunk, 0}, gradient{Content::Gradient, action.chunk, 0};
  checkTie(i);
  if (state.contributions == 0 && expected[action.chunk] > 0)
    faults.report(faults.describe(index, i), ": ", describe(sums), " hold nothing, or are reduced already");
  bool adds = action.flags & DROVER_ACTION_ADD;
  if (adds != (state.reduced > 0))
    faults.report(faults.describe(index, i), adds ? " adds to reduced gradients that are not there"
                                                  : " overwrites the reduced gradients of an earlier run");
  int64_t from = placeOf(action.chunk, Space::Accumulator, action);
  if (state.contributions > 0)
    arena.read(i, from, accumulatorBytes(action.chunk), sums);
  auto [place, bytes] = gradientRange(action);
  if (adds)
    arena.read(i, place, bytes, gradient);
  arena.write(i, place, bytes, gradient);
  bool isInPlace = !step.isSharded() && place == from;
  if (state.contributions > 0 && !isInPlace && !arena.holds(from, accumulatorBytes(action.chunk), sums))
    faults.report(faults.describe(index, i), " writes over ", describe(sums), " at byte ", from);
  state.reduced += state.contributions;
  state.contributions = 0;
  state.phases = 0;
}

/// All contributions must be in what the norm reads, and reduced where there is somebody to reduce with.
void StageReplay::norm(uint64_t i) {
  const drover_action &action = at(i);
  BucketState &state = buckets[action.chunk];
  if (state.isNormed)
    faults.report(faults.describe(index, i), ": the norm of the bucket is taken twice");
  if (isClipped)
    faults.report(faults.describe(index, i), " comes after the clip coefficient");
  if (!isOwner(action.chunk))
    faults.report(faults.describe(index, i), ": the bucket is counted on stage ",
                  step.ownerOf(step.buckets[action.chunk]));
  state.isNormed = true;
  bool isReduced = state.reduced > 0;
  int64_t total = state.reduced + state.contributions;
  if (total != expected[action.chunk] || (isReduced && state.contributions > 0))
    faults.report(faults.describe(index, i), ": ", total, " contributions of ", expected[action.chunk],
                  " to the gradients, ", state.contributions, " of them not reduced");
  if (!isReduced && needsReduce(step, step.buckets[action.chunk]))
    faults.report(faults.describe(index, i), ": the gradients are not reduced over the ranks that hold parts of them");
  state.gradients = gradientsOf(action);
  arena.read(i, state.gradients.place, state.gradients.bytes, state.gradients.content);
}

/// What the norm and the update read: reduced gradients, or the accumulators where there is nobody to reduce with.
Range StageReplay::gradientsOf(const drover_action &action) const {
  if (buckets[action.chunk].reduced > 0) {
    auto [place, bytes] = gradientRange(action);
    return {place, bytes, {Content::Gradient, action.chunk, 0}};
  }
  int64_t place = placeOf(action.chunk, Space::Gradient, action);
  return {place >= 0 ? place : placeOf(action.chunk, Space::Accumulator, action),
          accumulatorBytes(action.chunk),
          {Content::Accumulator, action.chunk, 0}};
}

void StageReplay::update(uint64_t i) {
  const drover_action &action = at(i);
  BucketState &bucket = buckets[action.chunk];
  if (bucket.isUpdated)
    faults.report(faults.describe(index, i), ": the bucket is updated twice");
  if (!bucket.isNormed || (!isClipped && step.grid.ranks() > 1))
    faults.report(faults.describe(index, i), " comes before the norm or the clip coefficient");
  bucket.isUpdated = true;
  arena.read(i, bucket.gradients.place, bucket.gradients.bytes, bucket.gradients.content);
  std::vector<Range> state = lastingOf(action.chunk);
  if (step.plan.optimizer != "adamw")
    state.resize(1); // the masters
  for (size_t k = 0; k < state.size(); ++k) {
    // Masters may be the parameters themselves: nobody may be reading them.
    int64_t place = placeOf(action.chunk, std::array{Space::Master, Space::Moment1, Space::Moment2}[k], action);
    arena.read(i, place, state[k].bytes, state[k].content);
    arena.write(i, place, state[k].bytes, state[k].content);
  }
}

void StageReplay::release(uint64_t i) {
  const drover_action &action = at(i);
  if (action.binding == UINT32_MAX)
    return faults.report(faults.describe(index, i), " names no binding");
  const Binding &binding = stage.bindings[action.binding];
  const StepChunk &chunk = step.chunks[action.chunk];
  arena.release(binding[Space::Input], step.inputBytes);
  arena.release(binding[Space::X], chunk.xBytes);
  arena.release(binding[Space::Y], chunk.yBytes);
  arena.release(binding[Space::DX], chunk.dxBytes);
  arena.release(binding[Space::DY], chunk.dyBytes);
  arena.release(binding[Space::Stash], chunk.stashBytes);
  arena.release(binding[Space::Kept], chunk.keptBytes);
  arena.release(binding[Space::Handed], chunk.handedBytes);
  if (chunk.bucket < 0)
    return;
  auto bucket = static_cast<size_t>(chunk.bucket);
  arena.release(binding[Space::Parameter], parameterBytes(bucket));
  arena.release(binding[Space::Accumulator], accumulatorBytes(bucket));
}

void StageReplay::finish() {
  if (faults.isFull())
    return;
  for (size_t c = index; c < step.chunks.size(); c += batch.stages.size())
    for (uint32_t p = 0; p < 3; ++p)
      for (uint32_t m = 0; m < batch.microbatches; ++m)
        if (!step.chunks[c].phases[p].empty() && !ranAt(c, p, m))
          faults.report("stage ", index, ": phase ", p, " of chunk ", c, " never runs for microbatch ", m);
  for (size_t b = 0; b < step.buckets.size(); ++b)
    for (const Range &range : lastingOf(b))
      if (range.place >= 0 && !arena.holds(range.place, range.bytes, range.content))
        faults.report("stage ", index, ": ", describe(range.content), " at byte ", range.place,
                      " are no more whole when the step ends");
  if (!step.train)
    return;
  if (step.grid.ranks() > 1 && (!isCounted || !isClipped))
    faults.report("stage ", index, ": the labels are never counted, or there is no clip coefficient");
  for (size_t b = 0; b < step.buckets.size(); ++b) {
    const Bucket &bucket = step.buckets[b];
    if (!bucket.trainable() || !holds(b))
      continue;
    if (isOwner(b) && !buckets[b].isUpdated)
      faults.report("stage ", index, ": bucket ", b, " is never updated");
    if (!isOwner(b) && (buckets[b].contributions > 0 || buckets[b].reduced != expected[b]))
      faults.report("stage ", index, ": ", buckets[b].reduced, " of ", expected[b], " contributions to bucket ", b,
                    " reach its owner");
  }
}

} // namespace

void drover::schedule::checkStage(const StepProgram &step, const Batch &batch, size_t stage, const ChunkFacts &facts,
                                  const ActionOrder &order, Faults &faults, CheckWork &work) {
  StageReplay(step, batch, stage, facts, order, faults, work).run();
}
