//===- TraceWriter.cpp - a Chrome trace of a rank's actions ---------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/flight_recorder.h"
#include "drover/rt/trace_writer.h"
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace drover::rt {

TraceWriter::TraceWriter(const std::string &path, int rank)
    : path(path), file(path), rank(rank), originNs(monotonicNs()) {
  if (!file)
    fail(path, ": cannot create: ", std::strerror(errno));
  file << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n"
       << "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": " << rank << ", \"args\": {\"name\": \"rank " << rank
       << "\"}}";
  static constexpr const char *tracks[] = {"actions", "bodies", "steps"};
  for (int track = 0; track < 3; ++track)
    file << ",\n{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": " << rank << ", \"tid\": " << track
         << ", \"args\": {\"name\": \"" << tracks[track] << "\"}}";
}

void TraceWriter::event(Track track, const std::string &name, int64_t startNs, int64_t endNs,
                        const std::string &arguments) {
  char times[80]; // microseconds
  std::snprintf(times, sizeof(times), "\"ts\": %.3f, \"dur\": %.3f", double(startNs - originNs) * 1e-3,
                double(endNs - startNs) * 1e-3);
  file << ",\n{\"ph\": \"X\", \"name\": \"" << name << "\", \"pid\": " << rank << ", \"tid\": " << int(track) << ", "
       << times << ", \"args\": {" << arguments << "}}";
}

TraceWriter::~TraceWriter() {
  if (!finished)
    file << "\n]}\n";
}

void TraceWriter::finish() {
  finished = true;
  file << "\n]}\n";
  file.close();
  if (!file)
    fail(path, ": cannot write: ", std::strerror(errno));
}

} // namespace drover::rt
