//===- trace_writer.h - a Chrome trace of a rank's actions ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_TRACE_WRITER_H
#define DROVER_RT_TRACE_WRITER_H

#include "drover/rt/flight_recorder.h"
#include "drover/rt/rank_context.h"
#include <cstdint>
#include <fstream>
#include <string>

namespace drover::rt {

/// The JSON array format of Chrome's trace viewer, which Perfetto opens: complete events, a process a rank, a thread a
/// track. Rank 0 writes events to the file as they come, the others keep theirs for it; the file is valid JSON after
/// finish().
class TraceWriter {
public:
  /// A track for each stream of actions from Actions on, and for each communicator from Operations on.
  enum Track { Actions = 0, Bodies = 8, Steps = 9, Operations = 16 };

  /// Collective over the ranks of the world. Throws Error where the file cannot be made.
  TraceWriter(const std::string &path, const RankContext &rank);
  ~TraceWriter(); // ends the file where finish() did not, without a word on failure

  /// `arguments` is the inside of a JSON object.
  void event(int track, const std::string &name, int64_t startNs, int64_t endNs, const std::string &arguments);
  /// Collective: the events of all ranks are in the file afterwards.
  void finish();

private:
  void write(const std::string &text);
  void nameTrack(int track, const std::string &name);

  std::string path;
  const RankContext &rank;
  std::ofstream file;   // of rank 0
  std::string buffered; // of the others
  int64_t originNs;
  bool finished = false;
};

/// Reports the operations of a rank to its flight recorder and, while that is on, to its trace.
class OperationTrace final : public OperationObserver {
public:
  /// `trace` may be null.
  OperationTrace(FlightRecorder &recorder, TraceWriter *trace) : recorder(recorder), trace(trace) {}

  int64_t issued(const OperationInfo &info) override;
  void completed(int64_t token, const OperationInfo &info, int64_t issuedNs, int64_t completedNs) override;
  void setTracing(bool on) { tracing = on && trace; }

private:
  FlightRecorder &recorder;
  TraceWriter *trace;
  bool tracing = false;
};

} // namespace drover::rt

#endif // DROVER_RT_TRACE_WRITER_H
