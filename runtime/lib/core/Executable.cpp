//===- Executable.cpp - command line to task ------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/executable.h"
#include "drover/rt/atomic_file.h"
#include "drover/rt/error.h"
#include "drover/rt/rank_survey.h"
#include "drover/rt/safetensors.h"
#include "drover/rt/text.h"
#include "drover/rt/topology.h"
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <new>
#include <sched.h>

namespace drover::rt {

/// As asked for, else the cores that this process may use over its ranks.
static int threadsOf(const RunOptions &options, const World &world) {
  if (options.threads > 0)
    return int(options.threads);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  int count = ::sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
  return std::max(1, count / world.size());
}

static std::string recorderPath(const RunOptions &options, const World &world) {
  if (options.flightRecorder.empty())
    return fileOfRank("flight_recorder.json", world.rank());
  std::string path = world.size() == 1 ? options.flightRecorder : fileOfRank(options.flightRecorder, world.rank());
  checkCanCreateFile(path); // it is written when there is no time to say that it cannot be
  return path;
}

RankSetup::RankSetup(const Program &program, const RunOptions &options, World &world, const std::string &init)
    : rank(program, world), pool(threadsOf(options, world)),
      recorder(program.hash, world.rank(), recorderPath(options, world)),
      trace(options.trace.empty() ? nullptr : std::make_unique<TraceWriter>(options.trace, rank)),
      operations(recorder, trace.get()), device(program, world),
      interpreter(rank, device, &pool, recorder, trace.get()), algorithmsFile(options.matmulAlgorithms) {
  readAlgorithms(init);
  world.setObserver(&operations);
}

RankSetup::~RankSetup() { rank.world.setObserver(nullptr); }

void RankSetup::setTracing(bool on) {
  interpreter.setTracing(on && trace);
  operations.setTracing(on);
}

/// Where a run leaves the table of its products beside weights that it saves; empty where `weights` names no file.
static std::string algorithmsBeside(const std::string &weights) {
  constexpr const char *name = "matmul-algorithms.txt";
  if (weights.empty() || weights == "model" || weights == "random")
    return "";
  std::filesystem::path path(weights);
  if (isTensorFile(weights))
    return path.replace_extension(name).string();
  return ((path.extension() == ".json" ? path.parent_path() : path) / name).string();
}

/// Rank 0's count: a table that only some ranks have would part them.
void RankSetup::readAlgorithms(const std::string &init) {
  if (device.isHost() && !algorithmsFile.empty())
    fail("--matmul-algorithms=", algorithmsFile, ": expected a program for a GPU; the host has one way to multiply");
  if (device.isHost())
    return;
  std::string text;
  if (rank.isFirst()) {
    if (!algorithmsFile.empty())
      checkCanCreateFile(algorithmsFile);
    MatmulAlgorithms read;
    for (const std::string &file : {algorithmsBeside(init), algorithmsFile})
      if (!file.empty() && std::filesystem::exists(file))
        read.load(file);
    text = read.text();
  }
  if (Communicator *world = rank.worldGroup()) {
    auto size = int64_t(text.size());
    world->broadcast(&size, 1, DROVER_I64, 0).wait();
    text.resize(size_t(size));
    if (size > 0)
      world->broadcast(text.data(), size, DROVER_I8, 0).wait();
  }
  device.algorithms.add(text, "rank 0");
}

/// Of ranks that differ in their stage alone the products differ.
void RankSetup::saveAlgorithms(const std::string &weights) {
  std::string beside = algorithmsBeside(weights);
  if (device.isHost() || (algorithmsFile.empty() && beside.empty()))
    return;
  const Coordinates &place = rank.plan.place;
  bool isFirstOfStage = !place[DROVER_AXIS_TP] && !place[DROVER_AXIS_CP] && !place[DROVER_AXIS_DP];
  std::string own = isFirstOfStage ? device.algorithms.text() : "";
  std::vector<int64_t> sizes = rank.all(int64_t(own.size()));
  if (!rank.isFirst()) {
    if (!own.empty())
      rank.worldGroup()->send(own.data(), int64_t(own.size()), DROVER_I8, 0).wait();
    return;
  }
  for (size_t source = 1; source < sizes.size(); ++source) {
    std::string received(size_t(sizes[source]), ' ');
    if (!received.empty())
      rank.worldGroup()->receive(received.data(), sizes[source], DROVER_I8, int(source)).wait();
    device.algorithms.add(received, concat("rank ", source));
  }
  for (const std::string &file : {algorithmsFile, beside})
    if (!file.empty())
      device.algorithms.save(file);
}

void RankSetup::guarded(const std::function<void()> &work) {
  recorder.install();
  std::string message;
  auto note = [&](const Error &error) {
    interpreter.noteProgress();
    message = error.what();
    if (recorder.dump("error"))
      message += "; last actions in " + recorder.file();
    // What is in flight uses memory that goes now: it has to end. On the host it is the requests' own.
    if (!device.isHost())
      rank.world.abort(message);
  };
  try {
    work();
  } catch (const EndedElsewhere &error) {
    note(error);
    throw EndedElsewhere(message);
  } catch (const Error &error) {
    note(error);
    throw Error(message);
  }
}

void runOnRanks(const Program &program, const RunOptions &options, const std::function<void(World &)> &rank) {
  WorldChoice choice = chooseWorld(findLauncher(processEnvironment()), program.grid.ranks(), options.ranks,
                                   options.backend, program.usesGpu());
  choice.ncclSettings = program.ncclSettings;
  runRanks(choice, options.deadlines, [&](World &world) {
    checkPlaces(program, options.topology, world);
    rank(world);
  });
}

static int runTask(const drover_program &embedded, const std::string &name, const std::vector<std::string> &arguments) {
  Program program(embedded);
  std::string text; // for standard output
  auto runOrDescribe = [&](const auto &options, auto run) {
    if (options && options->describeRanks)
      text = describe(surveyRanks(program));
    else if (options)
      run(program, *options);
  };
  if (program.isTraining())
    runOrDescribe(parseTrainOptions(name, arguments, text), train);
  else
    runOrDescribe(parseForwardOptions(name, arguments, text), forward);
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    fail("cannot write to standard output");
  return 0;
}

int runExecutable(const drover_program &embedded, int argc, const char *const *argv) {
  std::string name = argc > 0 ? argv[0] : "executable";
  try {
    return runTask(embedded, name, std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  } catch (const Error &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "error: out of memory\n");
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
  }
  return 1;
}

} // namespace drover::rt
