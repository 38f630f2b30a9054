//===- StepLog.cpp - what a step reports ----------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/memory_report.h"
#include "drover/rt/step_log.h"
#include "drover/rt/text.h"
#include <cerrno>
#include <cmath>
#include <cstring>
#include <unistd.h>

namespace drover::rt {

StepLog::StepLog(const std::string &path, bool shown)
    : path(path), shown(shown), terminal(shown && ::isatty(STDERR_FILENO) == 1) {
  if (path.empty())
    return;
  file = std::fopen(path.c_str(), "w");
  if (!file)
    fail(path, ": cannot create: ", std::strerror(errno));
}

StepLog::~StepLog() {
  endLine();
  if (file)
    std::fclose(file);
}

/// All digits; JSON has no NaN and no infinity, they become null.
static std::string jsonNumber(double value) {
  if (!std::isfinite(value))
    return "null";
  char text[32];
  std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

void StepLog::writeLine(const std::string &line) {
  // Flushed, so that who follows the file sees every step as it ends.
  if (file && (std::fputs((line + "\n").c_str(), file) < 0 || std::fflush(file) != 0))
    fail(path, ": cannot write: ", std::strerror(errno));
}

void StepLog::step(const StepReport &report) {
  writeLine(concat("{\"step\": ", report.step, ", \"loss\": ", jsonNumber(report.loss),
                   ", \"grad_norm\": ", jsonNumber(report.gradNorm), ", \"lr\": ", jsonNumber(report.learningRate),
                   ", \"tokens\": ", report.tokens, ", \"tokens_per_s\": ", jsonNumber(report.tokensPerSecond),
                   ", \"step_time_s\": ", jsonNumber(report.stepSeconds),
                   ", \"mfu\": ", report.mfu ? jsonNumber(*report.mfu) : "null", ", \"peak_bytes\": ", report.peakBytes,
                   ", \"time\": ", jsonNumber(report.time), "}"));
  if (shown)
    showProgress(report);
}

void StepLog::showProgress(const StepReport &report) {
  bool ends = report.step == report.steps;
  if (!startedAt)
    startedAt = report.time - report.stepSeconds;
  double interval = terminal ? 0.1 : 10;
  if (shownAt && !ends && report.time - shownAt < interval)
    return;
  shownAt = report.time;
  double left = (report.time - startedAt) / double(report.step) * double(report.steps - report.step);
  char line[160];
  std::snprintf(line, sizeof(line), "step %lld/%lld  loss %.4f  %.0f tokens/s  peak %s  %s left",
                (long long)report.step, (long long)report.steps, report.loss, report.tokensPerSecond,
                formatBytes(report.peakBytes).c_str(), formatDuration(left).c_str());
  // Erase to the end of the line: the last text may have been longer.
  std::fprintf(stderr, terminal ? "\r%s\x1b[K" : "%s\n", line);
  std::fflush(stderr);
  lineOpen = terminal;
}

void StepLog::end(const std::map<std::string, int64_t> &categories, int64_t peakBytes, int64_t allocatedBytes,
                  int64_t deviceBytes, const std::string &communication) {
  std::string inside;
  for (const auto &[name, bytes] : categories)
    inside += concat(inside.empty() ? "" : ", ", "\"", name, "\": ", bytes);
  writeLine(concat("{\"memory\": {", inside, "}, \"peak_bytes\": ", peakBytes, ", \"allocated_bytes\": ",
                   allocatedBytes, deviceBytes ? concat(", \"device_bytes\": ", deviceBytes) : std::string(),
                   ", \"resident_bytes\": ", residentBytes(), ", \"communication\": ", communication, "}"));
}

void StepLog::endLine() {
  if (lineOpen)
    std::fputc('\n', stderr);
  lineOpen = false;
}

} // namespace drover::rt
