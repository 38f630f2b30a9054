//===- NcclWorld.h - ranks with a GPU each, by NCCL -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The thread of the rank makes all calls of NCCL and CUDA, none of which blocks, and waits by looking at a word of
// pinned memory that the device writes behind each operation. The watchdog looks at the same words and at the clock: it
// never calls CUDA or NCCL, and so it lives when they hang.
#ifndef DROVER_RT_LIB_COMM_NCCLWORLD_H
#define DROVER_RT_LIB_COMM_NCCLWORLD_H

#include "comm/NcclLibrary.h"
#include "comm/NcclProcess.h"
#include "comm/Operation.h"
#include "comm/Rendezvous.h"
#include "drover/rt/device.h"
#include <atomic>
#include <deque>
#include <thread>

namespace drover::rt {

class NcclCommunicator;
class NcclWorld;

/// What a rank has issued of one sequence of a group: its collectives, or the messages to or from one member.
struct IssueLog {
  int64_t last = -1;                                  // a group's handshake is 0
  std::deque<std::pair<int64_t, std::string>> recent; // sequence and shape
};
/// Communicator; -1, or world rank of the other side times two, plus one where it is received from.
using LaneKey = std::pair<int, int>;

class NcclOperation final : public Operation {
public:
  NcclOperation(NcclWorld &world, NcclCommunicator &communicator, const OperationInfo &info);
  ~NcclOperation() override;

  bool waitUntil(TimePoint deadline) override;
  bool waitOn(Stream &stream) override;
  std::vector<int> missing() override { return absent; }
  int64_t completedNs() const override { return endNs; }

  /// The device has written the word behind it. Any thread.
  bool hasPassed() const;
  LaneKey lane() const;

  Event *event = nullptr;
  DeviceMemory hostCopy; // where `hostOut` comes from
  void *hostOut = nullptr;
  int64_t hostBytes = 0;
  TimePoint overdue; // for the watchdog

private:
  /// What it has of the device, by the rank's thread.
  void releaseBuffers();

  NcclWorld &owner;
  NcclCommunicator &group;
  std::vector<int> absent;
  int64_t endNs = 0;
};

class NcclCommunicator final : public Communicator {
public:
  NcclCommunicator(NcclWorld &world, int id, std::string name, std::vector<int> members);
  /// Not collective: every member has waited for its operations.
  ~NcclCommunicator() override;

  /// Creates NCCL's communicator. Throws Error.
  void connect();
  /// Gives up NCCL's communicator with all that is in flight on it.
  void abort() noexcept;
  /// Throws Error where NCCL has failed since.
  void checkState();
  /// Throws where `code` is neither success nor in progress; waits until nothing is in progress any more.
  void settle(int code, const char *call);
  uint32_t *word() const { return reinterpret_cast<uint32_t *>(words.data()); }

  Stream &stream;

  /// Whether its gathers are to be in registered memory; registers, and gives up what it registered. NCCL's lock is
  /// held.
  bool wantsWindows() const { return windowed; }
  void registerWindow(void *base, int64_t bytes);
  void deregisterWindow(void *base) noexcept;
  /// Nothing is in flight: the word and the marks begin again.
  void restartMarks();

protected:
  std::shared_ptr<Operation> start(const OperationInfo &info, const void *in, void *out) override;
  void startAgain(const OperationInfo &info, uint32_t mark) override;

private:
  struct Buffers {
    const void *in;
    void *out;
  };
  void issue(const OperationInfo &info, Buffers buffers);
  void exchange(const OperationInfo &info, Buffers buffers);
  void copyParts(const OperationInfo &info, const void *from, void *to, bool pack);
  std::string describeAbsent() const;
  Buffers fromHost(const OperationInfo &info, Buffers buffers, NcclOperation &operation);
  uint8_t *scratch(DeviceMemory &memory, int64_t bytes);

  NcclWorld &owner;
  nccl::Handle handle = nullptr;
  bool windowed = false;
  std::map<void *, nccl::Handle> windows; // by their first byte
  std::string joinKey;                    // of what members say when they come
  DeviceMemory words;                     // pinned
  uint32_t marks = 0;
  DeviceMemory packed, hostIn, hostOut, token;
  std::vector<DeviceMemory> retired; // of smaller ones that may still be in use
};

class NcclWorld final : public World {
public:
  NcclWorld(const NcclOptions &options, Device &device);
  ~NcclWorld() override;

  const char *backend() const override { return "nccl"; }
  void abort(const std::string &reason) noexcept override;
  Device *device() override { return &ownDevice; }
  void check() override;
  void issueAfter(Stream *stream) override { before = stream; }
  void restartMarks() override;
  void *openWindow(int64_t bytes) override;
  void closeWindow(void *base) noexcept override;
  std::vector<std::string> hosts() override;
  std::string agree(const std::string &key, const std::string &own) override;

  /// Throws Error where the world has ended.
  void checkAlive();
  bool hasEnded() const { return over.load(std::memory_order_acquire); }
  /// Watched from now on.
  void submitted(const std::shared_ptr<NcclOperation> &operation);
  /// The communicator goes: nobody looks at its operations any more.
  void forget(const NcclCommunicator &communicator);
  /// What belongs to the device is given back by the rank's thread only.
  void keepForLater(Event *event, DeviceMemory memory);
  /// Who has not issued the operation by now. Throws Error where another member has issued another one in its place.
  std::vector<int> survey(const NcclOperation &operation);
  TimePoint startDeadline() const;

  NcclLibrary library;
  const std::shared_ptr<const NcclProcess> process; // may be null
  Device &ownDevice;
  Stream *before = nullptr;
  std::unique_ptr<RendezvousClient> rendezvous;
  std::timed_mutex issuing; // held while NCCL is called
  std::map<std::pair<int, std::string>, int> created;
  std::vector<NcclCommunicator *> communicators; // that live; guarded by `issuing`

protected:
  std::unique_ptr<Communicator> makeCommunicator(int id, std::string name, std::vector<int> members) override;

private:
  /// Waits for a key until the deadline.
  std::string await(const std::string &key);
  void compareSettings();
  void onNote(const std::string &key, const std::string &value);
  void end(int byRank, const std::string &reason);
  void watch();
  void checkOverdue();

  TimePoint nextLook = {}; // of check() at the communicators
  std::mutex looking;      // held while the watchdog uses an operation
  std::mutex mutex;        // guards what follows
  int endedBy = -1;
  std::string endReason;
  TimePoint endedAt;
  bool abortedHere = false, stopping = false;
  bool compared = false; // the rank's thread only
  std::map<LaneKey, IssueLog> logs;
  std::deque<std::shared_ptr<NcclOperation>> inFlight;
  int surveys = 0;
  std::atomic<bool> over{false};
  std::condition_variable changed;
  std::mutex kept;
  std::vector<std::pair<Event *, DeviceMemory>> unused; // of operations that ended otherwise; guarded by `kept`
  std::thread watchdog;
};

} // namespace drover::rt

#endif // DROVER_RT_LIB_COMM_NCCLWORLD_H
