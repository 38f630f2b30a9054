//===- communicator.h - groups of ranks and what they exchange --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The contract is docs/communication.md. In short: operations are asynchronous; every member of a group issues the
// group's operations in one order; sums run over the members in their order, so that every member gets the same bits
// with every backend; a wait ends by its deadline with an Error that says who did not come.
#ifndef DROVER_RT_COMMUNICATOR_H
#define DROVER_RT_COMMUNICATOR_H

#include "drover/rt/abi.h"
#include "drover/rt/dtype.h"
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace drover::rt {

enum class OperationKind { AllGather, ReduceScatter, AllReduce, Broadcast, Send, Receive, Shift };
/// all_gather, reduce_scatter, all_reduce, broadcast, send, receive, shift
const char *operationName(OperationKind kind);

enum class ReduceOp { Sum = DROVER_SUM, Max = DROVER_MAX };

/// A tensor [outer, dim, inner] whose `dim` is cut over the members of a group; a member's part of it is `local` long.
/// twoChunk: the part of member i are the chunks i and 2n-1-i of the whole dimension, of local / 2 each.
struct TensorCut {
  int64_t outer = 1, local = 0, inner = 1;
  bool twoChunk = false;

  int64_t elements() const { return outer * local * inner; } // of a part
};

/// What a member says of an operation, for records, errors and the comparison between members.
struct OperationInfo {
  OperationKind kind;
  ReduceOp op = ReduceOp::Sum;
  DType dtype = DROVER_F32;
  /// Broadcast, send, receive, shift and all_reduce have `local` elements.
  TensorCut cut;
  int root = -1;    // broadcast: the member whose data it is; send and receive: the other member
  int communicator; // id
  /// Counts the collectives of the group, or the messages from one member to another, from 1. (0 is the handshake at
  /// the group's creation.)
  uint64_t sequence = 0;
  /// Of the whole tensor: of all members' parts where it is gathered or scattered.
  int64_t bytes = 0;
};

/// Bytes that a rank sends for an operation over `members` in which nothing is sent twice: b (n-1)/n for a gather or a
/// scatter of b bytes, twice that for all_reduce, b for the rest.
int64_t sentBytes(OperationKind kind, int64_t bytes, int members);

/// The state of an operation that a rank issued; defined by the backend.
class Operation;
class Device;
class Stream; // of a device

/// An operation in flight. It must be waited for; the buffers belong to the operation until then. One that is dropped
/// before (an error on the way) ends the world: the other ranks' waits fail. Must not outlive its communicator.
class Request {
public:
  Request();
  explicit Request(std::shared_ptr<Operation> operation);
  Request(Request &&) noexcept;
  Request &operator=(Request &&) noexcept;
  ~Request();

  /// True when there is nothing to wait for any more: complete, waited for, or never issued. Throws Error as wait does.
  bool test();
  /// Throws Error where the deadline passes, another rank ended, or members disagree about the operation; the world has
  /// then been aborted. Without `seconds` the world's deadline counts.
  void wait(std::optional<double> seconds = std::nullopt);
  /// What is put on the stream from now on begins after the operation, and the request is done with: the world sees to
  /// its deadline. Where a backend has no streams, or the operation's buffers are the host's, it waits.
  void waitOn(Stream &stream);
  /// Issued and not yet waited for.
  bool pending() const { return operation != nullptr; }

private:
  std::shared_ptr<Operation> operation;
};

/// Told of every operation of a rank, on the thread that issues or waits.
class OperationObserver {
public:
  virtual ~OperationObserver() = default;
  /// Returns what `completed` is to be called with.
  virtual int64_t issued(const OperationInfo &info) = 0;
  /// From the wait, or a test that found it complete.
  virtual void completed(int64_t token, const OperationInfo &info, int64_t issuedNs, int64_t completedNs) = 0;
};

/// Operations that a rank issued, by communicator, kind and dtype.
struct OperationCount {
  int64_t operations = 0;
  int64_t bytes = 0; // OperationInfo::bytes
  int64_t sent = 0;  // sentBytes
};
using OperationCounts = std::map<std::tuple<int, OperationKind, DType>, OperationCount>;

class Communicator;
/// An operation that was issued into a graph of the device: it is issued again by each launch.
struct KeptOperation {
  Communicator *communicator;
  OperationInfo info;
  uint32_t mark; // of its end, counted from the graph's beginning
};

class World;

/// One rank's handle of one group. Safe to use from several threads of the rank, as long as the order of issue is the
/// same at all members. Must not outlive its world.
class Communicator {
public:
  virtual ~Communicator() = default;

  int id() const { return number; }
  const std::string &name() const { return title; }
  int rank() const { return place; } // within the group
  int size() const { return int(group.size()); }
  const std::vector<int> &members() const { return group; } // ranks of the world, ascending

  /// `in` is a part, `out` the whole. Any dtype. `in` may lie in `out` at this member's place (outer 1, one chunk).
  Request allGather(const void *in, void *out, DType dtype, const TensorCut &cut);
  /// `in` is the whole, `out` a part; out may lie in `in` at this member's place (outer 1, one chunk).
  Request reduceScatter(const void *in, void *out, DType dtype, ReduceOp op, const TensorCut &cut);
  /// `in` and `out` may be equal.
  Request allReduce(const void *in, void *out, int64_t count, DType dtype, ReduceOp op);
  /// `in` to the next member, `out` from the one before, around the ring of all; they must not overlap.
  Request shift(const void *in, void *out, int64_t count, DType dtype);
  /// `data` of member `root` to all.
  Request broadcast(void *data, int64_t count, DType dtype, int root);
  /// A message to member `to`, which receives the messages of a member in the order of their sends. A send may be
  /// complete before it is received, and may also not be.
  Request send(const void *data, int64_t count, DType dtype, int to);
  Request receive(void *data, int64_t count, DType dtype, int from);
  /// Returns when all members are here.
  void barrier();

  /// The graph with it is launched now: counted, recorded and watched like an operation that is issued.
  void issueAgain(const KeptOperation &kept);

protected:
  Communicator(World &world, int id, std::string name, std::vector<int> members);

  /// Issues an operation that was checked and counted. Called in the order of issue, one at a time.
  virtual std::shared_ptr<Operation> start(const OperationInfo &info, const void *in, void *out) = 0;
  /// One that was issued into a graph is on its way again.
  virtual void startAgain(const OperationInfo &info, uint32_t mark) {}

  World &world;

private:
  friend class World;
  Request issue(OperationInfo info, const void *in, void *out);
  Request handshake();
  uint64_t &counterOf(const OperationInfo &info);
  /// Its place among those of its kind; counts it.
  uint64_t nextNumber(const OperationInfo &info);

  int number;
  std::string title;
  std::vector<int> group;
  int place;
  std::mutex issuing;
  uint64_t collectives = 0;
  std::vector<uint64_t> sends, receives; // by the other member
};

/// A rank among the ranks that were started together.
class World {
public:
  virtual ~World() = default;
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  int rank() const { return number; }
  int size() const { return count; }
  virtual const char *backend() const = 0; // inproc, mpi, nccl

  /// The group of `members`, ascending ranks of the world with this one among them. Collective over the members: all
  /// groups are created in one global order. Groups with one id have no member in common. Throws Error where a member
  /// does not come by the deadline, or was told other members.
  std::unique_ptr<Communicator> createCommunicator(int id, std::string name, std::vector<int> members);

  /// How long a wait lasts from now on; `phase` names it in errors: "start", "the first step", "a step".
  void setDeadline(double seconds, std::string phase);
  std::pair<double, std::string> deadline() const;

  /// The device in whose memory operations have their buffers; null: the host.
  virtual Device *device() { return nullptr; }
  /// For waits that no request is behind. Throws Error where the world has ended, or a group has failed.
  virtual void check() {}
  /// Operations issued from now on begin after what is on the stream by then; null (default): at once. Only backends
  /// of devices have streams; buffers in memory of the host are read at the call.
  virtual void issueAfter(Stream *stream) {}
  /// Operations issued until keepNone are kept for a graph of the device: they are on streams only, and nothing counts
  /// them before Communicator::issueAgain.
  void keepOperations() { keeping = true; }
  void keepNone() { keeping = false; }
  bool keepsOperations() const { return keeping; }
  /// Those that were kept since the last call.
  std::vector<KeptOperation> takeKept() { return std::exchange(kept, {}); }
  /// The device is idle, and what is issued next is a graph: marks count from its beginning.
  virtual void restartMarks() {}
  /// Memory of the device in which groups gather without multiprocessors: registered with those that are set up for
  /// that (docs/nccl.md). Null where none is. Collective over the ranks; equally large at all members of such a group.
  virtual void *openWindow(int64_t bytes) { return nullptr; }
  /// Before the groups go.
  virtual void closeWindow(void *base) noexcept {}
  /// The machine of each rank, by rank. Collective. Empty where the backend has one machine.
  virtual std::vector<std::string> hosts() { return {}; }

  /// What the first rank that asks for the key wants it to be. Backends of the host, where nothing is to be agreed on,
  /// say `own`.
  virtual std::string agree(const std::string &key, const std::string &own) { return own; }

  /// This rank has failed. The waits of all ranks fail from now on, those of other ranks with an Error that names this
  /// rank and the reason. When it returns, this rank's buffers are free. The first reason counts. Any thread.
  virtual void abort(const std::string &reason) noexcept = 0;

  /// Null (default): none. Not while operations are in flight. Not told of the handshakes of createCommunicator.
  void setObserver(OperationObserver *observer) { watcher = observer; }
  OperationObserver *observer() const { return watcher; }

  OperationCounts counts() const;

protected:
  World(int rank, int size) : number(rank), count(size) {}
  /// For a backend that learns it late; before anything else is done with the world.
  void setPlace(int rank, int size) {
    number = rank;
    count = size;
  }

  virtual std::unique_ptr<Communicator> makeCommunicator(int id, std::string name, std::vector<int> members) = 0;

private:
  friend class Communicator;
  void addToCounts(const OperationInfo &info, int members);

  int number, count;
  OperationObserver *watcher = nullptr;
  bool keeping = false;
  std::vector<KeptOperation> kept;
  mutable std::mutex mutex;
  double seconds = 300;
  std::string phase = "start";
  OperationCounts counted;
};

/// When operations between threads complete (docs/communication.md).
enum class Timing { Early, Late, Normal };
/// Of DROVER_RT_TIMING; normal where it is not set. Throws Error at another value.
Timing timingFromEnvironment();

/// The ranks 0 .. size-1 of a world of threads; each is used by the threads of its rank.
std::vector<std::unique_ptr<World>> createInprocWorlds(int size, Timing timing);

struct MpiOptions {
  /// The world of the launcher, compared with MPI's; 0: not known.
  int size = 0;
  int rank = -1;
  std::string launcher;
  /// Tried instead of the usual libraries; else DROVER_RT_MPI names one.
  std::string library;
  /// What is staged (for sums, and for parts that are not contiguous) goes in pieces of so many bytes a member.
  int64_t pieceBytes = int64_t(1) << 20;
  /// Most bytes of one message; MPI counts with 31 bits.
  int64_t messageBytes = int64_t(1) << 30;
};
/// This process's rank in MPI's world; libmpi is opened here. Once a process. Throws Error where there is no libmpi,
/// where it can't start, or its world is not the launcher's.
std::unique_ptr<World> connectMpi(const MpiOptions &options);

/// Where rank 0 has what ranks tell each other beside NCCL.
struct RendezvousAddress {
  std::string host;
  int port = 0;
};

/// What a process is to set up for NCCL, once and before it has threads (docs/nccl.md).
struct NcclRequest {
  std::string settings; // as compiled in; empty: none
  int ranks = 1;        // of this process
  std::string library;  // as NcclOptions
  std::string plugins;  // their folder; empty: DROVER_RT_NCCL_PLUGINS, else the executable's
};
struct NcclProcess;
/// Throws Error where there is no NCCL, or settings are malformed.
std::shared_ptr<const NcclProcess> prepareNccl(const NcclRequest &request);
/// What was set up, and what the user's variables keep from being so.
std::vector<std::string> describe(const NcclProcess &process);

struct NcclOptions {
  int rank = 0, size = 1;
  RendezvousAddress rendezvous;
  double startSeconds = 300; // until all are there
  /// Tried instead of the usual name; else DROVER_RT_NCCL names one.
  std::string library;
  std::shared_ptr<const NcclProcess> process; // null: all is NCCL's default
};
/// This rank in a world of GPUs; `device` is the rank's own, is used by the thread that calls this and by no other, and
/// must outlive the world. Throws Error where there is no NCCL, or rank 0 does not answer.
std::unique_ptr<World> connectNccl(const NcclOptions &options, Device &device);
/// The table that rank 0 holds for connectNccl; of ranks that are threads of one process, before any of them connects.
/// Its end waits until all have left.
class RendezvousHost {
public:
  virtual ~RendezvousHost() = default;
  virtual int port() const = 0;
};
/// At `port` of all interfaces, 0: any. Throws Error.
std::unique_ptr<RendezvousHost> hostRendezvous(int port, int ranks);

} // namespace drover::rt

/// A rank's groups as compiled code hands them on, and the collectives that its bodies have in flight. One thread at a
/// time. Nothing can be thrown through a body: after a failure its collectives return at once, and the caller of the
/// body asks check().
struct drover_communicators final {
public:
  /// Null where the rank has no such group (one member).
  void set(int id, drover::rt::Communicator *communicator) { groups[id] = communicator; }
  drover::rt::Communicator *find(int id) const {
    auto found = groups.find(id);
    return found == groups.end() ? nullptr : found->second;
  }

  /// Bodies issue on this stream, on which their waits are, too; null (default): they are done when they return.
  void setStream(drover::rt::Stream *bodies) { stream = bodies; }

  /// Throws Error where a collective failed since the last call, or a body returned with one in flight.
  void check();

  void start(const drover_collective &collective, const void *in, void *out, int slot);
  void wait(int slot);

private:
  std::map<int, drover::rt::Communicator *> groups;
  drover::rt::Request slots[DROVER_MAX_IN_FLIGHT];
  drover::rt::Stream *stream = nullptr;
  std::string failure;
};

#endif // DROVER_RT_COMMUNICATOR_H
