//===- VerifyTest.cpp - mutations that the verifier must report -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/Verify.h"
#include "ToyModel.h"
#include "gtest/gtest.h"
#include <algorithm>

using namespace drover::schedule;
using namespace drover::schedule::test;

namespace {

class VerifyTest : public testing::Test {
protected:
  void SetUp() override {
    program = makeToyModel(4);
    Plan plan = makePlan(2, {4});
    plan.kind = ScheduleKind::BreadthFirst; // several microbatches in flight
    Result<StepProgram> result = buildStepProgram(program, plan);
    ASSERT_TRUE(result) << result.error();
    step = *result;
    ASSERT_TRUE(verifyStepProgram(program, step).empty());
  }

  bool reported(const StepProgram &mutant) { return !verifyStepProgram(program, mutant).empty(); }

  MicrobatchProgram program;
  StepProgram step;
};

TEST_F(VerifyTest, everyDroppedActionIsReported) {
  for (size_t i = 0; i < step.actions.size(); ++i) {
    StepProgram mutant = step;
    mutant.actions.erase(mutant.actions.begin() + static_cast<ptrdiff_t>(i));
    --mutant.batches[0].stages[0].numActions;
    EXPECT_TRUE(reported(mutant)) << "action " << i;
  }
}

TEST_F(VerifyTest, everyDoubledActionIsReported) {
  for (size_t i = 0; i < step.actions.size(); ++i) {
    StepProgram mutant = step;
    mutant.actions.insert(mutant.actions.begin() + static_cast<ptrdiff_t>(i), mutant.actions[i]);
    ++mutant.batches[0].stages[0].numActions;
    EXPECT_TRUE(reported(mutant)) << "action " << i;
  }
}

TEST_F(VerifyTest, everyFlippedFlagIsReported) {
  for (size_t i = 0; i < step.actions.size(); ++i) {
    if (step.actions[i].kind != DROVER_RUN || step.actions[i].phase == 0)
      continue;
    StepProgram mutant = step;
    mutant.actions[i].flags ^= DROVER_ACTION_FIRST;
    EXPECT_TRUE(reported(mutant)) << "action " << i;
  }
  for (size_t i = 0; i < step.actions.size(); ++i) {
    if (!(step.actions[i].flags & DROVER_ACTION_LOAD))
      continue;
    StepProgram mutant = step;
    mutant.actions[i].flags ^= DROVER_ACTION_LOAD;
    EXPECT_TRUE(reported(mutant)) << "action " << i;
  }
}

TEST_F(VerifyTest, overlappingSlotsOfTwoMicrobatchesAreReported) {
  for (Space space : {Space::Input, Space::Stash, Space::Y, Space::X}) {
    StepProgram mutant = step;
    Stage &stage = mutant.batches[0].stages[0];
    // Microbatch 1 of chunk 0 or 1 gets the slot of microbatch 0, in all its actions.
    for (uint16_t chunk : {uint16_t{0}, uint16_t{1}}) {
      int64_t offset = -1;
      for (const drover_action &action : mutant.actions)
        if (action.kind == DROVER_RUN && action.chunk == chunk && action.microbatch == 0 && offset < 0)
          offset = stage.bindings[action.binding][space];
      for (drover_action &action : mutant.actions)
        if (action.kind == DROVER_RUN && action.chunk == chunk && action.microbatch == 1 && offset >= 0 &&
            stage.bindings[action.binding][space] >= 0) {
          Binding binding = stage.bindings[action.binding];
          binding[space] = offset;
          action.binding = static_cast<uint32_t>(stage.bindings.size());
          stage.bindings.push_back(binding);
        }
    }
    EXPECT_TRUE(reported(mutant)) << nameOf(space);
  }
}

TEST_F(VerifyTest, scratchInAStashIsReported) {
  StepProgram mutant = step;
  Binding &binding = mutant.batches[0].stages[0].bindings[mutant.actions.back().binding];
  (void)binding;
  for (Binding &each : mutant.batches[0].stages[0].bindings)
    if (each[Space::Stash] >= 0)
      each[Space::Scratch] = each[Space::Stash];
  EXPECT_TRUE(reported(mutant));
}

TEST_F(VerifyTest, operandsThatMoveAreReported) {
  for (size_t chunk = 0; chunk < step.chunks.size(); ++chunk)
    for (size_t phase = 0; phase < 2; ++phase)
      for (size_t c = 0; c < step.chunks[chunk].phases[phase].size(); ++c)
        for (size_t i = 0; i < step.chunks[chunk].phases[phase][c].operands.size(); ++i) {
          StepProgram mutant = step;
          StepCall &call = mutant.chunks[chunk].phases[phase][c];
          if (isBucketSpace(call.operands[i].space) || call.operands[i].space == Space::Scalar)
            continue;
          const Call &source = program.calls[call.source];
          bool unread = i >= source.operands.size() && call.operands[i].space == Space::Scratch;
          call.operands[i].offset += kSlotAlignment;
          if (!unread)
            EXPECT_TRUE(reported(mutant)) << chunk << " " << phase << " " << c << " " << i;
        }
}

TEST_F(VerifyTest, howAGradientIsReducedIsReported) {
  for (size_t b = 0; b < step.buckets.size(); ++b)
    for (size_t s = 0; s < step.buckets[b].sections.size(); ++s)
      for (GridAxis Section::*field : {&Section::sum, &Section::replicated}) {
        StepProgram mutant = step;
        GridAxis &axis = mutant.buckets[b].sections[s].*field;
        axis = axis == GridAxis::None ? GridAxis::Tp : GridAxis::None;
        EXPECT_TRUE(reported(mutant)) << "bucket " << b << ", section " << s;
      }
}

TEST_F(VerifyTest, exchangedParametersAndAccumulatorsAreReported) {
  size_t exchanged = 0;
  for (size_t chunk = 0; chunk < step.chunks.size(); ++chunk)
    for (size_t phase = 0; phase < 2; ++phase)
      for (size_t c = 0; c < step.chunks[chunk].phases[phase].size(); ++c) {
        const std::vector<Operand> &operands = step.chunks[chunk].phases[phase][c].operands;
        for (size_t i = 0; i < operands.size(); ++i)
          for (size_t j = i + 1; j < operands.size(); ++j) {
            if (!isBucketSpace(operands[i].space) || !isBucketSpace(operands[j].space) || operands[i] == operands[j])
              continue;
            StepProgram mutant = step;
            std::vector<Operand> &changed = mutant.chunks[chunk].phases[phase][c].operands;
            std::swap(changed[i], changed[j]);
            EXPECT_TRUE(reported(mutant)) << "chunk " << chunk << ", phase " << phase << ", call " << c;
            ++exchanged;
          }
      }
  EXPECT_GT(exchanged, 0u);
}

TEST_F(VerifyTest, overlappingParametersAreReported) {
  StepProgram mutant = step;
  mutant.parameters[1].offset = mutant.parameters[0].offset;
  mutant.parameters[1].bucket = mutant.parameters[0].bucket;
  EXPECT_TRUE(reported(mutant));
}

TEST_F(VerifyTest, missingZeroingOfAFreshAccumulatorIsReported) {
  StepProgram mutant = step;
  StepCall &last = mutant.chunks[0].phases[1].back();
  ASSERT_TRUE(last.alwaysAccumulate);
  last.clears.clear();
  EXPECT_TRUE(reported(mutant));
  mutant = step;
  mutant.chunks[0].phases[1].back().alwaysAccumulate = false;
  EXPECT_TRUE(reported(mutant));
}

TEST_F(VerifyTest, arenaThatIsTooSmallIsReported) {
  StepProgram mutant = step;
  mutant.batches[0].stages[0].arenaBytes -= kSlotAlignment;
  EXPECT_TRUE(reported(mutant));
}

TEST_F(VerifyTest, updateBeforeAllNormsIsReported) {
  StepProgram mutant = step;
  auto update = std::find_if(mutant.actions.begin(), mutant.actions.end(),
                             [](const drover_action &action) { return action.kind == DROVER_UPDATE; });
  ASSERT_EQ(update[-1].kind, DROVER_NORM);
  std::swap(update[-1], update[0]);
  std::swap(update[-1].sequence, update[0].sequence);
  EXPECT_TRUE(reported(mutant));
}

} // namespace
