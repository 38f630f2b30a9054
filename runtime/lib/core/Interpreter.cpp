//===- Interpreter.cpp - runs a step program ------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/interpreter.h"
#include "drover/rt/error.h"
#include <algorithm>
#include <cmath>

namespace drover::rt {

/// The elements of a bucket's trainable sections that no parameter owns.
static std::vector<BucketRange> findGaps(const Program &program, int64_t bucket) {
  std::vector<std::pair<int64_t, int64_t>> owned;
  for (const ParameterInfo &parameter : program.parameters)
    if (parameter.bucket == bucket && !parameter.frozen)
      owned.emplace_back(parameter.offset, parameter.offset + parameter.localElements);
  int64_t place = 0, end = 0;
  for (const SectionInfo &section : program.buckets[size_t(bucket)].sections)
    if (section.trainable)
      end = section.first + section.elements;
    else
      owned.emplace_back(section.first, section.first + section.elements);
  std::sort(owned.begin(), owned.end());
  owned.emplace_back(end, end);
  std::vector<BucketRange> gaps;
  for (auto [first, last] : owned) {
    if (std::min(first, end) > place)
      gaps.push_back({bucket, place, std::min(first, end) - place});
    place = std::max(place, last);
  }
  return gaps;
}

static std::vector<StageInfo> placeStages(const RankContext &rank, const SlotGuard &guard) {
  std::vector<StageInfo> stages;
  for (const BatchInfo &batch : rank.program.batches)
    stages.push_back(guard.relocate(batch.stages[size_t(rank.plan.stage)]));
  return stages;
}

Interpreter::Interpreter(RankContext &rank, drover_pool *pool, FlightRecorder &recorder, TraceWriter *trace,
                         const GuardOptions &guards)
    : rank(rank), program(rank.program), pool(pool), recorder(recorder), trace(trace),
      guard(program, rank.plan.stage, guards), stages(placeStages(rank, guard)), arena(guard.arenaBytes()),
      workspace(program.workspaceBytes(rank.plan.stage)), gradientPlaces(program.buckets.size(), -1) {
  guard.arm(arena.data());
  for (size_t bucket = 0; bucket < program.buckets.size(); ++bucket)
    gaps.push_back(findGaps(program, int64_t(bucket)));
}

StepOutcome Interpreter::run(const StepWork &work) {
  StepOutcome outcome;
  stage = &stages[work.batch];
  actions = program.actions(*stage);
  inFlight.clear();
  inFlight.resize(size_t(stage->numActions));
  squares = 0;
  normKnown = false;
  std::fill(gradientPlaces.begin(), gradientPlaces.end(), -1);
  bool counts = std::any_of(actions, actions + stage->numActions,
                            [](const drover_action &action) { return action.kind == DROVER_COUNT; });
  if (!counts)
    count(work, outcome);
  gatherRest();
  for (int64_t i = 0; i < stage->numActions; ++i) {
    for (uint32_t wait = 0; wait < actions[i].num_waits; ++wait)
      complete(stage->waits[actions[i].first_wait + wait]);
    execute(uint32_t(i), work, outcome);
  }
  for (int stream = 0; stream < DROVER_NUM_STREAMS; ++stream)
    completeStream(stream);
  guard.check(arena.data(), work.step, "at the end");
  return outcome;
}

/// The group that an action's last operation is on; -1: none.
int64_t Interpreter::communicatorOf(const drover_action &action) const {
  bool isGlobal = action.kind == DROVER_COUNT || action.kind == DROVER_CLIP;
  if (action.peer)
    return action.peer;
  if (isGlobal && rank.worldGroup())
    return DROVER_COMM_WORLD;
  bool overData = action.kind == DROVER_REDUCE || (action.kind == DROVER_GATHER && isSharded());
  return overData && rank.find(DROVER_COMM_FSDP) ? DROVER_COMM_FSDP : -1;
}

void Interpreter::execute(uint32_t index, const StepWork &work, StepOutcome &outcome) {
  const drover_action &action = actions[index];
  InFlight &flight = inFlight[index];
  flight.startNs = tracing ? monotonicNs() : 0;
  flight.record = recorder.begin(work.step, stage->firstAction + index, action, communicatorOf(action));
  switch (action.kind) {
  case DROVER_RUN:
    runPhase(action, work, outcome);
    break;
  case DROVER_SEND:
  case DROVER_RECEIVE:
    sendOrReceive(action, flight);
    break;
  case DROVER_GATHER:
    gather(action, flight);
    break;
  case DROVER_REDUCE:
    reduce(action, flight);
    break;
  case DROVER_COUNT:
    count(work, outcome);
    break;
  case DROVER_NORM:
    addSquares(action);
    break;
  case DROVER_CLIP:
    clipGradients(work, outcome);
    break;
  case DROVER_UPDATE:
    if (!normKnown)
      clipGradients(work, outcome);
    if (outcome.updated)
      update(action, work);
    break;
  case DROVER_FREE:
    guard.check(arena.data(), work.step, concat("freed by chunk ", action.chunk));
    release(action);
    break;
  default: // refused at load
    break;
  }
  flight.pending = true;
  streams[action.stream].push_back(index);
  // Compute ends here; an action with nothing to wait for is done as soon as those before it on its stream are.
  if (action.stream == DROVER_STREAM_COMPUTE)
    completeStream(DROVER_STREAM_COMPUTE);
}

int64_t Interpreter::place(const drover_action &action, int64_t bucket, Space space) const {
  if (action.binding < stage->bindings.size()) {
    int64_t own = stage->bindings[action.binding][space];
    bool isChunks = action.kind == DROVER_RUN || action.kind == DROVER_FREE;
    if (own >= 0 && (!isChunks || program.chunks[action.chunk].bucket == bucket))
      return own;
  }
  return bucket >= 0 ? stage->buckets[size_t(bucket)][space] : -1;
}

void Interpreter::runPhase(const drover_action &action, const StepWork &work, StepOutcome &outcome) {
  const Binding &binding = stage->bindings[action.binding];
  const ChunkInfo &chunk = program.chunks[action.chunk];
  if (action.flags & DROVER_ACTION_LOAD)
    work.fillInputs(action.microbatch, at(binding[Space::Input]));
  bool hasScalars = binding[Space::Scalar] >= 0;
  uint8_t *scalars = at(binding[Space::Scalar]);
  double loss = 0;
  if (hasScalars) {
    std::memcpy(scalars + seedOffset, &seed, sizeof(float));
    std::memcpy(scalars + lossOffset, &loss, sizeof(double));
  }
  if (action.flags & DROVER_ACTION_FIRST)
    for (size_t bucket = 0; bucket < program.buckets.size(); ++bucket) {
      const std::vector<int64_t> &users = program.buckets[bucket].chunks;
      if (std::find(users.begin(), users.end(), action.chunk) != users.end())
        for (const BucketRange &gap : gaps[bucket])
          clearRange(action, gap);
    }
  for (const CallInfo &call : chunk.phases[action.phase])
    callBody(call, action, work);
  // All tp ranks compute the same loss.
  bool hasLoss = hasScalars && action.phase == 0 && (program.lossChunk < 0 || program.lossChunk == action.chunk);
  if (hasLoss && rank.plan.place[DROVER_AXIS_TP] == 0) {
    std::memcpy(&loss, scalars + lossOffset, sizeof(double));
    outcome.lossSum += loss;
  }
  guard.releaseScratch(arena.data(), action, binding);
}

void Interpreter::callBody(const CallInfo &call, const drover_action &action, const StepWork &work) {
  bool first = action.flags & DROVER_ACTION_FIRST;
  if (first)
    for (const BucketRange &range : call.clears)
      clearRange(action, range);
  const Binding &binding = stage->bindings[action.binding];
  int64_t ownBucket = program.chunks[action.chunk].bucket;
  operands.clear();
  for (const OperandInfo &operand : call.operands) {
    int64_t base = isBucketSpace(operand.space)
                       ? place(action, operand.bucket >= 0 ? operand.bucket : ownBucket, operand.space)
                       : binding[operand.space];
    operands.push_back(at(base) + operand.offset);
  }
  drover_call context = {pool, 0, call.alwaysAccumulate || !first, 0, rank.plan.place.data(), rank.bodies(), nullptr};
  int64_t startNs = tracing ? monotonicNs() : 0;
  program.body(call.body)(operands.data(), workspace.data(), &context);
  if (rank.bodies())
    rank.bodies()->check();
  if (work.onCall)
    work.onCall(action, call, operands);
  if (tracing)
    trace->event(TraceWriter::Bodies, program.bodies[size_t(call.body)].name, startNs, monotonicNs(),
                 concat("\"layer\": ", call.layer, ", \"microbatch\": ", action.microbatch));
}

void Interpreter::callFlat(int64_t body, int64_t size, std::initializer_list<void *> flatOperands) {
  operands = flatOperands;
  drover_call context = {pool, size, 0, 0, rank.plan.place.data(), rank.bodies(), nullptr};
  program.body(body)(operands.data(), workspace.data(), &context);
}

void Interpreter::clearRange(const drover_action &action, const BucketRange &range) {
  int64_t accumulators = place(action, range.bucket, Space::Accumulator);
  if (accumulators >= 0)
    std::memset(at(accumulators) + range.offset * 4, 0, size_t(range.elements) * 4);
}

bool Interpreter::usesRange(const InFlight &flight, ByteRange range) {
  return std::any_of(flight.ranges.begin(), flight.ranges.end(),
                     [&](ByteRange used) { return used.begin < range.end && range.begin < used.end; });
}

/// Slots die: no action after this one reads them, but one that is in flight still may, and this rank does not know
/// when the last other rank is done with it: such slots are left as they are.
void Interpreter::release(const drover_action &action) {
  auto isUsed = [&](ByteRange range) {
    for (const std::deque<uint32_t> &stream : streams)
      for (uint32_t index : stream)
        if (usesRange(inFlight[index], range))
          return true;
    return false;
  };
  for (ByteRange range : guard.dyingRanges(action, stage->bindings[action.binding]))
    if (!isUsed(range))
      SlotGuard::fill(arena.data(), range);
}

void Interpreter::traceAction(const drover_action &action, int64_t startNs) const {
  static constexpr const char *phases[] = {"forward", "backward", "weight gradient"};
  const char *name =
      action.kind == DROVER_RUN && action.phase < 3 ? phases[action.phase] : drover_action_name(action.kind);
  trace->event(TraceWriter::Actions + action.stream, concat(name, " ", action.chunk), startNs, monotonicNs(),
               concat("\"chunk\": ", action.chunk, ", \"microbatch\": ", action.microbatch,
                      ", \"sequence\": ", action.sequence));
}

//===----------------------------------------------------------------------===//
// Memory, as others see it
//===----------------------------------------------------------------------===//

ElementRange Interpreter::stateRange(int64_t bucket) const {
  const BucketInfo &info = program.buckets[size_t(bucket)];
  return isSharded() ? rank.plan.shard(info) : ElementRange{0, info.elements};
}

BucketMemory Interpreter::shardAt(int64_t bucket, int64_t offset) const {
  ElementRange shard = rank.plan.shard(program.buckets[size_t(bucket)]);
  if (offset < 0)
    return {};
  return {at(offset) + (shard.first - stateRange(bucket).first) * 4, shard};
}

ParameterMemory Interpreter::parameterMemory() const {
  ParameterMemory memory{{}, program.isTraining() ? DROVER_F32 : program.computeDType};
  for (size_t bucket = 0; bucket < program.buckets.size(); ++bucket) {
    Space space = program.isTraining() ? Space::Master : Space::Parameter;
    int64_t offset = stages[0].buckets[bucket][space];
    ElementRange range =
        program.isTraining() ? stateRange(int64_t(bucket)) : ElementRange{0, program.buckets[bucket].elements};
    memory.buckets.push_back(offset < 0 ? BucketMemory{} : BucketMemory{at(offset), range});
  }
  return memory;
}

std::vector<BucketMemory> Interpreter::masterShards() const {
  std::vector<BucketMemory> shards;
  for (size_t bucket = 0; bucket < program.buckets.size(); ++bucket)
    shards.push_back(shardAt(int64_t(bucket), stages[0].buckets[bucket][Space::Master]));
  return shards;
}

std::vector<BucketMemory> Interpreter::gradientShards() const {
  std::vector<BucketMemory> shards;
  for (size_t bucket = 0; bucket < program.buckets.size(); ++bucket)
    shards.push_back(shardAt(int64_t(bucket), gradientPlaces[bucket]));
  return shards;
}

const uint8_t *Interpreter::outputs() const {
  for (const Binding &binding : stages[0].bindings)
    if (binding[Space::Output] >= 0)
      return at(binding[Space::Output]);
  return nullptr;
}

int64_t Interpreter::nonfiniteParameter() const {
  std::vector<BucketMemory> shards = gradientShards();
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    const ParameterInfo &parameter = program.parameters[i];
    const BucketMemory &shard = shards[size_t(parameter.bucket)];
    ElementRange part = shard.range.intersect({parameter.offset, parameter.localElements});
    if (parameter.frozen || !shard.data || part.elements == 0)
      continue;
    const float *gradient = reinterpret_cast<const float *>(shard.data) + (part.first - shard.range.first);
    if (!std::all_of(gradient, gradient + part.elements, [](float value) { return std::isfinite(value); }))
      return int64_t(i);
  }
  return -1;
}

} // namespace drover::rt
