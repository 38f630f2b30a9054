//===- PlanTest.cpp - plan options and their constraints ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/Plan.h"
#include "gtest/gtest.h"

using namespace drover::schedule;

namespace {

TEST(Plan, layersPerChunkRepeat) {
  Result<std::vector<int64_t>> layers = parseLayersPerChunk("0,1*126,0");
  ASSERT_TRUE(layers);
  EXPECT_EQ(layers->size(), 128u);
  EXPECT_EQ(layers->front(), 0);
  EXPECT_EQ((*layers)[126], 1);
  EXPECT_EQ(*parseLayersPerChunk("3"), (std::vector<int64_t>{3}));
}

TEST(Plan, malformedLayersPerChunkNameTheEntry) {
  for (const char *text : {"", "1,", "a", "1*", "*2", "1*0", "-1", "1*999999999", "1 2", "99999999999"}) {
    Result<std::vector<int64_t>> layers = parseLayersPerChunk(text);
    EXPECT_FALSE(layers) << text;
    EXPECT_NE(layers.error().find("expected a count"), std::string::npos);
  }
}

TEST(Plan, layersSpreadEvenlyAndMayBeFewerThanChunks) {
  EXPECT_EQ(spreadLayers(7, 3), (std::vector<int64_t>{3, 2, 2}));
  EXPECT_EQ(spreadLayers(2, 4), (std::vector<int64_t>{1, 1, 0, 0}));
}

TEST(Plan, globalBatchIsAMultipleOfMicrobatchTimesDp) {
  Plan plan;
  plan.microbatch = 2;
  plan.dp = 2;
  EXPECT_EQ(*countMicrobatches(plan, 12), 3);
  Result<int64_t> bad = countMicrobatches(plan, 10);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error(), "global batch 10 is not a multiple of microbatch * dp = 2 * 2; accepted near it are 8 and 12");
  EXPECT_EQ(countMicrobatches(plan, 0).error(),
            "global batch 0 is not a multiple of microbatch * dp = 2 * 2; accepted near it is 4");
  EXPECT_EQ(countMicrobatches(plan, 3).error(),
            "global batch 3 is not a multiple of microbatch * dp = 2 * 2; accepted near it is 4");
  EXPECT_TRUE(countMicrobatches(plan, 4 * 65536));
  EXPECT_EQ(countMicrobatches(plan, 4 * 65537).error(),
            "global batch 262148 is more than 65536 microbatches; accepted is up to 262144");
}

TEST(Plan, runBelowRanksIsRejectedWithTheReason) {
  Plan plan;
  plan.pp = 4;
  plan.chunks = 2;
  plan.run = {3};
  Result<std::vector<int64_t>> groups = groupsOf(plan, 8);
  ASSERT_FALSE(groups);
  EXPECT_NE(groups.error().find("run 3 is below min(pp, microbatches) = 4"), std::string::npos);
  EXPECT_TRUE(groupsOf(plan, 3)) << "three microbatches are one group of three";
}

TEST(Plan, explicitGroupsMustSumAndStartWithTheLargest) {
  Plan plan;
  plan.pp = 16;
  plan.chunks = 8;
  plan.run = {16, 15};
  EXPECT_EQ(*groupsOf(plan, 31), (std::vector<int64_t>{16, 15}));
  EXPECT_EQ(groupsOf(plan, 32).error(), "the groups of --run sum to 31 microbatches, the global batch has 32");
  plan.run = {16, 0, 16};
  EXPECT_EQ(groupsOf(plan, 32).error(), "a group of --run has 0 microbatches: expected 1 to the first group's 16");
  plan.run = {16, 17};
  EXPECT_EQ(groupsOf(plan, 33).error(), "a group of --run has 17 microbatches: expected 1 to the first group's 16");
  plan.run = {15, 16};
  EXPECT_EQ(groupsOf(plan, 31).error(),
            "run 15 is below min(pp, microbatches) = 16: a group of fewer microbatches than ranks leaves the pipeline "
            "waiting for itself; accepted is 16 or more in the first group");
}

TEST(Plan, oneChunkSchedulesRejectSeveralChunks) {
  Plan plan;
  plan.kind = ScheduleKind::ZeroBubbleH1;
  plan.chunks = 2;
  std::optional<Error> error = checkPlan(plan);
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("accepted with several are interleaved and bfs"), std::string::npos);
  plan.kind.reset();
  EXPECT_FALSE(checkPlan(plan));
}

TEST(Plan, ranksBeyondAnyClusterAreRefused) {
  Plan plan;
  plan.tp = plan.cp = plan.dp = 65536;
  plan.pp = 16384;
  EXPECT_EQ(checkPlan(plan)->message, "tp 65536, cp 65536, pp 16384 and dp 65536 are more than 4194304 ranks");
  plan = Plan();
  plan.dp = 65536;
  plan.pp = 64;
  EXPECT_FALSE(checkPlan(plan));
  plan.tp = 2;
  EXPECT_TRUE(checkPlan(plan));
}

TEST(Plan, sizesThatFillTheMemoryAreRefused) {
  Plan plan;
  plan.chunks = 1000000000;
  EXPECT_EQ(checkPlan(plan)->message, "chunks is 1000000000: expected 1 to 65536");
  plan.chunks = 256;
  plan.microbatch = 1;
  plan.globalBatches = {4096};
  EXPECT_FALSE(checkPlan(plan));
  plan.globalBatches = {4097};
  EXPECT_EQ(checkPlan(plan)->message,
            "global batch 4097 is 4097 microbatches of 256 chunks: expected up to 1048576 in all");
}

TEST(Plan, aGlobalBatchIsGivenOnce) {
  Plan plan;
  plan.globalBatches = {2, 4, 2};
  EXPECT_EQ(checkPlan(plan)->message, "global batch 2 is given twice");
}

TEST(Plan, layersPerChunkCountsAllChunks) {
  Plan plan;
  plan.chunks = 2;
  plan.layersPerChunk = {1, 1, 1};
  EXPECT_TRUE(checkPlan(plan));
  plan.layersPerChunk = {1, 1};
  EXPECT_FALSE(checkPlan(plan));
}

} // namespace
