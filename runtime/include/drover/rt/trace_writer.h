//===- trace_writer.h - a Chrome trace of a rank's actions ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_TRACE_WRITER_H
#define DROVER_RT_TRACE_WRITER_H

#include <cstdint>
#include <fstream>
#include <string>

namespace drover::rt {

/// The JSON array format of Chrome's trace viewer, which Perfetto opens: complete events, a process a rank, a thread a
/// track. Events are written as they come; the file is valid JSON after finish().
class TraceWriter {
public:
  enum Track { Actions = 0, Bodies = 1, Steps = 2 };

  /// Throws Error where the file cannot be made.
  TraceWriter(const std::string &path, int rank);
  ~TraceWriter(); // ends the file where finish() did not, without a word on failure

  /// `arguments` is the inside of a JSON object.
  void event(Track track, const std::string &name, int64_t startNs, int64_t endNs, const std::string &arguments);
  void finish();

private:
  std::string path;
  std::ofstream file;
  int rank;
  int64_t originNs;
  bool finished = false;
};

} // namespace drover::rt

#endif // DROVER_RT_TRACE_WRITER_H
