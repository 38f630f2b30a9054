//===- Goodput.h - training time that failures leave ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_PLANNER_GOODPUT_H
#define DROVER_PLANNER_GOODPUT_H

#include "drover/Cluster/Cluster.h"
#include "drover/Schedule/Plan.h"

namespace drover::planner {

/// A run that fails now and then and goes on from its last checkpoint.
struct TrainingRun {
  int64_t gpus = 1;
  double stateBytes = 0; // of a checkpoint, all ranks
  double stepSeconds = 0;
  double tokensPerStep = 0;
  double tokens = 0; // of the whole run; 0: no budget
};

/// How checkpoints are written: all ranks at once while training waits, at the storage's peak rate; or copied to the
/// host's memory, and one after another from there beside training, at the sustained rate.
enum class CheckpointMode : uint8_t { Burst, Staggered };
const char *nameOf(CheckpointMode mode);

/// Checkpoints of one mode, and what they leave of the time.
struct Checkpointing {
  CheckpointMode mode = CheckpointMode::Burst;
  double pauseSeconds = 0;   // that training waits for one
  double durableSeconds = 0; // from its start until it can be gone on from
  double youngSeconds = 0;   // interval of work between two (Young 1974)
  double dalySeconds = 0;    // the same to a higher order (Daly 2006)
  double bestSeconds = 0;    // the exact one of the model, in whole steps
  int64_t bestSteps = 1;
  /// Parts of all time; they add up to 1.
  double effective = 0, paused = 0, repeated = 0, restarting = 0, planned = 0;
};

struct CauseCount {
  std::string name;
  bool planned = false;
  double perDay = 0;
};

struct Goodput {
  double hoursBetweenFailures = 0; // unexpected ones, of all GPUs; 0: none
  std::vector<CauseCount> causes;  // most frequent first
  std::vector<Checkpointing> modes;
  size_t best = 0; // of modes
  // Of the token budget, with the best mode; 0 without one.
  double steps = 0, days = 0, gpuHours = 0, failures = 0;

  const Checkpointing &getBest() const { return modes[best]; }
};

/// Bytes of what a checkpoint holds: master weights and the optimizer's moments, in fp32.
double checkpointBytes(double parameters, const schedule::Plan &plan);

/// The error says what the cluster's file lacks.
schedule::Result<Goodput> goodputOf(const cluster::Cluster &cluster, const TrainingRun &run);

/// Work between two checkpoints that leaves most of the time, for failures of a rate that find it at any moment:
/// the x = rate * interval with (1 - x) e^x = e^(-rate * pause). Young's and Daly's closed forms approximate it.
double bestInterval(double failuresPerSecond, double pauseSeconds);
double youngInterval(double failuresPerSecond, double pauseSeconds);
double dalyInterval(double failuresPerSecond, double pauseSeconds);
/// Time over work for an interval of work (Daly 2006, equation 13): exponential failures, which find restarts too.
double timeOverWork(double failuresPerSecond, double pauseSeconds, double restartSeconds, double interval);

} // namespace drover::planner

#endif // DROVER_PLANNER_GOODPUT_H
