//===- GridMain.cpp - the grid's model as an executable -------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// usage: grid-train TP CP PP DP CHUNKS ZERO [options of the training executable]
#include "GridProgram.h"
#include "drover/rt/executable.h"
#include <cstdio>
#include <cstdlib>

int main(int argc, char **argv) {
  if (argc < 7) {
    std::fprintf(stderr, "usage: grid-train TP CP PP DP CHUNKS ZERO [options]\n");
    return 2;
  }
  drover::rt::test::GridOptions options;
  options.plan.tp = std::atoi(argv[1]);
  options.plan.cp = std::atoi(argv[2]);
  options.plan.pp = std::atoi(argv[3]);
  options.plan.dp = std::atoi(argv[4]);
  options.plan.chunks = std::atoi(argv[5]);
  options.plan.zero = std::atoi(argv[6]);
  drover::rt::test::GridProgram program(options);
  argv[6] = argv[0];
  return drover::rt::runExecutable(program.program(), argc - 6, argv + 6);
}
