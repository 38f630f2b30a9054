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

static constexpr const char *streamNames[DROVER_NUM_STREAMS] = {
    "compute", "forward sends", "forward receives", "backward sends", "backward receives", "gathers", "reductions"};

/// Threads of one process share a clock; processes agree on a moment.
static int64_t commonOrigin(const RankContext &rank) {
  Communicator *world = rank.worldGroup();
  if (world)
    world->barrier();
  int64_t now = monotonicNs();
  if (world && std::strcmp(rank.world.backend(), "inproc") == 0)
    world->broadcast(&now, 1, DROVER_I64, 0).wait();
  return now;
}

TraceWriter::TraceWriter(const std::string &path, const RankContext &rank)
    : path(path), rank(rank), originNs(commonOrigin(rank)) {
  if (rank.isFirst()) {
    file.open(path);
    if (!file)
      fail(path, ": cannot create: ", std::strerror(errno));
    file << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  }
  const Coordinates &place = rank.plan.place;
  write(concat(rank.isFirst() ? "" : ",\n", "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": ", rank.plan.rank,
               ", \"args\": {\"name\": \"rank ", rank.plan.rank, " (tp ", place[DROVER_AXIS_TP], ", cp ",
               place[DROVER_AXIS_CP], ", pp ", place[DROVER_AXIS_PP], ", dp ", place[DROVER_AXIS_DP], ")\"}}"));
  for (int stream = 0; stream < DROVER_NUM_STREAMS; ++stream)
    nameTrack(Actions + stream, streamNames[stream]);
  nameTrack(Bodies, "bodies");
  nameTrack(Steps, "steps");
  for (const GroupPlan &group : rank.plan.groups)
    nameTrack(Operations + group.id, "communicator " + group.name);
}

void TraceWriter::write(const std::string &text) {
  if (rank.isFirst())
    file << text;
  else
    buffered += text;
}

void TraceWriter::nameTrack(int track, const std::string &name) {
  for (const std::string &field : {"\"thread_name\", \"args\": {\"name\": \"" + name + "\"}",
                                   "\"thread_sort_index\", \"args\": {\"sort_index\": " + std::to_string(track) + "}"})
    write(concat(",\n{\"ph\": \"M\", \"pid\": ", rank.plan.rank, ", \"tid\": ", track, ", \"name\": ", field, "}"));
}

void TraceWriter::event(int track, const std::string &name, int64_t startNs, int64_t endNs,
                        const std::string &arguments) {
  if (finished)
    return;
  char times[80]; // microseconds
  std::snprintf(times, sizeof(times), "\"ts\": %.3f, \"dur\": %.3f", double(startNs - originNs) * 1e-3,
                double(endNs - startNs) * 1e-3);
  write(concat(",\n{\"ph\": \"X\", \"name\": \"", name, "\", \"pid\": ", rank.plan.rank, ", \"tid\": ", track, ", ",
               times, ", \"args\": {", arguments, "}}"));
}

TraceWriter::~TraceWriter() {
  if (!finished && rank.isFirst())
    file << "\n]}\n";
}

void TraceWriter::finish() {
  finished = true;
  std::vector<int64_t> sizes = rank.all(int64_t(buffered.size()));
  if (!rank.isFirst()) {
    rank.worldGroup()->send(buffered.data(), int64_t(buffered.size()), DROVER_I8, 0).wait();
    return;
  }
  for (size_t other = 1; other < sizes.size(); ++other) {
    std::string events(size_t(sizes[other]), '\0');
    rank.worldGroup()->receive(events.data(), sizes[other], DROVER_I8, int(other)).wait();
    file << events;
  }
  file << "\n]}\n";
  file.close();
  if (!file)
    fail(path, ": cannot write: ", std::strerror(errno));
}

int64_t OperationTrace::issued(const OperationInfo &info) {
  return recorder.beginOperation(operationName(info.kind), info.communicator, info.sequence, info.bytes);
}

void OperationTrace::completed(int64_t token, const OperationInfo &info, int64_t issuedNs, int64_t completedNs) {
  recorder.end(token);
  if (tracing)
    trace->event(TraceWriter::Operations + info.communicator, operationName(info.kind), issuedNs, completedNs,
                 concat("\"bytes\": ", info.bytes, ", \"number\": ", info.sequence));
}

} // namespace drover::rt
