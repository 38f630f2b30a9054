//===- NcclOperation.cpp - an operation on a communicator's stream --------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "comm/NcclWorld.h"
#include "drover/rt/error.h"
#include "drover/rt/flight_recorder.h"

namespace drover::rt {

using namespace std::chrono_literals;

NcclOperation::NcclOperation(NcclWorld &world, NcclCommunicator &communicator, const OperationInfo &info)
    : Operation(world, communicator, info), owner(world), group(communicator) {}

NcclOperation::~NcclOperation() {
  if (event)
    owner.keepForLater(event, std::move(hostCopy));
}

void NcclOperation::releaseBuffers() {
  owner.ownDevice.giveBack(*std::exchange(event, nullptr));
  hostCopy = DeviceMemory();
}

LaneKey NcclOperation::lane() const {
  bool message = info.kind == OperationKind::Send || info.kind == OperationKind::Receive;
  if (!message)
    return {info.communicator, -1};
  int other = communicator.members()[size_t(info.root)];
  return {info.communicator, other * 2 + (info.kind == OperationKind::Receive ? 1 : 0)};
}

/// Marks of a communicator count up, and wrap.
bool NcclOperation::hasPassed() const { return int32_t(__atomic_load_n(group.word(), __ATOMIC_ACQUIRE) - mark) >= 0; }

bool NcclOperation::waitUntil(TimePoint deadline) {
  if (owner.keepsOperations())
    fail(describe(), ": the host cannot wait for what is kept for a graph");
  TimePoint look = std::chrono::steady_clock::now() + 100ms;
  for (int tries = 0; !hasPassed(); ++tries) {
    owner.checkAlive();
    TimePoint now = std::chrono::steady_clock::now();
    if (now >= deadline) {
      if (deadline != TimePoint::min())
        absent = owner.survey(*this);
      return false;
    }
    // A device or a network that has failed never writes the word.
    if (now >= look) {
      std::lock_guard<std::timed_mutex> lock(owner.issuing);
      owner.ownDevice.hasHappened(*event);
      group.checkState();
      look = now + 100ms;
    }
    if (tries < 64)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(50us);
  }
  // The word is behind the event, so this is true at the first question; asked because it is what orders the host.
  while (!owner.ownDevice.hasHappened(*event))
    std::this_thread::yield();
  {
    std::lock_guard<std::timed_mutex> lock(owner.issuing);
    group.checkState(); // kernels of a communicator that has failed end too
  }
  if (hostOut && hostBytes > 0)
    std::memcpy(hostOut, hostCopy.data(), size_t(hostBytes));
  releaseBuffers();
  endNs = monotonicNs();
  return true;
}

bool NcclOperation::waitOn(Stream &stream) {
  if (hostCopy.data())
    return false;
  owner.checkAlive();
  owner.ownDevice.wait(stream, *event);
  releaseBuffers();
  return true;
}

} // namespace drover::rt
