//===- MpiOperation.h - one operation in messages ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// MPI's own collectives sum in an order of their choice, so operations are made of messages between pairs, in rounds:
// every member sends its part straight to those that need it. That is as few bytes as a ring sends. A header goes ahead
// of the data when an operation is issued: it shows who is here, and whether all mean the same operation.
#ifndef DROVER_RT_LIB_COMM_MPIOPERATION_H
#define DROVER_RT_LIB_COMM_MPIOPERATION_H

#include "comm/MpiLibrary.h"
#include "comm/Operation.h"
#include <atomic>

namespace drover::rt {

/// What messages are made with; used by the thread that owns MPI.
struct MpiPort {
  const MpiLibrary &mpi;
  MpiHandle communicator;
  int64_t pieceBytes, messageBytes;
};

/// A message on its way.
struct MpiPending {
  MpiHandle request = 0;
  bool receives = false;
  int member = -1; // a header: whose
  int64_t bytes = 0;
};

/// The operation as a member sees it.
struct MpiHeader {
  uint64_t group; // hash of the communicator's id, name and members
  uint64_t sequence;
  int32_t kind, op, dtype, root, twoChunk, reserved;
  int64_t outer, local, inner;
};

class MpiWorld;

class MpiOperation final : public Operation {
public:
  enum class State { Running, Complete, Failed };

  MpiOperation(MpiWorld &world, const Communicator &communicator, const OperationInfo &info, const void *in, void *out,
               uint64_t groupHash);

  bool waitUntil(TimePoint deadline) override;
  std::vector<int> missing() override;
  int64_t completedNs() const override { return endNs; }

  // What follows is called by the thread that owns MPI.
  bool isMessage() const { return info.kind == OperationKind::Send || info.kind == OperationKind::Receive; }
  /// Posts the headers; in the order of issue.
  void announce(const MpiPort &port);
  /// Tests what is on its way. `first`: all operations before it in its lane are complete, so that its data may go.
  /// Returns whether it got on.
  bool advance(const MpiPort &port, bool first);
  bool ended() const { return dataEnded && headers.empty(); }
  const std::string &error() const { return failure; }
  /// Takes back the receives.
  void cancel(const MpiPort &port);

  State state = State::Running; // guarded by the world's mutex
  int64_t endNs = 0;

private:
  int64_t numRounds(const MpiPort &port) const;
  void postRound(const MpiPort &port);
  void finishRound(const MpiPort &port);
  void postGather(const MpiPort &port, int64_t begin, int64_t end);
  void postScatter(const MpiPort &port, int64_t begin, int64_t end);
  void postReduce(const MpiPort &port);
  void finishGather(int64_t begin, int64_t end);
  void finishScatter(int64_t begin, int64_t end);
  void finishReduce(const MpiPort &port);
  bool reducesAtOnce() const;
  std::pair<int64_t, int64_t> pieceOfRound(const MpiPort &port) const;
  std::pair<int64_t, int64_t> shareOf(int member, std::pair<int64_t, int64_t> piece) const;

  void post(const MpiPort &port, bool receives, int member, void *data, int64_t bytes);
  void send(const MpiPort &port, int member, const void *data, int64_t bytes) {
    post(port, false, member, const_cast<void *>(data), bytes);
  }
  void receive(const MpiPort &port, int member, void *data, int64_t bytes) { post(port, true, member, data, bytes); }
  bool testAll(const MpiPort &port, std::vector<MpiPending> &pending);
  void takeHeader(int member);
  uint8_t *staging(std::vector<std::vector<uint8_t>> &memory, int member, int64_t bytes);
  const uint8_t *inAt(int64_t element) const { return static_cast<const uint8_t *>(in) + element * elementBytes; }
  uint8_t *outAt(int64_t element) const { return static_cast<uint8_t *>(out) + element * elementBytes; }
  int tag(int which) const { return info.communicator * 4 + (isMessage() ? 2 : 0) + which; }

  MpiWorld &owner;
  const void *in;
  void *out;
  int members, self;
  int64_t elementBytes;
  MpiHeader own;
  std::vector<MpiHeader> theirs;
  std::unique_ptr<std::atomic<bool>[]> arrived;
  std::vector<MpiPending> headers, data;
  int64_t round = 0;
  bool roundOpen = false, dataEnded = false;
  std::vector<std::vector<uint8_t>> received, packed; // by member
  std::string failure, dataFailure;
};

/// The largest id of which all tags are allowed.
inline int largestCommunicatorId(int tagUpperBound) { return tagUpperBound / 4 - 1; }

} // namespace drover::rt

#endif // DROVER_RT_LIB_COMM_MPIOPERATION_H
