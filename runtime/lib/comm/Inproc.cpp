//===- Inproc.cpp - ranks that are threads of one process -----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "comm/InprocExchange.h"
#include "drover/rt/error.h"
#include "drover/rt/flight_recorder.h"
#include <algorithm>

namespace drover::rt {

namespace {

/// Normal timing: up to this size the last to come moves an operation at once, larger ones are shared among those who
/// wait.
constexpr int64_t smallBytes = 64 << 10;

/// What the ranks share.
class Fabric {
public:
  Fabric(int size, Timing timing) : size(size), timing(timing) {}

  /// The rank's nth group of this id and these members is everybody's nth.
  std::shared_ptr<InprocGroup> join(int rank, int id, const std::string &name, const std::vector<int> &members);
  void abort(int rank, const std::string &reason);
  std::string reasonFor(int rank);

  const int size;
  const Timing timing;

private:
  using Key = std::tuple<int, std::vector<int>, int>; // id, members, how many were there before
  std::mutex mutex;
  std::map<Key, std::shared_ptr<InprocGroup>> groups;
  std::map<std::tuple<int, int, std::vector<int>>, int> joined; // by rank, id, members
  int endedBy = -1;
  std::string reason;
};

class InprocCommunicator;

class InprocOperation : public Operation {
public:
  InprocOperation(World &world, const InprocCommunicator &communicator, const OperationInfo &info, Fabric &fabric,
                  InprocGroup &group, std::shared_ptr<InprocExchange> exchange);

  bool waitUntil(TimePoint deadline) override;
  std::vector<int> missing() override;
  int64_t completedNs() const override { return endNs; }

private:
  bool isComplete() const;

  Fabric &fabric;
  InprocGroup &group;
  std::shared_ptr<InprocExchange> exchange;
  int member;
  int64_t endNs = 0;
};

class InprocCommunicator : public Communicator {
public:
  InprocCommunicator(World &world, int id, std::string name, std::vector<int> members, Fabric &fabric,
                     std::shared_ptr<InprocGroup> group)
      : Communicator(world, id, std::move(name), std::move(members)), fabric(fabric), group(std::move(group)) {}

protected:
  std::shared_ptr<Operation> start(const OperationInfo &info, const void *in, void *out) override;

private:
  std::shared_ptr<InprocExchange> meet(const OperationInfo &info, const void *in, void *out);

  Fabric &fabric;
  std::shared_ptr<InprocGroup> group;
};

class InprocWorld : public World {
public:
  InprocWorld(int rank, std::shared_ptr<Fabric> fabric) : World(rank, fabric->size), fabric(std::move(fabric)) {}

  const char *backend() const override { return "inproc"; }
  void abort(const std::string &reason) noexcept override { fabric->abort(rank(), reason); }

protected:
  std::unique_ptr<Communicator> makeCommunicator(int id, std::string name, std::vector<int> members) override {
    std::shared_ptr<InprocGroup> group = fabric->join(rank(), id, name, members);
    return std::make_unique<InprocCommunicator>(*this, id, std::move(name), std::move(members), *fabric,
                                                std::move(group));
  }

private:
  std::shared_ptr<Fabric> fabric;
};

} // namespace

//===----------------------------------------------------------------------===//
// Fabric
//===----------------------------------------------------------------------===//

std::shared_ptr<InprocGroup> Fabric::join(int rank, int id, const std::string &name, const std::vector<int> &members) {
  std::lock_guard<std::mutex> lock(mutex);
  int nth = joined[{rank, id, members}]++;
  std::shared_ptr<InprocGroup> &group = groups[{id, members, nth}];
  if (!group) {
    for (const auto &[key, other] : groups) {
      if (!other || std::get<0>(key) != id || std::get<2>(key) != nth)
        continue;
      std::vector<int> common;
      std::set_intersection(members.begin(), members.end(), other->members.begin(), other->members.end(),
                            std::back_inserter(common));
      if (!common.empty()) {
        std::string others = rankList(other->members);
        groups.erase({id, members, nth});
        fail("communicator ", id, " (", name, ") is of ", rankList(members), " for rank ", rank, ", but of ", others,
             " for another");
      }
    }
    group = std::make_shared<InprocGroup>(members);
    group->ended = endedBy >= 0;
  }
  return group;
}

void Fabric::abort(int rank, const std::string &newReason) {
  std::vector<std::shared_ptr<InprocGroup>> all;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (endedBy < 0) {
      endedBy = rank;
      reason = newReason;
    }
    for (const auto &[key, group] : groups)
      all.push_back(group);
  }
  for (const std::shared_ptr<InprocGroup> &group : all)
    group->end();
}

std::string Fabric::reasonFor(int rank) {
  std::lock_guard<std::mutex> lock(mutex);
  return endedBy == rank ? reason : concat("rank ", endedBy, " has ended: ", reason);
}

//===----------------------------------------------------------------------===//
// Communicator
//===----------------------------------------------------------------------===//

/// Where members meet: the one who comes first makes it, the last takes it out.
std::shared_ptr<InprocExchange> InprocCommunicator::meet(const OperationInfo &info, const void *in, void *out) {
  std::tuple<int, int, uint64_t> key = {-1, -1, info.sequence};
  if (info.kind == OperationKind::Send)
    key = {rank(), info.root, info.sequence};
  if (info.kind == OperationKind::Receive)
    key = {info.root, rank(), info.sequence};
  std::shared_ptr<InprocExchange> &place = group->open[key];
  if (!place)
    place = std::make_shared<InprocExchange>(*group, info.kind);
  std::shared_ptr<InprocExchange> exchange = place;
  exchange->arrive(rank(), info, in, out);
  if (exchange->allHere())
    group->open.erase(key);
  return exchange;
}

std::shared_ptr<Operation> InprocCommunicator::start(const OperationInfo &info, const void *in, void *out) {
  std::unique_lock<std::mutex> lock(group->mutex);
  std::shared_ptr<InprocExchange> exchange = meet(info, in, out);
  bool atOnce = fabric.timing == Timing::Early || (fabric.timing == Timing::Normal && info.bytes <= smallBytes);
  if (exchange->allHere() && atOnce && !exchange->mismatched())
    exchange->moveAll(lock, rank());
  if (exchange->allHere() || exchange->mismatched())
    group->changed.notify_all();
  lock.unlock();
  return std::make_shared<InprocOperation>(world, *this, info, fabric, *group, std::move(exchange));
}

//===----------------------------------------------------------------------===//
// Operation
//===----------------------------------------------------------------------===//

InprocOperation::InprocOperation(World &world, const InprocCommunicator &communicator, const OperationInfo &info,
                                 Fabric &fabric, InprocGroup &group, std::shared_ptr<InprocExchange> exchange)
    : Operation(world, communicator, info), fabric(fabric), group(group), exchange(std::move(exchange)),
      member(communicator.rank()) {}

bool InprocOperation::isComplete() const {
  return fabric.timing == Timing::Late ? exchange->ownMoved(member) : exchange->allMoved();
}

bool InprocOperation::waitUntil(TimePoint deadline) {
  std::unique_lock<std::mutex> lock(group.mutex);
  while (true) {
    if (exchange->mismatched())
      fail(describe(), ": ", exchange->describeMismatchFor(member));
    if (exchange->allHere() && !isComplete()) {
      if (fabric.timing == Timing::Late)
        exchange->moveOwn(lock, member);
      else
        exchange->moveAll(lock, member);
    }
    if (isComplete()) {
      endNs = monotonicNs();
      return true;
    }
    if (group.ended)
      fail(fabric.reasonFor(world.rank()));
    if (std::chrono::steady_clock::now() >= deadline)
      return false;
    group.changed.wait_until(lock, deadline);
  }
}

std::vector<int> InprocOperation::missing() {
  std::lock_guard<std::mutex> lock(group.mutex);
  std::vector<int> ranks;
  bool isMessage = info.kind == OperationKind::Send || info.kind == OperationKind::Receive;
  for (int other = 0; other < communicator.size(); ++other)
    if (!exchange->hasArrived(other) && (!isMessage || other == info.root))
      ranks.push_back(group.members[size_t(other)]);
  return ranks;
}

std::vector<std::unique_ptr<World>> createInprocWorlds(int size, Timing timing) {
  auto fabric = std::make_shared<Fabric>(size, timing);
  std::vector<std::unique_ptr<World>> worlds;
  for (int rank = 0; rank < size; ++rank)
    worlds.push_back(std::make_unique<InprocWorld>(rank, fabric));
  return worlds;
}

} // namespace drover::rt
