//===- Faults.h - what the proof reports ------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_SCHEDULE_CHECK_FAULTS_H
#define DROVER_LIB_SCHEDULE_CHECK_FAULTS_H

#include "drover/Schedule/Check.h"
#include <sstream>

namespace drover::schedule {

/// Joins the arguments into one text.
template <typename... Args> std::string joinText(const Args &...args) {
  std::ostringstream text;
  (text << ... << args);
  return text.str();
}

/// Collects the first `limit` faults of a program.
class Faults {
public:
  Faults(const StepProgram &step, size_t limit) : step(step), limit(limit) {}

  void enter(const Batch &current) { batch = &current; }
  bool isFull() const { return messages.size() >= limit; }
  size_t count() const { return messages.size(); }
  std::vector<std::string> take() { return std::move(messages); }

  template <typename... Args> void report(const Args &...args) {
    if (!isFull())
      messages.push_back(joinText(batch ? faultPrefix(*batch) : "", args...));
  }

  /// "stage 1, action 7 (send of chunk 1, microbatch 0)".
  std::string describe(size_t stage, uint64_t index) const;

private:
  const StepProgram &step;
  size_t limit;
  const Batch *batch = nullptr;
  std::vector<std::string> messages;
};

} // namespace drover::schedule

#endif // DROVER_LIB_SCHEDULE_CHECK_FAULTS_H
