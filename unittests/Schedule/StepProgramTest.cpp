//===- StepProgramTest.cpp - chunks, buckets and slots --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ToyModel.h"
#include "drover/Schedule/Verify.h"
#include "gtest/gtest.h"

using namespace drover::schedule;
using namespace drover::schedule::test;

namespace {

std::vector<int> kindsOf(const StepProgram &step) {
  std::vector<int> kinds;
  for (const drover_action &action : step.actions)
    if (action.kind != DROVER_FREE)
      kinds.push_back(action.kind);
  return kinds;
}

TEST(StepProgram, oneRankRunsForwardAndBackwardThenNormThenUpdate) {
  MicrobatchProgram program = makeToyModel(3);
  Result<StepProgram> step = buildStepProgram(program, makePlan(1, {2}));
  ASSERT_TRUE(step) << step.error();
  EXPECT_EQ(kindsOf(*step),
            (std::vector<int>{DROVER_RUN, DROVER_RUN, DROVER_RUN, DROVER_RUN, DROVER_NORM, DROVER_UPDATE}));
  EXPECT_EQ(step->actions[0].flags, DROVER_ACTION_LOAD);
  EXPECT_EQ(step->actions[1].flags, DROVER_ACTION_FIRST);
  EXPECT_EQ(step->actions[2].kind, DROVER_FREE);
  EXPECT_EQ(step->actions[3].flags, DROVER_ACTION_LOAD);
  EXPECT_EQ(step->actions[4].flags, 0);
  EXPECT_EQ(step->lossChunk, 0);
}

TEST(StepProgram, memoryDoesNotGrowWithMicrobatchesOfOneChunk) {
  MicrobatchProgram program = makeToyModel(3);
  Result<StepProgram> step = buildStepProgram(program, makePlan(1, {1, 8}));
  ASSERT_TRUE(step) << step.error();
  EXPECT_EQ(step->batches[0].stages[0].arenaBytes, step->batches[1].stages[0].arenaBytes);
  EXPECT_EQ(step->batches[1].stages[0].memory.stash, step->chunks[0].stashBytes);
  EXPECT_EQ(step->batches[1].stages[0].firstAction, step->batches[0].stages[0].numActions);
}

TEST(StepProgram, bucketsPutDecayFirstAndFrozenParametersHaveTheirOwn) {
  MicrobatchProgram program = makeToyModel(2);
  program.parameters[0].frozen = true; // the table
  Result<StepProgram> step = buildStepProgram(program, makePlan(1, {1}));
  ASSERT_TRUE(step) << step.error();
  const Bucket &bucket = step->buckets[0];
  ASSERT_EQ(bucket.sections.size(), 2u);
  EXPECT_TRUE(bucket.sections[0].decay);
  EXPECT_EQ(bucket.sections[0].elements, 3 * 128); // positions and two matrices of 100
  EXPECT_FALSE(bucket.sections[1].decay);
  EXPECT_EQ(bucket.sections[1].elements, 2 * 32); // two norms of 10
  EXPECT_EQ(bucket.elements, 3 * 128 + 2 * 32);
  EXPECT_EQ(step->parameters[0].parameter.name, "table");
  EXPECT_EQ(step->parameters[0].bucket, 1);
  EXPECT_FALSE(step->buckets[1].trainable());
  EXPECT_EQ(step->batches[0].stages[0].buckets[1][Space::Accumulator], -1);
  EXPECT_EQ(step->chunks[0].phases[0][0].operands[1], (Operand{Space::Parameter, 0, 1}));
}

TEST(StepProgram, tableThatTwoChunksUseHasItsOwnBucket) {
  MicrobatchProgram program = makeToyModel(2);
  Result<StepProgram> step = buildStepProgram(program, makePlan(2, {2}));
  ASSERT_TRUE(step) << step.error();
  EXPECT_EQ(step->buckets.size(), 3u);
  EXPECT_EQ(step->buckets[2].chunks, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(step->parameters[0].bucket, 2);
  const StepCall &head = step->chunks[1].phases[0].back();
  EXPECT_EQ(head.operands[1], (Operand{Space::Parameter, 0, 2}));
  const StepCall &embed = step->chunks[0].phases[0].front();
  EXPECT_EQ(embed.operands[1].bucket, 2);
  EXPECT_EQ(embed.operands[2].bucket, -1);
}

TEST(StepProgram, aTiedAndAFreshAccumulatorInOneCallAreAddedToAfterZeroing) {
  MicrobatchProgram program = makeToyModel(2);
  Result<StepProgram> step = buildStepProgram(program, makePlan(1, {1}));
  ASSERT_TRUE(step) << step.error();
  const StepCall &last = step->chunks[0].phases[1].back();
  EXPECT_TRUE(last.alwaysAccumulate);
  ASSERT_EQ(last.clears.size(), 1u);
  EXPECT_EQ(last.clears[0].elements, 100);
  EXPECT_FALSE(step->chunks[0].phases[1].front().alwaysAccumulate);
}

TEST(StepProgram, boundariesOfChunksOnOneRankShareASlot) {
  MicrobatchProgram program = makeToyModel(4);
  Result<StepProgram> step = buildStepProgram(program, makePlan(2, {2}));
  ASSERT_TRUE(step) << step.error();
  const Stage &stage = step->batches[0].stages[0];
  const Binding &producer = stage.bindings[step->actions[0].binding];
  const Binding &consumer = stage.bindings[step->actions[1].binding];
  EXPECT_EQ(step->actions[1].chunk, 1);
  EXPECT_GE(producer[Space::Y], 0);
  EXPECT_EQ(producer[Space::Y], consumer[Space::X]);
  EXPECT_EQ(producer[Space::X], -1);
}

TEST(StepProgram, emptyChunksPassThrough) {
  MicrobatchProgram program = makeToyModel(2);
  Plan plan = makePlan(2, {2});
  plan.layersPerChunk = {0, 2};
  Result<StepProgram> step = buildStepProgram(program, plan);
  ASSERT_TRUE(step) << step.error();
  EXPECT_EQ(step->chunks[0].phases[0].size(), 1u); // the embedding
  EXPECT_TRUE(verifyStepProgram(program, *step).empty());
}

TEST(StepProgram, everyScheduleOnOneRankIsProven) {
  for (int64_t chunks : {1, 2, 3})
    for (ScheduleKind kind : {ScheduleKind::Interleaved, ScheduleKind::BreadthFirst})
      for (int64_t run : {1, 2, 4})
        for (DType type : {DType::F32, DType::BF16}) {
          MicrobatchProgram program = makeToyModel(5);
          program.computeType = type;
          if (type == DType::BF16)
            for (Value &value : program.values)
              value.bytes = value.kind == ValueKind::Parameter ? value.bytes / 2 : value.bytes;
          Plan plan = makePlan(chunks, {1, 4, 7});
          plan.kind = kind;
          plan.run = {run};
          Result<StepProgram> step = buildStepProgram(program, plan);
          ASSERT_TRUE(step) << step.error();
          std::vector<std::string> faults = verifyStepProgram(program, *step);
          EXPECT_TRUE(faults.empty()) << faults.front();
        }
}

TEST(StepProgram, manyMicrobatchesUseTheSlotsOfFew) {
  MicrobatchProgram program = makeToyModel(4);
  Plan plan = makePlan(2, {16, 4096});
  plan.run = {4};
  Result<StepProgram> step = buildStepProgram(program, plan);
  ASSERT_TRUE(step) << step.error();
  EXPECT_EQ(step->batches[0].stages[0].arenaBytes, step->batches[1].stages[0].arenaBytes);
  EXPECT_TRUE(verifyStepProgram(program, *step).empty());
}

TEST(StepProgram, computeTypeOtherThanF32HasAMasterAndIsGathered) {
  MicrobatchProgram program = makeToyModel(1);
  program.computeType = DType::BF16;
  Result<StepProgram> step = buildStepProgram(program, makePlan(1, {1}));
  ASSERT_TRUE(step) << step.error();
  EXPECT_EQ(step->actions[0].kind, DROVER_GATHER);
  const Binding &places = step->batches[0].stages[0].buckets[0];
  EXPECT_NE(places[Space::Parameter], places[Space::Master]);
  MicrobatchProgram single = makeToyModel(1);
  step = buildStepProgram(single, makePlan(1, {1}));
  EXPECT_EQ(step->batches[0].stages[0].buckets[0][Space::Parameter],
            step->batches[0].stages[0].buckets[0][Space::Master]);
}

TEST(StepProgram, forwardTaskHasNoStashAndPacksOutputs) {
  MicrobatchProgram program = makeToyModel(3, /*train=*/false);
  Result<StepProgram> step = buildStepProgram(program, makePlan(1, {1}));
  ASSERT_TRUE(step) << step.error();
  EXPECT_EQ(kindsOf(*step), std::vector<int>{DROVER_RUN});
  EXPECT_EQ(step->chunks[0].stashBytes, 0);
  EXPECT_EQ(step->outputBytes, 2048);
  EXPECT_EQ(step->chunks[0].scratchBytes[0], 2 * 448); // two activations are live at once
  EXPECT_TRUE(verifyStepProgram(program, *step).empty());
}

TEST(StepProgram, flopsPerTokenCountBackwardAsTwiceForward) {
  Result<StepProgram> step = buildStepProgram(makeToyModel(2), makePlan(1, {1}));
  ASSERT_TRUE(step);
  EXPECT_DOUBLE_EQ(step->flopsPerToken, 3 * (2 * 1000 + 500) / 10.0);
}

TEST(StepProgram, errorsSayWhatIsWrong) {
  MicrobatchProgram program = makeToyModel(2);
  Plan plan = makePlan(2, {2});
  plan.layersPerChunk = {2, 1};
  EXPECT_EQ(buildStepProgram(program, plan).error(), "layers per chunk sum to 3: the model has 2 layers");
  plan = makePlan(1, {2});
  plan.kind = ScheduleKind::ZeroBubbleH1;
  EXPECT_NE(buildStepProgram(program, plan).error().find("split into input and weight gradients"), std::string::npos);
  // Layer 2 reads what layer 0 made, two chunks away.
  program = makeToyModel(3);
  program.calls[3].operands.push_back(program.calls[0].results[0]);
  plan = makePlan(3, {2});
  EXPECT_NE(buildStepProgram(program, plan).error().find("values flow to the neighbouring chunk only"),
            std::string::npos);
}

TEST(StepProgram, readingAnOverwrittenValueIsAnError) {
  MicrobatchProgram program = makeToyModel(1);
  Call again = program.calls.back();
  program.calls.push_back(again);
  EXPECT_NE(buildStepProgram(program, makePlan(1, {1})).error().find("overwrote in place"), std::string::npos);
}

} // namespace
