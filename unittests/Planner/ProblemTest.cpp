//===- ProblemTest.cpp - problems as text, and their contradictions -------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TestProblems.h"
#include "gtest/gtest.h"

using namespace drover;
using namespace drover::planner;

namespace {

schedule::Result<cluster::Cluster> findCluster(const std::string &name) {
  Problem problem = makeProblem(64);
  if (name == problem.cluster.name)
    return problem.cluster;
  return schedule::Error{"no cluster '" + name + "'"};
}

std::string parseError(const std::string &text) {
  schedule::Result<Problem> problem = parseProblem(text, "problem.txt", findCluster);
  return problem ? "" : problem.error();
}

TEST(Problem, readsBackWhatItPrints) {
  Problem problem = makeProblem(16);
  problem.choices.tp = {2, 4};
  problem.choices.schedules = {schedule::ScheduleKind::Interleaved};
  problem.choices.recompute = {"none", "full"};
  problem.choices.layersPerChunk = {2, 4, 4, 2};
  problem.rest.optimizer = "sgd";
  problem.model.tied = true;
  problem.order = cluster::AxisOrder{cluster::Axis::TP, cluster::Axis::PP, cluster::Axis::CP, cluster::Axis::DP};
  std::string text = printProblem(problem);
  schedule::Result<Problem> again = parseProblem(text, "problem.txt", findCluster);
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(printProblem(*again), text);
  EXPECT_EQ(again->choices.tp, problem.choices.tp);
  EXPECT_EQ(again->choices.layersPerChunk, problem.choices.layersPerChunk);
  EXPECT_TRUE(again->model.tied);
  EXPECT_FALSE(again->model.biases);
}

TEST(Problem, errorsNameTheLine) {
  EXPECT_EQ(parseError("gpus 8\n\n# a comment\ntp two\n"), "problem.txt:4: error: tp is 'two': expected a number");
  EXPECT_EQ(parseError("gpu 8\n"), "problem.txt:1: error: unknown key 'gpu'");
  EXPECT_EQ(parseError("gpus many\n"), "problem.txt:1: error: gpus is 'many': expected a number");
  EXPECT_EQ(parseError("model layers=x\n"), "problem.txt:1: error: layers is 'x': expected a number");
  EXPECT_EQ(parseError("model square\n"), "problem.txt:1: error: unknown part 'square' of model");
  EXPECT_EQ(parseError("cluster moon\n"), "problem.txt:1: error: no cluster 'moon'");
  EXPECT_EQ(parseError("schedule fast\n"),
            "problem.txt:1: error: schedule is 'fast': expected 1f1b, interleaved, bfs or zb-h1");
  EXPECT_EQ(parseError("recompute some\n"), "problem.txt:1: error: recompute is 'some': expected none,selective,full");
  EXPECT_EQ(parseError("tp 1..4,2\n"), "problem.txt:1: error: tp is '1..4,2': has 2 twice");
  EXPECT_EQ(parseError("recompute full,none,full\n"),
            "problem.txt:1: error: recompute is 'full,none,full': has full twice");
  EXPECT_EQ(parseError("schedule 1f1b,1f1b\n"), "problem.txt:1: error: schedule is '1f1b,1f1b': has 1f1b twice");
  EXPECT_NE(parseError("order tp,tp\n"), "");
  EXPECT_NE(parseError("layers_per_chunk 1,x\n"), "");
}

struct Contradiction {
  std::function<void(Problem &)> apply;
  const char *message;
};

TEST(Problem, contradictionsAreOneErrorEach) {
  const Contradiction contradictions[] = {
      {[](Problem &p) { p.gpus = 0; }, "gpus is 0: expected 1 or more"},
      {[](Problem &p) { p.gpus = 128; }, "gpus is 128: the cluster 'dgx-h100' has 16"},
      {[](Problem &p) { p.sequence = 0; }, "the sequence length is 0: expected 1 or more"},
      {[](Problem &p) { p.model.positionRows = 1024; },
       "the sequence length is 4096: the model's table of positions has 1024 rows"},
      {[](Problem &p) { p.globalBatch = 0; }, "the global batch is 0 sequences: expected 1 or more"},
      {[](Problem &p) { p.top = 0; }, "top is 0: expected 1 or more"},
      {[](Problem &p) { p.model.layers = 0; }, "the model's number of layers is 0: expected a positive one"},
      {[](Problem &p) { p.choices.tp = {0}; }, "tp is 0: expected 1 or more"},
      {[](Problem &p) { p.choices.zero = {4}; }, "zero is 4: expected 0, 1, 2 or 3"},
      {[](Problem &p) { p.choices.tp = {3}; }, "tp is 3: it must divide 16 GPUs"},
      {[](Problem &p) { p.choices.tp = {2}, p.choices.cp = {2}, p.choices.pp = {2}, p.choices.dp = {4}; },
       "tp 2, cp 2, pp 2 and dp 4 make 32 ranks: expected 16 GPUs"},
      {[](Problem &p) { p.choices.layersPerChunk = {6, 5}; }, "layers per chunk sum to 11: the model has 12 layers"},
      {[](Problem &p) { p.choices.layersPerChunk = {6, 6}, p.choices.pp = {2}, p.choices.chunks = {2}; },
       "layers per chunk has 2 entries: pp 2 with 2 chunks a rank has 4"},
      {[](Problem &p) { p.choices.dp = {8}, p.choices.microbatch = {8}; },
       "the global batch of 32 sequences is not a multiple of microbatch 8 times dp 8"},
      {[](Problem &p) { p.choices.microbatch = {3, 64}; },
       "microbatch is 3,64: it must divide the global batch of 32 sequences"},
      {[](Problem &p) {
         p.choices.schedules = {schedule::ScheduleKind::OneForwardOneBackward}, p.choices.chunks = {2};
       },
       "schedule 1f1b has one chunk a rank, not 2"},
  };
  for (const Contradiction &contradiction : contradictions) {
    Problem problem = makeProblem(16);
    contradiction.apply(problem);
    std::optional<schedule::Error> error = checkProblem(problem);
    ASSERT_TRUE(error) << contradiction.message;
    EXPECT_EQ(error->message, contradiction.message);
  }
  EXPECT_FALSE(checkProblem(makeProblem(16)));
}

} // namespace
