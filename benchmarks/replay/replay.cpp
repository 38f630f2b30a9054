//===- replay.cpp - layouts a second --------------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Replays layouts that differ in their costs, on one core: phases, transfers, gathers and reductions on the lanes of
// every stage. The first row is the first of Llama 3's Table 4 (arXiv 2407.21783).
#include "drover/Planner/Replay.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace drover;
using namespace drover::planner;

namespace {

/// Of this program's one thread: other load disturbs processor time little.
double processorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void measure(int64_t pp, int64_t chunks, int64_t microbatches, int64_t zero) {
  schedule::Plan plan;
  plan.pp = pp;
  plan.dp = 2;
  plan.chunks = chunks;
  plan.microbatch = 1;
  plan.zero = zero;
  plan.globalBatches = {2 * microbatches};
  plan.sequenceLength = 1;
  auto numChunks = static_cast<size_t>(pp * chunks);
  ChunkShape shape{std::vector<int64_t>(numChunks, 1), std::vector<int64_t>(numChunks, 4096), 0};
  double start = processorSeconds();
  schedule::Result<ReplayProgram> program = ReplayProgram::build(plan, microbatches, shape);
  double buildSeconds = (processorSeconds() - start);
  if (!program) {
    std::fprintf(stderr, "replay-benchmark: %s\n", program.error().c_str());
    std::exit(1);
  }
  ReplayCosts costs;
  costs.phases.assign(numChunks, {1, 2, 0});
  costs.transfers.assign(static_cast<size_t>(pp), {0.1, 0.1});
  costs.gathers.assign(numChunks, 0.2);
  costs.reductions.assign(numChunks, 0.4);
  ReplayTimes times;
  size_t items = program->getItems().size(), layouts = std::max<size_t>(20, 40000000 / items);
  double sum = 0, best = 1e9;
  for (int round = 0; round < 5; ++round) {
    start = processorSeconds();
    for (size_t i = 0; i < layouts / 5; ++i) {
      costs.phases[i % numChunks][0] += 1e-3;
      replay(*program, costs, times);
      sum += times.makespan;
    }
    best = std::min(best, (processorSeconds() - start) / static_cast<double>(layouts / 5));
  }
  std::printf("%4lld %4lld %5lld %5lld %10zu %10zu %10.1f %12.2f %12.0f %10.2f\n", static_cast<long long>(pp),
              static_cast<long long>(chunks), static_cast<long long>(microbatches), static_cast<long long>(zero), items,
              program->getEvents().size(), best * 1e6, best * 1e9 / static_cast<double>(items), 1 / best,
              buildSeconds * 1e3);
  if (sum < 0)
    std::exit(1);
}

} // namespace

int main() {
  std::printf("%4s %4s %5s %5s %10s %10s %10s %12s %12s %10s\n", "PP", "V", "M", "zero", "actions", "events",
              "us/layout", "ns/action", "layouts/s", "build ms");
  measure(16, 8, 32, 2);
  measure(16, 8, 32, 3);
  measure(16, 8, 16, 2);
  measure(16, 8, 256, 2);
  measure(8, 1, 64, 2);
  measure(1, 1, 16, 2);
  return 0;
}
