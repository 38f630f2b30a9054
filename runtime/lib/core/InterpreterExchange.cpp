//===- InterpreterExchange.cpp - actions that move data -------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// An action of several operations issues all but its last with waits between them: operations of a group have one
// order at all members only because they are issued where the action stands, never where something happens to end.
// That cannot lock up: every rank's list is the one global sequence restricted to it (docs/step-program.md).
#include "drover/rt/error.h"
#include "drover/rt/interpreter.h"
#include <algorithm>

namespace drover::rt {

/// On a device the stream goes on behind the operation, and the host goes on now.
void Interpreter::keep(const drover_action &action, InFlight &flight, Request request) {
  if (device.isHost())
    flight.requests.push_back(std::move(request));
  else
    request.waitOn(streamOf(action));
}

void Interpreter::finishStep(InFlight &flight) {
  for (Request &request : flight.requests)
    request.wait();
  flight.requests.clear();
}

void Interpreter::complete(uint32_t index) {
  std::deque<uint32_t> &stream = streams[actions[index].stream];
  while (inFlight[index].pending) {
    InFlight &flight = inFlight[stream.front()];
    finishStep(flight);
    if (flight.finish)
      flight.finish();
    flight.finish = nullptr;
    ended(stream.front());
  }
}

/// The first action of its stream is done.
void Interpreter::ended(uint32_t index) {
  InFlight &flight = inFlight[index];
  flight.pending = false;
  recorder.end(flight.record);
  if (tracing)
    traceAction(actions[index], flight.startNs);
  streams[actions[index].stream].pop_front();
}

void Interpreter::completeStream(int stream) {
  if (!streams[size_t(stream)].empty())
    complete(streams[size_t(stream)].back());
}

void Interpreter::sendOrReceive(const drover_action &action, InFlight &flight) {
  bool sends = action.kind == DROVER_SEND;
  bool forward = action.stream == DROVER_STREAM_FORWARD_SEND || action.stream == DROVER_STREAM_FORWARD_RECEIVE;
  Space space = sends ? (forward ? Space::Y : Space::Dx) : (forward ? Space::X : Space::Dy);
  int64_t bytes = program.chunks[action.chunk].bytes[size_t(space)];
  if (bytes == 0)
    return;
  Communicator *edge = rank.find(int(action.peer));
  uint8_t *slot = at(stage->bindings[action.binding][space]);
  int other = 1 - edge->rank();
  flight.ranges.push_back({slot - arena.data(), slot - arena.data() + bytes});
  keep(action, flight,
       sends ? edge->send(slot, bytes, DROVER_I8, other) : edge->receive(slot, bytes, DROVER_I8, other));
}

/// The action uses `range` from now on. What is before it on its stream and in flight there ends first: this thread
/// works on it at once, not when the stream gets there, as a device does.
void Interpreter::claim(const drover_action &action, InFlight &flight, ByteRange range) {
  if (!device.isHost())
    return;
  std::optional<uint32_t> last;
  for (uint32_t index : streams[action.stream])
    if (usesRange(inFlight[index], range))
      last = index;
  if (last)
    complete(*last);
  flight.ranges.push_back(range);
}

/// Masters into the compute dtype, elements `part` of the bucket.
void Interpreter::castMasters(int64_t bucket, ElementRange part, uint8_t *parameter, drover_stream which) {
  uint8_t *master = at(stage->buckets[size_t(bucket)][Space::Master]);
  uint8_t *result = parameter + part.first * byteSize(program.computeDType);
  if (master == result)
    return;
  if (program.castBody >= 0)
    callFlat(program.castBody, part.elements, {master, result}, which);
  else
    device.device().copy(result, master, part.elements * 4, device.stream(which));
}

void Interpreter::gather(const drover_action &action, InFlight &flight) {
  if (program.buckets[action.chunk].elements == 0)
    return;
  int64_t bucket = action.chunk;
  uint8_t *parameter = at(place(action, bucket, Space::Parameter));
  ElementRange part = stateRange(bucket);
  int64_t parameterPlace = parameter - arena.data();
  claim(action, flight, {parameterPlace, parameterPlace + program.bucketSpaceBytes(bucket, Space::Parameter)});
  uint8_t *own = parameter + part.first * byteSize(program.computeDType);
  if (rank.plan.owns(program, bucket))
    castMasters(bucket, part, parameter, drover_stream(action.stream));
  Communicator *tie = action.peer ? rank.find(int(action.peer)) : nullptr;
  if (tie) {
    Coordinates owner = rank.plan.place;
    owner[DROVER_AXIS_PP] = int32_t(program.ownerStage(bucket));
    const std::vector<int> &members = tie->members();
    int root = int(std::find(members.begin(), members.end(), int(program.grid.rankAt(owner))) - members.begin());
    keep(action, flight, tie->broadcast(own, part.elements, program.computeDType, root));
  }
  if (!isSharded())
    return;
  finishStep(flight);
  keep(action, flight,
       rank.find(DROVER_COMM_FSDP)->allGather(own, parameter, program.computeDType, {1, part.elements, 1, false}));
}

/// Gathers the buckets of one rank that no action gathers.
void Interpreter::gatherRest() {
  std::vector<bool> gathered(program.buckets.size());
  for (int64_t i = 0; i < stage->numActions; ++i)
    if (actions[i].kind == DROVER_GATHER)
      gathered[actions[i].chunk] = true;
  for (size_t bucket = 0; bucket < gathered.size(); ++bucket) {
    const Binding &places = stage->buckets[bucket];
    if (!gathered[bucket] && !isSharded() && places[Space::Master] >= 0 && places[Space::Parameter] >= 0)
      castMasters(int64_t(bucket), stateRange(int64_t(bucket)), at(places[Space::Parameter]), DROVER_STREAM_COMPUTE);
  }
}

static int axisCommunicator(int axis) {
  return axis == DROVER_AXIS_TP ? DROVER_COMM_TP : axis == DROVER_AXIS_KV ? DROVER_COMM_KV : DROVER_COMM_REPLICA;
}

void Interpreter::reduce(const drover_action &action, InFlight &flight) {
  int64_t bucket = action.chunk;
  const BucketInfo &info = program.buckets[size_t(bucket)];
  if (info.elements == 0)
    return;
  auto *whole = reinterpret_cast<float *>(at(place(action, bucket, Space::Accumulator)));
  int64_t gradientPlace = place(action, bucket, Space::Gradient);
  auto *gradient = gradientPlace < 0 ? whole : reinterpret_cast<float *>(at(gradientPlace));
  for (auto [data, space] : {std::pair(whole, Space::Accumulator), {gradient, Space::Gradient}}) {
    int64_t offset = reinterpret_cast<uint8_t *>(data) - arena.data();
    claim(action, flight, {offset, offset + program.bucketSpaceBytes(bucket, space)});
  }
  ElementRange state = stateRange(bucket);
  bool adds = action.flags & DROVER_ACTION_ADD;
  for (const SectionInfo &section : info.sections)
    if (section.trainable && section.sumAxis >= 0 && section.elements > 0)
      if (Communicator *group = rank.find(axisCommunicator(section.sumAxis)))
        keep(action, flight,
             group->allReduce(whole + section.first, whole + section.first, section.elements, DROVER_F32,
                              ReduceOp::Sum));
  if (adds && !device.isHost() && program.addBody < 0)
    fail("program: reduce ", action.sequence, " adds to earlier gradients, but there is no add body");
  // What is added is first reduced in place: nobody reads the accumulators any more.
  float *result = adds ? whole + state.first : gradient;
  Communicator *fsdp = rank.find(DROVER_COMM_FSDP);
  if (fsdp) {
    finishStep(flight);
    keep(action, flight,
         isSharded() ? fsdp->reduceScatter(whole, result, DROVER_F32, ReduceOp::Sum, {1, state.elements, 1, false})
                     : fsdp->allReduce(whole, result, info.elements, DROVER_F32, ReduceOp::Sum));
  } else if (result != whole) {
    finishStep(flight);
    device.device().copy(result, whole, state.elements * int64_t(sizeof(float)), streamOf(action));
  }
  if (Communicator *tie = action.peer ? rank.find(int(action.peer)) : nullptr) {
    finishStep(flight);
    keep(action, flight, tie->allReduce(result, result, state.elements, DROVER_F32, ReduceOp::Sum));
  }
  if (!adds || result == gradient)
    return;
  if (device.isHost())
    flight.finish = [=] {
      for (int64_t i = 0; i < state.elements; ++i)
        gradient[i] += result[i];
    };
  else
    callFlat(program.addBody, state.elements, {gradient, result}, drover_stream(action.stream));
}

} // namespace drover::rt
