//===- Verify.cpp - prove a step program by running its accesses ----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Verifier.h"
#include "drover/Schedule/ReplayStep.h"
#include <algorithm>

using namespace drover::schedule;

std::string Verifier::describe(const drover_action &action) const {
  return "action " + std::to_string(action.sequence) + " (chunk " + std::to_string(action.chunk) + ", phase " +
         std::to_string(action.phase) + ", microbatch " + std::to_string(action.microbatch) + ")";
}

std::vector<std::string> Verifier::run() {
  std::vector<int32_t> stageOf(program.calls.size(), 0), times(program.calls.size(), 0);
  for (uint32_t chunk = 0; chunk < step.chunks.size(); ++chunk)
    for (const std::vector<StepCall> &phase : step.chunks[chunk].phases)
      for (const StepCall &call : phase)
        stageOf[call.source] = step.stageOf(chunk), ++times[call.source];
  auto stageOfCall = [&](const Call &call) { return stageOf[&call - program.calls.data()]; };
  roots.resize(program.values.size());
  for (uint32_t i = 0; i < roots.size(); ++i)
    roots[i] = i;
  for (const Call &call : program.calls) {
    for (size_t r = 0; r < call.results.size(); ++r)
      if (call.inPlace[r] >= 0)
        roots[call.results[r]] = roots[call.operands[call.inPlace[r]]];
    for (uint32_t operand : call.operands)
      if (program.values[roots[operand]].kind == ValueKind::Accumulator)
        ++contributionsPerMicrobatch[{stageOfCall(call), program.values[roots[operand]].index}];
  }
  for (size_t i = 0; i < times.size(); ++i)
    if (times[i] != 1)
      report("call " + std::to_string(i) + " of the microbatch program, of body '" +
             program.bodies[program.calls[i].body].name + "', is made " + std::to_string(times[i]) +
             " times, expected once");
  for (const Batch &current : step.batches) {
    batch = &current;
    checkBatch();
  }
  return messages;
}

void Verifier::checkBatch() {
  states.assign(batch->stages.size(), StageState());
  ran.clear();
  normed.clear();
  updated.clear();
  counted = clipped = false;
  for (const Stage &each : batch->stages)
    if (each.buckets.size() != step.buckets.size())
      return report("places of " + std::to_string(each.buckets.size()) + " buckets: expected " +
                    std::to_string(step.buckets.size()));
  std::vector<std::pair<uint32_t, uint32_t>> order = sequenceOf(step, *batch);
  const drover_action *before = nullptr;
  for (auto [index, place] : order) {
    stageIndex = index;
    stage = &batch->stages[index];
    const drover_action &action = step.actions[stage->firstAction + place];
    if (action.binding >= stage->bindings.size() ||
        action.chunk >= (drover_action_is_of_bucket(action.kind) ? step.buckets.size() : step.chunks.size())) {
      report(describe(action) + " names a binding, a chunk or a bucket that is not there");
      continue;
    }
    if (place > 0 && action.sequence <= states[index].lastSequence)
      report(describe(action) + " stands twice in the sequence");
    states[index].lastSequence = action.sequence;
    checkAction(action, before);
    before = &action;
  }
  finish();
}

void Verifier::checkAction(const drover_action &action, const drover_action *before) {
  const Binding &binding = stage->bindings[action.binding];
  switch (action.kind) {
  case DROVER_RUN:
    return runPhase(action, binding);
  case DROVER_SEND:
    sender = stageIndex;
    return;
  case DROVER_RECEIVE:
    if (!before || before->kind != DROVER_SEND || before->sequence != action.sequence || before->peer != action.peer)
      return report(describe(action) + " has no send");
    return receive(*before, action, binding);
  case DROVER_FREE:
    return free(action, binding);
  case DROVER_COUNT:
    if (!ran.empty())
      report(describe(action) + " counts the labels after their first use");
    counted = true;
    return;
  case DROVER_CLIP:
    clipped = true;
    return;
  default:
    return checkBucketAction(action, binding);
  }
}

int64_t Verifier::bytesIn(Space space, const drover_action &action) const {
  const StepChunk &chunk = step.chunks[action.chunk];
  switch (space) {
  case Space::Input:
    return step.inputBytes;
  case Space::Stash:
    return chunk.stashBytes;
  case Space::Kept:
    return chunk.keptBytes;
  case Space::Handed:
    return chunk.handedBytes;
  case Space::X:
    return chunk.xBytes;
  case Space::Y:
    return chunk.yBytes;
  case Space::DY:
    return chunk.dyBytes;
  case Space::DX:
    return chunk.dxBytes;
  case Space::Scratch:
    return chunk.scratchBytes[action.phase];
  case Space::Scalar:
    return kScalarBytes;
  case Space::Output:
    return step.outputBytes;
  default:
    return 0;
  }
}

/// The slot that an action means by a space, whatever chunk sees it.
std::tuple<Space, uint32_t, uint32_t> Verifier::slotOf(Space space, const drover_action &action) const {
  uint32_t chunk = action.chunk;
  if (space == Space::Input)
    return {space, 0, action.microbatch};
  if (space == Space::Stash || space == Space::Kept || space == Space::Handed)
    return {space, chunk, action.microbatch};
  bool forward = space == Space::X || space == Space::Y, isSource = space == Space::Y || space == Space::DX;
  if (step.grid.pp > 1) {
    // One range serves x and y of a chunk that passes on.
    bool passes = isSource && passesThrough(step.chunks[chunk]);
    return {!passes ? space : forward ? Space::X : Space::DY, chunk, action.microbatch};
  }
  // On one stage it also serves a chunk's y and the next one's x: the chunk that makes it names it.
  uint32_t back = forward ? static_cast<uint32_t>(-1) : 1;
  if (!isSource)
    chunk += back;
  while (passesThrough(step.chunks[chunk]))
    chunk += back;
  return {forward ? Space::Y : Space::DX, chunk, action.microbatch};
}

void Verifier::touch(Space space, const drover_action &action, int64_t place) {
  int64_t bytes = bytesIn(space, action);
  if (place < 0 || bytes == 0)
    return;
  std::map<int64_t, LiveSlot> &live = states[stageIndex].live;
  auto what = slotOf(space, action);
  auto next = live.lower_bound(place);
  if (next != live.end() && next->first == place && next->second.what == what)
    return;
  bool overlaps = next != live.end() && next->first < place + bytes;
  overlaps |= next != live.begin() && std::prev(next)->second.end > place;
  if (overlaps)
    report(describe(action) + ": its slot in space " + nameOf(space) + " at byte " + std::to_string(place) +
           " lies in one that is not free");
  live[place] = {place + bytes, what};
}

void Verifier::receive(const drover_action &send, const drover_action &action, const Binding &binding) {
  Space from = send.phase == 0 ? Space::Y : Space::DX, to = send.phase == 0 ? Space::X : Space::DY;
  const Binding &source = batch->stages[sender].bindings[send.binding];
  int64_t bytes = bytesIn(to, action);
  if (source[from] < 0 || binding[to] < 0 || bytesIn(from, send) != bytes || send.microbatch != action.microbatch)
    return report(describe(action) + " receives other data than what is sent");
  touch(to, action, binding[to]);
  states[stageIndex].arena.copy(states[sender].arena, source[from], bytes, binding[to]);
}

void Verifier::free(const drover_action &action, const Binding &binding) {
  for (size_t i = 0; i < kNumSpaces; ++i) {
    auto space = static_cast<Space>(i);
    if (binding[space] < 0)
      continue;
    int64_t bytes = bytesIn(space, action);
    states[stageIndex].arena.erase(binding[space], binding[space] + bytes);
    auto slot = states[stageIndex].live.find(binding[space]);
    if (bytes > 0 && (slot == states[stageIndex].live.end() || slot->second.what != slotOf(space, action)))
      report(describe(action) + " frees a slot in space " + nameOf(space) + " that it does not hold");
    else if (bytes > 0)
      states[stageIndex].live.erase(slot);
    bool isThere = true;
    auto own = static_cast<uint32_t>(step.chunks[action.chunk].bucket);
    if (space == Space::Parameter)
      isThere = states[stageIndex].gathered.erase(own) > 0;
    if (space == Space::Accumulator)
      isThere = states[stageIndex].dyingAccumulators.erase(own) > 0;
    if (!isThere)
      report(describe(action) + " frees a slot in space " + nameOf(space) + " that it does not hold");
  }
}

void Verifier::load(const Binding &binding, const drover_action &action) {
  for (uint32_t i = 0; i < program.values.size(); ++i) {
    const Value &value = program.values[i];
    if (value.kind == ValueKind::Input)
      states[stageIndex].arena.write(binding[Space::Input] + step.inputs[value.index].offset, value.bytes,
                                     {i, action.microbatch});
  }
}

void Verifier::runPhase(const drover_action &action, const Binding &binding) {
  if (!ran.insert({action.chunk, action.phase, action.microbatch}).second)
    report(describe(action) + " runs twice");
  for (Space space : {Space::Input, Space::Stash, Space::Kept, Space::Handed, Space::X, Space::Y, Space::DY, Space::DX})
    touch(space, action, binding[space]);
  if (action.flags & DROVER_ACTION_LOAD)
    load(binding, action);
  for (const StepCall &call : step.chunks[action.chunk].phases[action.phase])
    runCall(call, action, binding);
  if (step.stageOf(action.chunk) != static_cast<int32_t>(stageIndex))
    report(describe(action) + " runs on stage " + std::to_string(stageIndex));
}

int64_t Verifier::resolve(const Operand &operand, const Binding &binding, int64_t bytes, const Where &where) {
  const Binding &places = operand.bucket >= 0 ? stage->buckets[operand.bucket] : binding;
  int64_t base = places[operand.space];
  int64_t scale = !isBucketSpace(operand.space) ? 1 : operand.space == Space::Parameter ? bytesOf(step.computeType) : 4;
  int64_t begin = base + operand.offset * scale;
  if (base < 0 || begin < 0 || begin + bytes > stage->arenaBytes || begin % kSlotAlignment) {
    // Scalars share one aligned block.
    if (base >= 0 && operand.space == Space::Scalar)
      return begin;
    report(where() + ": an operand in space " + nameOf(operand.space) + " lies at byte " + std::to_string(begin) +
           " of an arena of " + std::to_string(stage->arenaBytes) + ", or the action has no such slot");
    return -1;
  }
  return begin;
}

void Verifier::runCall(const StepCall &call, const drover_action &action, const Binding &binding) {
  const Call &source = program.calls[call.source];
  Where where{*this, action, call.body};
  if (source.body != call.body)
    return report(where() + ": the microbatch program calls another body here");

  std::vector<std::pair<int64_t, int64_t>> ranges;
  std::vector<std::pair<uint32_t, size_t>> results; // value, operand
  for (size_t r = 0; r < source.results.size(); ++r)
    if (source.inPlace[r] < 0)
      results.push_back({source.results[r], source.operands.size() + results.size()});
  if (call.operands.size() != source.operands.size() + results.size())
    return report(where() + ": " + std::to_string(call.operands.size()) + " operands, expected " +
                  std::to_string(source.operands.size() + results.size()));

  auto rangeOf = [&](size_t operand, uint32_t value) {
    int64_t bytes = program.values[value].bytes;
    const Operand &place = call.operands[operand];
    if (!isBucketSpace(place.space) && place.offset + bytes > bytesIn(place.space, action))
      report(where() + ": operand " + std::to_string(operand) + " ends at byte " +
             std::to_string(place.offset + bytes) + " of space " + nameOf(place.space) + ", which has " +
             std::to_string(bytesIn(place.space, action)));
    ranges.push_back({resolve(place, binding, bytes, where), bytes});
    return ranges.back().first;
  };
  for (size_t i = 0; i < source.operands.size(); ++i) {
    uint32_t root = rootOf(source.operands[i]);
    const Value &value = program.values[root];
    int64_t begin = rangeOf(i, root);
    bool perMicrobatch = value.kind == ValueKind::Input || value.kind == ValueKind::Result;
    if (begin >= 0 && perMicrobatch && !states[stageIndex].arena.holds(begin, value.bytes, {root, action.microbatch}))
      report(where() + ": operand " + std::to_string(i) + " in space " + nameOf(call.operands[i].space) + " at byte " +
             std::to_string(begin) + " does not hold its value of this microbatch");
    if (value.kind == ValueKind::Seed && !(call.operands[i] == Operand{Space::Scalar, kSeedOffset}))
      report(where() + ": operand " + std::to_string(i) + " in space " + nameOf(call.operands[i].space) + " at byte " +
             std::to_string(call.operands[i].offset) + " is not the seed");
    if (value.kind == ValueKind::Parameter || value.kind == ValueKind::Accumulator) {
      const PlacedParameter &parameter = step.parameters[static_cast<size_t>(value.index)];
      const Operand &operand = call.operands[i];
      int32_t bucket = operand.bucket >= 0 ? operand.bucket : step.chunks[action.chunk].bucket;
      bool isIts = bucket == parameter.bucket && operand.offset == parameter.offset;
      if (!isIts || (operand.space == Space::Accumulator) != (value.kind == ValueKind::Accumulator))
        report(where() + ": operand " + std::to_string(i) + " in space " + nameOf(operand.space) + " is not " +
               (value.kind == ValueKind::Accumulator ? "the accumulator of '" : "'") + parameter.parameter.name + "'");
    }
  }
  for (const Operand &operand : call.operands)
    if (operand.space == Space::Parameter) {
      auto bucket = static_cast<uint32_t>(operand.bucket >= 0 ? operand.bucket : step.chunks[action.chunk].bucket);
      int64_t place = operand.bucket >= 0 ? stage->buckets[bucket][Space::Parameter] : binding[Space::Parameter];
      auto found = states[stageIndex].gathered.find(bucket);
      bool isGathered = found != states[stageIndex].gathered.end() && found->second == place;
      if (needsGather(step, step.buckets[bucket]) && !isGathered)
        report(where() + ": the parameters of bucket " + std::to_string(bucket) + " are not gathered there");
    }
  for (auto [value, operand] : results)
    rangeOf(operand, value);
  checkOverlap(ranges, source.operands.size(), where);
  accumulate(call, action);
  for (auto [value, operand] : results)
    if (ranges[operand].first >= 0)
      states[stageIndex].arena.write(ranges[operand].first, ranges[operand].second, {value, action.microbatch});
}

/// Results overlap nothing; accumulators and parameters are apart by the layout of buckets, which `finish` checks.
void Verifier::checkOverlap(const std::vector<std::pair<int64_t, int64_t>> &ranges, size_t numReads,
                            const Where &where) {
  for (size_t i = numReads; i < ranges.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      auto [a, aBytes] = ranges[i];
      auto [b, bBytes] = ranges[j];
      if (a >= 0 && b >= 0 && a < b + bBytes && b < a + aBytes)
        report(where() + ": operands " + std::to_string(j) + " and " + std::to_string(i) + " overlap at byte " +
               std::to_string(std::max(a, b)));
    }
}

std::vector<std::string> drover::schedule::verifyStepProgram(const MicrobatchProgram &program, const StepProgram &step,
                                                             size_t limit) {
  return Verifier(program, step, limit).run();
}
