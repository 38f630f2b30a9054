//===- ChoosePlacementTest.cpp - the order of the grid axes ---------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cost/ChoosePlacement.h"
#include "../Cluster/TestClusters.h"
#include "gtest/gtest.h"

using namespace drover;
using namespace drover::cluster;
using namespace drover::cost;

namespace {

/// A step of Llama 3 405B (hidden 16384, 126 layers, 8 kv heads of 128) at some grid: what notes/parallelism.md section
/// 3 lists. 8 chunks of a layer each; a layer's forward takes about 18 ms at 8,192 tokens a rank of TP8, its backward
/// twice that.
std::vector<AxisTraffic> llama3Traffic(const Grid &grid, double sequence, double microbatches) {
  double tp = grid.size(Axis::TP), cp = grid.size(Axis::CP), layers = 8, tokens = sequence / cp;
  double chunkSeconds = 18e-3 * tokens / 8192, parameters = 405e9 / (tp * grid.size(Axis::PP));
  std::vector<AxisTraffic> traffic = {
      {Axis::TP, CollectiveKind::AllGather, tokens * 16384 * 2, 5 * layers * microbatches, 0},
      {Axis::TP, CollectiveKind::ReduceScatter, tokens * 16384 * 2, 4 * layers * microbatches, 0},
      {Axis::PP, std::nullopt, tokens / tp * 16384 * 2, 2 * layers * microbatches, chunkSeconds},
      {{Axis::CP, Axis::DP}, CollectiveKind::AllGather, parameters / layers * 2, layers, 16 * chunkSeconds},
      {{Axis::CP, Axis::DP}, CollectiveKind::ReduceScatter, parameters / layers * 4, layers, 16 * chunkSeconds}};
  if (cp > 1)
    for (double bytes : {2., 2., 4.}) // keys and values, again in the backward, and their gradients in fp32
      traffic.push_back({Axis::CP, bytes == 4 ? CollectiveKind::ReduceScatter : CollectiveKind::AllGather,
                         2 * sequence * 1024 / tp * bytes, layers * microbatches, 0});
  return traffic;
}

TEST(ChoosePlacement, llama3IsTensorContextPipelineData) {
  Cluster cluster = makeLlama3();
  for (Grid grid : {Grid{{8, 1, 16, 128}, {}}, Grid{{8, 16, 16, 8}, {}}, Grid{{8, 1, 16, 64}, {}}}) {
    double sequence = grid.size(Axis::CP) > 1 ? 131072 : 8192;
    std::vector<OrderCost> costs = choosePlacement(cluster, grid, llama3Traffic(grid, sequence, 16));
    EXPECT_EQ(costs.size(), grid.size(Axis::CP) > 1 ? 24u : 6u) << "axes of size one are not permuted";
    EXPECT_EQ(str(costs.front().order), "tp,cp,pp,dp");
    EXPECT_LT(costs.front().exposedSeconds, costs.back().exposedSeconds);
  }
}

TEST(ChoosePlacement, aThinLinkBetweenSitesTakesThePipeline) {
  // Two sites of 64 servers, 1:100 between them: gradients would fill the link, activations do not.
  Cluster cluster = makeDgxH100(64);
  cluster.name = "two-sites";
  cluster.levels.push_back(makeLevel("sites", 2, 50e9, 0.96, 5e-3));
  cluster.levels.back().oversubscription = 100;
  Grid grid = {{8, 1, 4, 32}, {}};
  std::vector<AxisTraffic> traffic = llama3Traffic(grid, 8192, 16);
  for (AxisTraffic &each : traffic)
    if (each.axes == (AxisSet{Axis::CP, Axis::DP}))
      each.overlapSeconds = 0.05;
  EXPECT_EQ(str(choosePlacement(cluster, grid, traffic).front().order), "tp,cp,dp,pp");
}

TEST(ChoosePlacement, smallFastGroupsTakeContextWhereTensorTrafficIsHidden) {
  // Servers of 4 GPUs, TP and CP of 4: who waits for its bytes gets the server.
  Cluster cluster = makeDgxH100(16);
  cluster.levels[0].members = 4;
  Grid grid = {{4, 4, 1, 1}, {}};
  std::vector<AxisTraffic> traffic = {{Axis::TP, CollectiveKind::AllGather, 100e6, 100, 0.05},
                                      {Axis::CP, CollectiveKind::AllGather, 100e6, 100, 0}};
  EXPECT_EQ(str(choosePlacement(cluster, grid, traffic).front().order), "cp,tp,pp,dp");
  std::swap(traffic[0].overlapSeconds, traffic[1].overlapSeconds);
  EXPECT_EQ(str(choosePlacement(cluster, grid, traffic).front().order), "tp,cp,pp,dp");
}

TEST(ChoosePlacement, withoutTrafficTheDefaultOrderStands) {
  Cluster cluster = makeDgxH100(16);
  EXPECT_EQ(str(choosePlacement(cluster, {{2, 2, 2, 2}, {}}, {}).front().order), "tp,cp,pp,dp");
  EXPECT_EQ(choosePlacement(cluster, {{1, 1, 1, 1}, {}}, {}).size(), 1u);
}

} // namespace
