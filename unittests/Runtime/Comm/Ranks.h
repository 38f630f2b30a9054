//===- Ranks.h - tests with ranks that are threads --------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_RUNTIME_COMM_RANKS_H
#define DROVER_UNITTESTS_RUNTIME_COMM_RANKS_H

#include "drover/rt/communicator.h"
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace drover::rt::test {

/// Runs fn as each rank of a world; what it throws ends its world. The message of each rank's exception, or empty.
inline std::vector<std::string> runThreads(int size, Timing timing, const std::function<void(World &)> &fn) {
  std::vector<std::unique_ptr<World>> worlds = createInprocWorlds(size, timing);
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      World &world = *worlds[size_t(rank)];
      world.setDeadline(60, "start");
      try {
        fn(world);
      } catch (const std::exception &error) {
        errors[size_t(rank)] = error.what();
        world.abort(error.what());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

inline std::vector<int> ranksBelow(int size) {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

} // namespace drover::rt::test

#endif // DROVER_UNITTESTS_RUNTIME_COMM_RANKS_H
