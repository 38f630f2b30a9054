//===- DataMutations.h - wrong places, sections, operands --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_SCHEDULE_DATAMUTATIONS_H
#define DROVER_UNITTESTS_SCHEDULE_DATAMUTATIONS_H

#include "Mutations.h"
#include "drover/Schedule/Access.h"
#include <algorithm>
#include <set>
#include <utility>

namespace drover::schedule::test {

/// Bytes of a space of a chunk or a bucket; 0 where it has none.
inline int64_t bytesOfSpace(const StepProgram &step, Space space, size_t chunk, size_t bucket, size_t phase) {
  const StepChunk &sizes = step.chunks[chunk];
  const Bucket *whole = bucket < step.buckets.size() ? &step.buckets[bucket] : nullptr;
  switch (space) {
  case Space::Input:
    return step.inputBytes;
  case Space::Output:
    return step.outputBytes;
  case Space::Scalar:
    return kScalarBytes;
  case Space::Scratch:
    return sizes.scratchBytes[phase];
  case Space::Stash:
    return sizes.stashBytes;
  case Space::Kept:
    return sizes.keptBytes;
  case Space::Handed:
    return sizes.handedBytes;
  case Space::X:
    return sizes.xBytes;
  case Space::Y:
    return sizes.yBytes;
  case Space::DX:
    return sizes.dxBytes;
  case Space::DY:
    return sizes.dyBytes;
  case Space::Parameter:
    return whole ? whole->elements * bytesOf(step.computeType) : 0;
  case Space::Accumulator:
    return whole ? whole->elements * 4 : 0;
  default:
    return whole ? step.shardElements(*whole) * 4 : 0;
  }
}

/// The spaces of its binding that an action reads or writes.
inline std::vector<Space> spacesOf(const StepProgram &step, const std::vector<ChunkAccess> &accesses, Place place) {
  const Stage &stage = step.batches[0].stages[place.stage];
  const drover_action &action = step.actions[stage.firstAction + place.index];
  bool forward = action.phase == 0;
  std::vector<Space> candidates;
  switch (action.kind) {
  case DROVER_RUN:
    for (size_t space = 0; space < kNumSpaces; ++space)
      candidates.push_back(static_cast<Space>(space));
    break;
  case DROVER_SEND:
    candidates = {forward ? Space::Y : Space::DX};
    break;
  case DROVER_RECEIVE:
    candidates = {forward ? Space::X : Space::DY};
    break;
  case DROVER_GATHER:
    candidates = {Space::Parameter};
    break;
  case DROVER_REDUCE:
    candidates = {Space::Accumulator, Space::Gradient};
    break;
  case DROVER_NORM:
    candidates = {Space::Gradient};
    break;
  case DROVER_UPDATE:
    candidates = {Space::Master, Space::Moment1, Space::Moment2};
    break;
  default:
    return {};
  }
  std::vector<Space> used;
  for (Space space : candidates) {
    bool isOfBucket = drover_action_is_of_bucket(action.kind);
    size_t chunk = isOfBucket ? 0 : action.chunk;
    auto bucket = static_cast<size_t>(isOfBucket ? action.chunk : step.chunks[chunk].bucket);
    bool isUsed = action.kind != DROVER_RUN || isBucketSpace(space) || accesses[chunk][action.phase].uses(space);
    if (isUsed && stage.bindings[action.binding][space] >= 0 &&
        bytesOfSpace(step, space, chunk, bucket, action.phase) > 0)
      used.push_back(space);
  }
  return used;
}

/// Calls `fn` with every mutant whose data is wrong: ranges of the arena that lie on one another, 64 bytes further, in
/// another place for one action, or nowhere; sections, operands, calls, sizes, the chunk of the loss, owners and groups
/// of stages. `place.index` is 0 where no one action is meant.
template <typename Fn> class DataMutants {
public:
  DataMutants(const StepProgram &step, Fn &fn) : step(step), fn(fn), accesses(findAccesses(step)) {}

  void run() {
    for (size_t s = 0; s < step.batches[0].stages.size(); ++s) {
      lastingPlaces(s);
      bindings(s);
    }
    buckets();
    calls();
    sizes();
    stages();
  }

private:
  struct Range {
    Space space;
    int64_t place;
  };

  template <typename Change> void emit(const char *mutation, std::string target, Place place, Change &&change) {
    StepProgram mutant = step;
    change(mutant);
    fn(Mutant{mutation, std::move(target), place, std::move(mutant)});
  }

  /// All that lies at one byte lies at another.
  static void move(Stage &stage, int64_t from, int64_t to) {
    for (std::vector<Binding> *bindings : {&stage.buckets, &stage.bindings})
      for (Binding &binding : *bindings)
        std::replace(binding.offsets.begin(), binding.offsets.end(), from, to);
  }

  /// Ranges that last, onto the next one and onto one slot of each space; these onto optimizer state.
  void lastingPlaces(size_t s) {
    const Stage &stage = step.batches[0].stages[s];
    std::vector<Range> lasting, slots;
    auto add = [](std::vector<Range> &ranges, Range range) {
      if (std::none_of(ranges.begin(), ranges.end(), [&](const Range &other) { return other.place == range.place; }))
        ranges.push_back(range);
    };
    for (size_t b = 0; b < stage.buckets.size(); ++b)
      for (Space space :
           {Space::Master, Space::Moment1, Space::Moment2, Space::Parameter, Space::Accumulator, Space::Gradient})
        if (stage.buckets[b][space] >= 0 && bytesOfSpace(step, space, 0, b, 0) > 0)
          add(lasting, {space, stage.buckets[b][space]});
    std::array<bool, kNumSpaces> seen = {};
    for (uint64_t i = 0; i < stage.numActions; ++i)
      for (Space space : spacesOf(step, accesses, {s, i}))
        if (!isBucketSpace(space) && !std::exchange(seen[static_cast<size_t>(space)], true))
          add(slots, {space, stage.bindings[step.actions[stage.firstAction + i].binding][space]});
    auto overlap = [&](Range range, Range other) {
      emit("overlap", std::string(nameOf(range.space)) + " on " + nameOf(other.space), {s, 0},
           [&](StepProgram &mutant) { move(mutant.batches[0].stages[s], range.place, other.place); });
    };
    for (size_t k = 0; k < lasting.size(); ++k) {
      const Range &range = lasting[k];
      if (lasting.size() > 1)
        overlap(range, lasting[(k + 1) % lasting.size()]);
      emit("shift", nameOf(range.space), {s, 0},
           [&](StepProgram &mutant) { move(mutant.batches[0].stages[s], range.place, range.place + kSlotAlignment); });
      bool isState = range.space >= Space::Master && range.space <= Space::Moment2;
      for (const Range &slot : slots)
        if (isState) {
          overlap(range, slot);
          if (k == 0)
            overlap(slot, range);
        }
    }
  }

  /// The places of one binding, by the first action that uses each.
  void bindings(size_t s) {
    const Stage &stage = step.batches[0].stages[s];
    std::array<std::vector<int64_t>, kNumSpaces> placesOf;
    std::vector<std::pair<uint64_t, Space>> uses;
    std::set<std::pair<uint32_t, Space>> seen;
    for (uint64_t i = 0; i < stage.numActions; ++i) {
      uint32_t binding = step.actions[stage.firstAction + i].binding;
      for (Space space : spacesOf(step, accesses, {s, i})) {
        std::vector<int64_t> &places = placesOf[static_cast<size_t>(space)];
        int64_t place = stage.bindings[binding][space];
        if (std::find(places.begin(), places.end(), place) == places.end())
          places.push_back(place);
        if (seen.insert({binding, space}).second)
          uses.push_back({i, space});
      }
    }
    for (auto [i, space] : uses) {
      const drover_action &action = step.actions[stage.firstAction + i];
      auto change = [&, i = i, space = space](const char *mutation, int64_t to) {
        emit(mutation, nameOf(space), {s, i},
             [&](StepProgram &mutant) { mutant.batches[0].stages[s].bindings[action.binding][space] = to; });
      };
      int64_t place = stage.bindings[action.binding][space];
      const std::vector<int64_t> &places = placesOf[static_cast<size_t>(space)];
      if (places.size() > 1) {
        auto next = std::find(places.begin(), places.end(), place) + 1;
        change("retarget", next == places.end() ? places.front() : *next);
      }
      change("shift", place + kSlotAlignment);
      // Where it is found all the same.
      bool isOfBucket = drover_action_is_of_bucket(action.kind);
      int32_t bucket = isOfBucket ? action.chunk : step.chunks[action.chunk].bucket;
      if (!isBucketSpace(space) || bucket < 0 || stage.buckets[static_cast<size_t>(bucket)][space] != place)
        change("lose", -1);
      std::vector<Space> all = spacesOf(step, accesses, {s, i});
      if (action.kind == DROVER_RUN && all.size() > 1) {
        auto other = std::find(all.begin(), all.end(), space) + 1;
        change("overlap", stage.bindings[action.binding][other == all.end() ? all.front() : *other]);
      }
    }
  }

  void buckets() {
    for (size_t b = 0; b < step.buckets.size(); ++b)
      for (size_t i = 0; i < step.buckets[b].sections.size(); ++i) {
        auto change = [&](const char *mutation, auto &&fnOfSection) {
          emit(mutation, "section", {static_cast<size_t>(step.ownerOf(step.buckets[b])), 0},
               [&](StepProgram &mutant) { fnOfSection(mutant.buckets[b].sections[i]); });
        };
        for (GridAxis Section::*axis : {&Section::sum, &Section::replicated})
          change("relabel", [&](Section &section) {
            section.*axis = section.*axis == GridAxis::None ? GridAxis::Tp : GridAxis::None;
          });
        change("relabel", [](Section &section) { section.decay = !section.decay; });
        change("relabel", [](Section &section) { section.trainable = !section.trainable; });
        change("shift", [](Section &section) { section.first += kBucketAlignment; });
        change("shrink", [](Section &section) { section.elements -= kBucketAlignment; });
      }
    for (size_t p = 0; p < step.parameters.size(); ++p)
      emit("shift", "tensor", {0, 0}, [&](StepProgram &mutant) { mutant.parameters[p].offset += kBucketAlignment; });
  }

  void calls() {
    for (size_t c = 0; c < step.chunks.size(); ++c)
      for (size_t phase = 0; phase < step.chunks[c].phases.size(); ++phase)
        for (size_t k = 0; k < step.chunks[c].phases[phase].size(); ++k)
          callMutants(c, phase, k);
  }

  void callMutants(size_t c, size_t phase, size_t k) {
    const StepCall &call = step.chunks[c].phases[phase][k];
    Place place{static_cast<size_t>(step.stageOf(static_cast<uint32_t>(c))), 0};
    auto change = [&](const char *mutation, const char *target, auto &&fnOfCall) {
      emit(mutation, target, place,
           [&](StepProgram &mutant) { fnOfCall(mutant.chunks[c].phases[phase], mutant.chunks[c].phases[phase][k]); });
    };
    using Calls = std::vector<StepCall>;
    auto at = [&](Calls &calls) { return calls.begin() + static_cast<ptrdiff_t>(k); };
    change("drop", "call", [&](Calls &calls, StepCall &) { calls.erase(at(calls)); });
    change("double", "call", [&](Calls &calls, StepCall &) { calls.insert(at(calls), StepCall(*at(calls))); });
    if (k + 1 < step.chunks[c].phases[phase].size())
      change("reorder", "call", [&](Calls &calls, StepCall &) { std::swap(calls[k], calls[k + 1]); });
    for (size_t i = 0; i < call.operands.size(); ++i) {
      const Operand &operand = call.operands[i];
      int64_t by = isBucketSpace(operand.space) ? kBucketAlignment : kSlotAlignment;
      change("shift", "operand", [&](Calls &, StepCall &mutant) { mutant.operands[i].offset += by; });
      if (i > 0 && !(call.operands[i - 1] == operand))
        change("reorder", "operand",
               [&](Calls &, StepCall &mutant) { std::swap(mutant.operands[i - 1], mutant.operands[i]); });
    }
    bool adds = std::any_of(call.operands.begin(), call.operands.end(),
                            [](const Operand &operand) { return operand.space == Space::Accumulator; });
    if (adds)
      change("relabel", "call", [](Calls &, StepCall &mutant) { mutant.alwaysAccumulate = !mutant.alwaysAccumulate; });
    if (!call.clears.empty())
      change("drop", "clear", [](Calls &, StepCall &mutant) { mutant.clears.clear(); });
  }

  void sizes() {
    for (size_t c = 0; c < step.chunks.size(); ++c) {
      Place place{static_cast<size_t>(step.stageOf(static_cast<uint32_t>(c))), 0};
      for (int64_t StepChunk::*size :
           {&StepChunk::stashBytes, &StepChunk::keptBytes, &StepChunk::handedBytes, &StepChunk::xBytes,
            &StepChunk::yBytes, &StepChunk::dyBytes, &StepChunk::dxBytes})
        if (step.chunks[c].*size > 0)
          emit("shrink", "slot", place, [&](StepProgram &mutant) { mutant.chunks[c].*size -= kSlotAlignment; });
      for (size_t phase = 0; phase < 3; ++phase)
        if (step.chunks[c].scratchBytes[phase] > 0)
          emit("shrink", "slot", place,
               [&](StepProgram &mutant) { mutant.chunks[c].scratchBytes[phase] -= kSlotAlignment; });
    }
    for (size_t s = 0; s < step.batches[0].stages.size(); ++s)
      emit("shrink", "arena", {s, 0},
           [&](StepProgram &mutant) { mutant.batches[0].stages[s].arenaBytes -= kSlotAlignment; });
  }

  /// What the stages must agree on.
  void stages() {
    for (int32_t c = 0; c < static_cast<int32_t>(step.chunks.size()); ++c)
      if (c != step.lossChunk)
        emit("retarget", "loss chunk", {0, 0}, [&](StepProgram &mutant) { mutant.lossChunk = c; });
    for (size_t b = 0; b < step.buckets.size(); ++b)
      if (step.buckets[b].isShared())
        emit("retarget", "owner", {static_cast<size_t>(step.ownerOf(step.buckets[b])), 0}, [&](StepProgram &mutant) {
          std::vector<int32_t> &chunks = mutant.buckets[b].chunks;
          std::swap(chunks.front(), chunks.back());
        });
    for (size_t k = 0; k < step.communicators.size(); ++k)
      emit("retarget", step.communicators[k].isTie ? "tie" : "edge", {0, 0}, [&](StepProgram &mutant) {
        Communicator &communicator = mutant.communicators[k];
        if (communicator.isTie)
          communicator.stages.pop_back();
        else
          std::swap(communicator.from, communicator.to);
      });
    for (Place place : allPlaces(step)) {
      const drover_action &action = step.actions[step.batches[0].stages[place.stage].firstAction + place.index];
      auto flip = [&](uint16_t flag) {
        emit("relabel", drover_action_name(action.kind), place,
             [&](StepProgram &mutant) { actionAt(mutant, place).flags ^= flag; });
      };
      if (action.kind == DROVER_RUN && !accesses[action.chunk][action.phase].accumulators.empty())
        flip(DROVER_ACTION_FIRST);
      if (action.kind == DROVER_RUN && (action.flags & DROVER_ACTION_LOAD))
        flip(DROVER_ACTION_LOAD);
      if (action.kind == DROVER_REDUCE)
        flip(DROVER_ACTION_ADD);
    }
  }

  const StepProgram &step;
  Fn &fn;
  std::vector<ChunkAccess> accesses;
};

template <typename Fn> void forEachDataMutant(const StepProgram &step, Fn &&fn) { DataMutants<Fn &>(step, fn).run(); }

} // namespace drover::schedule::test

#endif // DROVER_UNITTESTS_SCHEDULE_DATAMUTATIONS_H
