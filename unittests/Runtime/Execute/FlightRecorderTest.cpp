//===- FlightRecorderTest.cpp - the ring and its dump ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "../TestFiles.h"
#include "drover/rt/flight_recorder.h"
#include <csignal>
#include <nlohmann/json.hpp>

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

drover_action makeAction(uint32_t sequence) {
  drover_action action = {};
  action.kind = DROVER_NORM;
  action.sequence = sequence;
  return action;
}

TEST(FlightRecorder, KeepsTheLastActionsInOrder) {
  TemporaryFolder folder;
  FlightRecorder recorder("cafe", 3, folder.path("f.json"));
  int64_t total = FlightRecorder::capacity + 10;
  for (int64_t i = 0; i < total; ++i) {
    int64_t id = recorder.begin(i / 5, i, makeAction(uint32_t(i)));
    if (i != total - 1)
      recorder.end(id);
  }
  ASSERT_TRUE(recorder.dump("test"));
  nlohmann::json dump = nlohmann::json::parse(readFile(folder.path("f.json")));
  EXPECT_EQ(dump["plan_hash"], "cafe");
  EXPECT_EQ(dump["rank"], 3);
  EXPECT_EQ(dump["recorded"], total);
  ASSERT_EQ(int64_t(dump["records"].size()), FlightRecorder::capacity);
  for (int64_t i = 0; i < FlightRecorder::capacity; ++i)
    EXPECT_EQ(dump["records"][size_t(i)]["action"], 10 + i);
  EXPECT_EQ(dump["records"][0]["state"], "completed");
  EXPECT_EQ(dump["records"].back()["state"], "started");
  EXPECT_EQ(dump["records"].back()["end_ns"], 0);
  EXPECT_EQ(dump["records"].back()["communicator"], -1);
}

TEST(FlightRecorder, ADumpThatCannotBeWrittenIsReported) {
  FlightRecorder recorder("cafe", 0, "/nonexistent/f.json");
  EXPECT_FALSE(recorder.dump("test"));
}

TEST(FlightRecorderDeathTest, FatalSignalsDump) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  TemporaryFolder folder;
  std::string path = std::filesystem::temp_directory_path() / "drover-flight-death.json";
  std::filesystem::remove(path);
  EXPECT_DEATH(
      {
        FlightRecorder recorder("cafe", 0, path);
        recorder.install();
        recorder.begin(1, 2, makeAction(7));
        std::abort();
      },
      "ended by SIGABRT, last actions in ");
  nlohmann::json dump = nlohmann::json::parse(readFile(path));
  EXPECT_EQ(dump["reason"], "SIGABRT");
  EXPECT_EQ(dump["records"][0]["sequence"], 7);
  std::filesystem::remove(path);
}

} // namespace
