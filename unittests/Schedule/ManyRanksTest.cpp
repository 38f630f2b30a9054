//===- ManyRanksTest.cpp - step programs of pipelines and shards ----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ToyModel.h"
#include "drover/Schedule/Access.h"
#include "drover/Schedule/ReplayStep.h"
#include "drover/Schedule/Verify.h"
#include "gtest/gtest.h"
#include <algorithm>

using namespace drover::schedule;
using namespace drover::schedule::test;

namespace {

Plan makeGrid(int64_t pp, int64_t chunks, int64_t microbatches, int64_t dp = 1) {
  Plan plan = makePlan(chunks, {microbatches * dp});
  plan.pp = pp;
  plan.dp = dp;
  return plan;
}

size_t countOf(const StepProgram &step, const Stage &stage, int kind) {
  size_t count = 0;
  for (uint64_t i = 0; i < stage.numActions; ++i)
    count += step.actions[stage.firstAction + i].kind == kind;
  return count;
}

StepProgram build(const MicrobatchProgram &program, const Plan &plan, const BuildOptions &options = {}) {
  Result<StepProgram> step = buildStepProgram(program, plan, options);
  EXPECT_TRUE(step) << step.error();
  return step ? *step : StepProgram();
}

TEST(ManyRanks, everyLayoutIsProven) {
  MicrobatchProgram program = makeToyModel(5);
  for (int64_t pp : {1, 2, 3, 4})
    for (int64_t chunks : {1, 2, 3})
      for (int64_t microbatches : {1, 2, 3, 4, 7, 8})
        for (int64_t dp : {1, 2})
          for (int64_t zero : {0, 1, 2, 3})
            for (const char *reduceEvery : {"step", "run"})
              for (bool bfs : {false, true}) {
                Plan plan = makeGrid(pp, chunks, microbatches, dp);
                plan.zero = zero;
                plan.reduceEvery = reduceEvery;
                if (bfs)
                  plan.kind = ScheduleKind::BreadthFirst;
                Result<StepProgram> step = buildStepProgram(program, plan);
                if (!step && zero == 0 && dp > 1 && plan.reduceEvery == "run")
                  continue;
                ASSERT_TRUE(step) << step.error();
                std::vector<std::string> faults = verifyStepProgram(program, *step);
                ASSERT_TRUE(faults.empty())
                    << "pp " << pp << " chunks " << chunks << " microbatches " << microbatches << " dp " << dp
                    << " zero " << zero << " every " << reduceEvery << ": " << faults.front();
              }
}

TEST(ManyRanks, forwardTaskRunsOverAPipeline) {
  MicrobatchProgram program = makeToyModel(3, /*train=*/false);
  StepProgram step = build(program, makeGrid(2, 2, 1));
  EXPECT_TRUE(verifyStepProgram(program, step).empty());
  EXPECT_EQ(step.communicators.size(), 2u) << "forward edges alone";
  for (const Stage &stage : step.batches[0].stages)
    EXPECT_EQ(countOf(step, stage, DROVER_GATHER), 0u);
}

} // namespace
