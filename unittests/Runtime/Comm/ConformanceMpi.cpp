//===- ConformanceMpi.cpp - the conformance suite as an MPI program -------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// usage: conformance-mpi all FOLDER PIECE_BYTES MESSAGE_BYTES   rank R writes FOLDER/R, a line "CASE SUM" each
//        conformance-mpi absent      the last rank never comes to the second all_reduce, but stays alive
//        conformance-mpi failing     the last rank fails while the others wait
//        conformance-mpi mismatch    rank 1 issues another operation than the others
#include "Conformance.h"
#include "drover/rt/error.h"
#include "drover/rt/launcher.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

using namespace drover::rt;
using namespace drover::rt::test;

static void runAll(World &world, const std::string &folder) {
  std::map<std::string, uint64_t> sums = runConformance(world);
  OperationCounts counts = world.counts(), expected = expectedCounts(world.rank(), world.size());
  for (const auto &[key, count] : expected)
    if (counts[key].bytes != count.bytes || counts[key].operations != count.operations ||
        counts[key].sent != count.sent)
      fail("wrong count of ", operationName(std::get<1>(key)), " on communicator ", std::get<0>(key));
  std::ofstream file(folder + "/" + std::to_string(world.rank()));
  for (const auto &[name, sum] : sums)
    file << name << " " << sum << "\n";
  file.close();
  if (!file)
    fail("cannot write into ", folder);
}

static void runFailing(World &world, const std::string &mode) {
  std::vector<int> everybody;
  for (int rank = 0; rank < world.size(); ++rank)
    everybody.push_back(rank);
  auto group = world.createCommunicator(5, "everybody", everybody);
  float value = 1;
  group->allReduce(&value, &value, 1, DROVER_F32, ReduceOp::Sum).wait();
  bool last = world.rank() == world.size() - 1;
  world.setDeadline(mode == "absent" ? 1 : 30, "a step");
  if (last && mode == "absent") {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    return;
  }
  if (last && mode == "failing")
    fail("this rank is out of luck");
  int64_t count = mode == "mismatch" && world.rank() == 1 ? 300 : 2000;
  std::vector<float> values(2000);
  group->allReduce(values.data(), values.data(), count, DROVER_F32, ReduceOp::Sum).wait();
}

int main(int argc, char **argv) {
  std::string mode = argc > 1 ? argv[1] : "all";
  try {
    MpiOptions options;
    if (std::optional<Launcher> launcher = findLauncher(processEnvironment())) {
      options.size = launcher->size;
      options.rank = launcher->rank;
      options.launcher = launcher->name;
    }
    if (mode == "all" && argc != 5)
      fail("expected all FOLDER PIECE_BYTES MESSAGE_BYTES");
    if (mode == "all") {
      options.pieceBytes = std::atoll(argv[3]);
      options.messageBytes = std::atoll(argv[4]);
    }
    std::unique_ptr<World> world = connectMpi(options);
    world->setDeadline(60, "start");
    try {
      mode == "all" ? runAll(*world, argv[2]) : runFailing(*world, mode);
    } catch (const std::exception &error) {
      world->abort(error.what());
      throw;
    }
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
