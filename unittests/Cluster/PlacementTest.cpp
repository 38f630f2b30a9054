//===- PlacementTest.cpp - where grid axes fall on the network ------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cluster/Placement.h"
#include "TestClusters.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <map>
#include <random>
#include <set>

using namespace drover;
using namespace drover::cluster;

namespace {

Grid makeGrid(int64_t tp, int64_t cp, int64_t pp, int64_t dp, AxisOrder order = kDefaultOrder) {
  return {{tp, cp, pp, dp}, order};
}

TEST(Placement, neighboursOfTheSixteenGpuExample) {
  // arXiv 2407.21783, figure 5: GPU 0's peers are 1 (TP), 2 (CP), 4 (PP) and 8 (DP).
  Cluster cluster = makeDgxH100(2);
  Placement placement(cluster, makeGrid(2, 2, 2, 2));
  EXPECT_EQ(placement.groupOf(Axis::TP, 0), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(placement.groupOf(Axis::CP, 0), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(placement.groupOf(Axis::PP, 0), (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(placement.groupOf(Axis::DP, 0), (std::vector<int64_t>{0, 8}));
  EXPECT_EQ(placement.groupOf({Axis::CP, Axis::DP}, 5), (std::vector<int64_t>{5, 7, 13, 15}));
}

TEST(Placement, coordinatesAreTheInverseOfRanks) {
  Cluster cluster = makeDgxH100(64);
  Placement placement(cluster, makeGrid(3, 2, 5, 7, {Axis::PP, Axis::TP, Axis::DP, Axis::CP}));
  for (int64_t rank = 0; rank < 210; ++rank)
    EXPECT_EQ(placement.rankAt(placement.coordinatesOf(rank)), rank);
}

TEST(Placement, llama3DataParallelGroupsSpanSixPods) {
  Cluster cluster = makeLlama3();
  Placement placement(cluster, makeGrid(8, 1, 16, 128));
  Span tp = placement.spanOf(Axis::TP);
  EXPECT_EQ(tp.outermost, 0);
  EXPECT_EQ(tp.fanout[0], 8);
  Span pp = placement.spanOf(Axis::PP);
  EXPECT_EQ(pp.outermost, 2) << "a block of 128 GPUs lies in one pod";
  EXPECT_EQ(pp.fanout[1], 2);
  EXPECT_EQ(pp.fanout[2], 8) << "8 racks a block";
  Span dp = placement.spanOf(Axis::DP);
  EXPECT_EQ(dp.fanout[2], 24) << "24 blocks a pod";
  EXPECT_EQ(dp.fanout[3], 6) << "128 blocks are 5.3 pods";
  EXPECT_EQ(dp.sharing[1], 8);
  EXPECT_EQ(dp.sharing[2], 16);
  EXPECT_EQ(dp.sharing[3], 128) << "one group for each place in a block";
  EXPECT_EQ(dp.ranksIn[2], 24);
}

/// A span found by asking every pair of ranks.
Span spanByPairs(const Placement &placement, AxisSet axes) {
  const Cluster &cluster = placement.getCluster();
  Span span;
  span.ranks = placement.getGrid().size(axes);
  for (size_t level = 0; level < cluster.levels.size(); ++level) {
    int64_t unit = cluster.gpusIn(level), below = level ? cluster.gpusIn(level - 1) : 1;
    std::map<int64_t, int64_t> leaving;
    for (int64_t rank = 0; rank < placement.getGrid().ranks(); ++rank) {
      std::set<int64_t> inside, unitsBelow;
      bool leads = true; // of its group in its unit below
      int64_t ranksBelow = 0;
      for (int64_t member : placement.groupOf(axes, rank)) {
        if (member / unit == rank / unit) {
          inside.insert(member);
          unitsBelow.insert(member / below);
        }
        if (member / below == rank / below) {
          leads &= member >= rank;
          ++ranksBelow;
        }
      }
      span.ranksIn[level] = std::max<int64_t>(span.ranksIn[level], inside.size());
      span.fanout[level] = std::max<int64_t>(span.fanout[level], unitsBelow.size());
      leaving[rank / below] += leads && ranksBelow < span.ranks;
    }
    if (span.fanout[level] > 1)
      span.outermost = static_cast<int>(level);
    for (auto [unitBelow, groups] : leaving)
      if (level > 0)
        span.sharing[level] = std::max(span.sharing[level], groups);
  }
  for (size_t level = cluster.levels.size(); level < kMostLevels; ++level)
    span.ranksIn[level] = span.ranksIn[level - 1];
  return span;
}

TEST(Placement, spansAgreeWithWhatPairsOfRanksSay) {
  std::mt19937 random(7);
  auto pick = [&](std::initializer_list<int64_t> values) { return *(values.begin() + random() % values.size()); };
  int uneven = 0;
  for (int i = 0; i < 400; ++i) {
    Cluster cluster = makeDgxH100(1);
    cluster.levels = {makeLevel("a", pick({2, 4, 6, 8}), 1, 1, 0), makeLevel("b", pick({1, 2, 3, 4}), 1, 1, 0),
                      makeLevel("c", pick({2, 3, 5, 24}), 1, 1, 0)};
    AxisOrder order = kDefaultOrder;
    std::shuffle(order.begin(), order.end(), random);
    Grid grid = makeGrid(pick({1, 2, 3, 4, 8}), pick({1, 2, 3}), pick({1, 2, 4, 5}), pick({1, 2, 3, 6}), order);
    if (checkGrid(cluster, grid))
      continue;
    Placement placement(cluster, grid);
    for (AxisSet axes : {AxisSet(Axis::TP), AxisSet(Axis::CP), AxisSet(Axis::PP), AxisSet(Axis::DP),
                         AxisSet{Axis::CP, Axis::DP}, AxisSet{Axis::TP, Axis::PP}}) {
      Span span = placement.spanOf(axes), counted = placement.countSpan(axes), pairs = spanByPairs(placement, axes);
      EXPECT_EQ(counted.fanout, pairs.fanout) << str(order);
      EXPECT_EQ(counted.ranksIn, pairs.ranksIn) << str(order);
      EXPECT_EQ(counted.sharing, pairs.sharing) << str(order);
      EXPECT_EQ(counted.outermost, pairs.outermost) << str(order);
      EXPECT_EQ(span.fanout, counted.fanout) << str(order);
      EXPECT_EQ(span.ranksIn, counted.ranksIn) << str(order);
      EXPECT_EQ(span.sharing, counted.sharing) << str(order);
      EXPECT_EQ(span.outermost, counted.outermost) << str(order);
      int64_t product = 1;
      for (int64_t fanout : span.fanout)
        product *= fanout;
      EXPECT_GE(product, span.ranks);
      uneven += product > span.ranks;
    }
  }
  EXPECT_GT(uneven, 20) << "the cases include units that are not filled evenly";
}

TEST(Placement, aGridLargerThanTheClusterIsRefused) {
  Cluster cluster = makeDgxH100(2);
  EXPECT_FALSE(checkGrid(cluster, makeGrid(8, 1, 2, 1)));
  EXPECT_EQ(checkGrid(cluster, makeGrid(8, 1, 2, 2))->message,
            "tp * cp * pp * dp = 8 * 1 * 2 * 2 is more than the 16 GPUs of cluster 'dgx-h100'");
  EXPECT_EQ(checkGrid(cluster, makeGrid(8, 0, 2, 2))->message, "cp is 0: expected 1 or more");
  EXPECT_TRUE(checkGrid(cluster, makeGrid(1ll << 40, 1ll << 40, 1, 1)));
}

TEST(Placement, ordersParseAndPrint) {
  EXPECT_EQ(str(*parseOrder("dp,tp,cp,pp")), "dp,tp,cp,pp");
  EXPECT_EQ(parseOrder("tp,cp,pp").error(),
            "order 'tp,cp,pp' has 3 axes: expected tp, cp, pp and dp once each, innermost first");
  EXPECT_EQ(parseOrder("tp,cp,pp,ep").error(),
            "order 'tp,cp,pp,ep' has the entry 'ep': expected tp, cp, pp and dp once each, innermost first");
  EXPECT_FALSE(parseOrder("tp,cp,pp,tp"));
  EXPECT_FALSE(parseOrder("tp,cp,pp,dp,dp"));
}

} // namespace
