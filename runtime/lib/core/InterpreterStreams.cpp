//===- InterpreterStreams.cpp - what a GPU has in flight ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A GPU does what was issued later. Behind each action its stream writes the action's mark into a word of pinned
// memory, so that the host knows how far a stream is without asking the device: for the flight recorder, for traces,
// and to name what does not end.
#include "drover/rt/error.h"
#include "drover/rt/interpreter.h"
#include "drover/rt/text.h"
#include <algorithm>
#include <cstring>

namespace drover::rt {

using namespace std::chrono_literals;

/// What is in flight uses memory that goes now. After an error the world has ended, and with it what waits for others.
Interpreter::~Interpreter() {
  if (device.isHost())
    return;
  rank.world.issueAfter(nullptr);
  if (drover_communicators *groups = rank.bodies())
    groups->setStream(nullptr);
  auto until = std::chrono::steady_clock::now() + 10s;
  try {
    for (int which = 0; which < DROVER_NUM_STREAMS; ++which)
      device.device().finish(device.stream(which), until);
  } catch (const Error &) {
    // A device that has failed touches nothing any more.
  }
}

void Interpreter::follow(const drover_action &action, uint32_t other) {
  if (device.isHost())
    complete(other);
  else if (inFlight[other].event && other >= keptFrom && actions[other].stream != action.stream)
    device.device().wait(streamOf(action), *inFlight[other].event);
}

void Interpreter::issued(uint32_t index) {
  const drover_action &action = actions[index];
  inFlight[index].pending = true;
  streams[action.stream].push_back(index);
  if (!device.isHost())
    return markIssued(index);
  // Compute ends here; an action with nothing to wait for is done as soon as those before it on its stream are.
  if (action.stream == DROVER_STREAM_COMPUTE)
    completeStream(DROVER_STREAM_COMPUTE);
}

void Interpreter::markIssued(uint32_t index) {
  const drover_action &action = actions[index];
  InFlight &flight = inFlight[index];
  Device &gpu = device.device();
  if (flight.awaited) {
    flight.event = &gpu.takeEvent();
    gpu.record(*flight.event, streamOf(action));
  }
  flight.mark = ++marks[action.stream];
  auto *words = reinterpret_cast<uint32_t *>(hostScalars.data() + scalars.marks());
  gpu.post(words + action.stream, flight.mark, streamOf(action));
  noteProgress();
}

void Interpreter::noteProgress() {
  if (device.isHost())
    return;
  const auto *words = reinterpret_cast<const uint32_t *>(hostScalars.data() + scalars.marks());
  for (int which = 0; which < DROVER_NUM_STREAMS; ++which) {
    uint32_t passed = __atomic_load_n(words + which, __ATOMIC_ACQUIRE); // marks count up, and wrap
    std::deque<uint32_t> &stream = streams[size_t(which)];
    while (!stream.empty() && int32_t(passed - inFlight[stream.front()].mark) >= 0)
      ended(stream.front());
  }
}

/// "backward of chunk 2, microbatch 3, on stream 0, and 7 actions behind it"
std::string Interpreter::describeStuck(int which) const {
  if (streams[size_t(which)].empty()) // a graph ends with all of its streams
    for (int other = 0; other < DROVER_NUM_STREAMS; ++other)
      if (!streams[size_t(other)].empty())
        return describeStuck(other);
  const std::deque<uint32_t> &stream = streams[size_t(which)];
  if (stream.empty())
    return concat("what was put on stream ", which, " beside the step's actions");
  const drover_action &action = actions[stream.front()];
  return concat(drover_action_name(action.kind), " ", action.sequence,
                drover_action_is_of_bucket(action.kind) ? " of bucket " : " of chunk ", action.chunk, ", phase ",
                action.phase, ", microbatch ", action.microbatch, ", on stream ", which, ", and ", stream.size() - 1,
                " actions behind it");
}

double Interpreter::hostNumber(int64_t place) const {
  double value;
  std::memcpy(&value, hostScalars.data() + place, sizeof(value));
  return value;
}

void Interpreter::finishCompute(StepOutcome &outcome) {
  if (drover_device *bodies = device.bodies(DROVER_STREAM_COMPUTE)) {
    bodies->fetchIndexErrors();
    device.finish(DROVER_STREAM_COMPUTE, [&] {
      noteProgress();
      return describeStuck(DROVER_STREAM_COMPUTE);
    });
    bodies->checkIndices();
    noteProgress();
  }
  for (int64_t i = 0; i < losses; ++i)
    outcome.lossSum += hostNumber(scalars.loss(i));
}

/// A step ends when all streams have ended.
void Interpreter::finishStreams() {
  if (device.isHost()) {
    for (int stream = 0; stream < DROVER_NUM_STREAMS; ++stream)
      completeStream(stream);
    return;
  }
  drover_device *bodies = device.bodies(DROVER_STREAM_COMPUTE);
  bodies->fetchIndexErrors();
  for (int which = 0; which < DROVER_NUM_STREAMS; ++which)
    device.finish(which, [&] {
      noteProgress();
      return describeStuck(which);
    });
  bodies->checkIndices();
  noteProgress();
  giveBackEvents(0, uint32_t(inFlight.size()));
}

void Interpreter::giveBackEvents(uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; ++i)
    if (Event *&event = inFlight[i].event)
      device.device().giveBack(*std::exchange(event, nullptr));
}

/// A GPU's memory starts without contents: moments begin as zeros, and so do what lies between parameters.
void Interpreter::clearLastingMemory() {
  for (size_t bucket = 0; bucket < program.buckets.size(); ++bucket)
    for (Space space : {Space::Parameter, Space::Master, Space::Moment1, Space::Moment2})
      if (int64_t offset = stages[0].buckets[bucket][space]; offset >= 0)
        device.device().fill(at(offset), 0, program.bucketSpaceBytes(int64_t(bucket), space),
                             device.stream(DROVER_STREAM_COMPUTE));
  device.finish(DROVER_STREAM_COMPUTE, [] { return "clearing memory"; });
}

} // namespace drover::rt
