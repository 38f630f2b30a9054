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
  expectError([] { chooseWorld(std::nullopt, 8, 0, "nccl"); }, "--backend=nccl: expected inproc or mpi");
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
