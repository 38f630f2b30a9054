//===- FlightRecorder.cpp - the last actions of a rank --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/flight_recorder.h"
#include <algorithm>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <iterator>
#include <unistd.h>

namespace drover::rt {

/// Of the ranks of this process; a fixed table, since a signal handler reads it.
static constexpr size_t maxInstalled = 1024;
static std::atomic<FlightRecorder *> installed[maxInstalled];

int64_t monotonicNs() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

namespace {
/// Buffers text for a file descriptor with what a signal handler may call.
class SignalSafeWriter {
public:
  explicit SignalSafeWriter(int descriptor) : descriptor(descriptor) {}

  void text(const char *string) {
    for (; *string; ++string)
      put(*string);
  }
  void number(int64_t value) {
    char digits[20];
    int count = 0;
    uint64_t magnitude = value < 0 ? 0 - uint64_t(value) : uint64_t(value);
    do
      digits[count++] = char('0' + magnitude % 10);
    while (magnitude /= 10);
    if (value < 0)
      put('-');
    while (count)
      put(digits[--count]);
  }
  void field(const char *key, int64_t value) {
    text(key);
    number(value);
  }
  bool flush() {
    for (size_t done = 0; done < used && good;) {
      ssize_t written = ::write(descriptor, buffer + done, used - done);
      good = written > 0;
      done += good ? size_t(written) : 0;
    }
    used = 0;
    return good;
  }

private:
  void put(char c) {
    if (used == sizeof(buffer))
      flush();
    buffer[used++] = c;
  }

  int descriptor;
  char buffer[4096];
  size_t used = 0;
  bool good = true;
};
} // namespace

FlightRecorder::FlightRecorder(std::string planHash, int rank, std::string path)
    : planHash(std::move(planHash)), rank(rank), path(std::move(path)), records(new FlightRecord[capacity]()) {}

FlightRecorder::~FlightRecorder() {
  for (std::atomic<FlightRecorder *> &entry : installed) {
    FlightRecorder *self = this;
    entry.compare_exchange_strong(self, nullptr);
  }
}

FlightRecord &FlightRecorder::claim() {
  int64_t id = next.load(std::memory_order_relaxed);
  FlightRecord &record = records[id % capacity];
  record.id = id;
  record.startNs = monotonicNs();
  record.endNs.store(0, std::memory_order_relaxed);
  return record;
}

int64_t FlightRecorder::begin(int64_t step, int64_t index, const drover_action &action, int64_t communicator) {
  FlightRecord &record = claim();
  record.step = lastStep = step;
  record.action = lastAction = index;
  record.kind = action.kind;
  record.chunk = action.chunk;
  record.phase = action.phase;
  record.microbatch = action.microbatch;
  record.operation = nullptr;
  record.communicator = communicator;
  record.sequence = action.sequence;
  record.bytes = 0;
  next.store(record.id + 1, std::memory_order_release);
  return record.id;
}

int64_t FlightRecorder::beginOperation(const char *operation, int communicator, uint64_t sequence, int64_t bytes) {
  FlightRecord &record = claim();
  record.step = lastStep;
  record.action = lastAction;
  record.operation = operation;
  record.communicator = communicator;
  record.sequence = sequence;
  record.bytes = bytes;
  next.store(record.id + 1, std::memory_order_release);
  return record.id;
}

void FlightRecorder::end(int64_t id) {
  FlightRecord &record = records[id % capacity];
  if (record.id == id) // else it was overwritten: it was in flight for longer than the ring remembers
    record.endNs.store(monotonicNs(), std::memory_order_release);
}

bool FlightRecorder::dump(const char *reason) const {
  int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0)
    return false;
  SignalSafeWriter out(descriptor);
  int64_t end = next.load(std::memory_order_acquire), begin = std::max<int64_t>(0, end - capacity);
  out.text("{\"format\": 1, \"plan_hash\": \"");
  out.text(planHash.c_str());
  out.field("\", \"rank\": ", rank);
  out.text(", \"reason\": \"");
  out.text(reason);
  out.field("\", \"recorded\": ", end);
  out.text(", \"records\": [");
  for (int64_t id = begin; id < end; ++id) {
    const FlightRecord &record = records[id % capacity];
    int64_t endNs = record.endNs.load(std::memory_order_acquire);
    out.text(id == begin ? "\n" : ",\n");
    out.field("{\"id\": ", record.id);
    out.field(", \"step\": ", record.step);
    out.field(", \"action\": ", record.action);
    out.text(record.operation ? ", \"operation\": \"" : ", \"kind\": \"");
    out.text(record.operation ? record.operation : drover_action_name(record.kind));
    if (record.operation) {
      out.field("\", \"bytes\": ", record.bytes);
    } else {
      out.field("\", \"chunk\": ", record.chunk);
      out.field(", \"phase\": ", record.phase);
      out.field(", \"microbatch\": ", record.microbatch);
    }
    out.field(", \"communicator\": ", record.communicator);
    out.field(", \"sequence\": ", int64_t(record.sequence));
    out.text(endNs ? ", \"state\": \"completed\"" : ", \"state\": \"started\"");
    out.field(", \"start_ns\": ", record.startNs);
    out.field(", \"end_ns\": ", endNs);
    out.text("}");
  }
  out.text("\n]}\n");
  bool written = out.flush();
  return ::close(descriptor) == 0 && written;
}

static void onFatalSignal(int number) {
  static std::atomic<bool> handled{false};
  if (!handled.exchange(true)) {
    for (const std::atomic<FlightRecorder *> &entry : installed) {
      const FlightRecorder *recorder = entry.load();
      if (!recorder)
        continue;
      const char *reason = number == SIGSEGV   ? "SIGSEGV"
                           : number == SIGBUS  ? "SIGBUS"
                           : number == SIGFPE  ? "SIGFPE"
                           : number == SIGILL  ? "SIGILL"
                           : number == SIGABRT ? "SIGABRT"
                                               : "SIGTERM";
      bool dumped = recorder->dump(reason);
      SignalSafeWriter out(STDERR_FILENO);
      out.text("drover: ended by ");
      out.text(reason);
      out.text(dumped ? ", last actions in " : ", cannot write ");
      out.text(recorder->file().c_str());
      out.text("\n");
      out.flush();
    }
  }
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void FlightRecorder::install() {
  for (std::atomic<FlightRecorder *> &entry : installed) {
    FlightRecorder *none = nullptr;
    if (entry.compare_exchange_strong(none, this))
      break;
  }
  struct sigaction handler = {};
  handler.sa_handler = onFatalSignal;
  ::sigemptyset(&handler.sa_mask);
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM})
    ::sigaction(number, &handler, nullptr);
}

} // namespace drover::rt
