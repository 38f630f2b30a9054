//===- nccl_group.h - the stand-in NCCL: what members share -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Ranks are threads of one process, each with a device. An operation begins on a member when it is first in the stream
// there, and ends once it has begun on all members that take part: nothing is buffered.
#ifndef DROVER_STANDINS_NCCL_GROUP_H
#define DROVER_STANDINS_NCCL_GROUP_H

#include "comm/NcclApi.h"
#include "driver.h"
#include <map>
#include <tuple>

namespace drover::standin {

enum class Kind { AllGather, ReduceScatter, AllReduce, Broadcast, Message };

/// What a member says of an operation.
struct Call {
  Kind kind = Kind::AllReduce;
  size_t count = 0;
  int dtype = 0, op = 0, root = 0;
  const void *in = nullptr;
  void *out = nullptr;
  int64_t window = -1; // of a gather's result: where in the communicator's windows it lies

  std::string describe() const;
};

struct Comm;
struct Group;

/// An operation of a group, at the place in the order of issue where all members have it.
struct Exchange {
  struct Side {
    Comm *comm = nullptr; // who has issued it
    Call call;
    bool begun = false;
    Clock clock; // when it began
  };
  std::vector<Side> sides; // by member; of a message sender and receiver
  size_t begun = 0;
  bool moved = false; // written under both locks

  bool canMove() const { return begun == sides.size(); }
  /// What a side gets was sent after all that the senders had done before.
  void order(size_t side, Clock &after) const;
  /// A member that takes part has gone.
  bool hasLost() const;
};

/// Guarded by the engine's lock, but for `moving`.
struct Group {
  explicit Group(int size) : members(size_t(size), nullptr) {}
  std::vector<Comm *> members;
  int joined = 0;
  std::string failure;             // the first wrong use
  std::vector<size_t> windowBytes; // in the order of registration
  std::map<uint64_t, std::shared_ptr<Exchange>> collectives;
  std::map<std::tuple<int, int, uint64_t>, std::shared_ptr<Exchange>> messages; // by sender, receiver, number
  std::mutex moving; // held while data is moved, and while a member goes
};

/// One call as it waits in a ncclGroup, or for its place in the stream.
struct Pending {
  Comm *comm = nullptr;
  Call call;
  int peer = -1; // of a message
  bool sends = false;
  void *stream = nullptr;
};

struct Comm {
  std::shared_ptr<Group> group;
  struct Window {
    void *base;
    size_t bytes;
    bool open;
  };
  std::vector<Window> windows;
  std::string name;
  int rank = 0, device = 0;
  bool blocking = true, aborted = false;
  uint64_t collectives = 0;
  std::vector<uint64_t> sends, receives;      // by the other member
  std::vector<std::vector<Pending>> deferred; // not blocking: enqueued by a later ncclCommGetAsyncError
  int polls = 0;
  int inFlight = 0;
  std::shared_ptr<char> graphs = std::make_shared<char>(); // graphs with operations of it hold this, too
};

/// Enqueues calls of one communicator that go together; ncclInvalidUsage where another member has issued others.
int enqueueTogether(const std::vector<Pending> &calls);
size_t bytesOf(int dtype);
/// Where a buffer lies in the windows of this member; -1: in none.
int64_t placeInWindow(const Comm &comm, const void *buffer);

} // namespace drover::standin

#endif // DROVER_STANDINS_NCCL_GROUP_H
