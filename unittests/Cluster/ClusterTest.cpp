//===- ClusterTest.cpp - the machine and what must hold of it -------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TestClusters.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace drover;
using namespace drover::cluster;

namespace {

TEST(Cluster, unitsOfLevelsMultiply) {
  Cluster cluster = makeLlama3();
  EXPECT_EQ(cluster.nodeGpus(), 8);
  EXPECT_EQ(cluster.gpusIn(1), 16);
  EXPECT_EQ(cluster.gpusIn(2), 3072);
  EXPECT_EQ(cluster.gpus(), 24576);
}

TEST(Cluster, hashedFlowsLoseWhatBallsInBinsLose) {
  // F flows of each of many pairs fall at random on as many paths; a path carries at most F of them.
  std::mt19937 random(1);
  for (int64_t flows : {1, 4, 16}) {
    constexpr int paths = 20000;
    std::vector<int64_t> load(paths);
    for (int64_t i = 0; i < flows * paths; ++i)
      ++load[random() % paths];
    double carried = 0;
    for (int64_t each : load)
      carried += static_cast<double>(std::min(each, flows));
    Level level = makeLevel("a", 2, 1, 1, 0);
    level.flows = flows;
    EXPECT_NEAR(level.effectiveBandwidth(), carried / static_cast<double>(flows * paths), 0.04) << flows;
  }
}

TEST(Cluster, whatMustHoldIsChecked) {
  EXPECT_FALSE(checkCluster(makeLlama3()));
  Cluster none;
  none.name = "none";
  EXPECT_EQ(checkCluster(none)->message, "cluster 'none' has 0 network levels: expected 1 to 6");
  Cluster slow = makeDgxH100(2);
  slow.levels[1].bandwidth = 0;
  EXPECT_NE(checkCluster(slow)->message.find("has a level 'cluster' out of bounds"), std::string::npos);
  slow = makeDgxH100(2);
  slow.levels[1].bandwidth = std::nan("");
  EXPECT_TRUE(checkCluster(slow));
  Cluster memory = makeDgxH100(2);
  memory.device.usableBytes = 1;
  EXPECT_EQ(checkCluster(memory)->message, "cluster 'dgx-h100' has a device with more usable than total memory");
}

} // namespace
