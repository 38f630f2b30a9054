//===- MeasureHost.h - runs what measures this machine ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_TOOLS_DROVER_MEASUREHOST_H
#define DROVER_TOOLS_DROVER_MEASUREHOST_H

#include "drover/Cost/Calibrate.h"
#include "drover/Cost/Model.h"
#include "drover/Schedule/Plan.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace drover::tool {

struct CalibrationOptions {
  int64_t cores = 0; // 0: all
  int64_t ranks = 8; // of the largest group
  int64_t turns = 20;
  int64_t deadlineSeconds = 120; // of a program that measures
};

struct ProgramRun {
  std::string output;          // what it printed to standard output
  double processorSeconds = 0; // of all its threads
};
/// Runs a program to its end, within the deadline.
llvm::Expected<ProgramRun> runWithin(int64_t seconds, llvm::StringRef program, llvm::ArrayRef<std::string> arguments);

/// Kernels, and collectives of threads and of MPI's processes. `log` hears what is measured, and why MPI is left out
/// where it is.
llvm::Expected<cost::Measurements> measureHost(const CalibrationOptions &options, llvm::raw_ostream &log);

/// A small decoder that is compiled here, on a rank of one thread for each core, and on one rank with a thread on each:
/// both keep all cores busy, so that a step takes the processor time of all threads over the cores.
struct ProbedHost {
  cost::ModelShape shape;
  schedule::Plan ranks, threads;
  double ranksSeconds = 0, threadsSeconds = 0;
};
llvm::Expected<ProbedHost> probeHost(const CalibrationOptions &options, int64_t cores);

} // namespace drover::tool

#endif // DROVER_TOOLS_DROVER_MEASUREHOST_H
