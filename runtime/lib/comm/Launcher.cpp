//===- Launcher.cpp - which ranks there are, and where --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/launcher.h"
#include "drover/rt/device.h"
#include "drover/rt/error.h"
#include "drover/rt/text.h"
#include <climits>
#include <cstdio>
#include <exception>
#include <new>
#include <thread>
#include <unistd.h>

namespace drover::rt {

Environment processEnvironment() {
  Environment environment;
  for (char **entry = environ; entry && *entry; ++entry) {
    std::string text = *entry;
    size_t equals = text.find('=');
    if (equals != std::string::npos)
      environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return environment;
}

namespace {
struct Variables {
  const char *launcher, *rank, *size;
};
} // namespace

// What is nearer to the process comes first: srun may start torchrun, or an mpirun on each node. SLURM_NTASKS counts
// the tasks of a job, of which a step may run fewer.
static constexpr Variables known[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE"},
    {"torchrun", "RANK", "WORLD_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS"},
};

static int readNumber(const Environment &environment, const char *name, int64_t minimum) {
  const std::string &text = environment.at(name);
  std::optional<int64_t> value = parseInteger(text);
  if (!value || *value < minimum || *value > INT_MAX)
    fail(name, "=", text, ": expected an integer of at least ", minimum);
  return int(*value);
}

std::optional<Launcher> findLauncher(const Environment &environment) {
  bool stepTasks = environment.count("SLURM_STEP_NUM_TASKS");
  for (const Variables &names : known) {
    bool hasRank = environment.count(names.rank), hasSize = environment.count(names.size);
    if (std::string(names.size) == "SLURM_STEP_NUM_TASKS" && !stepTasks)
      continue;
    if (!hasRank && !hasSize)
      continue;
    // A batch script has the size of its job and no rank: what runs there was not started by srun.
    if (std::string(names.launcher) == "srun" && !hasRank)
      continue;
    if (!hasRank || !hasSize)
      fail(hasRank ? names.rank : names.size, " is set, but not ", hasRank ? names.size : names.rank,
           ": expected both (", names.launcher, " sets them) or neither");
    Launcher launcher = {names.launcher, readNumber(environment, names.rank, 0),
                         readNumber(environment, names.size, 1)};
    if (launcher.rank >= launcher.size)
      fail(names.rank, "=", launcher.rank, ": expected a rank below ", names.size, " (", launcher.size, ")");
    return launcher;
  }
  return std::nullopt;
}

WorldChoice chooseWorld(const std::optional<Launcher> &launcher, int64_t compiled, int64_t ranks,
                        const std::string &asked, bool onGpu) {
  if (!asked.empty() && asked != "inproc" && asked != "mpi" && asked != "nccl")
    fail("--backend=", asked, ": expected inproc, mpi or nccl");
  if (onGpu && compiled > 1 && !asked.empty() && asked != "nccl")
    fail("--backend=", asked, ": moves memory of the host, but the tensors of the ", compiled,
         " ranks are in GPUs; expected nccl");
  std::string backend = asked.empty() && onGpu && compiled > 1 ? "nccl" : asked;
  if (ranks && ranks != compiled)
    fail("--ranks=", ranks, ": the program was compiled for ", compiled, " (TP*CP*PP*DP)");
  bool started = launcher && launcher->size > 1;
  if (!started && backend == "nccl")
    return {Backend::Nccl, int(compiled), std::nullopt};
  if (backend == "inproc" || (!started && backend != "mpi"))
    return {Backend::Inproc, int(compiled), std::nullopt};
  if (!launcher && compiled > 1)
    fail("--backend=mpi: no launcher has set its variables; start ", compiled, " processes, mpirun -n ", compiled,
         " ..");
  if (launcher && launcher->size != compiled)
    fail(launcher->name, " has started ", launcher->size, " processes, but the program was compiled for ", compiled,
         " ranks (TP*CP*PP*DP)");
  return {backend == "nccl" ? Backend::Nccl : Backend::Mpi, int(compiled), launcher};
}

/// Runs one rank; an error ends the world.
static std::exception_ptr runRank(World &world, const std::function<void(World &)> &rank) {
  std::string reason;
  std::exception_ptr error;
  try {
    rank(world);
    return nullptr;
  } catch (const std::bad_alloc &) {
    reason = "out of memory";
    error = std::current_exception();
  } catch (const std::exception &exception) {
    reason = exception.what();
    error = std::current_exception();
  }
  world.abort(reason);
  return error;
}

/// Makes the world of a rank on the rank's thread, and hands it on.
using WorldMaker = std::function<void(int rank, const std::function<void(World &)> &use)>;

static void runThreads(int ranks, const WorldMaker &withWorld, const std::function<void(World &)> &rank) {
  std::mutex mutex;
  std::exception_ptr first;
  bool hasReason = false;
  auto noteError = [&](bool isReason) {
    // Mostly before the others hear of it: theirs are consequences.
    std::lock_guard<std::mutex> lock(mutex);
    if (!first || (isReason && !hasReason)) {
      first = std::current_exception();
      hasReason = isReason;
    }
  };
  auto run = [&](int number, const std::function<void(World &)> &body) {
    auto noted = [&](World &own) {
      try {
        body(own);
      } catch (const EndedElsewhere &) {
        noteError(false);
        throw;
      } catch (...) {
        noteError(true);
        throw;
      }
    };
    try {
      withWorld(number, [&](World &world) { runRank(world, noted); });
    } catch (...) {
      noteError(true);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < ranks; ++i)
    threads.emplace_back([&, i] { run(i, rank); });
  run(0, rank);
  for (std::thread &thread : threads)
    thread.join();
  if (first)
    std::rethrow_exception(first);
}

static void runInproc(int ranks, const Deadlines &deadlines, const std::function<void(World &)> &rank) {
  std::vector<std::unique_ptr<World>> worlds = createInprocWorlds(ranks, timingFromEnvironment());
  for (std::unique_ptr<World> &world : worlds)
    world->setDeadline(deadlines.start, "start");
  runThreads(ranks, [&](int number, const auto &use) { use(*worlds[size_t(number)]); }, rank);
}

static void runMpi(const WorldChoice &choice, const Deadlines &deadlines, const std::function<void(World &)> &rank) {
  MpiOptions options;
  options.size = choice.ranks;
  options.rank = choice.launcher ? choice.launcher->rank : -1;
  options.launcher = choice.launcher ? choice.launcher->name : "";
  std::unique_ptr<World> world = connectMpi(options);
  world->setDeadline(deadlines.start, "start");
  if (std::exception_ptr error = runRank(*world, rank))
    std::rethrow_exception(error);
}

/// Before the process has threads of its own, and behind the driver: where that is missing, NCCL is not what lacks.
/// Rank 0 says what was set up.
static std::shared_ptr<const NcclProcess> prepareProcess(const WorldChoice &choice) {
  std::shared_ptr<const NcclProcess> process =
      prepareNccl({choice.ncclSettings, choice.launcher ? 1 : choice.ranks, "", ""});
  if (!choice.launcher || choice.launcher->rank == 0)
    for (const std::string &note : describe(*process))
      std::fprintf(stderr, "nccl: %s\n", note.c_str());
  return process;
}

/// Each rank is a thread with a device of this machine.
static void runNcclThreads(const WorldChoice &choice, const Deadlines &deadlines,
                           const std::function<void(World &)> &rank) {
  int ranks = choice.ranks;
  int visible = countCudaDevices({});
  if (visible < ranks)
    fail("--backend=nccl: ", ranks, " ranks as threads need as many devices, the driver shows this process ", visible,
         "; start a process for each rank with torchrun, srun or mpirun");
  std::shared_ptr<const NcclProcess> process = prepareProcess(choice);
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < ranks; ++i)
    devices.push_back(openCudaDevice({i, ""}));
  std::unique_ptr<RendezvousHost> table = hostRendezvous(0, ranks);
  auto withWorld = [&](int number, const std::function<void(World &)> &use) {
    NcclOptions options;
    options.rank = number;
    options.size = ranks;
    options.rendezvous = {"localhost", table->port()};
    options.startSeconds = deadlines.start;
    options.process = process;
    use(*connectNccl(options, *devices[size_t(number)]));
  };
  runThreads(ranks, withWorld, rank);
}

static void runNccl(const WorldChoice &choice, const Deadlines &deadlines, const std::function<void(World &)> &rank) {
  if (!choice.launcher)
    return runNcclThreads(choice, deadlines, rank);
  Environment environment = processEnvironment();
  int visible = countCudaDevices({});
  std::shared_ptr<const NcclProcess> process = prepareProcess(choice);
  NcclOptions options;
  options.rank = choice.launcher->rank;
  options.size = choice.ranks;
  options.rendezvous = findRendezvous(environment, *choice.launcher);
  options.startSeconds = deadlines.start;
  options.process = process;
  std::unique_ptr<RendezvousHost> table;
  if (options.rank == 0)
    table = hostRendezvous(options.rendezvous.port, options.size);
  std::unique_ptr<Device> device = openCudaDevice({findDevice(environment, visible), ""});
  std::unique_ptr<World> world = connectNccl(options, *device);
  if (std::exception_ptr error = runRank(*world, rank))
    std::rethrow_exception(error);
}

void runRanks(const WorldChoice &choice, const Deadlines &deadlines, const std::function<void(World &)> &rank) {
  switch (choice.backend) {
  case Backend::Inproc:
    return runInproc(choice.ranks, deadlines, rank);
  case Backend::Mpi:
    return runMpi(choice, deadlines, rank);
  case Backend::Nccl:
    return runNccl(choice, deadlines, rank);
  }
}

} // namespace drover::rt
