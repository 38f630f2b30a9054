//===- flight_recorder.h - the last actions of a rank -----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A ring of records, one an action and one an operation of a communicator, kept all the time and written out when
// something goes wrong. Writing takes no memory and no lock, so that it works from a signal handler.
#ifndef DROVER_RT_FLIGHT_RECORDER_H
#define DROVER_RT_FLIGHT_RECORDER_H

#include "drover/rt/abi.h"
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace drover::rt {

/// Nanoseconds of the monotonic clock.
int64_t monotonicNs();

struct FlightRecord {
  int64_t id; // counts from 0
  int64_t step;
  int64_t action; // index in the program
  uint32_t kind, chunk, phase, microbatch;
  const char *operation; // of a communicator; null: the record is an action's
  int64_t communicator;  // -1: none
  uint64_t sequence;     // place in the one global sequence, or the operation's number in its group
  int64_t bytes;         // of an operation
  int64_t startNs;
  std::atomic<int64_t> endNs; // 0: not ended
};

class FlightRecorder {
public:
  static constexpr int64_t capacity = 4096;

  FlightRecorder(std::string planHash, int rank, std::string path);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder &) = delete;
  FlightRecorder &operator=(const FlightRecorder &) = delete;

  /// Returns the record's id, for end().
  int64_t begin(int64_t step, int64_t index, const drover_action &action, int64_t communicator = -1);
  /// Of an operation that the last action issued; `operation` lives for ever.
  int64_t beginOperation(const char *operation, int communicator, uint64_t sequence, int64_t bytes);
  void end(int64_t id);

  /// Writes the ring as JSON, oldest first; `reason` needs no escaping. Safe in a signal handler. False on failure.
  bool dump(const char *reason) const;
  const std::string &file() const { return path; }

  /// Fatal signals dump this recorder, and others that were installed, from now on, until it is destroyed.
  void install();

private:
  FlightRecord &claim();

  std::string planHash;
  int rank;
  std::string path;
  std::unique_ptr<FlightRecord[]> records;
  std::atomic<int64_t> next{0};
  int64_t lastStep = 0, lastAction = -1;
};

} // namespace drover::rt

#endif // DROVER_RT_FLIGHT_RECORDER_H
