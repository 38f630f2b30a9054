//===- LauncherTest.cpp - which ranks there are, and where ----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/launcher.h"
#include "../TestFiles.h"
#include <atomic>

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

void expectLauncher(const Environment &environment, const std::string &name, int rank, int size) {
  std::optional<Launcher> launcher = findLauncher(environment);
  ASSERT_TRUE(launcher.has_value()) << name;
  EXPECT_EQ(launcher->name, name);
  EXPECT_EQ(launcher->rank, rank);
  EXPECT_EQ(launcher->size, size);
}

TEST(Launcher, EachSetsVariablesOfItsOwn) {
  expectLauncher({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "8"}, {"HOME", "/"}}, "mpirun", 3, 8);
  expectLauncher({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}, "PMI", 0, 2);
  expectLauncher({{"RANK", "15"}, {"WORLD_SIZE", "16"}, {"LOCAL_RANK", "7"}}, "torchrun", 15, 16);
  expectLauncher({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "4"}}, "srun", 1, 4);
  EXPECT_FALSE(findLauncher({{"PATH", "/bin"}}).has_value());
}

TEST(Launcher, WhatIsNearerToTheProcessCounts) {
  expectLauncher({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"RANK", "9"}, {"WORLD_SIZE", "16"}}, "torchrun", 9,
                 16);
  expectLauncher(
      {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "8"}},
      "mpirun", 3, 8);
  // A step of fewer tasks than the job.
  expectLauncher({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "2"}}, "srun", 1, 2);
  // A batch script's own process.
  EXPECT_FALSE(findLauncher({{"SLURM_NTASKS", "8"}}).has_value());
}

TEST(Launcher, VariablesThatMakeNoSenseAreNamed) {
  expectError([] { findLauncher({{"RANK", "1"}}); },
              "RANK is set, but not WORLD_SIZE: expected both (torchrun sets them) or neither");
  expectError([] { findLauncher({{"OMPI_COMM_WORLD_SIZE", "1"}}); }, "is set, but not OMPI_COMM_WORLD_RANK");
  expectError([] { findLauncher({{"RANK", "x"}, {"WORLD_SIZE", "2"}}); }, "RANK=x: expected an integer of at least 0");
  expectError([] { findLauncher({{"RANK", "0"}, {"WORLD_SIZE", "0"}}); },
              "WORLD_SIZE=0: expected an integer of at least 1");
  expectError([] { findLauncher({{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}); },
              "PMI_RANK=2: expected a rank below PMI_SIZE (2)");
}

TEST(Launcher, RanksAreThreadsWhereNoLauncherIsSeen) {
  WorldChoice choice = chooseWorld(std::nullopt, 8, 0, "");
  EXPECT_EQ(choice.backend, Backend::Inproc);
  EXPECT_EQ(choice.ranks, 8);
  EXPECT_EQ(chooseWorld(std::nullopt, 8, 8, "").ranks, 8);
  // mpirun -n 1 starts one process, in which the ranks are threads.
  EXPECT_EQ(chooseWorld(Launcher{"mpirun", 0, 1}, 8, 0, "").backend, Backend::Inproc);
  EXPECT_EQ(chooseWorld(Launcher{"mpirun", 3, 4}, 8, 0, "inproc").backend, Backend::Inproc);
}

TEST(Launcher, RanksAreProcessesWhereALauncherStartedThem) {
  WorldChoice choice = chooseWorld(Launcher{"mpirun", 3, 8}, 8, 0, "");
  EXPECT_EQ(choice.backend, Backend::Mpi);
  EXPECT_EQ(choice.ranks, 8);
  EXPECT_EQ(choice.launcher->rank, 3);
  EXPECT_EQ(chooseWorld(Launcher{"srun", 3, 8}, 8, 8, "mpi").backend, Backend::Mpi);
  EXPECT_EQ(chooseWorld(Launcher{"mpirun", 0, 1}, 1, 0, "mpi").backend, Backend::Mpi);
}

TEST(Launcher, ChoicesThatDoNotGoTogetherAreRefused) {
  expectError([] { chooseWorld(std::nullopt, 8, 4, ""); }, "--ranks=4: the program was compiled for 8 (TP*CP*PP*DP)");
  expectError([] { chooseWorld(Launcher{"mpirun", 1, 4}, 8, 0, ""); },
              "mpirun has started 4 processes, but the program was compiled for 8 ranks");
  expectError([] { chooseWorld(std::nullopt, 8, 0, "mpi"); }, "--backend=mpi: no launcher has set its variables");
  expectError([] { chooseWorld(std::nullopt, 8, 0, "gloo"); }, "--backend=gloo: expected inproc, mpi or nccl");
  expectError([] { chooseWorld(Launcher{"torchrun", 1, 4}, 8, 0, "nccl"); },
              "torchrun has started 4 processes, but the program was compiled for 8 ranks");
}

TEST(Launcher, RanksHaveDevicesWhereTheUserSaysSo) {
  EXPECT_EQ(chooseWorld(std::nullopt, 8, 0, "nccl").backend, Backend::Nccl);
  EXPECT_FALSE(chooseWorld(Launcher{"srun", 0, 1}, 8, 0, "nccl").launcher.has_value());
  EXPECT_EQ(chooseWorld(Launcher{"srun", 3, 8}, 8, 0, "nccl").launcher->rank, 3);
}

TEST(Launcher, RanksOfAGpuProgramMeetByNccl) {
  EXPECT_EQ(chooseWorld(std::nullopt, 8, 0, "", /*onGpu=*/true).backend, Backend::Nccl);
  EXPECT_EQ(chooseWorld(Launcher{"torchrun", 3, 8}, 8, 0, "", true).launcher->rank, 3);
  EXPECT_EQ(chooseWorld(std::nullopt, 1, 0, "", true).backend, Backend::Inproc); // nobody to meet
  EXPECT_EQ(chooseWorld(std::nullopt, 1, 0, "inproc", true).backend, Backend::Inproc);
  for (const char *backend : {"inproc", "mpi"})
    expectError([&] { chooseWorld(Launcher{"mpirun", 3, 8}, 8, 0, backend, true); },
                concat("--backend=", backend,
                       ": moves memory of the host, but the tensors of the 8 ranks are in GPUs; "
                       "expected nccl"));
}

TEST(Launcher, RankZeroIsFoundByWhatTheLauncherSays) {
  auto find = [](Environment environment, const std::string &launcher, int size = 8) {
    RendezvousAddress address = findRendezvous(environment, {launcher, 0, size});
    return concat(address.host, ":", address.port);
  };
  EXPECT_EQ(find({{"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}}, "torchrun"), "node7:29501");
  EXPECT_EQ(find({{"DROVER_RT_RENDEZVOUS", "a.b:77"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}}, "torchrun"),
            "a.b:77");
  EXPECT_EQ(find({{"DROVER_RT_RENDEZVOUS", "[fe80::1]:77"}}, "torchrun"), "fe80::1:77");
  for (const auto &[list, host] : std::map<std::string, std::string>{
           {"n1", "n1"}, {"n1,n2", "n1"}, {"gpu[07-09,12]", "gpu07"}, {"r[3,5]-x,n2", "r3-x"}, {"a-b,c[1-2]", "a-b"}})
    EXPECT_EQ(find({{"SLURM_STEP_NODELIST", list}, {"SLURM_JOB_ID", "40003"}, {"SLURM_STEP_ID", "2"}}, "srun"),
              host + ":24037");
  EXPECT_EQ(find({{"OMPI_COMM_WORLD_LOCAL_SIZE", "8"}, {"PMIX_NAMESPACE", "job-1"}}, "mpirun").substr(0, 10),
            "localhost:");
  expectError([&] { find({{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}, {"PMIX_NAMESPACE", "job-1"}}, "mpirun"); },
              "mpirun does not say where rank 0 is: set DROVER_RT_RENDEZVOUS=HOST:PORT");
  expectError([&] { find({}, "srun"); }, "srun does not say where rank 0 is");
  expectError([&] { find({{"DROVER_RT_RENDEZVOUS", "host"}}, "srun"); },
              "DROVER_RT_RENDEZVOUS=host: expected HOST:PORT with a port of 1 to 65535");
  expectError([&] { find({{"MASTER_ADDR", "a"}, {"MASTER_PORT", "x"}}, "torchrun"); },
              "MASTER_PORT=x: expected a port of 1 to 65534");
}

TEST(Launcher, ADeviceIsTheProcessesOwn) {
  EXPECT_EQ(findDevice({{"LOCAL_RANK", "3"}}, 8), 3);
  EXPECT_EQ(findDevice({{"SLURM_LOCALID", "3"}}, 1), 0);
  EXPECT_EQ(findDevice({}, 1), 0);
  expectError([] { findDevice({{"SLURM_LOCALID", "4"}}, 4); },
              "SLURM_LOCALID=4: the driver shows this process 4 devices, expected one for each rank of the machine");
  expectError([] { findDevice({}, 4); }, "4 devices, and no variable says which is this process's");
}

TEST(Launcher, RunRanksThrowsTheFirstError) {
  std::atomic<int> started{0};
  WorldChoice choice = chooseWorld(std::nullopt, 4, 0, "");
  expectError(
      [&] {
        runRanks(choice, {20, 20, 20}, [&](World &world) {
          ++started;
          auto group = world.createCommunicator(0, "world", {0, 1, 2, 3});
          if (world.rank() == 2)
            fail("no more");
          group->barrier();
        });
      },
      "no more");
  EXPECT_EQ(started.load(), 4);
  std::atomic<int> sum{0};
  runRanks(choice, {}, [&](World &world) {
    EXPECT_EQ(world.deadline().second, "start");
    sum += world.rank();
  });
  EXPECT_EQ(sum.load(), 6);
}

} // namespace
