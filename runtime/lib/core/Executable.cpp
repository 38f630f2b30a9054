//===- Executable.cpp - command line to task ------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/executable.h"
#include "drover/rt/error.h"
#include <algorithm>
#include <cstdio>
#include <new>
#include <sched.h>

namespace drover::rt {

int threadsOf(int64_t asked, int64_t ranks) {
  if (asked > 0)
    return int(std::min<int64_t>(asked, 4096));
  cpu_set_t cores;
  CPU_ZERO(&cores);
  int count = ::sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
  return int(std::max<int64_t>(1, count / ranks));
}

void checkRanks(int64_t asked, int64_t compiled) {
  if (asked && asked != compiled)
    fail("--ranks=", asked, ": the program was compiled for ", compiled, " (TP*CP*PP*DP)");
}

static int runTask(const drover_program &embedded, const std::string &name, const std::vector<std::string> &arguments) {
  Program program(embedded);
  std::string help;
  if (program.isTraining()) {
    if (std::optional<TrainOptions> options = parseTrainOptions(name, arguments, help))
      train(program, *options);
  } else {
    if (std::optional<ForwardOptions> options = parseForwardOptions(name, arguments, help))
      forward(program, *options);
  }
  if (std::fputs(help.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
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
