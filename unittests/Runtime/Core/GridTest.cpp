//===- GridTest.cpp - coordinates, groups and parts of tensors ------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/grid.h"
#include "drover/rt/parameter_layout.h"
#include "drover/rt/rank_plan.h"
#include <gtest/gtest.h>
#include <numeric>

using namespace drover::rt;

namespace {

constexpr std::array<int, 4> tpFirst = {DROVER_AXIS_TP, DROVER_AXIS_CP, DROVER_AXIS_PP, DROVER_AXIS_DP};

TEST(Grid, TheFirstAxisOfTheOrderIsTheInnermost) {
  Grid grid({4, 2, 3, 5}, tpFirst, 2);
  Coordinates place = grid.coordinates(3 + 4 * (1 + 2 * (2 + 3 * 4)));
  EXPECT_EQ(place, (Coordinates{3, 1, 2, 4, 1, 1}));
  Grid other({4, 2, 3, 5}, {DROVER_AXIS_DP, DROVER_AXIS_PP, DROVER_AXIS_CP, DROVER_AXIS_TP}, 0);
  EXPECT_EQ(other.coordinates(1), (Coordinates{0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(other.coordinates(5), (Coordinates{0, 0, 1, 0, 0, 0}));
  for (int64_t rank = 0; rank < grid.ranks(); ++rank) {
    EXPECT_EQ(grid.rankAt(grid.coordinates(rank)), rank);
    EXPECT_EQ(other.rankAt(other.coordinates(rank)), rank);
  }
}

TEST(Grid, GroupsAgreeInAllOtherAxes) {
  Grid grid({4, 2, 1, 2}, tpFirst, 2);
  EXPECT_EQ(grid.group(6, {DROVER_AXIS_TP}), (std::vector<int32_t>{4, 5, 6, 7}));
  EXPECT_EQ(grid.group(6, {DROVER_AXIS_KV}), (std::vector<int32_t>{4, 6}));
  EXPECT_EQ(grid.group(6, {DROVER_AXIS_REPLICA}), (std::vector<int32_t>{6, 7}));
  EXPECT_EQ(grid.group(6, {DROVER_AXIS_CP, DROVER_AXIS_DP}), (std::vector<int32_t>{2, 6, 10, 14}));
}

TEST(Grid, GroupsOfAnAxisPartitionTheWorld) {
  Grid grid({8, 16, 16, 8}, tpFirst, 0);
  for (std::vector<int> axes : {std::vector<int>{DROVER_AXIS_TP}, {DROVER_AXIS_CP, DROVER_AXIS_DP}, {DROVER_AXIS_DP}}) {
    std::vector<int> seen(size_t(grid.ranks()));
    for (int32_t rank = 0; rank < grid.ranks(); ++rank) {
      std::vector<int32_t> group = grid.group(rank, axes);
      if (group[0] == rank)
        for (int32_t member : group)
          ++seen[size_t(member)];
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), grid.ranks());
  }
}

struct PaddingCase {
  const char *what;
  int64_t tp, kv;
  int axis;
  std::vector<Segment> segments;
  int64_t valid, local;
};

/// The table of docs/distributions.md, Padding: over the ranks each valid element appears once in each replica, in
/// order, and nothing else does.
TEST(ParameterLayout, PaddedPartsMakeTheWhole) {
  const PaddingCase cases[] = {
      {"vocabulary 257 over 4", 4, 0, DROVER_AXIS_TP, {{257, 1, 1, 260}}, 257, 65},
      {"width 190 over 4", 4, 0, DROVER_AXIS_TP, {{190, 1, 1, 192}}, 190, 48},
      {"8 query heads, kv 2, over 2", 2, 0, DROVER_AXIS_TP, {{2, 64, 64, 2}}, 128, 64},
      {"3 kv groups over 2", 2, 0, DROVER_AXIS_TP, {{3, 16, 16, 4}}, 48, 32},
      {"6 query heads, 1 kv head, over 4", 4, 1, DROVER_AXIS_REPLICA, {{1, 48, 64, 1}}, 48, 16},
      {"fused q, k, v", 2, 0, DROVER_AXIS_TP, {{4, 16, 16, 4}, {4, 16, 16, 4}, {4, 16, 16, 4}}, 192, 96}};
  for (const PaddingCase &c : cases) {
    SCOPED_TRACE(c.what);
    Grid grid({c.tp, 1, 1, 1}, tpFirst, c.kv);
    std::vector<CutInfo> cuts = {{0, c.axis, c.segments}};
    checkCuts(grid, {c.valid}, {c.local}, cuts, "test");
    std::vector<int> seen(size_t(c.valid));
    for (int64_t rank = 0; rank < c.tp; ++rank) {
      int64_t last = -1;
      for (int64_t global : globalIndices(grid, grid.coordinates(rank), cuts, 0, c.local)) {
        ASSERT_LT(global, c.valid);
        if (global < 0)
          continue;
        EXPECT_GT(global, last);
        last = global;
        ++seen[size_t(global)];
      }
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), c.valid);
  }
}

TEST(ParameterLayout, KvGroupsAreAlikeOnTheirReplicas) {
  Grid grid({4, 1, 1, 1}, tpFirst, 2);
  std::vector<CutInfo> cuts = {{0, DROVER_AXIS_KV, {}}};
  auto indices = [&](int64_t rank) { return globalIndices(grid, grid.coordinates(rank), cuts, 0, 3); };
  EXPECT_EQ(indices(0), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(indices(1), indices(0));
  EXPECT_EQ(indices(2), (std::vector<int64_t>{3, 4, 5}));
}

TEST(ParameterLayout, CpHasTwoChunksAndTpCutsThem) {
  Grid grid({2, 2, 1, 1}, tpFirst, 0);
  std::vector<CutInfo> cp = {{0, DROVER_AXIS_CP, {}}}, both = {{0, DROVER_AXIS_CP, {}}, {0, DROVER_AXIS_TP, {}}};
  EXPECT_EQ(globalIndices(grid, grid.coordinates(0), cp, 0, 4), (std::vector<int64_t>{0, 1, 6, 7}));
  EXPECT_EQ(globalIndices(grid, grid.coordinates(2), cp, 0, 4), (std::vector<int64_t>{2, 3, 4, 5}));
  EXPECT_EQ(globalIndices(grid, grid.coordinates(1), both, 0, 2), (std::vector<int64_t>{6, 7}));
}

TEST(ParameterLayout, RunsCoverARangeOfARowCutMatrix) {
  Grid grid({2, 1, 1, 1}, tpFirst, 0);
  std::vector<CutInfo> cuts = {{1, DROVER_AXIS_TP, {{5, 1, 1, 6}}}};
  TensorLayout layout(grid, grid.coordinates(1), {4, 5}, {4, 3}, cuts);
  EXPECT_EQ(layout.localElements(), 12);
  std::vector<int64_t> global(12, -2);
  auto note = [&](int64_t local, int64_t place, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      global[size_t(local + i)] = place < 0 ? -1 : place + i;
  };
  layout.forEachRun(1, 7, note);
  EXPECT_EQ(global, (std::vector<int64_t>{-2, 4, -1, 8, 9, -1, 13, 14, -2, -2, -2, -2}));
}

TEST(ParameterLayout, CutsThatDoNotFitAreRefused) {
  Grid grid({2, 1, 1, 1}, tpFirst, 0);
  EXPECT_THROW(checkCuts(grid, {5}, {3}, {{0, DROVER_AXIS_TP, {}}}, "p"), std::runtime_error);
  EXPECT_THROW(checkCuts(grid, {5}, {3}, {{0, DROVER_AXIS_TP, {{5, 1, 1, 7}}}}, "p"), std::runtime_error);
  EXPECT_NO_THROW(checkCuts(grid, {5}, {3}, {{0, DROVER_AXIS_TP, {{5, 1, 1, 6}}}}, "p"));
}

} // namespace
