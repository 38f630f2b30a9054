//===- Goodput.cpp - training time that failures leave --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// J. W. Young, A first order approximation to the optimum checkpoint interval, Communications of the ACM 17 (1974).
// J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, Future Generation Computer
// Systems 22 (2006).
#include "drover/Planner/Goodput.h"
#include <algorithm>
#include <cmath>
#include <tuple>

using namespace drover;
using namespace drover::planner;
using schedule::Error;
using schedule::Result;

namespace {
constexpr double kHour = 3600, kDay = 24 * kHour;
constexpr double kMasterBytes = 4, kMomentsBytes = 8; // of a parameter

/// A failure costs a restart and the work since the last checkpoint, which Daly's formula has, and the work of the time
/// in which that one was not durable yet, which counts with the restart.
Checkpointing describeMode(CheckpointMode mode, double pause, double durable, double failures, double planned,
                           const cluster::Failures &rates, double stepSeconds) {
  Checkpointing result;
  result.mode = mode;
  result.pauseSeconds = pause;
  result.durableSeconds = durable;
  // Beyond the pause the writing goes on beside training: a failure until then falls back to the checkpoint before.
  double beside = durable - pause;
  double restart = rates.detectionSeconds + rates.restartSeconds + beside;
  result.youngSeconds = youngInterval(failures, pause);
  result.dalySeconds = dalyInterval(failures, pause);
  // The next one starts when this one is durable.
  double steps = std::max(std::max(bestInterval(failures, pause), beside) / stepSeconds, 1.0);
  // Time over work has one minimum: the better of the whole numbers beside it.
  auto over = [&](double count) { return timeOverWork(failures, pause, restart, count * stepSeconds); };
  double below = std::floor(steps), above = std::ceil(steps);
  result.bestSteps = static_cast<int64_t>(beside <= below * stepSeconds && over(below) <= over(above) ? below : above);
  double interval = static_cast<double>(result.bestSteps) * stepSeconds;
  result.bestSeconds = interval;

  // A planned interruption loses a checkpoint and a restart. Both are shares of all time.
  double available = 1 / (1 + planned * (pause + rates.restartSeconds));
  result.planned = 1 - available;
  double perWork = timeOverWork(failures, pause, restart, interval);
  result.effective = available / perWork;
  result.paused = result.effective * pause / interval;
  // Failures of the time that is neither planned nor a restart: each costs its restart.
  result.restarting = available * (1 - std::exp(-failures * (restart - beside)));
  result.repeated = 1 - result.planned - result.effective - result.paused - result.restarting;
  return result;
}
} // namespace

const char *planner::nameOf(CheckpointMode mode) { return mode == CheckpointMode::Burst ? "burst" : "staggered"; }

double planner::checkpointBytes(double parameters, const schedule::Plan &plan) {
  return parameters * (kMasterBytes + (plan.optimizer == "adamw" ? kMomentsBytes : 0));
}

double planner::youngInterval(double failuresPerSecond, double pauseSeconds) {
  return std::sqrt(2 * pauseSeconds / failuresPerSecond);
}

double planner::dalyInterval(double failuresPerSecond, double pauseSeconds) {
  double between = 1 / failuresPerSecond;
  if (pauseSeconds >= 2 * between)
    return between;
  double ratio = pauseSeconds / (2 * between);
  return youngInterval(failuresPerSecond, pauseSeconds) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - pauseSeconds;
}

double planner::bestInterval(double failuresPerSecond, double pauseSeconds) {
  // (1 - x) e^x falls from 1 to 0 between 0 and 1.
  double target = std::exp(-failuresPerSecond * pauseSeconds), low = 0, high = 1;
  for (int i = 0; i < 100; ++i) {
    double x = (low + high) / 2;
    ((1 - x) * std::exp(x) > target ? low : high) = x;
  }
  return low / failuresPerSecond;
}

double planner::timeOverWork(double failuresPerSecond, double pauseSeconds, double restartSeconds, double interval) {
  return std::exp(failuresPerSecond * restartSeconds) * std::expm1(failuresPerSecond * (interval + pauseSeconds)) /
         (failuresPerSecond * interval);
}

Result<Goodput> planner::goodputOf(const cluster::Cluster &cluster, const TrainingRun &run) {
  if (!cluster.failures)
    return Error{"the cluster '" + cluster.name + "' lists no failures"};
  if (!cluster.storage)
    return Error{"the cluster '" + cluster.name + "' lists no storage"};
  const cluster::Failures &rates = *cluster.failures;
  auto gpus = static_cast<double>(run.gpus);
  double failures = rates.unexpectedPerGpuHour() * gpus / kHour, planned = rates.plannedPerGpuHour() * gpus / kHour;
  if (!(failures > 0))
    return Error{"the cluster '" + cluster.name + "' lists no unexpected failures"};
  Goodput goodput;
  goodput.hoursBetweenFailures = 1 / (failures * kHour);
  for (const cluster::FailureCause &cause : rates.causes)
    goodput.causes.push_back({cause.name, cause.planned, cause.perGpuHour * gpus * 24});
  std::sort(goodput.causes.begin(), goodput.causes.end(), [](const CauseCount &a, const CauseCount &b) {
    return std::tie(b.perDay, a.name) < std::tie(a.perDay, b.name);
  });
  const cluster::Storage &storage = *cluster.storage;
  double burst = run.stateBytes / storage.peakWrite, copy = run.stateBytes / (gpus * storage.hostCopy);
  double sustained = copy + run.stateBytes / storage.sustainedWrite;
  goodput.modes = {describeMode(CheckpointMode::Burst, burst, burst, failures, planned, rates, run.stepSeconds),
                   describeMode(CheckpointMode::Staggered, copy, sustained, failures, planned, rates, run.stepSeconds)};
  goodput.best = goodput.modes[1].effective > goodput.modes[0].effective ? 1 : 0;
  if (run.tokens > 0) {
    goodput.steps = std::ceil(run.tokens / run.tokensPerStep);
    double seconds = goodput.steps * run.stepSeconds / goodput.getBest().effective;
    goodput.days = seconds / kDay;
    goodput.gpuHours = seconds / kHour * gpus;
    goodput.failures = seconds * failures;
  }
  return goodput;
}
