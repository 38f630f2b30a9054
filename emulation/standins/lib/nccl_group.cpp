//===- nccl_group.cpp - the stand-in NCCL: operations of a group ----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "nccl_group.h"
#include "comm/Parts.h"
#include "emu.h"
#include <cstring>

namespace drover::standin {

namespace nccl = rt::nccl;

bool Exchange::hasLost() const {
  for (const Side &side : sides)
    if (side.comm && side.comm->aborted)
      return true;
  return false;
}

void Exchange::order(size_t side, Clock &after) const {
  for (size_t other = 0; other < sides.size(); ++other) {
    bool sends = sides[side].call.kind == Kind::Message     ? other == 0
                 : sides[side].call.kind == Kind::Broadcast ? other == size_t(sides[side].call.root)
                                                            : true;
    if (sends && other != side)
      after.join(sides[other].clock);
  }
}

size_t bytesOf(int dtype) {
  switch (dtype) {
  case 0:
  case 1:
    return 1;
  case 6:
  case 9:
    return 2;
  case 2:
  case 3:
  case 7:
    return 4;
  default:
    return 8;
  }
}

std::string Call::describe() const {
  static constexpr const char *names[] = {"all_gather", "reduce_scatter", "all_reduce", "broadcast", "message"};
  return std::string(names[size_t(kind)]) + " of " + std::to_string(count) + " of type " + std::to_string(dtype) +
         ", operation " + std::to_string(op) + ", root " + std::to_string(root) +
         (window < 0 ? "" : ", at " + std::to_string(window) + " of its windows");
}

static bool fits(const Call &mine, const Call &theirs) {
  return mine.kind == theirs.kind && mine.count == theirs.count && mine.dtype == theirs.dtype && mine.op == theirs.op &&
         mine.root == theirs.root && mine.window == theirs.window;
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

/// Elements that a member reads and writes.
static size_t inCount(const Exchange &exchange, const Call &call) {
  return call.kind == Kind::ReduceScatter ? call.count * exchange.sides.size() : call.count;
}
static size_t outCount(const Exchange &exchange, const Call &call) {
  return call.kind == Kind::AllGather ? call.count * exchange.sides.size() : call.count;
}

static void reduce(const Call &call, const std::vector<const void *> &inputs, void *out) {
  std::map<int, drover_dtype> types = {{nccl::Float32, DROVER_F32},
                                       {nccl::Bfloat16, DROVER_BF16},
                                       {nccl::Float64, DROVER_F64},
                                       {nccl::Int64, DROVER_I64}};
  rt::reduceInOrder(types.at(call.dtype), call.op == nccl::Max ? rt::ReduceOp::Max : rt::ReduceOp::Sum, inputs,
                    int64_t(call.count), {out});
}

/// The root of a broadcast in place: NCCL sends from the buffer and does not write it.
static bool isOnlySent(const Call &call) { return call.kind == Kind::Broadcast && call.in == call.out; }

/// From copies of all inputs: a result may lie where an input did.
static void move(Exchange &exchange) {
  std::vector<std::vector<char>> inputs;
  for (const Exchange::Side &side : exchange.sides) {
    const char *from = static_cast<const char *>(side.call.in);
    size_t bytes = from ? inCount(exchange, side.call) * bytesOf(side.call.dtype) : 0;
    inputs.emplace_back(from, from + bytes);
  }
  for (size_t member = 0; member < exchange.sides.size(); ++member) {
    const Call &call = exchange.sides[member].call;
    size_t part = call.count * bytesOf(call.dtype);
    char *out = static_cast<char *>(call.out);
    if (!out || part == 0 || isOnlySent(call))
      continue;
    std::vector<const void *> parts;
    switch (call.kind) {
    case Kind::AllGather:
      for (size_t other = 0; other < inputs.size(); ++other)
        std::memcpy(out + other * part, inputs[other].data(), part);
      break;
    case Kind::ReduceScatter:
      for (const std::vector<char> &input : inputs)
        parts.push_back(input.data() + member * part);
      reduce(call, parts, out);
      break;
    case Kind::AllReduce:
      for (const std::vector<char> &input : inputs)
        parts.push_back(input.data());
      reduce(call, parts, out);
      break;
    case Kind::Broadcast:
      std::memcpy(out, inputs[size_t(call.root)].data(), part);
      break;
    case Kind::Message:
      std::memcpy(out, inputs[0].data(), part);
      break;
    }
    drover_emu_memory_written(out, outCount(exchange, call) * bytesOf(call.dtype));
  }
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

namespace {
/// The calls of a group on one communicator: one kernel.
struct Flight {
  Comm *comm;
  std::shared_ptr<Group> group;
  std::vector<std::pair<std::shared_ptr<Exchange>, size_t>> sides; // and which of its sides is this member's
  bool begun = false;
};

/// Kernels of a device begin in the order in which the host has issued them (NCCL_LAUNCH_ORDER_IMPLICIT). Guarded by
/// the engine's lock.
std::deque<std::shared_ptr<Flight>> &launchesOf(int device) {
  static auto *const all = new std::map<int, std::deque<std::shared_ptr<Flight>>>;
  return (*all)[device];
}
} // namespace

/// Under the engine's lock: begins where it can; true once all members have.
static bool canEnd(const std::shared_ptr<Flight> &flight, int device, const Stream &stream, Work &work) {
  std::deque<std::shared_ptr<Flight>> &launches = launchesOf(device);
  bool over = flight->comm->aborted || !flight->group->failure.empty();
  if (!flight->begun && (over || launches.front() == flight)) {
    flight->begun = true;
    for (auto &[exchange, side] : flight->sides) {
      exchange->sides[side].begun = true;
      exchange->sides[side].clock = stream.clock;
      exchange->sides[side].clock.join(work.clock);
      ++exchange->begun;
    }
    launches.erase(std::find(launches.begin(), launches.end(), flight));
    Engine::instance().noteProgress();
  }
  if (!flight->begun || over)
    return flight->begun;
  // Where a member has gone the others wait for ever, until they go too.
  for (auto &[exchange, side] : flight->sides)
    if (!exchange->canMove() || (!exchange->moved && exchange->hasLost()))
      return false;
  // Its own buffers are the operation's from its beginning to its end, whatever the others had done before they sent.
  for (auto &[exchange, side] : flight->sides)
    exchange->order(side, work.after);
  return true;
}

static void finish(const Flight &flight, const Work &work) {
  std::vector<std::pair<Call, Exchange *>> moved;
  {
    std::lock_guard<std::mutex> alone(flight.group->moving);
    std::unique_lock<std::mutex> guard(Engine::instance().lock());
    bool over = flight.comm->aborted || !flight.group->failure.empty();
    for (const auto &[exchange, side] : flight.sides) {
      if (!over && !exchange->moved && exchange->hasLost())
        flight.group->failure = "a member has gone";
      over |= !flight.group->failure.empty();
      moved.emplace_back(exchange->sides[side].call, exchange.get());
    }
    --flight.comm->inFlight;
    guard.unlock();
    if (over)
      return;
    for (const auto &[exchange, side] : flight.sides)
      if (!exchange->moved)
        move(*exchange);
    guard.lock();
    for (const auto &[exchange, side] : flight.sides)
      exchange->moved = true;
  }
  for (const auto &[call, exchange] : moved) {
    size_t element = bytesOf(call.dtype);
    if (call.in)
      Memory::instance().touch(work, call.in, inCount(*exchange, call) * element, false);
    if (call.out && !isOnlySent(call))
      Memory::instance().touch(work, call.out, outCount(*exchange, call) * element, true);
  }
}

/// Under the engine's lock: this member's side of the operation.
static std::pair<std::shared_ptr<Exchange>, size_t> join(const Pending &pending) {
  Comm &comm = *pending.comm;
  Group &group = *comm.group;
  bool message = pending.call.kind == Kind::Message;
  int sender = pending.sends ? comm.rank : pending.peer, receiver = pending.sends ? pending.peer : comm.rank;
  uint64_t number = !message        ? comm.collectives++
                    : pending.sends ? comm.sends[size_t(pending.peer)]++
                                    : comm.receives[size_t(pending.peer)]++;
  std::shared_ptr<Exchange> &place = message ? group.messages[{sender, receiver, number}] : group.collectives[number];
  if (!place) {
    place = std::make_shared<Exchange>();
    place->sides.resize(message ? 2 : group.members.size());
  }
  std::shared_ptr<Exchange> exchange = place;
  size_t side = message ? (pending.sends ? 0 : 1) : size_t(comm.rank);
  exchange->sides[side] = {&comm, pending.call, false, {}};
  bool complete = true;
  for (size_t other = 0; other < exchange->sides.size(); ++other) {
    const Exchange::Side &theirs = exchange->sides[other];
    complete &= theirs.comm != nullptr;
    if (!theirs.comm || fits(pending.call, theirs.call) || !group.failure.empty())
      continue;
    group.failure = "members have issued different operations: " + pending.call.describe() + " on member " +
                    std::to_string(comm.rank) + ", " + theirs.call.describe() + " on member " +
                    std::to_string(theirs.comm->rank);
  }
  if (complete && message)
    group.messages.erase({sender, receiver, number});
  else if (complete)
    group.collectives.erase(number);
  return {exchange, side};
}

/// On a stream, or on that which stands for it in a launch of a graph.
static int enqueueOn(Stream &stream, const std::vector<Pending> &calls) {
  Comm &comm = *calls.front().comm;
  auto flight = std::make_shared<Flight>();
  flight->comm = &comm;
  flight->group = comm.group;
  std::string failure;
  {
    std::lock_guard<std::mutex> guard(Engine::instance().lock());
    bool failedBefore = !comm.group->failure.empty();
    for (const Pending &call : calls)
      flight->sides.push_back(join(call));
    if (!failedBefore)
      failure = comm.group->failure;
    ++comm.inFlight;
    launchesOf(comm.device).push_back(flight);
  }
  if (!failure.empty())
    report("nccl: " + failure);
  Engine::instance().enqueue(
      stream, calls.front().call.describe() + " on " + describe(stream),
      [flight](const Work &work) { finish(*flight, work); },
      [flight, device = comm.device](const Stream &stream, Work &work) {
        return canEnd(flight, device, stream, work);
      });
  Engine::instance().wake();
  return failure.empty() ? nccl::Success : nccl::InvalidUsage;
}

/// Into a graph: members meet at its launches, in the order of its calls.
int enqueueTogether(const std::vector<Pending> &calls) {
  Comm &comm = *calls.front().comm;
  Stream *stream = streamOf(calls.front().stream, "an operation of NCCL");
  if (!stream || stream->device != comm.device)
    return nccl::InvalidArgument;
  bool kept = Engine::instance().keepCall(*stream, [calls, held = comm.graphs](Stream &lane) {
    if (!calls.front().comm->aborted)
      enqueueOn(lane, calls);
  });
  return kept ? int(nccl::Success) : enqueueOn(*stream, calls);
}

} // namespace drover::standin
