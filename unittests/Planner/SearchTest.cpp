//===- SearchTest.cpp - the best layouts, proven by enumeration -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TestProblems.h"
#include "gtest/gtest.h"

using namespace drover;
using namespace drover::planner;

namespace {

std::string describe(const RankedPlan &ranked) {
  const schedule::Plan &plan = ranked.layout.plan;
  return "tp " + std::to_string(plan.tp) + " cp " + std::to_string(plan.cp) + " pp " + std::to_string(plan.pp) +
         " chunks " + std::to_string(plan.chunks) + " zero " + std::to_string(plan.zero) + " microbatch " +
         std::to_string(plan.microbatch) + " " + plan.recompute + " " + plan.tpOverlap;
}

/// The solver's times are those of looking at every layout.
void expectOptimal(const Problem &problem) {
  schedule::Result<Solution> fast = solve(problem), all = solveByEnumeration(problem);
  ASSERT_TRUE(fast) << fast.error();
  ASSERT_TRUE(all) << all.error();
  ASSERT_FALSE(all->plans.empty());
  EXPECT_EQ(fast->searched, all->searched);
  EXPECT_EQ(all->replayed, all->searched);
  EXPECT_LT(fast->replayed, all->replayed);
  ASSERT_EQ(fast->plans.size(), all->plans.size());
  for (size_t i = 0; i < fast->plans.size(); ++i)
    EXPECT_DOUBLE_EQ(fast->plans[i].projection.stepSeconds, all->plans[i].projection.stepSeconds)
        << i << ": " << describe(fast->plans[i]) << " against " << describe(all->plans[i]);
  std::optional<schedule::Error> error = verify(problem, *fast);
  EXPECT_FALSE(error) << error->message;
}

TEST(Search, isOptimalOverEveryLayoutOfOneServer) {
  Problem problem = makeProblem(8);
  problem.top = 25;
  expectOptimal(problem);
}

TEST(Search, isOptimalWithPipelinesOverServers) {
  Problem problem = makeProblem(32);
  problem.choices.tp = {2, 4};
  problem.choices.tpOverlap = {"none"};
  problem.top = 25;
  expectOptimal(problem);
}

TEST(Search, isOptimalWhereMemoryIsShort) {
  Problem problem = makeProblem(16);
  problem.cluster.device.usableBytes = 30e9;
  problem.choices.tpOverlap = {"none", "ring"};
  problem.choices.cp = {1, 2};
  expectOptimal(problem);
}

TEST(Search, isOptimalWithSplitBackwards) {
  Problem problem = makeProblem(16);
  problem.choices.schedules = {schedule::ScheduleKind::ZeroBubbleH1, schedule::ScheduleKind::OneForwardOneBackward};
  problem.choices.tpOverlap = {"none"};
  expectOptimal(problem);
}

TEST(Search, answersAGivenLayoutThatDoesNotFit) {
  Problem problem = makeProblem(8);
  problem.choices.tp = problem.choices.pp = problem.choices.cp = {1};
  problem.choices.dp = {8};
  problem.choices.chunks = {1};
  problem.choices.microbatch = {1};
  problem.choices.zero = {0};
  problem.choices.recompute = problem.choices.tpOverlap = {"none"};
  problem.choices.layersPerChunk = {12};
  schedule::Result<Solution> solution = solve(problem);
  ASSERT_TRUE(solution) << solution.error();
  ASSERT_EQ(solution->plans.size(), 1u);
  EXPECT_FALSE(solution->plans[0].fits);
  EXPECT_GT(solution->plans[0].peakBytes(), 79e9);
  ASSERT_TRUE(solution->infeasible);
  EXPECT_NE(solution->infeasible->constraint.find("memory: the layout that comes nearest (tp 1"), std::string::npos)
      << solution->infeasible->constraint;
}

TEST(Search, saysWhatIsMissingAndTheNearestChange) {
  Problem problem = makeProblem(8);
  problem.choices.tp = {1};
  problem.choices.pp = {1};
  problem.choices.recompute = {"none"};
  problem.choices.zero = {0};
  schedule::Result<Solution> solution = solve(problem);
  ASSERT_TRUE(solution) << solution.error();
  EXPECT_TRUE(solution->plans.empty());
  ASSERT_TRUE(solution->infeasible);
  EXPECT_NE(solution->infeasible->constraint.find("GiB more than the"), std::string::npos);
  EXPECT_EQ(solution->infeasible->change.find("with zero free this fits: tp 1, cp "), 0u)
      << solution->infeasible->change;
}

std::string changeOf(const Problem &problem) {
  schedule::Result<Solution> solution = solve(problem);
  return !solution ? solution.error() : solution->infeasible ? solution->infeasible->change : "feasible";
}

TEST(Search, saysHowManyGpusWouldDo) {
  Problem problem = makeProblem(8);
  problem.cluster = cluster::makeDgxH100(2);
  problem.cluster.device = makeH100();
  problem.cluster.device.usableBytes = 14e9; // the state of 7 billion parameters has no room on 8
  problem.choices.tpOverlap = {"none"};
  problem.choices.cp = {1};
  EXPECT_EQ(changeOf(problem).find("no choice let go is enough; with 16 GPUs this fits: tp "), 0u) << changeOf(problem);
  problem.choices.cp = {};
  EXPECT_EQ(changeOf(problem).find("with 16 GPUs this fits: tp "), 0u) << changeOf(problem);
  problem.cluster.device.usableBytes = 2e9;
  EXPECT_EQ(changeOf(problem), "more GPUs are not enough, up to the 16 of dgx-h100");
  problem.choices.microbatch = {1};
  EXPECT_EQ(changeOf(problem), "no choice let go is enough, nor are more GPUs, up to the 16 of dgx-h100");
}

TEST(Search, saysThatOneChoiceIsNotEnough) {
  Problem problem = makeProblem(8);
  problem.cluster.device.usableBytes = 22e9;
  problem.choices.tp = {1};
  problem.choices.microbatch = {8};
  problem.choices.zero = {0};
  problem.choices.recompute = {"none"};
  EXPECT_EQ(changeOf(problem).find("no one choice let go is enough; with all of them free this fits: tp "), 0u)
      << changeOf(problem);
}

TEST(Search, namesTheConstraintThatLeavesNoLayout) {
  Problem problem = makeProblem(8);
  problem.globalBatch = 3;
  problem.choices.dp = {2};
  schedule::Result<Solution> solution = solve(problem);
  ASSERT_TRUE(solution) << solution.error();
  EXPECT_TRUE(solution->plans.empty());
  ASSERT_TRUE(solution->infeasible);
  EXPECT_EQ(solution->infeasible->constraint, "global batch: 3 sequences are no multiple of a microbatch times dp 2");
}

TEST(Search, namesWhatIsGivenAndDoesNotGoTogether) {
  auto constraintOf = [](const Problem &problem) {
    schedule::Result<Solution> solution = solve(problem);
    return !solution ? solution.error() : solution->infeasible ? solution->infeasible->constraint : "feasible";
  };
  Problem ring = makeProblem(8);
  ring.choices.tp = {1};
  ring.choices.tpOverlap = {"ring"};
  EXPECT_EQ(constraintOf(ring), "tp overlap: ring is nothing for tp 1");
  Problem entries = makeProblem(8);
  entries.choices.pp = {2};
  entries.choices.layersPerChunk = {entries.model.layers - 2, 1, 1};
  EXPECT_EQ(constraintOf(entries), "layers: layers per chunk has 3 entries, which pp 2 does not divide");
  Problem batch = makeProblem(8);
  batch.globalBatch = 8;
  batch.choices.microbatch = {2, 4};
  batch.choices.dp = {8};
  EXPECT_EQ(constraintOf(batch), "global batch: 8 sequences are no multiple of microbatch 2 or 4 times dp 8");
}

TEST(Search, aLayoutThatDoesNotFitNeedsWhatItsRowSays) {
  Problem problem = makeProblem(8);
  problem.cluster.device.usableBytes = problem.cluster.device.contextBytes + 1e9;
  problem.choices.tp = problem.choices.cp = problem.choices.pp = {1};
  problem.choices.dp = {8};
  problem.choices.microbatch = problem.choices.chunks = problem.choices.run = {1};
  problem.choices.zero = {0};
  problem.choices.recompute = {"none"};
  problem.choices.tpOverlap = {"none"};
  problem.choices.schedules = {schedule::ScheduleKind::OneForwardOneBackward};
  problem.choices.layersPerChunk = {problem.model.layers};
  schedule::Result<Solution> solution = solve(problem);
  ASSERT_TRUE(solution) << solution.error();
  ASSERT_EQ(solution->plans.size(), 1u);
  EXPECT_FALSE(solution->plans.front().fits);
  EXPECT_EQ(solution->priced, 1);
  EXPECT_EQ(solution->replayed, 1);
  ASSERT_TRUE(solution->infeasible);
  double needed = solution->plans.front().peakBytes() + problem.cluster.device.contextBytes;
  char text[64];
  std::snprintf(text, sizeof text, "needs %.1f GiB on its fullest stage", needed / (1 << 30));
  EXPECT_NE(solution->infeasible->constraint.find(text), std::string::npos) << solution->infeasible->constraint;
}

TEST(Search, verifyFindsWhatIsWrong) {
  Problem problem = makeProblem(8);
  problem.choices.tp = {2};
  schedule::Result<Solution> solution = solve(problem);
  ASSERT_TRUE(solution) << solution.error();
  ASSERT_GT(solution->plans.size(), 1u);
  Solution slower = *solution;
  slower.plans[0].projection.stepSeconds *= 1.01;
  std::optional<schedule::Error> error = verify(problem, slower);
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("a plan's step takes"), std::string::npos) << error->message;
  Solution smaller = *solution;
  smaller.plans[0].memory[0].stash /= 2;
  smaller.plans[0].memory[0].weights /= 2;
  EXPECT_TRUE(verify(problem, smaller));
  Solution swapped = *solution;
  std::swap(swapped.plans.front(), swapped.plans.back());
  EXPECT_TRUE(verify(problem, swapped));
}

} // namespace
