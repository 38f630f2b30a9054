//===- TunerTest.cpp - the tuner, as each version of NCCL drives it -------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Plugin.h"
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <vector>

using namespace drover::rt::test;

namespace {

std::vector<std::string> warnings, notes;

void record(int level, unsigned long, const char *, int, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  (level <= DROVER_NCCL_LOG_WARN ? warnings : notes).push_back(text);
}

/// What NCCL asks for a collective, and its answer.
struct Decision {
  float costs[DROVER_NCCL_ALGORITHMS][DROVER_NCCL_PROTOCOLS];
  int channels = 0;

  Decision() {
    for (auto &row : costs)
      for (float &cost : row)
        cost = 7;
  }
  /// Pairs that cost nothing.
  std::vector<std::pair<int, int>> chosen() const {
    std::vector<std::pair<int, int>> pairs;
    for (int a = 0; a < DROVER_NCCL_ALGORITHMS; ++a)
      for (int p = 0; p < DROVER_NCCL_PROTOCOLS; ++p)
        if (costs[a][p] == 0)
          pairs.emplace_back(a, p);
    return pairs;
  }
};
using Pairs = std::vector<std::pair<int, int>>;

class Tuner : public ::testing::Test {
protected:
  Tuner() : plugin(DROVER_TUNER_PLUGIN) {}
  void SetUp() override {
    warnings.clear();
    notes.clear();
    EXPECT_EQ(plugin.use(testSettings()), "");
    announce(-1);
  }

  void announce(int64_t communicator) { plugin.find<void(int64_t)>("drover_nccl_creating")(communicator); }

  /// A communicator's context by each version of the interface.
  struct Version {
    int number;
    void *context;
    drover_nccl_get_info ask;
    int (*end)(void *);
    const drover_nccl_tuner_v6 *newest; // null before 6
  };
  std::vector<Version> createAll(size_t ranks, size_t nodes) {
    auto *v4 = plugin.find<const drover_nccl_tuner_v4>("ncclTunerPlugin_v4");
    auto *v5 = plugin.find<const drover_nccl_tuner_v5>("ncclTunerPlugin_v5");
    auto *v6 = plugin.find<const drover_nccl_tuner_v6>("ncclTunerPlugin_v6");
    std::vector<Version> all = {{4, nullptr, v4->getCollInfo, v4->destroy, nullptr},
                                {5, nullptr, v5->getCollInfo, v5->finalize, nullptr},
                                {6, nullptr, v6->getCollInfo, v6->finalize, v6}};
    drover_nccl_domain_v5 domain = {1, 8, 8};
    EXPECT_EQ(v4->init(ranks, nodes, record, &all[0].context), 0);
    EXPECT_EQ(v5->init(&all[1].context, 99, ranks, nodes, record, &domain, nullptr), 0);
    EXPECT_EQ(v6->init(&all[2].context, 99, ranks, nodes, record, &domain, nullptr), 0);
    return all;
  }

  Decision ask(const Version &version, int collective, size_t bytes, Decision decision = {}) {
    EXPECT_EQ(version.ask(version.context, collective, bytes, 1, reinterpret_cast<float **>(&decision.costs),
                          DROVER_NCCL_ALGORITHMS, DROVER_NCCL_PROTOCOLS, 0, &decision.channels),
              0);
    return decision;
  }

  void expect(size_t ranks, size_t nodes, int collective, size_t bytes, const Pairs &pairs, int channels) {
    for (const Version &version : createAll(ranks, nodes)) {
      Decision decision = ask(version, collective, bytes);
      EXPECT_EQ(decision.chosen(), pairs) << "version " << version.number;
      EXPECT_EQ(decision.channels, channels) << "version " << version.number;
      EXPECT_EQ(version.end(version.context), 0);
    }
  }

  Plugin plugin;
};

TEST_F(Tuner, choosesByCollectiveAndSize) {
  expect(8, 1, DROVER_NCCL_ALL_GATHER, 1024, {{DROVER_NCCL_RING, DROVER_NCCL_LL}}, 2);
  expect(8, 1, DROVER_NCCL_ALL_GATHER, 65536, {{DROVER_NCCL_RING, DROVER_NCCL_LL}}, 2);
  expect(8, 1, DROVER_NCCL_ALL_GATHER, 65537, {{DROVER_NCCL_RING, DROVER_NCCL_SIMPLE}}, 24);
  expect(8, 1, DROVER_NCCL_ALL_REDUCE, 4096, {{DROVER_NCCL_TREE, DROVER_NCCL_LL128}}, 4);
  expect(8, 1, DROVER_NCCL_ALL_REDUCE, size_t(1) << 33, {{DROVER_NCCL_NVLS, DROVER_NCCL_SIMPLE}}, 16);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(Tuner, leavesWhatTheTableDoesNotHaveToNccl) {
  expect(8, 1, DROVER_NCCL_BROADCAST, 4096, {}, 0);
  expect(8, 1, DROVER_NCCL_REDUCE, 4096, {}, 0);
  expect(3, 1, DROVER_NCCL_ALL_GATHER, 4096, {}, 0);
  expect(8, 2, DROVER_NCCL_ALL_GATHER, 4096, {}, 0);
}

TEST_F(Tuner, leavesPairsThatNcclCannotUseAlone) {
  for (const Version &version : createAll(8, 1)) {
    Decision without;
    without.costs[DROVER_NCCL_NVLS][DROVER_NCCL_SIMPLE] = -1;
    Decision decision = ask(version, DROVER_NCCL_ALL_REDUCE, size_t(1) << 30, without);
    EXPECT_EQ(decision.costs[DROVER_NCCL_NVLS][DROVER_NCCL_SIMPLE], -1);
    EXPECT_TRUE(decision.chosen().empty());
    EXPECT_EQ(decision.channels, 0);
    // A library that knows fewer algorithms has a smaller table.
    Decision narrow;
    EXPECT_EQ(version.ask(version.context, DROVER_NCCL_ALL_REDUCE, size_t(1) << 30, 1,
                          reinterpret_cast<float **>(&narrow.costs), 3, DROVER_NCCL_PROTOCOLS, 0, &narrow.channels),
              0);
    EXPECT_TRUE(narrow.chosen().empty());
    version.end(version.context);
  }
}

TEST_F(Tuner, tellsCommunicatorsOfOneShapeApartWhereItIsTold) {
  expect(4, 4, DROVER_NCCL_ALL_GATHER, 4096, {}, 0); // cp or dp
  EXPECT_EQ(notes.front(), "drover: cp and dp both have 4 ranks on 4 nodes: NCCL decides");
  announce(4);
  expect(4, 4, DROVER_NCCL_ALL_GATHER, 4096, {{DROVER_NCCL_RING, DROVER_NCCL_LL128}}, 2);
  announce(6);
  expect(4, 4, DROVER_NCCL_ALL_GATHER, 4096, {{DROVER_NCCL_RING, DROVER_NCCL_SIMPLE}}, 2);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(Tuner, sayWhereACommunicatorIsNotWhatWasPlanned) {
  announce(1);
  expect(8, 2, DROVER_NCCL_ALL_GATHER, 4096, {}, 0);
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_EQ(warnings[0], "drover: communicator 1 of 8 ranks on 2 nodes is not the settings': NCCL decides");
}

TEST_F(Tuner, version6HasTheChunkSize) {
  for (const Version &version : createAll(16, 16)) {
    Decision decision = ask(version, DROVER_NCCL_REDUCE_SCATTER, size_t(1) << 30);
    EXPECT_EQ(decision.chosen(), (Pairs{{DROVER_NCCL_RING, DROVER_NCCL_SIMPLE}}));
    if (version.newest) {
      auto chunkOf = [&](int collective, int algorithm, int protocol) {
        size_t chunk = 524288;
        EXPECT_EQ(
            version.newest->getChunkSize(version.context, collective, size_t(1) << 30, algorithm, protocol, 2, &chunk),
            0);
        return chunk;
      };
      EXPECT_EQ(chunkOf(DROVER_NCCL_REDUCE_SCATTER, DROVER_NCCL_RING, DROVER_NCCL_SIMPLE), 1048576u);
      EXPECT_EQ(chunkOf(DROVER_NCCL_REDUCE_SCATTER, DROVER_NCCL_RING, DROVER_NCCL_LL), 524288u) << "NCCL took another";
      EXPECT_EQ(chunkOf(DROVER_NCCL_ALL_GATHER, DROVER_NCCL_RING, DROVER_NCCL_SIMPLE), 524288u);
    }
    version.end(version.context);
  }
}

/// A table that is not one is a single complaint, and all decisions are NCCL's.
TEST_F(Tuner, malformedTablesAreOneErrorAndNcclsDefaults) {
  struct Fault {
    const char *from, *to, *problem;
  };
  for (const Fault &fault : std::vector<Fault>{
           {"{\"format\"", "{format", "nccl settings: not JSON"},
           {"\"format\": 1", "\"format\": 2", "nccl settings.format: expected an integer from 1 to 1"},
           {"\"ring\"", "\"circle\"",
            "nccl settings.communicators[0].tuner[0].algorithm: expected one of tree, ring, nvls, nvls_tree, pat, not "
            "'circle'"},
           {"\"ll\"", "\"fast\"",
            "nccl settings.communicators[0].tuner[0].protocol: expected one of ll, ll128, simple, not 'fast'"},
           {"all_gather", "gather",
            "nccl settings.communicators[0].tuner[0].collective: expected one of broadcast, all_gather, "
            "reduce_scatter, all_reduce, not 'gather'"},
           {"\"channels\": 2", "\"channels\": 0",
            "nccl settings.communicators[0].tuner[0].channels: expected an integer from 1 to 64"},
           {"65536", "null",
            "nccl settings.communicators[0].tuner[0].up_to_bytes: expected a number of bytes before the last rule"},
           {"\"settings\": {}", "\"settings\": {\"ctas\": {\"value\": 1}}",
            "nccl settings.communicators[0].settings.ctas: expected no such setting"},
       }) {
    std::string text = testSettings();
    size_t place = text.find(fault.from);
    ASSERT_NE(place, std::string::npos) << fault.from;
    EXPECT_EQ(plugin.use(text.replace(place, std::string(fault.from).size(), fault.to)), fault.problem);
    expect(8, 1, DROVER_NCCL_ALL_GATHER, 1024, {}, 0);
  }
  EXPECT_EQ(warnings.size(), 1u) << "once a process";
}

} // namespace
