//===- ReplayStep.h - a step program in time --------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_SCHEDULE_REPLAYSTEP_H
#define DROVER_SCHEDULE_REPLAYSTEP_H

#include "drover/Schedule/StepProgram.h"

namespace drover::schedule {

/// Times, in any unit. What is not named takes none.
struct StepCosts {
  std::vector<std::array<double, 3>> phases; // by chunk
  double transfer = 0;                       // of a send with its receive
  std::vector<double> gathers, reductions;   // by bucket; empty: free
};

struct StepReplay {
  double makespan = 0;
  std::vector<double> work; // by stage: of its phases

  double busiest() const;
  /// (makespan - busiest stage's work) / busiest stage's work
  double bubbleRatio() const { return (makespan - busiest()) / busiest(); }
};

/// The places of a batch's actions in the order of the global sequence: (stage, place in its list). Members of one
/// element (a send and its receive, a collective of several stages) are neighbours.
std::vector<std::pair<uint32_t, uint32_t>> sequenceOf(const StepProgram &step, const Batch &batch);

/// Runs every stage's streams and waits. Expects a program that `buildStepProgram` made.
StepReplay replayStep(const StepProgram &step, const Batch &batch, const StepCosts &costs);

/// Every chunk costs 1 forward and 2 backward, 1, 1 and 1 where the backward is split (DESIGN section 3).
StepCosts evenCosts(const StepProgram &step);
/// FLOPs of the chunks' calls.
StepCosts flopCosts(const StepProgram &step);

/// DESIGN section 3's measure of a schedule: every chunk costs the same, one that passes through too, and nothing but
/// the order of the phases counts. With costs of its own, and the waits that slots impose, `replayStep` is the measure.
double bubbleRatio(const StepProgram &step, const Batch &batch);
/// `replayStep` with `flopCosts`: what passes through costs nothing.
double bubbleRatioWeighted(const StepProgram &step, const Batch &batch);

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_REPLAYSTEP_H
