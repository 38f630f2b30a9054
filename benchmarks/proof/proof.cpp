//===- proof.cpp - what the proof of a step program takes -----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// CPU seconds of this thread: another load on the machine counts little. 126 layers in 128 chunks, none in the first
// and in the last, as in Llama 3's report (arXiv 2407.21783).
#include "ToyModel.h"
#include "drover/Schedule/Check.h"
#include "drover/Schedule/Verify.h"
#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace drover::schedule;
using namespace drover::schedule::test;

namespace {

double cpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void measure(int64_t microbatches, int64_t dp) {
  MicrobatchProgram program = makeToyModel(126);
  Plan plan = makePlan(8, {microbatches * dp});
  plan.pp = 16;
  plan.dp = dp;
  plan.layersPerChunk.assign(128, 1);
  plan.layersPerChunk.front() = plan.layersPerChunk.back() = 0;
  Result<StepProgram> step = buildStepProgram(program, plan);
  if (!step) {
    std::fprintf(stderr, "proof-benchmark: %s\n", step.error().c_str());
    std::exit(1);
  }
  CheckWork work;
  double start = cpuSeconds();
  size_t faults = checkStepProgram(*step, 8, &work).size();
  double checked = cpuSeconds();
  faults += verifyStepProgram(program, *step).size();
  double verified = cpuSeconds();
  if (faults) {
    std::fprintf(stderr, "proof-benchmark: %zu faults\n", faults);
    std::exit(1);
  }
  std::printf("| %lld | %lld | %zu | %llu | %llu | %.2f | %.2f | %.2f |\n", static_cast<long long>(microbatches),
              static_cast<long long>(dp), step->actions.size(), static_cast<unsigned long long>(work.edges),
              static_cast<unsigned long long>(work.ranges), checked - start, verified - checked, verified - start);
}

} // namespace

int main() {
  std::printf("| M | DP | actions | edges | ranges | check s | verify s | both s |\n"
              "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (int64_t microbatches : {16, 64, 256})
    measure(microbatches, 2);
  measure(256, 128);
  return 0;
}
