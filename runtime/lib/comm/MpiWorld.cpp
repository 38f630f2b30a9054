//===- MpiWorld.cpp - ranks that are MPI processes ------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "comm/MpiWorld.h"
#include "drover/rt/error.h"
#include "drover/rt/flight_recorder.h"
#include "drover/rt/hash.h"
#include <algorithm>
#include <cstdlib>

namespace drover::rt {

using namespace std::chrono_literals;

/// How long a rank that has failed waits for the others to end by themselves, with their own words.
static constexpr auto endGrace = 5s;

namespace {
class MpiCommunicator : public Communicator {
public:
  MpiCommunicator(MpiWorld &world, int id, const std::string &name, const std::vector<int> &members)
      : Communicator(world, id, name, members), owner(world) {
    hash.mix(uint64_t(id));
    hash.mix(name);
    for (int member : members)
      hash.mix(uint64_t(member));
  }

protected:
  std::shared_ptr<Operation> start(const OperationInfo &info, const void *in, void *out) override {
    auto operation = std::make_shared<MpiOperation>(owner, *this, info, in, out, hash.value());
    owner.submit(operation);
    return operation;
  }

private:
  MpiWorld &owner;
  Fnv1a hash; // of what all members must have alike
};
} // namespace

//===----------------------------------------------------------------------===//
// What the rank's threads call
//===----------------------------------------------------------------------===//

MpiWorld::MpiWorld(const MpiOptions &options, std::unique_ptr<MpiLibrary> library)
    : World(0, 1), options(options), mpi(std::move(library)) {
  thread = std::thread([this] { threadMain(); });
  std::unique_lock<std::mutex> lock(mutex);
  wakeRank.wait(lock, [&] { return connected || threadEnded; });
  if (connected)
    return;
  lock.unlock();
  thread.join();
  throw Error(connectFailure);
}

MpiWorld::~MpiWorld() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  wakeThread.notify_all();
  thread.join();
}

void MpiWorld::abort(const std::string &reason) noexcept {
  std::unique_lock<std::mutex> lock(mutex);
  if (endedBy < 0) {
    endedBy = rank();
    endReason = reason;
  }
  wakeThread.notify_all();
  wakeRank.notify_all();
  wakeRank.wait_for(lock, 5s, [&] { return quiet || threadEnded; });
}

void MpiWorld::submit(std::shared_ptr<MpiOperation> operation) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    issued.push_back(std::move(operation));
  }
  wakeThread.notify_one();
}

bool MpiWorld::waitFor(MpiOperation &operation, TimePoint deadline) {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    if (operation.state == MpiOperation::State::Complete)
      return true;
    if (operation.state == MpiOperation::State::Failed)
      fail(operation.describe(), ": ", operation.error());
    if (endedBy >= 0)
      fail(endedBy == rank() ? endReason : concat("rank ", endedBy, " has ended: ", endReason));
    if (std::chrono::steady_clock::now() >= deadline)
      return false;
    wakeRank.wait_until(lock, deadline);
  }
}

std::unique_ptr<Communicator> MpiWorld::makeCommunicator(int id, std::string name, std::vector<int> members) {
  if (id > largestCommunicatorId(largestTag))
    fail("communicator ", id, " (", name, "): this MPI allows tags up to ", largestTag, ", so ids up to ",
         largestCommunicatorId(largestTag));
  return std::make_unique<MpiCommunicator>(*this, id, name, members);
}

//===----------------------------------------------------------------------===//
// The thread that owns MPI
//===----------------------------------------------------------------------===//

void MpiWorld::threadMain() {
  try {
    connect();
    {
      std::lock_guard<std::mutex> lock(mutex);
      connected = true;
    }
    wakeRank.notify_all();
    serve();
    leave();
  } catch (const Error &error) {
    std::lock_guard<std::mutex> lock(mutex);
    connectFailure = error.what();
    if (endedBy < 0) {
      endedBy = rank();
      endReason = error.what();
    }
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    threadEnded = true;
  }
  wakeRank.notify_all();
}

void MpiWorld::connect() {
  int flag = 0, provided = 0, mpiRank = -1, mpiSize = 0;
  mpi->check(mpi->initialized(&flag), "MPI_Initialized");
  if (flag)
    fail("mpi: already in use in this process");
  constexpr int funneled = 1; // other threads exist, none of which calls MPI
  mpi->check(mpi->initThread(nullptr, nullptr, funneled, &provided), "MPI_Init_thread");
  if (provided < funneled)
    fail("mpi: ", mpi->version(), " allows no other threads in the process");
  mpi->check(mpi->commRank(mpi->world, &mpiRank), "MPI_Comm_rank");
  mpi->check(mpi->commSize(mpi->world, &mpiSize), "MPI_Comm_size");
  bool asLaunched = options.size == 0 || (mpiSize == options.size && (options.rank < 0 || mpiRank == options.rank));
  if (!asLaunched) {
    mpi->finalize();
    fail(options.launcher.empty() ? "the launcher" : options.launcher, " says rank ", options.rank, " of ",
         options.size, ", but ", mpi->version(), " (", mpi->path(), ") rank ", mpiRank, " of ", mpiSize,
         "; start the processes with the mpirun or mpiexec of this library, or with srun --mpi=pmix, or run the ranks "
         "as threads with --backend=inproc");
  }
  setPlace(mpiRank, mpiSize);
  mpi->check(mpi->commDup(mpi->world, &dataPlane), "MPI_Comm_dup");
  mpi->check(mpi->commDup(mpi->world, &notePlane), "MPI_Comm_dup");
  for (MpiHandle plane : {dataPlane, notePlane})
    mpi->check(mpi->commSetErrhandler(plane, mpi->errorsReturn), "MPI_Comm_set_errhandler");
  int *upperBound = nullptr;
  mpi->check(mpi->commGetAttr(mpi->world, mpi->tagUpperBound, &upperBound, &flag), "MPI_Comm_get_attr");
  largestTag = flag ? *upperBound : 32767; // the least that the standard allows
  port = std::make_unique<MpiPort>(MpiPort{*mpi, dataPlane, options.pieceBytes, options.messageBytes});
  postNoteReceive();
}

void MpiWorld::serve() {
  int fruitless = 0;
  while (true) {
    bool moved = takeIssued();
    if (mustEndAll())
      endAll();
    moved |= advanceLanes();
    moved |= takeNotes();
    bool inFlight = !noteSendsEnded() || !lanes.empty();
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (stopping && issued.empty() && (lanes.empty() || endedBy >= 0))
        return;
    }
    fruitless = moved ? 0 : fruitless + 1;
    if (!moved)
      idle(inFlight, fruitless);
  }
}

/// Sleeps until something is issued, a little where something is in flight: the processes may be more than the cores,
/// and one that polls takes time from those that compute.
void MpiWorld::idle(bool inFlight, int fruitless) {
  constexpr int yields = 64;
  if (inFlight && fruitless < yields) {
    std::this_thread::yield();
    return;
  }
  auto pause = !inFlight ? 5ms : fruitless < 16 * yields ? std::chrono::microseconds(50) : 200us;
  std::unique_lock<std::mutex> lock(mutex);
  wakeThread.wait_for(lock, pause, [&] { return !issued.empty() || stopping || (endedBy >= 0 && !quiet); });
}

bool MpiWorld::takeIssued() {
  std::deque<std::shared_ptr<MpiOperation>> taken;
  bool over;
  {
    std::lock_guard<std::mutex> lock(mutex);
    taken.swap(issued);
    over = endedBy >= 0;
  }
  for (std::shared_ptr<MpiOperation> &operation : taken) {
    if (over) {
      dead.push_back(std::move(operation));
      continue;
    }
    operation->announce(*port);
    const OperationInfo &info = operation->info;
    LaneKey key = {info.communicator, operation->isMessage() ? info.kind : OperationKind::AllReduce, info.root};
    if (!operation->isMessage())
      std::get<2>(key) = -1;
    lanes[key].push_back(std::move(operation));
  }
  return !taken.empty();
}

bool MpiWorld::advanceLanes() {
  bool moved = false;
  for (auto lane = lanes.begin(); lane != lanes.end();) {
    auto &queue = lane->second;
    for (size_t i = 0; i < queue.size(); ++i)
      moved |= queue[i]->advance(*port, i == 0);
    while (!queue.empty() && (queue.front()->ended() || !queue.front()->error().empty())) {
      finish(*queue.front());
      if (!queue.front()->error().empty())
        dead.push_back(queue.front());
      queue.pop_front();
    }
    lane = queue.empty() ? lanes.erase(lane) : std::next(lane);
  }
  return moved;
}

void MpiWorld::finish(MpiOperation &operation) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    operation.endNs = monotonicNs();
    operation.state = operation.error().empty() ? MpiOperation::State::Complete : MpiOperation::State::Failed;
  }
  wakeRank.notify_all();
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

bool MpiWorld::mustEndAll() {
  std::lock_guard<std::mutex> lock(mutex);
  return endedBy >= 0 && !quiet;
}

/// The world has failed: nothing more is moved, and the other ranks are told where it was this one.
void MpiWorld::endAll() {
  for (auto &[key, queue] : lanes)
    for (std::shared_ptr<MpiOperation> &operation : queue) {
      operation->cancel(*port);
      dead.push_back(std::move(operation));
    }
  lanes.clear();
  bool here;
  std::string reason;
  {
    std::lock_guard<std::mutex> lock(mutex);
    here = endedBy == rank();
    reason = endReason;
  }
  if (here)
    sendNote(Note::Ended, reason);
  {
    std::lock_guard<std::mutex> lock(mutex);
    quiet = true;
  }
  wakeRank.notify_all();
}

void MpiWorld::postNoteReceive() {
  noteReceive = mpi->nullRequest;
  mpi->check(mpi->irecv(&incoming, int(sizeof(Note)), mpi->byte, mpi->anySource, 0, notePlane, &noteReceive),
             "MPI_Irecv");
}

bool MpiWorld::takeNotes() {
  bool some = false;
  while (true) {
    int done = 0;
    MpiStatus status;
    mpi->check(mpi->test(&noteReceive, &done, &status), "MPI_Test");
    if (!done)
      return some;
    some = true;
    incoming.text[sizeof(incoming.text) - 1] = 0;
    if (incoming.kind == Note::Bye) {
      ++byes;
    } else {
      std::lock_guard<std::mutex> lock(mutex);
      if (endedBy < 0) {
        endedBy = incoming.rank;
        endReason = incoming.text;
      }
      wakeRank.notify_all();
    }
    postNoteReceive();
  }
}

void MpiWorld::sendNote(Note::Kind kind, const std::string &text) {
  for (int other = 0; other < size(); ++other) {
    if (other == rank())
      continue;
    auto &[note, request] = noteSends.emplace_back(Note{}, mpi->nullRequest);
    note.kind = kind;
    note.rank = rank();
    std::copy_n(text.data(), std::min(text.size(), sizeof(note.text) - 1), note.text);
    mpi->check(mpi->isend(&note, int(sizeof(Note)), mpi->byte, other, 0, notePlane, &request), "MPI_Isend");
  }
}

bool MpiWorld::noteSendsEnded() {
  while (!noteSends.empty()) {
    int done = 0;
    MpiStatus status;
    mpi->check(mpi->test(&noteSends.front().second, &done, &status), "MPI_Test");
    if (!done)
      return false;
    noteSends.pop_front();
  }
  return true;
}

/// Waits for the others, so that none is left with an MPI that hangs in its end. Where the world has failed, or others
/// do not come, the process ends without MPI_Finalize, and the launcher ends the rest.
void MpiWorld::leave() {
  sendNote(Note::Bye, "");
  auto begin = std::chrono::steady_clock::now();
  auto patience = std::chrono::duration<double>(deadline().first);
  while (byes < size() - 1 || !noteSendsEnded()) {
    takeNotes();
    bool failed;
    {
      std::lock_guard<std::mutex> lock(mutex);
      failed = endedBy >= 0;
    }
    auto spent = std::chrono::steady_clock::now() - begin;
    if (failed ? spent > endGrace : spent > patience)
      return;
    std::this_thread::sleep_for(200us);
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (endedBy >= 0)
      return;
  }
  int done = 0;
  MpiStatus status;
  mpi->check(mpi->cancel(&noteReceive), "MPI_Cancel");
  while (!done)
    mpi->check(mpi->test(&noteReceive, &done, &status), "MPI_Test");
  mpi->check(mpi->finalize(), "MPI_Finalize");
}

std::unique_ptr<World> connectMpi(const MpiOptions &options) {
  auto library = std::make_unique<MpiLibrary>(options.library);
  // Open MPI yields by itself only where its mpirun knows that processes outnumber cores.
  ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  return std::make_unique<MpiWorld>(options, std::move(library));
}

} // namespace drover::rt
