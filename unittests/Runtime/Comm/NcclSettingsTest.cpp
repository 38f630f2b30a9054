//===- NcclSettingsTest.cpp - what a process sets up for NCCL -------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "../Device/TestDevice.h"
#include "Ranks.h"
#include "comm/NcclProcess.h"
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

const char *const settingsText = R"({
  "format": 1, "cluster": "small", "note": "",
  "levels": [{"name": "server", "gpus": 2}, {"name": "pod", "gpus": 8}],
  "environment": [{"name": "NCCL_BUFFSIZE", "value": "8388608", "reason": "long links"},
                  {"name": "NCCL_IB_QPS_PER_CONNECTION", "value": "4", "reason": "8 flows"}],
  "communicators": [
    {"name": "world", "ids": [0], "members": 3, "groups": 1, "units": {"server": 2, "pod": 1}, "settings": {}, "tuner": []},
    {"name": "tp", "ids": [1, 7], "members": 2, "groups": 2, "units": {"server": 1, "pod": 1},
     "settings": {"max_ctas": {"value": 24, "reason": "r"}, "min_ctas": {"value": 1, "reason": "r"},
                  "cta_policy": {"value": 2, "reason": "r"}, "windows": {"value": 1, "reason": "r"},
                  "traffic_class": {"value": 106, "reason": "r"},
                  "channels_per_net_peer": {"value": 2, "reason": "r"}},
     "tuner": [{"collective": "all_gather", "up_to_bytes": null, "algorithm": "ring", "protocol": "ll", "channels": 2,
                "chunk_bytes": 0, "reason": "r"}]}]})";

class NcclProcessTest : public ::testing::Test {
protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char *name :
         {"NCCL_BUFFSIZE", "NCCL_IB_QPS_PER_CONNECTION", "NCCL_ENV_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_MAX_CTAS",
          "NCCL_ALGO", "NCCL_DEBUG", "DROVER_RT_NCCL_SETTINGS", "DROVER_EMU_NCCL_LOG"})
      ::unsetenv(name);
  }
  static NcclRequest request(const std::string &settings, int ranks = 1) {
    return {settings, ranks, DROVER_STANDIN_NCCL, DROVER_PLUGINS};
  }
  static std::string text(const char *variable) {
    const char *value = std::getenv(variable);
    return value ? value : "";
  }
};

TEST_F(NcclProcessTest, namesThePluginsToNccl) {
  std::shared_ptr<const NcclProcess> process = prepareNccl(request(settingsText));
  EXPECT_EQ(describe(*process), std::vector<std::string>{"NCCL 2.28.9, settings for cluster small"});
  EXPECT_EQ(text("NCCL_ENV_PLUGIN"), std::string(DROVER_PLUGINS) + "/libnccl-env-drover.so");
  EXPECT_EQ(text("NCCL_TUNER_PLUGIN"), std::string(DROVER_PLUGINS) + "/libnccl-tuner-drover.so");
  EXPECT_EQ(text("NCCL_BUFFSIZE"), "") << "the plugin has it";
  EXPECT_EQ(text("NCCL_LAUNCH_ORDER_IMPLICIT"), "1");
  EXPECT_NE(process->creating, nullptr);
  EXPECT_EQ(prepareNccl(request(settingsText, 4))->creating, nullptr) << "which of four ranks' would it be";
}

TEST_F(NcclProcessTest, withoutPluginsVariablesAreSet) {
  NcclRequest nowhere = request(settingsText);
  nowhere.plugins = "/nowhere";
  std::vector<std::string> notes = describe(*prepareNccl(nowhere));
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_EQ(notes[1].substr(0, 60), "no env plugin, NCCL has variables of this process: /nowhere/");
  EXPECT_EQ(notes[2].substr(0, 65), "no tuner plugin, NCCL has its own choice of algorithms: /nowhere/");
  EXPECT_EQ(text("NCCL_BUFFSIZE"), "8388608");
  EXPECT_EQ(text("NCCL_IB_QPS_PER_CONNECTION"), "4");
  EXPECT_EQ(text("NCCL_TUNER_PLUGIN"), "");
}

TEST_F(NcclProcessTest, theUsersVariablesWinAndAreReported) {
  ::setenv("NCCL_BUFFSIZE", "1048576", 1);
  ::setenv("NCCL_MAX_CTAS", "4", 1);
  ::setenv("NCCL_ALGO", "Ring", 1);
  ::setenv("NCCL_DEBUG", "WARN", 1);
  ::setenv("NCCL_TUNER_PLUGIN", "none", 1);
  NcclRequest nowhere = request(settingsText);
  nowhere.plugins = "/nowhere";
  std::vector<std::string> notes = describe(*prepareNccl(nowhere));
  ASSERT_EQ(notes.size(), 7u);
  EXPECT_EQ(notes[1], "NCCL_MAX_CTAS=4 of the environment counts, in place of max_ctas of the communicators");
  EXPECT_EQ(notes[2], "NCCL_ALGO=Ring of the environment counts, in place of the tuner's table");
  EXPECT_EQ(notes[3], "NCCL_BUFFSIZE=1048576 of the environment counts, in place of 8388608 (long links)");
  EXPECT_EQ(notes[5], "NCCL_TUNER_PLUGIN=none of the environment counts, in place of drover's");
  EXPECT_EQ(notes[6], "of the environment: NCCL_DEBUG=WARN");
  EXPECT_EQ(text("NCCL_BUFFSIZE"), "1048576");
  EXPECT_EQ(text("NCCL_IB_QPS_PER_CONNECTION"), "4");
}

TEST_F(NcclProcessTest, aFileTakesThePlaceOfWhatWasCompiledIn) {
  std::string path = ::testing::TempDir() + "own-settings.json", other = settingsText;
  other.replace(other.find("small"), 5, "mine!");
  std::ofstream(path) << other;
  ::setenv("DROVER_RT_NCCL_SETTINGS", path.c_str(), 1);
  EXPECT_EQ(describe(*prepareNccl(request(settingsText)))[0], "NCCL 2.28.9, settings for cluster mine!");
  std::ofstream(path) << "{";
  expectError([&] { prepareNccl(request(settingsText)); }, path + ": not JSON");
  ::setenv("DROVER_RT_NCCL_SETTINGS", "/nowhere.json", 1);
  expectError([&] { prepareNccl(request(settingsText)); }, "/nowhere.json: cannot be read");
}

TEST_F(NcclProcessTest, withoutSettingsAllIsNcclsDefault) {
  EXPECT_EQ(describe(*prepareNccl(request(""))),
            std::vector<std::string>{"NCCL's defaults: the program has no settings"});
  std::string none = R"({"format": 1, "cluster": null, "note": "NCCL's defaults: compiled without --cluster=",
                         "levels": [], "environment": [], "communicators": []})";
  EXPECT_EQ(describe(*prepareNccl(request(none))),
            std::vector<std::string>{"NCCL's defaults: compiled without --cluster="});
  EXPECT_EQ(text("NCCL_TUNER_PLUGIN"), "");
}

TEST_F(NcclProcessTest, fieldsThatAVersionLacksStayUndefined) {
  NcclSettings settings = parseNcclSettings(settingsText, "settings");
  nccl::Config config;
  configure(config, *settings.find(7), 22809);
  EXPECT_EQ(config.maxCtas, 24);
  EXPECT_EQ(config.minCtas, 1);
  EXPECT_EQ(config.ctaPolicy, 2);
  EXPECT_EQ(config.trafficClass, 106);
  EXPECT_EQ(config.channelsPerNetPeer, 2);
  EXPECT_EQ(config.cgaClusterSize, nccl::undefined);
  nccl::Config older;
  configure(older, *settings.find(7), 22600);
  EXPECT_EQ(older.maxCtas, 24);
  EXPECT_EQ(older.trafficClass, 106);
  EXPECT_EQ(older.ctaPolicy, nccl::undefined);
  EXPECT_EQ(older.channelsPerNetPeer, nccl::undefined);
}

/// Connects ranks as threads, each with its settings, and creates two groups.
std::vector<std::string> runWith(const std::vector<std::shared_ptr<const NcclProcess>> &processes) {
  int size = int(processes.size());
  ::setenv("DROVER_EMU_DEVICES", "8", 1);
  std::unique_ptr<RendezvousHost> table = hostRendezvous(0, size);
  std::vector<std::string> errors(processes.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        std::unique_ptr<Device> device = openStandin(rank);
        NcclOptions options;
        options.rank = rank;
        options.size = size;
        options.rendezvous = {"localhost", table->port()};
        options.startSeconds = 20;
        options.library = DROVER_STANDIN_NCCL;
        options.process = processes[size_t(rank)];
        std::unique_ptr<World> world = connectNccl(options, *device);
        try {
          auto all = world->createCommunicator(0, "world", ranksBelow(size));
          auto tp = world->createCommunicator(1, "tp", ranksBelow(size));
        } catch (const Error &error) {
          world->abort(error.what());
          throw;
        }
      } catch (const Error &error) {
        errors[size_t(rank)] = error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

TEST_F(NcclProcessTest, communicatorsAreCreatedWithTheirSettings) {
  std::string path = ::testing::TempDir() + "nccl-log.jsonl";
  std::ofstream(path, std::ios::trunc);
  ::setenv("DROVER_EMU_NCCL_LOG", path.c_str(), 1);
  std::shared_ptr<const NcclProcess> process = prepareNccl(request(settingsText, 2));
  EXPECT_EQ(runWith({process, process}), std::vector<std::string>(2));
  std::ifstream log(path);
  int world = 0, tp = 0;
  for (std::string line; std::getline(log, line);) {
    nlohmann::json entry = nlohmann::json::parse(line);
    EXPECT_EQ(entry["NCCL_ENV_PLUGIN"], std::string(DROVER_PLUGINS) + "/libnccl-env-drover.so");
    if (entry["name"] == "world") {
      ++world;
      EXPECT_FALSE(entry.contains("max_ctas")) << line;
      continue;
    }
    ++tp;
    EXPECT_EQ(entry["max_ctas"], 24);
    EXPECT_EQ(entry["min_ctas"], 1);
    EXPECT_EQ(entry["cta_policy"], 2);
    EXPECT_EQ(entry["channels_per_net_peer"], 2);
    EXPECT_EQ(entry["traffic_class"], 106);
    EXPECT_FALSE(entry.contains("cga_cluster_size"));
  }
  EXPECT_EQ(world, 2);
  EXPECT_EQ(tp, 2);
}

TEST_F(NcclProcessTest, ranksWithDifferentSettingsAreAnError) {
  std::string other = settingsText;
  other.replace(other.find("24"), 2, "12");
  std::vector<std::string> errors = runWith({prepareNccl(request(settingsText, 2)), prepareNccl(request(other, 2))});
  int named = 0;
  for (const std::string &error : errors)
    named += error.find("has other settings than the first rank that came: expected one DROVER_RT_NCCL_SETTINGS for "
                        "all ranks") != std::string::npos;
  EXPECT_GT(named, 0) << errors[0] << "\n" << errors[1];
}

} // namespace
