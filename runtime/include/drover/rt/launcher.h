//===- launcher.h - which ranks there are, and where ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_LAUNCHER_H
#define DROVER_RT_LAUNCHER_H

#include "drover/rt/communicator.h"
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace drover::rt {

/// Variables by name.
using Environment = std::map<std::string, std::string>;
Environment processEnvironment();

/// What started this process as one of several.
struct Launcher {
  std::string name; // mpirun, PMI, torchrun, srun
  int rank = 0, size = 1;
};

/// Reads OMPI_COMM_WORLD_RANK and _SIZE, PMI_RANK and _SIZE, RANK and WORLD_SIZE, SLURM_PROCID and
/// SLURM_STEP_NUM_TASKS or SLURM_NTASKS; the first pair of which one is set counts. Nothing where none is. Throws Error
/// where a pair is incomplete or makes no sense.
std::optional<Launcher> findLauncher(const Environment &environment);

enum class Backend { Inproc, Mpi, Nccl };

/// Where the ranks of a program are.
struct WorldChoice {
  Backend backend = Backend::Inproc;
  int ranks = 1;
  std::optional<Launcher> launcher;
  std::string ncclSettings = {}; // of the program; empty: none
};

/// `compiled` ranks: processes where a launcher started more than one, else threads. `backend` (empty, inproc, mpi or
/// nccl) and `ranks` (0: not given) are what the user asked for. `onGpu`: tensors are in GPUs, between which only nccl
/// moves. Throws Error where these do not go together.
WorldChoice chooseWorld(const std::optional<Launcher> &launcher, int64_t compiled, int64_t ranks,
                        const std::string &backend, bool onGpu = false);

/// Where rank 0 is reached: DROVER_RT_RENDEZVOUS=HOST:PORT; torchrun's MASTER_ADDR, and the port behind MASTER_PORT,
/// which torchrun may hold itself; the first host of Slurm's step, at a port of the job's number; this machine where
/// mpirun has started all ranks here. Throws Error where nothing says it.
RendezvousAddress findRendezvous(const Environment &environment, const Launcher &launcher);

/// The device of this process among `visible` ones: the first where there is one, else the launcher's number of the
/// process on its machine. Throws Error where that is not known, or too large.
int findDevice(const Environment &environment, int visible);

/// Most seconds that a wait lasts, by phase.
struct Deadlines {
  double start = 300, firstStep = 600, step = 300;
};

/// Calls `rank` for each rank of this process, inproc each on a thread of its own, and returns when all have. Where one
/// throws, its world is aborted, the others' waits end, and the first Error is thrown here.
void runRanks(const WorldChoice &choice, const Deadlines &deadlines, const std::function<void(World &)> &rank);

} // namespace drover::rt

#endif // DROVER_RT_LAUNCHER_H
