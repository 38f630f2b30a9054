//===- Communicator.cpp - what all backends have in common ----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/communicator.h"
#include "comm/Operation.h"
#include "comm/Parts.h"
#include "drover/rt/error.h"
#include "drover/rt/flight_recorder.h"
#include <cstdlib>

namespace drover::rt {

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

const char *operationName(OperationKind kind) {
  static constexpr const char *names[] = {"all_gather", "reduce_scatter", "all_reduce", "broadcast",
                                          "send",       "receive",        "shift"};
  return names[size_t(kind)];
}

static bool isMessage(OperationKind kind) { return kind == OperationKind::Send || kind == OperationKind::Receive; }

int64_t sentBytes(OperationKind kind, int64_t bytes, int members) {
  switch (kind) {
  case OperationKind::AllGather:
  case OperationKind::ReduceScatter:
    return bytes / members * (members - 1); // bytes are those of `members` equal parts
  case OperationKind::AllReduce:
    return 2 * bytes * (members - 1) / members;
  default:
    return bytes;
  }
}

std::string rankList(const std::vector<int> &ranks) {
  constexpr size_t shown = 16;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(ranks.size(), shown); ++i)
    text += concat(i ? ", " : "", ranks[i]);
  if (ranks.size() > shown)
    text += concat(" and ", ranks.size() - shown, " more");
  return text;
}

std::string describeShape(const OperationInfo &info) {
  std::string text;
  if (info.kind == OperationKind::AllGather || info.kind == OperationKind::ReduceScatter)
    text = concat("parts of ", info.cut.outer, "x", info.cut.local, "x", info.cut.inner, " ", dtypeName(info.dtype),
                  info.cut.twoChunk ? " in two chunks" : "");
  else
    text = concat(info.cut.local, " ", dtypeName(info.dtype));
  if (info.kind == OperationKind::ReduceScatter || info.kind == OperationKind::AllReduce)
    text += info.op == ReduceOp::Sum ? ", sum" : ", max";
  if (info.kind == OperationKind::Broadcast)
    text += concat(", of member ", info.root);
  return text;
}

std::string describeMismatch(const OperationInfo &mine, const OperationInfo &theirs, int theirRank) {
  bool message = isMessage(mine.kind);
  // `root` of a message is the other side, which is how the two found each other.
  bool fits = (message || (mine.kind == theirs.kind && mine.op == theirs.op && mine.root == theirs.root)) &&
              mine.dtype == theirs.dtype && mine.cut.outer == theirs.cut.outer && mine.cut.local == theirs.cut.local &&
              mine.cut.inner == theirs.cut.inner && mine.cut.twoChunk == theirs.cut.twoChunk;
  if (fits)
    return "";
  return concat("rank ", theirRank, " has ", operationName(theirs.kind), " ", theirs.sequence, " of ",
                describeShape(theirs), " in its place");
}

std::string Operation::describe() const {
  std::string peer;
  if (isMessage(info.kind))
    peer = concat(info.kind == OperationKind::Send ? " to rank " : " from rank ",
                  communicator.members()[size_t(info.root)]);
  return concat(operationName(info.kind), " ", info.sequence, peer, " on communicator ", communicator.id(), " (",
                communicator.name(), ", ", rankList(communicator.members()), "), ", describeShape(info));
}

//===----------------------------------------------------------------------===//
// Request
//===----------------------------------------------------------------------===//

Request::Request() = default;
Request::Request(std::shared_ptr<Operation> operation) : operation(std::move(operation)) {}
Request::Request(Request &&) noexcept = default;

Request &Request::operator=(Request &&other) noexcept {
  std::swap(operation, other.operation);
  return *this;
}

Request::~Request() {
  if (operation)
    operation->world.abort(concat(operation->describe(), ": dropped before its end"));
}

/// The operation has ended well, or has not by the deadline: false. Aborts the world where it failed.
static bool settle(Operation &operation, TimePoint deadline) {
  bool complete = false;
  try {
    complete = operation.waitUntil(deadline);
  } catch (const Error &error) {
    operation.world.abort(error.what());
    throw;
  }
  if (complete && operation.observer)
    operation.observer->completed(operation.token, operation.info, operation.issuedNs, operation.completedNs());
  return complete;
}

bool Request::test() {
  if (!operation)
    return true;
  std::shared_ptr<Operation> own = std::move(operation);
  if (settle(*own, TimePoint::min()))
    return true;
  operation = std::move(own);
  return false;
}

void Request::wait(std::optional<double> seconds) {
  if (!operation)
    return;
  std::shared_ptr<Operation> own = std::move(operation);
  auto [limit, phase] = own->world.deadline();
  if (seconds)
    limit = *seconds;
  auto span = std::chrono::duration_cast<TimePoint::duration>(std::chrono::duration<double>(limit));
  if (settle(*own, std::chrono::steady_clock::now() + span))
    return;
  std::vector<int> missing = own->missing();
  std::string message =
      concat(own->describe(), ": not complete within ", limit, " s (deadline of ", phase, "), ",
             missing.empty() ? std::string("though all members are here") : "without " + rankList(missing));
  own->world.abort(message);
  throw Error(message);
}

void Request::waitOn(Stream &stream) {
  if (!operation)
    return;
  if (!operation->waitOn(stream))
    return wait();
  if (operation->observer)
    operation->observer->completed(operation->token, operation->info, operation->issuedNs, monotonicNs());
  operation.reset();
}

//===----------------------------------------------------------------------===//
// Communicator
//===----------------------------------------------------------------------===//

Communicator::Communicator(World &world, int id, std::string name, std::vector<int> members)
    : world(world), number(id), title(std::move(name)), group(std::move(members)), sends(group.size()),
      receives(group.size()) {
  place = int(std::find(group.begin(), group.end(), world.rank()) - group.begin());
}

uint64_t &Communicator::counterOf(const OperationInfo &info) {
  if (info.kind == OperationKind::Send)
    return sends[size_t(info.root)];
  if (info.kind == OperationKind::Receive)
    return receives[size_t(info.root)];
  return collectives;
}

/// Messages have no handshake; they, too, count from 1.
uint64_t Communicator::nextNumber(const OperationInfo &info) {
  uint64_t number = counterOf(info)++;
  return isMessage(info.kind) ? number + 1 : number;
}

void Communicator::issueAgain(const KeptOperation &kept) {
  std::lock_guard<std::mutex> lock(issuing);
  OperationInfo info = kept.info;
  info.sequence = nextNumber(info);
  world.addToCounts(info, size());
  OperationObserver *observer = world.observer();
  int64_t token = observer ? observer->issued(info) : 0, issuedNs = monotonicNs();
  startAgain(info, kept.mark);
  if (observer)
    observer->completed(token, info, issuedNs, monotonicNs()); // as Request::waitOn has it
}

Request Communicator::issue(OperationInfo info, const void *in, void *out) {
  auto complain = [&](auto &&...what) {
    fail(operationName(info.kind), " on communicator ", number, " (", title, "), ", describeShape(info), ": ", what...);
  };
  if (info.cut.outer < 0 || info.cut.local < 0 || info.cut.inner < 0)
    complain("expected sizes of at least 0");
  if (info.cut.twoChunk && info.cut.local % 2)
    complain("expected an even part for two chunks");
  if (info.root >= size() || (info.root < 0 && (isMessage(info.kind) || info.kind == OperationKind::Broadcast)))
    complain("no member ", info.root, ", expected 0 to ", size() - 1);
  if (isMessage(info.kind) && info.root == place)
    complain("expected another member than this one, ", place);
  if ((info.kind == OperationKind::ReduceScatter || info.kind == OperationKind::AllReduce) && !canReduce(info.dtype))
    complain("no sums of this type, expected f32, bf16, f64 or i64");
  bool cuts = info.kind == OperationKind::AllGather || info.kind == OperationKind::ReduceScatter;
  info.bytes = info.cut.elements() * (cuts ? size() : 1) * byteSize(info.dtype);
  info.communicator = number;

  std::lock_guard<std::mutex> lock(issuing);
  if (world.keepsOperations()) {
    std::shared_ptr<Operation> operation = start(info, in, out);
    world.kept.push_back({this, info, operation->mark});
    return Request(std::move(operation));
  }
  info.sequence = nextNumber(info);
  bool silent = info.sequence == 0; // the handshake
  OperationObserver *observer = silent ? nullptr : world.observer();
  if (!silent)
    world.addToCounts(info, size());
  int64_t token = observer ? observer->issued(info) : 0, issuedNs = monotonicNs();
  std::shared_ptr<Operation> operation = start(info, in, out);
  operation->observer = observer;
  operation->token = token;
  operation->issuedNs = issuedNs;
  return Request(std::move(operation));
}

Request Communicator::allGather(const void *in, void *out, DType dtype, const TensorCut &cut) {
  OperationInfo info{};
  info.kind = OperationKind::AllGather;
  info.dtype = dtype;
  info.cut = cut;
  info.root = -1;
  return issue(info, in, out);
}

Request Communicator::reduceScatter(const void *in, void *out, DType dtype, ReduceOp op, const TensorCut &cut) {
  OperationInfo info{};
  info.kind = OperationKind::ReduceScatter;
  info.op = op;
  info.dtype = dtype;
  info.cut = cut;
  info.root = -1;
  return issue(info, in, out);
}

/// Of the kinds whose tensor is not cut.
static OperationInfo flatInfo(OperationKind kind, int64_t count, DType dtype, int root) {
  OperationInfo info{};
  info.kind = kind;
  info.dtype = dtype;
  info.cut = {1, count, 1, false};
  info.root = root;
  return info;
}

Request Communicator::allReduce(const void *in, void *out, int64_t count, DType dtype, ReduceOp op) {
  OperationInfo info = flatInfo(OperationKind::AllReduce, count, dtype, -1);
  info.op = op;
  return issue(info, in, out);
}

Request Communicator::shift(const void *in, void *out, int64_t count, DType dtype) {
  return issue(flatInfo(OperationKind::Shift, count, dtype, -1), in, out);
}

Request Communicator::broadcast(void *data, int64_t count, DType dtype, int root) {
  return issue(flatInfo(OperationKind::Broadcast, count, dtype, root), data, data);
}

Request Communicator::send(const void *data, int64_t count, DType dtype, int to) {
  return issue(flatInfo(OperationKind::Send, count, dtype, to), data, nullptr);
}

Request Communicator::receive(void *data, int64_t count, DType dtype, int from) {
  return issue(flatInfo(OperationKind::Receive, count, dtype, from), nullptr, data);
}

Request Communicator::handshake() {
  return issue(flatInfo(OperationKind::AllReduce, 0, DROVER_I64, -1), nullptr, nullptr);
}

void Communicator::barrier() { handshake().wait(); }

//===----------------------------------------------------------------------===//
// World
//===----------------------------------------------------------------------===//

std::unique_ptr<Communicator> World::createCommunicator(int id, std::string name, std::vector<int> members) {
  bool ascending = std::is_sorted(members.begin(), members.end()) &&
                   std::adjacent_find(members.begin(), members.end()) == members.end();
  bool inside = !members.empty() && members.front() >= 0 && members.back() < size();
  if (!ascending || !inside || !std::binary_search(members.begin(), members.end(), rank()))
    fail("communicator ", id, " (", name, ") of ", rankList(members), ": expected ascending ranks below ", size(),
         " with rank ", rank(), " among them");
  if (id < 0)
    fail("communicator ", id, " (", name, "): expected an id of at least 0");
  std::unique_ptr<Communicator> result = makeCommunicator(id, std::move(name), std::move(members));
  result->handshake().wait();
  return result;
}

void World::setDeadline(double newSeconds, std::string newPhase) {
  std::lock_guard<std::mutex> lock(mutex);
  seconds = newSeconds;
  phase = std::move(newPhase);
}

std::pair<double, std::string> World::deadline() const {
  std::lock_guard<std::mutex> lock(mutex);
  return {seconds, phase};
}

OperationCounts World::counts() const {
  std::lock_guard<std::mutex> lock(mutex);
  return counted;
}

void World::addToCounts(const OperationInfo &info, int members) {
  std::lock_guard<std::mutex> lock(mutex);
  OperationCount &count = counted[{info.communicator, info.kind, info.dtype}];
  ++count.operations;
  count.bytes += info.bytes;
  count.sent += sentBytes(info.kind, info.bytes, members);
}

Timing timingFromEnvironment() {
  const char *value = std::getenv("DROVER_RT_TIMING");
  std::string text = value ? value : "normal";
  if (text == "early")
    return Timing::Early;
  if (text == "late")
    return Timing::Late;
  if (text != "normal")
    fail("DROVER_RT_TIMING=", text, ": expected early, late or normal");
  return Timing::Normal;
}

} // namespace drover::rt
