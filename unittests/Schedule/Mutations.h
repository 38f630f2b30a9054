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

} // namespace drover::schedule::test

#endif // DROVER_UNITTESTS_SCHEDULE_MUTATIONS_H
