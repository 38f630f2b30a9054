//===- ReadClusterTest.cpp - cluster files that are in order --------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cluster/Yaml/ReadCluster.h"
#include "ClusterText.h"
#include "drover/Cluster/Print.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <set>

using namespace drover;
using namespace drover::cluster;

namespace {

TEST(ReadCluster, everyKeyIsRead) {
  schedule::Result<Cluster> cluster = readClusterText(clusterText(), "small.yaml");
  ASSERT_TRUE(cluster) << cluster.error();
  EXPECT_EQ(cluster->name, "small");
  EXPECT_EQ(cluster->publishedAs, (std::vector<std::string>{"Small-GPU (1x)"}));
  EXPECT_EQ(cluster->gpus(), 32);
  EXPECT_EQ(cluster->nodeGpus(), 4);
  const Device &device = cluster->device;
  EXPECT_EQ(device.name, "Small 10 GB");
  EXPECT_EQ(device.peakOf(Precision::F32), 1e13);
  EXPECT_EQ(device.peakOf(Precision::FP8), 0);
  EXPECT_EQ(device.usableBytes, 9 * 1073741824.);
  EXPECT_EQ(device.contextBytes, 1073741824.);
  EXPECT_EQ(device.sms, 64);
  EXPECT_EQ(device.watts, 300);
  EXPECT_EQ(device.matmulOf(Precision::F32).tileM, 64);
  EXPECT_EQ(device.matmulOf(Precision::F16).tileN, 256) << "a format that is not listed has the first one's rates";
  ASSERT_TRUE(device.findAttention("unfused"));
  EXPECT_EQ(device.findAttention("unfused")->oddHeadPenalty, 1);
  EXPECT_FALSE(device.findAttention("flash3"));
  EXPECT_DOUBLE_EQ(device.launchSeconds, 4e-6);
  EXPECT_DOUBLE_EQ(cluster->levels[0].latency, 600e-9);
  EXPECT_EQ(cluster->levels[1].bandwidth, 25e9) << "bits a second";
  EXPECT_EQ(cluster->levels[1].flows, 4);
  EXPECT_EQ(cluster->levels[1].oversubscription, 2);
  ASSERT_TRUE(cluster->failures && cluster->storage);
  EXPECT_DOUBLE_EQ(cluster->failures->unexpectedPerGpuHour(), 3. / (32 * 240));
  EXPECT_DOUBLE_EQ(cluster->failures->plannedPerGpuHour(), 1. / (32 * 240));
  EXPECT_EQ(cluster->storage->peakWrite, 2e9);
  EXPECT_EQ(cluster->storage->hostCopy, 25e9);
}

TEST(ReadCluster, trafficClassesAreOptional) {
  schedule::Result<Cluster> without = readClusterText(clusterText(), "small.yaml");
  ASSERT_TRUE(without && !without->trafficClasses);
  schedule::Result<Cluster> cluster =
      readClusterText("traffic_classes: {urgent: 106, bulk: 98, control: 194}\n" + clusterText(), "small.yaml");
  ASSERT_TRUE(cluster) << cluster.error();
  schedule::Result<Cluster> again = readClusterText(printCluster(*cluster), "again.yaml");
  ASSERT_TRUE(again && again->trafficClasses) << again.error();
  EXPECT_EQ(again->trafficClasses->urgent, 106);
  EXPECT_EQ(again->trafficClasses->bulk, 98);
  EXPECT_EQ(again->trafficClasses->control, 194);
}

TEST(ReadCluster, whatIsPrintedReadsBackAsTheSame) {
  schedule::Result<Cluster> cluster = readClusterText(clusterText(), "small.yaml");
  ASSERT_TRUE(cluster) << cluster.error();
  cluster->name = "it's";
  std::string text = printCluster(*cluster, "measured\nhere");
  EXPECT_EQ(text.substr(0, 18), "# measured\n# here\n");
  schedule::Result<Cluster> again = readClusterText(text, "again.yaml");
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(printCluster(*again, "measured\nhere"), text);
  EXPECT_EQ(again->name, "it's");
}

TEST(ReadCluster, aHostsKeysAreReadAndPrinted) {
  std::string text = clusterTextWith("  power: 300 W\n", "  shared_cores: 2\n  core_scaling: 0.8\n  pass_cost: 2\n");
  const std::string level = "    in_network: 0.7\n";
  text.insert(text.find(level) + level.size(),
              "    backend: mpi\n    collectives:\n"
              "      - {backend: mpi, kind: all_reduce, ranks: 2, latency: 3 us, bandwidth: 2 GB/s}\n"
              "      - {backend: mpi, kind: all_reduce, ranks: 4, latency: 9 us, bandwidth: 1 GB/s}\n");
  schedule::Result<Cluster> host = readClusterText(text, "host.yaml");
  ASSERT_TRUE(host) << host.error();
  EXPECT_EQ(host->device.watts, 0);
  EXPECT_EQ(host->device.sharedCores, 2);
  EXPECT_EQ(host->device.coreScaling, 0.8);
  EXPECT_EQ(host->device.passCost, 2);
  ASSERT_EQ(host->levels[0].collectives.size(), 2u);
  EXPECT_EQ(host->levels[0].backend, "mpi");
  EXPECT_EQ(host->levels[0].collectives[1].kind, "all_reduce");
  EXPECT_EQ(host->levels[0].collectives[1].ranks, 4);
  EXPECT_DOUBLE_EQ(host->levels[0].collectives[1].latency, 9e-6);
  EXPECT_EQ(host->levels[0].collectives[1].bandwidth, 1e9);
  schedule::Result<Cluster> again = readClusterText(printCluster(*host), "again.yaml");
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(printCluster(*again), printCluster(*host));
}

TEST(ReadCluster, everyFileThatShipsReads) {
  std::set<std::string> names, published;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator file(DROVER_CLUSTERS, error), end; file != end && !error;
       file.increment(error)) {
    if (!llvm::StringRef(file->path()).ends_with(".yaml"))
      continue;
    schedule::Result<Cluster> cluster = readClusterFile(file->path());
    ASSERT_TRUE(cluster) << cluster.error();
    EXPECT_EQ(cluster->name, llvm::sys::path::stem(file->path())) << "a cluster is named as its file";
    EXPECT_TRUE(names.insert(cluster->name).second);
    for (const std::string &name : cluster->publishedAs)
      EXPECT_TRUE(published.insert(name).second) << name << " is published as two clusters";
    EXPECT_FALSE(checkCluster(*cluster));
    schedule::Result<Cluster> again = readClusterText(printCluster(*cluster), "again.yaml");
    ASSERT_TRUE(again) << again.error();
    EXPECT_EQ(printCluster(*again), printCluster(*cluster));
  }
  ASSERT_FALSE(error) << error.message();
  EXPECT_GE(names.size(), 11u);
  EXPECT_GE(published.size(), 16u) << "the GPU kinds of the published runs";
}

TEST(ReadCluster, llama3IsTheClusterOfThePaper) {
  // arXiv 2407.21783, section 3.3.1 and table 5.
  schedule::Result<Cluster> cluster = readClusterFile(std::string(DROVER_CLUSTERS) + "/llama3-24k.yaml");
  ASSERT_TRUE(cluster) << cluster.error();
  ASSERT_EQ(cluster->levels.size(), 4u);
  EXPECT_EQ(cluster->gpus(), 24576);
  EXPECT_EQ(cluster->gpusIn(1), 16) << "GPUs in a rack";
  EXPECT_EQ(cluster->gpusIn(2), 3072) << "GPUs in a pod";
  EXPECT_EQ(cluster->levels[3].oversubscription, 7);
  EXPECT_EQ(cluster->levels[3].bandwidth, 50e9);
  EXPECT_EQ(cluster->levels[3].flows, 16);
  EXPECT_EQ(cluster->device.kind, "H100");
  double gpuHours = 16384 * 54 * 24;
  EXPECT_NEAR(cluster->failures->unexpectedPerGpuHour() * gpuHours, 419, 1e-6);
  EXPECT_NEAR(cluster->failures->plannedPerGpuHour() * gpuHours, 47, 1e-6);
}

} // namespace
