//===- InprocExchange.h - one operation between threads ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Nobody works in the background: the data of an operation is moved by the threads that issue it or wait for it, once
// all members have issued it. The work is cut into shares, one a member, each taken once.
#ifndef DROVER_RT_LIB_COMM_INPROCEXCHANGE_H
#define DROVER_RT_LIB_COMM_INPROCEXCHANGE_H

#include "comm/Operation.h"
#include <condition_variable>
#include <vector>

namespace drover::rt {

class InprocExchange;

/// What the members of a group share.
struct InprocGroup {
  explicit InprocGroup(std::vector<int> members) : members(std::move(members)) {}

  /// No move begins any more; returns when those under way are at their end.
  void end();

  const std::vector<int> members;  // ranks of the world
  std::mutex mutex;                // guards all that follows
  std::condition_variable changed; // an exchange has got on or failed, or the world has ended
  bool ended = false;
  int moving = 0; // threads that touch members' buffers
  /// Those that not all members have issued: by sender and receiver (-1 for collectives) and sequence.
  std::map<std::tuple<int, int, uint64_t>, std::shared_ptr<InprocExchange>> open;
};

/// One operation of a group. Everything is guarded by the group's mutex, but for the bytes that a share moves.
class InprocExchange {
public:
  /// A message has two members, sender and receiver; all other kinds have the group's.
  InprocExchange(InprocGroup &group, OperationKind kind);

  /// The member issues its side.
  void arrive(int member, const OperationInfo &info, const void *in, void *out);
  bool allHere() const { return arrived == expected; }
  bool hasArrived(int member) const { return sides[size_t(member)].here; }
  /// Members have issued different operations.
  bool mismatched() const { return differs; }
  std::string describeMismatchFor(int member) const;

  /// Moves all that is not yet moved, giving up the lock meanwhile. When it returns, all shares are taken, but other
  /// threads may still be at theirs.
  void moveAll(std::unique_lock<std::mutex> &lock, int first);
  bool allMoved() const { return moved == expected; }

  /// Late: moves what this member gets and nothing else, and sets its input aside for those who come later, so that the
  /// member's buffers are its own again.
  void moveOwn(std::unique_lock<std::mutex> &lock, int member);
  bool ownMoved(int member) const { return sides[size_t(member)].settled; }

private:
  struct Side {
    OperationInfo info{};
    bool here = false, taken = false, settled = false;
    const void *in = nullptr;
    void *out = nullptr;
    std::vector<uint8_t> kept; // a copy of `in` whose owner has gone on
  };

  /// By member. Taken under the lock: where a member goes on, its input becomes the copy of it.
  using Inputs = std::vector<const void *>;

  void moveShare(int member, const Inputs &inputs);
  void takeOwn(int member, const Inputs &inputs);
  void gatherInto(int member, const Inputs &inputs);
  void scatterInto(int member, const Inputs &inputs);
  void reduceShare(int member, const Inputs &inputs);
  template <typename Fn> void withoutLock(std::unique_lock<std::mutex> &lock, Fn &&move);
  Inputs inputsNow() const;
  int64_t inputBytes() const;

  InprocGroup &group;
  OperationInfo info{}; // as the first to come said
  bool differs = false;
  std::vector<Side> sides; // by member
  int expected, arrived = 0, moved = 0, readers = 0;
  std::vector<uint8_t> sums; // late all_reduce: computed by the first who waits
  enum class Sums { None, Running, Ready } sumState = Sums::None;
};

} // namespace drover::rt

#endif // DROVER_RT_LIB_COMM_INPROCEXCHANGE_H
