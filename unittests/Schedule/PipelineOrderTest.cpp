//===- PipelineOrderTest.cpp - bubbles and peaks against closed forms -----===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/PipelineOrder.h"
#include "gtest/gtest.h"
#include <algorithm>

using namespace drover::schedule;

namespace {

std::vector<std::vector<WorkItem>> ordersOf(ScheduleKind kind, int64_t ranks, int64_t chunks,
                                            const std::vector<int64_t> &groups) {
  std::vector<std::vector<WorkItem>> orders;
  for (int64_t rank = 0; rank < ranks; ++rank)
    orders.push_back(orderOfRank(kind, ranks, chunks, groups, rank));
  return orders;
}

/// Replays one case and holds deadlock freedom, bubble and peaks against the formulas.
void check(ScheduleKind kind, int64_t ranks, int64_t chunks, int64_t microbatches, const std::vector<int64_t> &groups) {
  SCOPED_TRACE(std::string(nameOf(kind)) + " PP" + std::to_string(ranks) + " V" + std::to_string(chunks) + " M" +
               std::to_string(microbatches) + " groups of " + std::to_string(groups.front()));
  PhaseCosts costs;
  if (kind == ScheduleKind::ZeroBubbleH1)
    costs = {1, 1, 1, {}};
  Replay replay = replayOrders(ranks, chunks, microbatches, ordersOf(kind, ranks, chunks, groups), costs);
  ASSERT_FALSE(replay.deadlock);
  ASSERT_NEAR(replay.bubbleRatio(), expectedBubbleRatio(kind, ranks, chunks, microbatches), 1e-9);
  for (int64_t rank = 0; rank < ranks; ++rank)
    ASSERT_EQ(replay.peakInFlight[rank], expectedPeakInFlight(kind, ranks, chunks, groups, rank)) << "rank " << rank;
}

TEST(PipelineOrder, interleavedAndOneForwardOneBackwardMeetTheClosedForms) {
  int64_t cases = 0;
  for (int64_t ranks = 1; ranks <= 8; ++ranks)
    for (int64_t chunks = 1; chunks <= 4; ++chunks)
      for (int64_t microbatches = 1; microbatches <= 24; ++microbatches)
        for (int64_t run = std::min(ranks, microbatches); run <= microbatches; run += std::max<int64_t>(1, ranks / 2)) {
          check(chunks == 1 ? ScheduleKind::OneForwardOneBackward : ScheduleKind::Interleaved, ranks, chunks,
                microbatches, splitIntoGroups(microbatches, run, ranks));
          ++cases;
        }
  EXPECT_GT(cases, 4000);
}

TEST(PipelineOrder, breadthFirstRunsOneGroup) {
  for (int64_t ranks = 1; ranks <= 6; ++ranks)
    for (int64_t chunks = 1; chunks <= 4; ++chunks)
      for (int64_t microbatches = 1; microbatches <= 16; ++microbatches)
        check(ScheduleKind::BreadthFirst, ranks, chunks, microbatches, {microbatches});
}

TEST(PipelineOrder, zeroBubbleMeetsTheClosedForm) {
  for (int64_t ranks = 1; ranks <= 10; ++ranks)
    for (int64_t microbatches = 1; microbatches <= 30; ++microbatches)
      check(ScheduleKind::ZeroBubbleH1, ranks, 1, microbatches, {microbatches});
}

TEST(PipelineOrder, llama3LayoutHasItsBubbleAndPeaks) {
  std::vector<int64_t> groups = splitIntoGroups(256, 16, 16);
  EXPECT_EQ(groups, std::vector<int64_t>(16, 16));
  check(ScheduleKind::Interleaved, 16, 8, 256, groups);
}

TEST(PipelineOrder, groupsAreNearEqualLargestFirst) {
  EXPECT_EQ(splitIntoGroups(11, 5, 4), (std::vector<int64_t>{6, 5}));
  EXPECT_EQ(splitIntoGroups(31, 16, 16), (std::vector<int64_t>{31}));
  EXPECT_EQ(splitIntoGroups(3, 3, 4), (std::vector<int64_t>{3}));
  EXPECT_EQ(splitIntoGroups(4, 1, 1), (std::vector<int64_t>{1, 1, 1, 1}));
}

TEST(PipelineOrder, warmUpFromASmallerFirstGroupDeadlocks) {
  Replay good = replayOrders(4, 2, 11, ordersOf(ScheduleKind::Interleaved, 4, 2, {6, 5}), {});
  Replay bad = replayOrders(4, 2, 11, ordersOf(ScheduleKind::Interleaved, 4, 2, {5, 6}), {});
  EXPECT_FALSE(good.deadlock);
  EXPECT_TRUE(bad.deadlock);
}

TEST(PipelineOrder, oneRankAlternatesChunksOfAGroup) {
  std::vector<WorkItem> order = orderOfRank(ScheduleKind::OneForwardOneBackward, 1, 1, {1, 1}, 0);
  EXPECT_EQ(order,
            (std::vector<WorkItem>{
                {Phase::Forward, 0, 0}, {Phase::Backward, 0, 0}, {Phase::Forward, 0, 1}, {Phase::Backward, 0, 1}}));
  order = orderOfRank(ScheduleKind::Interleaved, 1, 2, {1}, 0);
  EXPECT_EQ(order,
            (std::vector<WorkItem>{
                {Phase::Forward, 0, 0}, {Phase::Forward, 1, 0}, {Phase::Backward, 1, 0}, {Phase::Backward, 0, 0}}));
}

TEST(PipelineOrder, unevenChunksMoveTheBusiestRank) {
  PhaseCosts costs;
  costs.chunkWeights = {0, 1, 1, 3};
  Replay replay = replayOrders(2, 2, 4, ordersOf(ScheduleKind::Interleaved, 2, 2, {2, 2}), costs);
  EXPECT_FALSE(replay.deadlock);
  EXPECT_DOUBLE_EQ(replay.busiest, 4 * 3 * 4);
}

} // namespace
