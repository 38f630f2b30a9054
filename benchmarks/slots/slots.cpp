//===- slots.cpp - what few slots cost, and how fast programs are built ---===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Replays built step programs with transfers that take time, against the same program with a slot for every boundary
// tensor; then builds the schedule of Llama 3's largest layout.
#include "ToyModel.h"
#include "drover/Schedule/ReplayStep.h"
#include <chrono>
#include <cstdio>

using namespace drover::schedule;
using namespace drover::schedule::test;

namespace {

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

StepProgram build(const MicrobatchProgram &program, const Plan &plan, int64_t spareSlots) {
  BuildOptions options;
  options.spareSlots = spareSlots;
  Result<StepProgram> step = buildStepProgram(program, plan, options);
  if (!step) {
    std::fprintf(stderr, "slot-benchmark: %s\n", step.error().c_str());
    std::exit(1);
  }
  return std::move(*step);
}

double makespan(const StepProgram &step, double transfer) {
  StepCosts costs = evenCosts(step);
  costs.transfer = transfer;
  return replayStep(step, step.batches[0], costs).makespan;
}

void printLosses() {
  constexpr int64_t kUnbounded = 1 << 20;
  std::printf("%4s %4s %4s %4s %10s %8s %8s %8s %8s\n", "PP", "V", "M", "N", "transfer", "bubble", "0 spare", "1 spare",
              "2 spare");
  for (int64_t run : {8, 12, 16, 32})
    for (double transfer : {0.1, 0.3}) {
      MicrobatchProgram program = makeToyModel(32);
      Plan plan = makePlan(4, {32});
      plan.pp = 8;
      plan.run = {run};
      StepProgram unbounded = build(program, plan, kUnbounded);
      double best = makespan(unbounded, transfer), work = 3.0 * 4 * 32;
      std::printf("%4d %4d %4d %4lld %10.1f %8.3f", 8, 4, 32, static_cast<long long>(run), transfer, best / work - 1);
      for (int64_t spare : {0, 1, 2})
        std::printf(" %6.2f %%", 100 * (makespan(build(program, plan, spare), transfer) / best - 1));
      std::printf("\n");
    }
}

void printBuildTimes() {
  std::printf("\n%4s %4s %6s %10s %10s\n", "PP", "V", "M", "actions", "seconds");
  MicrobatchProgram program = makeToyModel(126);
  for (int64_t microbatches : {16, 64, 256, 1024}) {
    Plan plan = makePlan(8, {microbatches});
    plan.pp = 16;
    plan.layersPerChunk.assign(128, 1);
    plan.layersPerChunk.front() = plan.layersPerChunk.back() = 0;
    auto start = std::chrono::steady_clock::now();
    StepProgram step = build(program, plan, 1);
    std::printf("%4d %4d %6lld %10zu %10.3f\n", 16, 8, static_cast<long long>(microbatches), step.actions.size(),
                secondsSince(start));
  }
}

} // namespace

int main() {
  std::printf("Loss of time against unbounded slots; a transfer in forwards of a chunk\n");
  printLosses();
  printBuildTimes();
  return 0;
}
