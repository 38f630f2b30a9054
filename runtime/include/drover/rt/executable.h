//===- executable.h - the training and the forward executable ---*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_EXECUTABLE_H
#define DROVER_RT_EXECUTABLE_H

#include "drover/rt/interpreter.h"
#include "drover/rt/options.h"
#include "drover/rt/thread_pool.h"
#include "drover/rt/trace_writer.h"

namespace drover::rt {

/// Trains to the last step, on all ranks of this process. Throws Error.
void train(const Program &program, const TrainOptions &options);

/// One rank's part of `train`, which runs it on all ranks of this process.
void trainRank(const Program &program, const TrainOptions &options, World &world);

/// Runs the forward task once. Throws Error.
void forward(const Program &program, const ForwardOptions &options);

/// main() of an executable with this program: the exit status, 0 only on success.
int runExecutable(const drover_program &embedded, int argc, const char *const *argv);

/// What each rank of a run has, whatever its task.
struct RankSetup {
  /// `init`: where weights come from, as the options have it. Collective over the ranks. Throws Error.
  RankSetup(const Program &program, const RunOptions &options, World &world, const std::string &init);
  ~RankSetup();

  RankContext rank;
  drover_pool pool;
  FlightRecorder recorder;
  std::unique_ptr<TraceWriter> trace;
  OperationTrace operations;
  RankDevice device;
  Interpreter interpreter;

  /// Runs `work`; where it fails, the flight recorder is dumped and named in the error.
  void guarded(const std::function<void()> &work);
  void setTracing(bool on);
  /// Collective: writes how the products of all ranks were computed, where the options want it, and beside `weights`
  /// that were saved (empty: none were).
  void saveAlgorithms(const std::string &weights = "");

private:
  void readAlgorithms(const std::string &init);
  std::string algorithmsFile;
};

/// Runs `rank` on every rank of this process.
void runOnRanks(const Program &program, const RunOptions &options, const std::function<void(World &)> &rank);

} // namespace drover::rt

#endif // DROVER_RT_EXECUTABLE_H
