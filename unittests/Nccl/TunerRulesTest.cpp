//===- TunerRulesTest.cpp - algorithm, protocol and channels by size ------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TestClusters.h"
#include "drover/Nccl/Settings.h"
#include "gtest/gtest.h"

using namespace drover;
using namespace drover::nccl;
using cost::CollectiveKind;
using cost::Protocol;

namespace {

constexpr int64_t kMiB = 1 << 20;

std::vector<TunerRule> rulesFor(cluster::Cluster cluster, int64_t members, CollectiveKind kind, int64_t most) {
  cluster.device.kind = "H100";
  cluster::Grid grid = {{1, 1, 1, members}, cluster::kDefaultOrder};
  std::vector<Demand> demands = {{"fsdp", {5}, {}, members, {{kind, most}}, 0, true}};
  return deriveSettings(&cluster, grid, 0, demands).find("fsdp")->rules;
}

const TunerRule &ruleFor(const std::vector<TunerRule> &rules, int64_t bytes) {
  for (const TunerRule &rule : rules)
    if (!rule.upToBytes || bytes <= *rule.upToBytes)
      return rule;
  ADD_FAILURE() << "the last rule has no end";
  return rules.back();
}

TEST(TunerRules, coverEverySizeInAscendingOrder) {
  for (int64_t most : {int64_t(1), 64 * kMiB, int64_t(1) << 33}) {
    std::vector<TunerRule> rules = rulesFor(cluster::makeLlama3(), 64, CollectiveKind::AllReduce, most);
    ASSERT_FALSE(rules.empty());
    for (size_t i = 0; i + 1 < rules.size(); ++i) {
      ASSERT_TRUE(rules[i].upToBytes.has_value());
      if (i > 0)
        EXPECT_GT(*rules[i].upToBytes, *rules[i - 1].upToBytes);
    }
    EXPECT_FALSE(rules.back().upToBytes.has_value());
  }
}

TEST(TunerRules, areWhatTheProjectionPrices) {
  cluster::Cluster cluster = cluster::makeDgxH100(8);
  cluster::Grid grid = {{1, 1, 1, 64}, cluster::kDefaultOrder};
  cluster::Span span = cluster::Placement(cluster, grid).spanOf(cluster::Axis::DP);
  for (CollectiveKind kind : {CollectiveKind::AllGather, CollectiveKind::ReduceScatter, CollectiveKind::AllReduce}) {
    std::vector<TunerRule> rules = rulesFor(cluster, 64, kind, 1024 * kMiB);
    for (int64_t bytes = 1024; bytes <= 1024 * kMiB; bytes *= 2) {
      cost::Choice choice = cost::chooseCollective(cluster, kind, double(bytes), span);
      EXPECT_EQ(choice.seconds, cost::collectiveSeconds(cluster, kind, double(bytes), span));
      EXPECT_EQ(ruleFor(rules, bytes).protocol, choice.protocol) << cost::nameOf(kind) << " of " << bytes;
      std::string name = choice.algorithm == cost::Algorithm::Nvls ? "nvls_tree" : cost::nameOf(choice.algorithm);
      EXPECT_EQ(ruleFor(rules, bytes).algorithm, name) << cost::nameOf(kind) << " of " << bytes;
    }
  }
}

TEST(TunerRules, smallMessagesHaveFewChannelsAndLargeOnesAll) {
  std::vector<TunerRule> rules = rulesFor(cluster::makeDgxH100(1), 8, CollectiveKind::AllReduce, 1024 * kMiB);
  EXPECT_EQ(ruleFor(rules, 1024).channels, 1);
  EXPECT_EQ(ruleFor(rules, 1024).protocol, Protocol::LL);
  EXPECT_EQ(ruleFor(rules, 1024 * kMiB).channels, 24);
  EXPECT_EQ(ruleFor(rules, 1024 * kMiB).protocol, Protocol::Simple);
  // One DGX H100 changes to NVLS between 1 and 8 MiB (docs/network-costs.md).
  EXPECT_NE(ruleFor(rules, kMiB).algorithm, "nvls");
  EXPECT_EQ(ruleFor(rules, 8 * kMiB).algorithm, "nvls");
}

TEST(TunerRules, chunksFillAHopAcrossTheNetworkOnly) {
  std::vector<TunerRule> rules = rulesFor(cluster::makeLlama3(), 64, CollectiveKind::AllGather, 8192 * kMiB);
  EXPECT_EQ(ruleFor(rules, 1024).chunkBytes, 0) << "no part has a chunk";
  const TunerRule &large = ruleFor(rules, 8192 * kMiB);
  ASSERT_EQ(large.protocol, Protocol::Simple);
  EXPECT_GT(large.chunkBytes, 0);
  EXPECT_EQ(large.chunkBytes & (large.chunkBytes - 1), 0);
  for (const TunerRule &rule : rulesFor(cluster::makeDgxH100(1), 8, CollectiveKind::AllGather, 1024 * kMiB))
    EXPECT_EQ(rule.chunkBytes, 0) << "one server";
}

TEST(TunerRules, onlyWhatTheProgramUsesHasRules) {
  for (const TunerRule &rule : rulesFor(cluster::makeLlama3(), 64, CollectiveKind::AllGather, kMiB))
    EXPECT_EQ(rule.collective, CollectiveKind::AllGather);
}

} // namespace
