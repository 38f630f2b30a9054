//===- options.h - what the executables can be told -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_OPTIONS_H
#define DROVER_RT_OPTIONS_H

#include "drover/rt/launcher.h"
#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace drover::rt {

/// Where the ranks are, and what is told of them.
struct RunOptions {
  int64_t ranks = 0;    // 0: as compiled
  int64_t threads = 0;  // a rank; 0: the cores that this process may use, over its ranks
  std::string backend;  // inproc, mpi; empty: by the launcher
  std::string topology; // a file of servers, racks, pods; empty: none
  Deadlines deadlines;
  std::string matmulAlgorithms;      // of a GPU: read where the file exists, written at the end; empty: neither
  std::string trace, flightRecorder; // the latter empty: flight_recorder.RANK.json
  bool verbose = false;
  bool describeRanks = false; // plan every rank, run none
};

struct TrainOptions : RunOptions {
  // data
  std::string data;
  int64_t steps = 0;
  uint64_t seed = 1;
  bool shuffle = false;
  std::optional<int64_t> documentSeparator;
  bool resetPositions = false, maskAfterSeparator = false;
  std::vector<int64_t> ignoreLabels;
  int64_t globalBatch = 0;                                 // 0: the first one compiled in
  std::vector<std::pair<int64_t, int64_t>> batchRamp;      // (first step, global batch)
  std::vector<std::pair<std::string, std::string>> inputs; // what an input is in every microbatch: (name, .npy)
  // optimizer
  double learningRate = 3e-4, minLearningRate = 0, weightDecay = 0.1, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8,
         gradientClip = 1;
  int64_t warmupSteps = 0;
  bool skipNonfinite = false;
  // weights
  std::string init, model, saveWeights, saveGradients;
  // device
  bool cudaGraphs = false;
  // reports
  std::string log;
  bool logAllRanks = false;
  std::pair<int64_t, int64_t> traceSteps = {1, 10};
  double peakFlops = 0;           // of a rank; 0: unknown
  std::optional<std::regex> dump; // of names; absent: none
  int64_t dumpStep = 1;
  std::string dumpFile = "dump.safetensors";
};

struct ForwardOptions : RunOptions {
  std::vector<std::pair<std::string, std::string>> inputs; // (name, .npy)
  std::string outputDir;
  uint64_t seed = 1;
  std::string init, model;
};

/// Parse the arguments after the program's name. Nothing where help was asked: it is in `help` then.
std::optional<TrainOptions> parseTrainOptions(const std::string &program, const std::vector<std::string> &arguments,
                                              std::string &help);
std::optional<ForwardOptions> parseForwardOptions(const std::string &program, const std::vector<std::string> &arguments,
                                                  std::string &help);

} // namespace drover::rt

#endif // DROVER_RT_OPTIONS_H
