//===- MpiWorld.h - ranks that are MPI processes ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_LIB_COMM_MPIWORLD_H
#define DROVER_RT_LIB_COMM_MPIWORLD_H

#include "comm/MpiOperation.h"
#include <condition_variable>
#include <deque>
#include <thread>

namespace drover::rt {

/// One thread makes all calls of MPI, from its start to its end, and gets operations on while the rank computes; so the
/// library needs no support for threads. It sleeps where nothing is in flight, and yields where nothing gets on.
class MpiWorld final : public World {
public:
  /// Throws Error where MPI does not start as the options say.
  MpiWorld(const MpiOptions &options, std::unique_ptr<MpiLibrary> library);
  ~MpiWorld() override;

  const char *backend() const override { return "mpi"; }
  void abort(const std::string &reason) noexcept override;

  bool waitFor(MpiOperation &operation, TimePoint deadline);
  void submit(std::shared_ptr<MpiOperation> operation);

protected:
  std::unique_ptr<Communicator> makeCommunicator(int id, std::string name, std::vector<int> members) override;

private:
  /// Operations that go one after the other: a group's collectives; messages to one member; those from one.
  using LaneKey = std::tuple<int, OperationKind, int>;

  /// What ranks tell each other beside operations.
  struct Note {
    enum Kind : int32_t { Ended, Bye };
    int32_t kind, rank;
    char text[1016];
  };

  void threadMain();
  void connect();
  void serve();
  void leave();
  bool takeIssued();
  bool mustEndAll();
  bool advanceLanes();
  void finish(MpiOperation &operation);
  void postNoteReceive();
  bool takeNotes();
  void sendNote(Note::Kind kind, const std::string &text);
  bool noteSendsEnded();
  void endAll();
  void idle(bool inFlight, int fruitless);

  MpiOptions options;
  std::unique_ptr<MpiLibrary> mpi;

  std::mutex mutex; // guards the first block
  std::condition_variable wakeThread, wakeRank;
  std::deque<std::shared_ptr<MpiOperation>> issued;
  bool connected = false, stopping = false, quiet = false, threadEnded = false;
  std::string connectFailure;
  int endedBy = -1;
  std::string endReason;

  // Of the thread that owns MPI.
  MpiHandle dataPlane = 0, notePlane = 0;
  int largestTag = 0;
  std::unique_ptr<MpiPort> port;
  std::map<LaneKey, std::deque<std::shared_ptr<MpiOperation>>> lanes;
  std::vector<std::shared_ptr<MpiOperation>> dead; // their memory may still be written to
  Note incoming;
  MpiHandle noteReceive = 0;
  std::deque<std::pair<Note, MpiHandle>> noteSends;
  int byes = 0;
  std::thread thread;
};

} // namespace drover::rt

#endif // DROVER_RT_LIB_COMM_MPIWORLD_H
