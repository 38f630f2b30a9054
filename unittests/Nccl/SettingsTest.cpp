//===- SettingsTest.cpp - what NCCL is told for a plan on a cluster -------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Nccl/Settings.h"
#include "TestClusters.h"
#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

using namespace drover;
using namespace drover::nccl;
using cluster::Cluster;
using cost::CollectiveKind;

namespace {

/// What a Llama of many layers exchanges: sequence parallelism, CP's keys and values, FSDP, a pipeline.
std::vector<Demand> llamaDemands(const cluster::Grid &grid) {
  using cluster::Axis;
  int64_t tp = grid.size(Axis::TP), cp = grid.size(Axis::CP), pp = grid.size(Axis::PP), dp = grid.size(Axis::DP);
  constexpr int64_t mib = 1 << 20;
  std::vector<Demand> demands = {{"world", {0}, {}, grid.ranks(), {{CollectiveKind::AllReduce, 16}}, 0, false},
                                 {"tp",
                                  {1},
                                  {},
                                  tp,
                                  {{CollectiveKind::AllGather, 256 * mib}, {CollectiveKind::ReduceScatter, 256 * mib}},
                                  0,
                                  false},
                                 {"cp",
                                  {4},
                                  {},
                                  cp,
                                  {{CollectiveKind::AllGather, 64 * mib}, {CollectiveKind::ReduceScatter, 128 * mib}},
                                  0,
                                  false},
                                 {"fsdp",
                                  {5},
                                  {},
                                  cp * dp,
                                  {{CollectiveKind::AllGather, 780 * mib}, {CollectiveKind::ReduceScatter, 1560 * mib}},
                                  0,
                                  true},
                                 {"dp", {6}, {}, dp, {}, 0, true}};
  Demand edges = {"edges", {}, {}, 2, {}, 16 * mib, false};
  for (int32_t stage = 0; stage < pp; ++stage) {
    edges.ids.push_back(uint32_t(16 + stage));
    edges.stages.push_back({stage, int32_t((stage + 1) % pp)});
  }
  if (pp > 1)
    demands.push_back(edges);
  std::vector<Demand> several;
  for (Demand &demand : demands)
    if (demand.members > 1)
      several.push_back(demand);
  return several;
}

Cluster withDevice(Cluster cluster, const char *kind) {
  cluster.device.kind = kind;
  return cluster;
}

Settings settingsOf(const Cluster &cluster, const cluster::Grid &grid) {
  return deriveSettings(&cluster, grid, 0, llamaDemands(grid));
}

int64_t valueOf(const Settings &settings, const char *dimension, const char *setting) {
  const Dimension *found = settings.find(dimension);
  EXPECT_NE(found, nullptr) << dimension;
  const Setting *value = found ? found->find(setting) : nullptr;
  return value ? value->value : -1;
}

std::string variableOf(const Settings &settings, const char *name) {
  const Variable *variable = settings.findVariable(name);
  return variable ? variable->value : "";
}

TEST(NcclSettings, llama3AsPublished) {
  Settings settings = settingsOf(withDevice(cluster::makeLlama3(), "H100"), {{8, 16, 16, 8}, cluster::kDefaultOrder});
  // TP fills servers: all of NVLink, gathers by copy engines.
  EXPECT_EQ(settings.find("tp")->units, (std::vector<int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(valueOf(settings, "tp", "max_ctas"), 24);
  EXPECT_EQ(valueOf(settings, "tp", "cta_policy"), 2);
  EXPECT_EQ(valueOf(settings, "tp", "windows"), 1);
  EXPECT_EQ(valueOf(settings, "tp", "cga_cluster_size"), -1) << "NCCL's default divides 24";
  // A CP group has a GPU in each of 16 servers, 8 racks of one pod: one adapter, two channels.
  EXPECT_EQ(settings.find("cp")->units, (std::vector<int64_t>{16, 8, 1, 1}));
  EXPECT_EQ(valueOf(settings, "cp", "max_ctas"), 2);
  EXPECT_EQ(valueOf(settings, "cp", "cga_cluster_size"), 2);
  EXPECT_EQ(valueOf(settings, "cp", "cta_policy"), -1) << "compute waits for it";
  EXPECT_EQ(valueOf(settings, "cp", "windows"), -1);
  // FSDP crosses pods, beside compute.
  EXPECT_EQ(settings.find("fsdp")->units[3], 1);
  EXPECT_GT(settings.find("fsdp")->units[2], 1);
  EXPECT_EQ(valueOf(settings, "fsdp", "cta_policy"), 1);
  // Blocks of 2,048 GPUs do not divide pods of 3,072.
  EXPECT_EQ(settings.find("edges")->units, (std::vector<int64_t>{2, 2, 2, 1}));
  EXPECT_EQ(valueOf(settings, "edges", "channels_per_net_peer"), 2);
  // 16 flows a pair (section 3.3.3) over two channels.
  EXPECT_EQ(variableOf(settings, "NCCL_IB_QPS_PER_CONNECTION"), "8");
  EXPECT_EQ(variableOf(settings, "NCCL_BUFFSIZE"), "4194304");
  EXPECT_EQ(variableOf(settings, "NCCL_P2P_NET_CHUNKSIZE"), "262144");
  EXPECT_EQ(valueOf(settings, "world", "max_ctas"), 1) << "16 bytes";
  // The fabric's classes are not published: NCCL's default.
  EXPECT_EQ(variableOf(settings, "NCCL_IB_FIFO_TC"), "");
  EXPECT_EQ(valueOf(settings, "fsdp", "traffic_class"), -1);
}

TEST(NcclSettings, everyValueHasItsReason) {
  Cluster cluster = withDevice(cluster::makeLlama3(), "H100");
  cluster.trafficClasses = cluster::TrafficClasses{106, 98, 194};
  Settings settings = settingsOf(cluster, {{8, 16, 16, 8}, cluster::kDefaultOrder});
  for (const Dimension &dimension : settings.dimensions) {
    for (const Setting &setting : dimension.settings)
      EXPECT_FALSE(setting.reason.empty()) << dimension.name << " " << setting.name;
    for (const TunerRule &rule : dimension.rules)
      EXPECT_FALSE(rule.reason.empty()) << dimension.name;
  }
  for (const Variable &variable : settings.environment)
    EXPECT_FALSE(variable.reason.empty()) << variable.name;
  EXPECT_EQ(settings.find("fsdp")->find("traffic_class")->reason, "runs beside compute: the cluster's bulk class");
  EXPECT_EQ(settings.find("tp")->find("max_ctas")->reason, "450 GB/s of a GPU within a server, 18.8 GB/s a channel");
}

TEST(NcclSettings, trafficClassesFollowWhoWaits) {
  Cluster cluster = withDevice(cluster::makeLlama3(), "H100");
  cluster.trafficClasses = cluster::TrafficClasses{106, 98, 194};
  Settings settings = settingsOf(cluster, {{8, 16, 16, 8}, cluster::kDefaultOrder});
  EXPECT_EQ(valueOf(settings, "cp", "traffic_class"), 106);
  EXPECT_EQ(valueOf(settings, "edges", "traffic_class"), 106);
  EXPECT_EQ(valueOf(settings, "fsdp", "traffic_class"), 98);
  EXPECT_EQ(valueOf(settings, "tp", "traffic_class"), -1) << "within a server";
  EXPECT_EQ(variableOf(settings, "NCCL_IB_FIFO_TC"), "194");
}

TEST(NcclSettings, oneServerHasNoNetwork) {
  Settings settings = settingsOf(withDevice(cluster::makeDgxH100(1), "H100"), {{2, 2, 1, 2}, cluster::kDefaultOrder});
  EXPECT_TRUE(settings.environment.empty());
  for (const char *name : {"tp", "cp", "fsdp"}) {
    EXPECT_EQ(settings.find(name)->units, (std::vector<int64_t>{1, 1})) << name;
    EXPECT_EQ(valueOf(settings, name, "windows"), 1) << name;
    EXPECT_EQ(valueOf(settings, name, "channels_per_net_peer"), -1) << name;
  }
}

TEST(NcclSettings, severalAdaptersOfAServerAreChannelsOfARing) {
  // Four of a group in a server: a ring with four adapters of 48 GB/s.
  Settings settings = settingsOf(withDevice(cluster::makeDgxH100(8), "H100"), {{2, 1, 1, 32}, cluster::kDefaultOrder});
  EXPECT_EQ(settings.find("fsdp")->units, (std::vector<int64_t>{8, 1}));
  EXPECT_EQ(valueOf(settings, "fsdp", "max_ctas"), 8);
  // An A100's adapters carry a channel each.
  Settings older = settingsOf(withDevice(cluster::makeDgxA100(8), "A100"), {{2, 1, 1, 32}, cluster::kDefaultOrder});
  EXPECT_EQ(valueOf(older, "fsdp", "max_ctas"), 4);
  EXPECT_EQ(valueOf(older, "tp", "max_ctas"), 16);
}

TEST(NcclSettings, longLinksHaveLargerBuffersAndChunks) {
  // Two sites, half a millisecond apart.
  Cluster cluster = withDevice(cluster::makeDgxH100(4), "H100");
  cluster.levels.push_back(cluster::makeLevel("sites", 2, 50e9, 0.96, 5e-4));
  Settings settings = settingsOf(cluster, {{8, 1, 2, 4}, cluster::kDefaultOrder});
  EXPECT_EQ(settings.find("edges")->units, (std::vector<int64_t>{2, 1, 1}));
  EXPECT_EQ(variableOf(settings, "NCCL_BUFFSIZE"), "67108864") << "the most that is asked for";
  cluster::Grid grid = {{8, 1, 2, 4}, {cluster::Axis::TP, cluster::Axis::CP, cluster::Axis::DP, cluster::Axis::PP}};
  Settings across = settingsOf(cluster, grid);
  EXPECT_EQ(across.find("edges")->units, (std::vector<int64_t>{2, 2, 1}));
  EXPECT_EQ(variableOf(across, "NCCL_P2P_NET_CHUNKSIZE"), "4194304");
  EXPECT_EQ(variableOf(across, "NCCL_BUFFSIZE"), "67108864") << "the world's all-reduce";
}

TEST(NcclSettings, oddGroupsAreCountedRankByRank) {
  // Servers of 6 GPUs: a TP group of 4 lies in two of them now and then, what the plan promises is the worst.
  Cluster cluster = withDevice(cluster::makeDgxH100(4), "H100");
  cluster.levels[0].members = 6;
  Settings settings = settingsOf(cluster, {{4, 1, 1, 6}, cluster::kDefaultOrder});
  EXPECT_EQ(settings.find("tp")->units, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(valueOf(settings, "tp", "windows"), -1);
  EXPECT_EQ(settings.find("fsdp")->units[0], 4);
}

TEST(NcclSettings, partsOfTensorParallelismLieWithinIt) {
  Cluster cluster = withDevice(cluster::makeDgxH100(4), "H100");
  cluster.levels[0].members = 2;
  cluster::Grid grid = {{8, 1, 1, 1}, cluster::kDefaultOrder};
  std::vector<Demand> demands = {{"tp", {1}, {}, 8, {}, 0, false},
                                 {"kv", {2}, {}, 4, {{CollectiveKind::AllReduce, 4096}}, 0, false},
                                 {"replica", {3}, {}, 2, {{CollectiveKind::AllReduce, 4096}}, 0, false}};
  Settings settings = deriveSettings(&cluster, grid, 4, demands);
  EXPECT_EQ(settings.find("tp")->units[0], 4);
  EXPECT_EQ(settings.find("kv")->units[0], 4) << "every second rank";
  EXPECT_EQ(settings.find("replica")->units[0], 1) << "neighbours";
  EXPECT_EQ(settings.find("kv")->groups, 2);
}

TEST(NcclSettings, withoutAClusterAllIsNcclsDefault) {
  cluster::Grid grid = {{2, 1, 2, 2}, cluster::kDefaultOrder};
  Settings settings = deriveSettings(nullptr, grid, 0, llamaDemands(grid));
  EXPECT_EQ(settings.note, "NCCL's defaults: compiled without --cluster=");
  EXPECT_TRUE(settings.environment.empty());
  ASSERT_NE(settings.find("tp"), nullptr);
  EXPECT_EQ(settings.find("tp")->members, 2);
  EXPECT_EQ(settings.find("tp")->groups, 4);
  for (const Dimension &dimension : settings.dimensions) {
    EXPECT_TRUE(dimension.settings.empty());
    EXPECT_TRUE(dimension.rules.empty());
  }
  Cluster host = withDevice(cluster::makeDgxH100(1), "host");
  host.name = "here";
  EXPECT_EQ(deriveSettings(&host, grid, 0, llamaDemands(grid)).note, "NCCL's defaults: cluster 'here' has no GPUs");
}

TEST(NcclSettings, noCommunicatorTakesMoreThanIsLeftToIt) {
  Cluster cluster = withDevice(cluster::makeLlama3(), "H100");
  cluster::Grid grid = {{8, 1, 16, 64}, cluster::kDefaultOrder};
  Settings free = settingsOf(cluster, grid), bound = deriveSettings(&cluster, grid, 0, llamaDemands(grid), 6);
  EXPECT_GT(valueOf(free, "tp", "max_ctas"), 6);
  for (const Dimension &dimension : bound.dimensions) {
    EXPECT_LE(dimension.find("max_ctas")->value, 6) << dimension.name;
    for (const TunerRule &rule : dimension.rules)
      EXPECT_LE(rule.channels, 6) << dimension.name;
  }
  EXPECT_EQ(bound.find("tp")->find("max_ctas")->reason, "--communication-sms leaves 6 multiprocessors to NCCL; " +
                                                            std::to_string(valueOf(free, "tp", "max_ctas")) +
                                                            " would pay");
  Settings anywhere = deriveSettings(nullptr, grid, 0, llamaDemands(grid), 6);
  EXPECT_EQ(valueOf(anywhere, "fsdp", "max_ctas"), 6);
  EXPECT_EQ(anywhere.note, "NCCL's defaults: compiled without --cluster=, but for max_ctas of --communication-sms");
}

TEST(NcclSettings, theFileSaysAllOfIt) {
  Cluster cluster = withDevice(cluster::makeLlama3(), "H100");
  Settings settings = settingsOf(cluster, {{8, 16, 16, 8}, cluster::kDefaultOrder});
  nlohmann::json file = nlohmann::json::parse(printSettings(settings));
  EXPECT_EQ(file["format"], 1);
  EXPECT_EQ(file["cluster"], "llama3-24k");
  EXPECT_EQ(file["levels"][2]["name"], "pod");
  EXPECT_EQ(file["levels"][2]["gpus"], 3072);
  ASSERT_EQ(file["communicators"].size(), settings.dimensions.size());
  const nlohmann::json &tp = file["communicators"][1];
  EXPECT_EQ(tp["name"], "tp");
  EXPECT_EQ(tp["units"]["server"], 1);
  EXPECT_EQ(tp["groups"], 2048);
  EXPECT_EQ(tp["settings"]["max_ctas"]["value"], 24);
  EXPECT_EQ(tp["tuner"][0]["collective"], "all_gather");
  EXPECT_TRUE(tp["tuner"].back()["up_to_bytes"].is_null());
  EXPECT_EQ(file["environment"][0]["name"], "NCCL_IB_QPS_PER_CONNECTION");
  nlohmann::json without =
      nlohmann::json::parse(printSettings(deriveSettings(nullptr, {{2, 1, 1, 1}, cluster::kDefaultOrder}, 0, {})));
  EXPECT_TRUE(without["cluster"].is_null());
}

} // namespace
