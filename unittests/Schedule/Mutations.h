//===- Mutations.h - wrong programs made from right ones --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_SCHEDULE_MUTATIONS_H
#define DROVER_UNITTESTS_SCHEDULE_MUTATIONS_H

#include "drover/Schedule/StepProgram.h"

namespace drover::schedule::test {

/// A place in a program: stage and index in its list, of the first batch.
struct Place {
  size_t stage;
  uint64_t index;
};

inline drover_action &actionAt(StepProgram &step, Place place) {
  return step.actions[step.batches[0].stages[place.stage].firstAction + place.index];
}

inline std::vector<Place> allPlaces(const StepProgram &step) {
  std::vector<Place> places;
  for (size_t s = 0; s < step.batches[0].stages.size(); ++s)
    for (uint64_t i = 0; i < step.batches[0].stages[s].numActions; ++i)
      places.push_back({s, i});
  return places;
}

/// Later stages begin `by` actions further on.
inline void shiftStages(StepProgram &step, size_t behind, int64_t by) {
  for (size_t b = 0; b < step.batches.size(); ++b)
    for (size_t s = 0; s < step.batches[b].stages.size(); ++s)
      if (b > 0 || s > behind)
        step.batches[b].stages[s].firstAction += static_cast<uint64_t>(by);
}

/// The program without an action; who waited for it waits no more.
inline StepProgram dropAction(const StepProgram &step, Place place) {
  StepProgram mutant = step;
  Stage &stage = mutant.batches[0].stages[place.stage];
  std::vector<uint32_t> waits;
  for (uint64_t i = 0; i < stage.numActions; ++i) {
    drover_action &action = mutant.actions[stage.firstAction + i];
    auto first = static_cast<uint32_t>(waits.size());
    for (uint32_t w = 0; w < action.num_waits; ++w)
      if (uint32_t target = stage.waits[action.first_wait + w]; target != place.index)
        waits.push_back(target > place.index ? target - 1 : target);
    action.first_wait = first;
    action.num_waits = static_cast<uint32_t>(waits.size()) - first;
  }
  stage.waits = std::move(waits);
  mutant.actions.erase(mutant.actions.begin() + static_cast<ptrdiff_t>(stage.firstAction + place.index));
  --stage.numActions;
  shiftStages(mutant, place.stage, -1);
  return mutant;
}

/// The program with an action twice in a row.
inline StepProgram doubleAction(const StepProgram &step, Place place) {
  StepProgram mutant = step;
  Stage &stage = mutant.batches[0].stages[place.stage];
  for (uint32_t &wait : stage.waits)
    if (wait > place.index)
      ++wait;
  auto position = mutant.actions.begin() + static_cast<ptrdiff_t>(stage.firstAction + place.index);
  mutant.actions.insert(position, drover_action(*position));
  ++stage.numActions;
  shiftStages(mutant, place.stage, 1);
  return mutant;
}

/// The program with one wait of an action left out.
inline StepProgram dropWait(const StepProgram &step, Place place, uint32_t which) {
  StepProgram mutant = step;
  drover_action &action = actionAt(mutant, place);
  Stage &stage = mutant.batches[0].stages[place.stage];
  std::vector<uint32_t> kept;
  for (uint32_t w = 0; w < action.num_waits; ++w)
    if (w != which)
      kept.push_back(stage.waits[action.first_wait + w]);
  action.first_wait = static_cast<uint32_t>(stage.waits.size());
  action.num_waits = static_cast<uint32_t>(kept.size());
  stage.waits.insert(stage.waits.end(), kept.begin(), kept.end());
  return mutant;
}

/// The program with one wait of an action for another action instead.
inline StepProgram retargetWait(const StepProgram &step, Place place, uint32_t which, uint32_t target) {
  StepProgram mutant = step;
  mutant.batches[0].stages[place.stage].waits[actionAt(mutant, place).first_wait + which] = target;
  return mutant;
}

/// The program in which two actions of a stage change places; who waited for one still does.
inline StepProgram swapActions(const StepProgram &step, size_t stageIndex, uint64_t first, uint64_t second) {
  StepProgram mutant = step;
  Stage &stage = mutant.batches[0].stages[stageIndex];
  std::swap(mutant.actions[stage.firstAction + first], mutant.actions[stage.firstAction + second]);
  for (uint32_t &wait : stage.waits)
    wait = wait == first ? static_cast<uint32_t>(second) : wait == second ? static_cast<uint32_t>(first) : wait;
  return mutant;
}

/// A wrong program: what was done to what.
struct Mutant {
  const char *mutation; // drop, double, reorder, retarget
  std::string target;   // name of the action's kind, or wait
  Place place;
  StepProgram step;
};

/// Calls `fn` with every mutant of the first batch: each action, and each wait, left out, there twice, at another place
/// (after its neighbour, and after the next one on its stream), and aimed elsewhere (another microbatch, chunk or
/// bucket, communicator, binding; a wait at the action before).
template <typename Fn> void forEachMutant(const StepProgram &step, Fn &&fn) {
  for (Place place : allPlaces(step)) {
    const Stage &stage = step.batches[0].stages[place.stage];
    const drover_action action = step.actions[stage.firstAction + place.index];
    const std::string name = drover_action_name(action.kind);
    fn(Mutant{"drop", name, place, dropAction(step, place)});
    fn(Mutant{"double", name, place, doubleAction(step, place)});
    uint64_t onStream = place.index + 1;
    while (onStream < stage.numActions && step.actions[stage.firstAction + onStream].stream != action.stream)
      ++onStream;
    if (place.index + 1 < stage.numActions)
      fn(Mutant{"reorder", name, place, swapActions(step, place.stage, place.index, place.index + 1)});
    if (onStream < stage.numActions && onStream != place.index + 1)
      fn(Mutant{"reorder", name, place, swapActions(step, place.stage, place.index, onStream)});

    auto retarget = [&](auto &&change) {
      StepProgram mutant = step;
      drover_action &changed = actionAt(mutant, place);
      change(changed);
      fn(Mutant{"retarget", name, place, std::move(mutant)});
    };
    bool isMessage = action.kind == DROVER_SEND || action.kind == DROVER_RECEIVE;
    auto microbatches = static_cast<uint32_t>(step.batches[0].microbatches);
    if ((isMessage || action.kind == DROVER_RUN) && microbatches > 1)
      retarget([&](drover_action &a) { a.microbatch = (a.microbatch + 1) % microbatches; });
    bool isGlobal = action.kind == DROVER_COUNT || action.kind == DROVER_CLIP;
    size_t things = drover_action_is_of_bucket(action.kind) ? step.buckets.size() : step.chunks.size();
    for (size_t other = 0; other < things && !isGlobal; ++other)
      if (other != action.chunk && (drover_action_is_of_bucket(action.kind) ||
                                    step.stageOf(static_cast<uint32_t>(other)) == static_cast<int32_t>(place.stage)))
        retarget([&](drover_action &a) { a.chunk = static_cast<uint16_t>(other); });
    for (const Communicator &other : step.communicators)
      if (action.peer != 0 && other.id != action.peer)
        retarget([&](drover_action &a) { a.peer = other.id; });
    if (action.binding < stage.bindings.size() && stage.bindings.size() > 1 && !isGlobal)
      retarget([&](drover_action &a) { a.binding = (a.binding + 1) % static_cast<uint32_t>(stage.bindings.size()); });

    for (uint32_t w = 0; w < action.num_waits; ++w) {
      uint32_t target = stage.waits[action.first_wait + w];
      fn(Mutant{"drop", "wait", place, dropWait(step, place, w)});
      if (target > 0)
        fn(Mutant{"retarget", "wait", place, retargetWait(step, place, w, target - 1)});
    }
  }
}

} // namespace drover::schedule::test

#endif // DROVER_UNITTESTS_SCHEDULE_MUTATIONS_H
