//===- GridMpiTest.cpp - the executable over MPI processes ----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GridRunOptions.h"
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

class GridMpiTest : public ::testing::Test {
protected:
  void SetUp() override {
    if (std::system("command -v mpirun >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "no mpirun";
    folder.write("tokens", gridText());
  }

  static std::string underMpirun(int processes) {
    return concat("ASAN_OPTIONS=detect_leaks=0 timeout 240 mpirun -n ", processes,
                  " --allow-run-as-root --oversubscribe ");
  }

  /// Runs the executable after `launcher`; its files begin with `name`. True where it ends well.
  bool run(const std::string &launcher, const std::string &layout, const std::string &name,
           const std::string &options = "") {
    std::string command = concat(
        launcher, DROVER_GRID_TRAIN " ", layout, " --data=", folder.path("tokens"),
        " --init=random --steps=3 --threads=1 --lr=0.05 --log=", folder.path(name + ".jsonl"),
        " --save-weights=", folder.path(name + ".safetensors"), " --trace=", folder.path(name + ".trace.json"),
        " --flight-recorder=", folder.path(name + ".flight.json"), " ", options, " 2>", folder.path(name + ".err"));
    bool good = std::system(command.c_str()) == 0;
    errors = readFile(folder.path(name + ".err"));
    return good;
  }

  std::vector<std::pair<double, double>> losses(const std::string &name) const {
    std::vector<std::pair<double, double>> result;
    std::ifstream log(folder.path(name + ".jsonl"));
    for (std::string line; std::getline(log, line);)
      if (nlohmann::json row = nlohmann::json::parse(line); row.contains("loss"))
        result.emplace_back(row["loss"].get<double>(), row["grad_norm"].get<double>());
    return result;
  }

  TemporaryFolder folder;
  std::string errors;
};

TEST_F(GridMpiTest, ProcessesAndThreadsGiveTheSameBits) {
  for (const char *layout : {"2 1 2 2 2 3", "1 2 2 2 1 2"}) {
    ASSERT_TRUE(run("", layout, "threads")) << errors;
    ASSERT_TRUE(run(underMpirun(8), layout, "processes")) << errors;
    ASSERT_EQ(losses("threads").size(), 3u);
    EXPECT_EQ(losses("processes"), losses("threads")) << layout;
    std::string weights = readFile(folder.path("threads.safetensors"));
    ASSERT_FALSE(weights.empty());
    EXPECT_TRUE(readFile(folder.path("processes.safetensors")) == weights) << layout;
    std::set<int> ranks;
    nlohmann::json trace = nlohmann::json::parse(readFile(folder.path("processes.trace.json")));
    for (const auto &event : trace["traceEvents"])
      ranks.insert(event["pid"].get<int>());
    EXPECT_EQ(ranks.size(), 8u);
  }
}

TEST_F(GridMpiTest, AWorldOfAnotherSizeIsRefused) {
  EXPECT_FALSE(run(underMpirun(2), "1 1 2 2 1 2", "small"));
  EXPECT_NE(errors.find("error: mpirun has started 2 processes, but the program was compiled for 4 ranks"),
            std::string::npos)
      << errors;
  EXPECT_FALSE(run("", "1 1 2 2 1 2", "alone", "--backend=mpi"));
  EXPECT_NE(errors.find("error: --backend=mpi: no launcher has set its variables; start 4 processes"),
            std::string::npos)
      << errors;
}

TEST_F(GridMpiTest, AnotherExecutableIsReportedAtTheStart) {
  std::string other = folder.path("other");
  std::filesystem::copy_file(DROVER_GRID_TRAIN, other);
  std::ofstream(other, std::ios::app) << "one byte more";
  std::string pick =
      folder.write("pick.sh", concat("executable=$1; shift\n[ \"$OMPI_COMM_WORLD_RANK$PMI_RANK\" = 1 ] && "
                                     "executable=",
                                     other, "\nexec \"$executable\" \"$@\"\n"));
  std::string launcher = concat(underMpirun(2), "sh ", pick, " ");
  EXPECT_FALSE(run(launcher, "1 1 1 2 1 2", "mixed"));
  EXPECT_NE(errors.find("rank 1 runs another program than rank 0: expected one executable on all ranks"),
            std::string::npos)
      << errors;
  EXPECT_TRUE(run("DROVER_RT_ANY_EXECUTABLE=1 " + launcher, "1 1 1 2 1 2", "allowed")) << errors;
}

} // namespace
