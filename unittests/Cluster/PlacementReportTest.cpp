//===- PlacementReportTest.cpp - a placement for readers ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cluster/PlacementReport.h"
#include "TestClusters.h"
#include "gtest/gtest.h"

using namespace drover;
using namespace drover::cluster;

namespace {

TEST(PlacementReport, workedExampleOfLlama3) {
  // 16,384 GPUs at TP8 PP16 DP128 (arXiv 2407.21783, table 4, second row).
  Cluster cluster = makeLlama3();
  Placement placement(cluster, {{8, 1, 16, 128}, kDefaultOrder});
  std::optional<Block> block = blockOf(placement);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->axes.str(), "TP x PP");
  EXPECT_EQ(block->ranks, 128);
  EXPECT_EQ(block->unitsOfBlock[1], 8) << "racks of a block";
  EXPECT_EQ(block->count, 128);
  EXPECT_EQ(block->blocksOfUnit[2], 24) << "blocks of a pod";
  AxisPlacement dp = describe(placement, Axis::DP);
  EXPECT_EQ(dp.groups, 128);
  EXPECT_EQ(dp.members, 128);
  ASSERT_EQ(dp.crossings.size(), 2u);
  EXPECT_EQ(dp.crossings[1].units, 6) << "pods of a group";
  EXPECT_NEAR(dp.crossings[1].meanUnits, 5.33, 0.01);
  std::vector<std::string> lines = printPlacement(placement);
  EXPECT_EQ(lines,
            (std::vector<std::string>{
                "order tp,cp,pp,dp on llama3-24k: 16384 of 24576 GPUs",
                "block TP x PP: 128 GPUs, 16 servers, 8 racks; 128 blocks, 24 in a pod",
                "TP: 2048 groups of 8 over 8 GPUs of a server",
                "PP: 1024 groups of 16 over 8 racks of a pod, 2 servers of a rack; 8 groups leave a rack",
                "DP: 128 groups of 128 over 6 pods (5.3) of a cluster, 24 racks of a pod; 128 groups leave a pod",
                "only DP crosses the 1:7 links of the cluster"}));
}

TEST(PlacementReport, fsdpOverContextAndDataIsOneLine) {
  Cluster cluster = makeLlama3();
  std::vector<std::string> lines = printPlacement({cluster, {{8, 16, 16, 8}, kDefaultOrder}});
  EXPECT_EQ(lines[1], "block TP x CP x PP: 2048 GPUs, 256 servers, 128 racks; 8 blocks");
  EXPECT_EQ(lines[4].substr(0, 46), "PP: 1024 groups of 16 over up to 2 pods of a c") << "some lie across two";
  EXPECT_EQ(lines[5], "DP: 2048 groups of 8 over 6 pods (5.3) of a cluster, 2 racks of a pod; 2048 groups leave a pod");
  EXPECT_EQ(lines[6].substr(0, 31), "CP x DP: 128 groups of 128 over");
}

TEST(PlacementReport, aSmallGridStaysWithinAServer) {
  Cluster cluster = makeLlama3();
  EXPECT_EQ(printPlacement({cluster, {{2, 1, 1, 1}, kDefaultOrder}}),
            (std::vector<std::string>{"order tp,cp,pp,dp on llama3-24k: 2 of 24576 GPUs",
                                      "TP: 1 group of 2 over 2 GPUs of a server",
                                      "no traffic crosses the 1:7 links of the cluster"}));
  EXPECT_FALSE(blockOf({cluster, {{1, 1, 1, 1}, kDefaultOrder}}));
}

} // namespace
