//===- step_log.h - what a step reports -------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_STEP_LOG_H
#define DROVER_RT_STEP_LOG_H

#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>

namespace drover::rt {

struct StepReport {
  int64_t step, steps;
  double loss, gradNorm, learningRate;
  int64_t tokens; // trained on so far
  double tokensPerSecond, stepSeconds;
  std::optional<double> mfu;
  int64_t peakBytes;
  double time; // seconds since 1970
};

/// Writes JSON lines to a file, and a progress line for people to standard error: redrawn in place on a terminal, else
/// at the first and last step and every ten seconds.
class StepLog {
public:
  /// No file where `path` is empty; `shown`: there is a progress line. Throws Error where the file cannot be made.
  explicit StepLog(const std::string &path, bool shown = true);
  ~StepLog();
  StepLog(const StepLog &) = delete;
  StepLog &operator=(const StepLog &) = delete;

  void step(const StepReport &report);
  /// The last line of the log: peak bytes by category, of the rank that has most, what this rank allocated, what its
  /// GPU had less free at the end (0: none), and a JSON list of what communicators moved. It has no `loss` key.
  void end(const std::map<std::string, int64_t> &categories, int64_t peakBytes, int64_t allocatedBytes,
           int64_t deviceBytes, const std::string &communication);
  /// Ends the progress line, so that other text can follow.
  void endLine();
  bool onTerminal() const { return terminal; }

private:
  void writeLine(const std::string &line);
  void showProgress(const StepReport &report);

  std::string path;
  std::FILE *file = nullptr;
  bool shown, terminal;
  bool lineOpen = false;
  double shownAt = 0, startedAt = 0;
};

} // namespace drover::rt

#endif // DROVER_RT_STEP_LOG_H
