//===- MpiTest.cpp - ranks that are MPI processes -------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "../TestFiles.h"
#include "Conformance.h"
#include "Ranks.h"
#include <cstdlib>
#include <sys/wait.h>

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

struct Outcome {
  int status;
  std::string errors;
};

/// Shell quoting is not needed: paths are the build's own. libmpi leaks, so nobody looks for leaks here.
Outcome runProcesses(int ranks, const std::string &arguments, const std::string &environment = "") {
  TemporaryFolder folder;
  std::string command = concat(environment, " ASAN_OPTIONS=detect_leaks=0 timeout 240 mpirun -n ", ranks,
                               " --allow-run-as-root --oversubscribe " DROVER_CONFORMANCE_MPI " ", arguments,
                               " >/dev/null 2>", folder.path("err"));
  int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, readFile(folder.path("err"))};
}

class Mpi : public ::testing::Test {
protected:
  void SetUp() override {
    if (std::system("command -v mpirun >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "no mpirun";
  }
};

/// However operations are cut into messages.
TEST_F(Mpi, SameBitsAsThreads) {
  std::vector<std::map<std::string, uint64_t>> threads(4);
  std::vector<std::string> errors =
      runThreads(4, Timing::Normal, [&](World &world) { threads[size_t(world.rank())] = runConformance(world); });
  EXPECT_EQ(errors, std::vector<std::string>(4));
  for (const char *pieces : {"1048576 1073741824", "1000 300"}) {
    TemporaryFolder folder;
    Outcome run = runProcesses(4, concat("all ", folder.path(""), " ", pieces));
    ASSERT_EQ(run.status, 0) << run.errors;
    for (size_t rank = 0; rank < threads.size(); ++rank) {
      std::ifstream file(folder.path(std::to_string(rank)));
      std::map<std::string, uint64_t> sums;
      std::string name;
      for (uint64_t sum; file >> name >> sum;)
        sums[name] = sum;
      EXPECT_EQ(sums.size(), threads[rank].size());
      for (const auto &[expectedName, sum] : threads[rank])
        EXPECT_EQ(sums[expectedName], sum) << expectedName << " on rank " << rank << ", pieces " << pieces;
    }
  }
}

TEST_F(Mpi, AnExpiredWaitNamesOperationGroupAndWhoIsNotHere) {
  Outcome run = runProcesses(4, "absent");
  EXPECT_NE(run.status, 0);
  std::string message = "all_reduce 2 on communicator 5 (everybody, ranks 0, 1, 2, 3), 2000 f32, sum: not complete "
                        "within 1 s (deadline of a step), without rank 3";
  EXPECT_NE(run.errors.find(message), std::string::npos) << run.errors;
}

TEST_F(Mpi, ARankThatFailsWakesTheOthers) {
  Outcome run = runProcesses(4, "failing");
  EXPECT_NE(run.status, 0);
  EXPECT_NE(run.errors.find("error: this rank is out of luck"), std::string::npos) << run.errors;
  size_t heard = 0;
  for (size_t at = 0;
       (at = run.errors.find("error: rank 3 has ended: this rank is out of luck", at)) != std::string::npos; ++at)
    ++heard;
  // One that takes long to end may be killed by mpirun first.
  EXPECT_GE(heard, 1u) << run.errors;
}

TEST_F(Mpi, MembersThatDisagreeAreTold) {
  Outcome run = runProcesses(3, "mismatch");
  EXPECT_NE(run.status, 0);
  // Either side may be the first to find it.
  std::string place = "all_reduce 2 on communicator 5 (everybody, ranks 0, 1, 2), ";
  bool others = run.errors.find(place + "2000 f32, sum: rank 1 has all_reduce 2 of 300 f32, sum in its place") !=
                std::string::npos;
  bool own = run.errors.find(place + "300 f32, sum: rank ") != std::string::npos &&
             run.errors.find("has all_reduce 2 of 2000 f32, sum in its place") != std::string::npos;
  EXPECT_TRUE(others || own) << run.errors;
}

TEST_F(Mpi, AWorldThatIsNotTheLaunchersIsRefused) {
  TemporaryFolder folder;
  std::string command = "ASAN_OPTIONS=detect_leaks=0 RANK=1 WORLD_SIZE=4 timeout 60 " DROVER_CONFORMANCE_MPI
                        " failing 2>" +
                        folder.path("err");
  EXPECT_NE(std::system(command.c_str()), 0);
  std::string errors = readFile(folder.path("err"));
  EXPECT_NE(errors.find("error: torchrun says rank 1 of 4, but Open MPI"), std::string::npos) << errors;
  EXPECT_NE(errors.find("--backend=inproc"), std::string::npos) << errors;
}

TEST(MpiLibrary, WhereThereIsNoneTheErrorSaysWhatWasTried) {
  MpiOptions options;
  options.library = "libmpi-of-nowhere.so.1";
  expectError([&] { connectMpi(options); },
              "mpi: no MPI library; install Open MPI or MPICH, or name one in DROVER_RT_MPI; tried\n  "
              "libmpi-of-nowhere.so.1: ");
  options.library = "libm.so.6";
  expectError([&] { connectMpi(options); }, "mpi: libm.so.6 has no MPI_Get_library_version");
}

} // namespace
