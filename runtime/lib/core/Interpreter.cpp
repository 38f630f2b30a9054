//===- Interpreter.cpp - runs a step program ------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/interpreter.h"
#include "drover/rt/error.h"
#include "drover/rt/nvtx.h"
#include <algorithm>
#include <cstring>

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

/// Most norm bodies, and most actions with a loss, of a step.
static int64_t mostNorms(const Program &program) {
  int64_t count = 0;
  for (const BucketInfo &bucket : program.buckets)
    count += int64_t(bucket.sections.size());
  return count;
}
static int64_t mostActions(const std::vector<StageInfo> &stages) {
  int64_t most = 0;
  for (const StageInfo &stage : stages)
    most = std::max(most, stage.numActions);
  return most;
}

Interpreter::Interpreter(RankContext &rank, RankDevice &device, drover_pool *pool, FlightRecorder &recorder,
                         TraceWriter *trace, const GuardOptions &guards)
    : rank(rank), device(device), program(rank.program), pool(pool), recorder(recorder), trace(trace),
      guard(program, rank.plan.stage, guards), stages(placeStages(rank, guard)),
      arena(device.allocateTensors(guard.arenaBytes())),
      workspace(device.allocateTensors(program.workspaceBytes(rank.plan.stage))),
      scalars(mostNorms(program), mostActions(stages)), gradientPlaces(program.buckets.size(), -1) {
  for (size_t bucket = 0; bucket < program.buckets.size(); ++bucket)
    gaps.push_back(findGaps(program, int64_t(bucket)));
  stepScalars = device.device().allocate(scalars.deviceBytes());
  hostScalars = device.device().allocatePinned(scalars.hostBytes());
  std::memset(hostScalars.data(), 0, size_t(hostScalars.size()));
  if (device.isHost()) {
    guard.arm(arena.data());
    return;
  }
  if (guards.canaries || guards.poison)
    fail("DROVER_RT_CANARIES and DROVER_RT_POISON: slots of a GPU are not guarded; compile for the host, or run over "
         "the "
         "stand-ins (docs/cuda.md), which see every access");
  auto workspaceOf = [&](int64_t body) {
    return device.device().allocate(body < 0 ? 0 : program.bodies[size_t(body)].workspaceBytes);
  };
  castWorkspace = workspaceOf(program.castBody);
  addWorkspace = workspaceOf(program.addBody);
  if (drover_communicators *groups = rank.bodies())
    groups->setStream(&device.stream(DROVER_STREAM_COMPUTE));
  clearLastingMemory();
}

StepOutcome Interpreter::run(const StepWork &work) {
  StepOutcome outcome;
  stage = &stages[work.batch];
  actions = program.actions(*stage);
  inFlight.clear();
  inFlight.resize(size_t(stage->numActions));
  for (int64_t i = 0; i < stage->numActions; ++i)
    for (uint32_t wait = 0; wait < actions[i].num_waits; ++wait) {
      uint32_t other = stage->waits[actions[i].first_wait + wait];
      inFlight[other].awaited |= actions[other].stream != actions[i].stream;
    }
  loads = losses = norms = 0;
  normKnown = false;
  std::fill(gradientPlaces.begin(), gradientPlaces.end(), -1);
  bool counts = std::any_of(actions, actions + stage->numActions,
                            [](const drover_action &action) { return action.kind == DROVER_COUNT; });
  if (!counts)
    count(work, outcome);
  for (uint32_t first = 0, end = 0; first < stage->numActions; first = end) {
    end = first + 1;
    const drover_action &action = actions[first];
    if (action.kind == DROVER_COUNT || action.kind == DROVER_CLIP) {
      issueAction(first, work, outcome);
      continue;
    }
    if (stopsHost(action)) // without a CLIP, before the first update
      clipGradients(work, outcome);
    while (end < stage->numActions && !stopsHost(actions[end]))
      ++end;
    issueStretch(first, end, work, outcome);
  }
  if (!normKnown) // nothing is updated
    finishCompute(outcome);
  finishStreams();
  guard.check(arena.data(), work.step, "at the end");
  return outcome;
}

/// The host waits for a number before it issues the action.
bool Interpreter::stopsHost(const drover_action &action) const {
  return action.kind == DROVER_COUNT || action.kind == DROVER_CLIP || (action.kind == DROVER_UPDATE && !normKnown);
}

void Interpreter::issueStretch(uint32_t first, uint32_t end, const StepWork &work, StepOutcome &outcome) {
  bool observed = tracing || work.onCall;
  bool whole = !normKnown || outcome.updated; // else there is nothing to update
  StepGraph *graph = graphsWanted && !observed && whole ? &graphs[{work.batch, first}] : nullptr;
  if (graph && graph->issued)
    return issueGraph(*graph, first, end, work, outcome);
  beginStretch();
  for (uint32_t i = first; i < end; ++i)
    issueAction(i, work, outcome);
  if (graph)
    graph->issued = true;
}

/// What the actions before the norms, and those behind them, find.
void Interpreter::beginStretch() {
  if (normKnown)
    copyHyper();
  else
    gatherRest();
}

void Interpreter::issueAction(uint32_t index, const StepWork &work, StepOutcome &outcome) {
  const drover_action &action = actions[index];
  for (uint32_t wait = 0; wait < action.num_waits; ++wait)
    follow(action, stage->waits[action.first_wait + wait]);
  execute(index, work, outcome);
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

/// "forward 3": what and of which chunk or bucket.
static std::string titleOf(const drover_action &action) {
  static constexpr const char *phases[] = {"forward", "backward", "weight gradient"};
  const char *name =
      action.kind == DROVER_RUN && action.phase < 3 ? phases[action.phase] : drover_action_name(action.kind);
  return concat(name, " ", action.chunk);
}

void Interpreter::begin(uint32_t index, const StepWork &work) {
  const drover_action &action = actions[index];
  inFlight[index].startNs = tracing ? monotonicNs() : 0;
  inFlight[index].record = recorder.begin(work.step, stage->firstAction + index, action, communicatorOf(action));
}

void Interpreter::execute(uint32_t index, const StepWork &work, StepOutcome &outcome) {
  const drover_action &action = actions[index];
  NvtxRange range([&] { return concat(titleOf(action), ", microbatch ", action.microbatch); });
  InFlight &flight = inFlight[index];
  begin(index, work);
  if (!device.isHost())
    rank.world.issueAfter(&streamOf(action));
  switch (action.kind) {
  case DROVER_RUN:
    runPhase(action, work);
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
    if (outcome.updated)
      update(action);
    break;
  case DROVER_FREE:
    guard.check(arena.data(), work.step, concat("freed by chunk ", action.chunk));
    release(action);
    break;
  default: // refused at load
    break;
  }
  issued(index);
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

/// A copy to a device happens later: each load of a step has its own memory, which is free again when the step ends.
void Interpreter::loadInputs(const drover_action &action, const StepWork &work) {
  uint8_t *slot = at(stage->bindings[action.binding][Space::Input]);
  if (device.isHost())
    return work.fillInputs(action.microbatch, slot);
  if (loads == pinnedInputs.size())
    pinnedInputs.push_back(device.device().allocatePinned(program.inputBytes));
  const DeviceMemory &from = pinnedInputs[loads++]; // of the step's n-th load always the same: graphs copy from there
  work.fillInputs(action.microbatch, from.data());
  device.device().copy(slot, from.data(), program.inputBytes, streamOf(action));
}

void Interpreter::runPhase(const drover_action &action, const StepWork &work) {
  const Binding &binding = stage->bindings[action.binding];
  const ChunkInfo &chunk = program.chunks[action.chunk];
  Stream &compute = streamOf(action);
  if (action.flags & DROVER_ACTION_LOAD)
    loadInputs(action, work);
  bool hasScalars = binding[Space::Scalar] >= 0;
  uint8_t *slot = at(binding[Space::Scalar]);
  if (hasScalars) {
    device.device().copy(slot + seedOffset, hostScalars.data() + scalars.seed(), sizeof(float), compute);
    device.device().fill(slot + lossOffset, 0, sizeof(double), compute);
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
  if (hasLoss && rank.plan.place[DROVER_AXIS_TP] == 0)
    device.device().copy(hostScalars.data() + scalars.loss(losses++), slot + lossOffset, sizeof(double), compute);
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
  drover_device *bodies = device.bodies(action.stream);
  drover_call context = {pool, 0, call.alwaysAccumulate || !first, 0, rank.plan.place.data(), rank.bodies(), bodies};
  int64_t startNs = tracing ? monotonicNs() : 0;
  program.body(call.body)(operands.data(), workspace.data(), &context);
  if (bodies)
    bodies->check();
  if (rank.bodies())
    rank.bodies()->check();
  if (work.onCall)
    work.onCall(action, call, operands);
  if (tracing)
    trace->event(TraceWriter::Bodies, program.bodies[size_t(call.body)].name, startNs, monotonicNs(),
                 concat("\"layer\": ", call.layer, ", \"microbatch\": ", action.microbatch));
}

void Interpreter::callFlat(int64_t body, int64_t size, std::initializer_list<void *> flatOperands,
                           drover_stream which) {
  operands = flatOperands;
  drover_device *bodies = device.bodies(which);
  drover_call context = {pool, size, 0, 0, rank.plan.place.data(), rank.bodies(), bodies};
  const DeviceMemory &own = bodies && which == DROVER_STREAM_GATHER   ? castWorkspace
                            : bodies && which == DROVER_STREAM_REDUCE ? addWorkspace
                                                                      : workspace;
  program.body(body)(operands.data(), own.data(), &context);
  if (bodies)
    bodies->check();
}

void Interpreter::clearRange(const drover_action &action, const BucketRange &range) {
  int64_t accumulators = place(action, range.bucket, Space::Accumulator);
  if (accumulators >= 0)
    device.device().fill(at(accumulators) + range.offset * 4, 0, range.elements * 4, streamOf(action));
}

bool Interpreter::usesRange(const InFlight &flight, ByteRange range) {
  return std::any_of(flight.ranges.begin(), flight.ranges.end(),
                     [&](ByteRange used) { return used.begin < range.end && range.begin < used.end; });
}

/// Slots die: no action after this one reads them, but one that is in flight still may, and this rank does not know
/// when the last other rank is done with it: such slots are left as they are.
void Interpreter::release(const drover_action &action) { // of the host: a GPU's slots are not filled
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
  trace->event(TraceWriter::Actions + action.stream, titleOf(action), startNs, monotonicNs(),
               concat("\"chunk\": ", action.chunk, ", \"microbatch\": ", action.microbatch,
                      ", \"sequence\": ", action.sequence));
}

} // namespace drover::rt
