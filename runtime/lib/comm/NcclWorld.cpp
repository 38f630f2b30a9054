//===- NcclWorld.cpp - ranks with a GPU each, by NCCL ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "comm/NcclWorld.h"
#include "drover/rt/error.h"
#include "drover/rt/fatal.h"
#include "drover/rt/text.h"
#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <unistd.h>

namespace drover::rt {

using namespace std::chrono_literals;

/// How long a rank that has failed may take to get out of NCCL and CUDA before its process is ended.
static constexpr auto stuckAfter = 20s;
/// How long others may take to say what they have issued.
static constexpr auto surveySpan = 5s;

static TimePoint after(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<TimePoint::duration>(std::chrono::duration<double>(seconds));
}

/// As the user says where machines do not know it themselves (containers), else the system's.
static std::string hostName() {
  const char *asked = std::getenv("DROVER_RT_HOST");
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  return asked && *asked ? asked : name;
}

NcclWorld::NcclWorld(const NcclOptions &options, Device &device)
    : World(options.rank, options.size), library(options.library), process(options.process), ownDevice(device) {
  setDeadline(options.startSeconds, "start");
  rendezvous = std::make_unique<RendezvousClient>(
      options.rendezvous.host, options.rendezvous.port, options.rank, startDeadline(),
      [this](const std::string &key, const std::string &value) { onNote(key, value); });
  rendezvous->set(concat("host/", rank()), hostName());
  watchdog = std::thread([this] { watch(); });
}

/// Communicators are gone by now.
NcclWorld::~NcclWorld() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  watchdog.join();
  rendezvous.reset();
  inFlight.clear();
  for (auto &[event, memory] : unused)
    ownDevice.giveBack(*event);
}

TimePoint NcclWorld::startDeadline() const { return after(deadline().first); }

std::string NcclWorld::await(const std::string &key) {
  std::optional<std::string> value = rendezvous->get(key, startDeadline(), [&] { return hasEnded(); });
  checkAlive();
  if (!value)
    fail("rendezvous: ", key, " has not come within ", deadline().first, " s (deadline of ", deadline().second, ")");
  return *value;
}

std::string NcclWorld::agree(const std::string &key, const std::string &own) {
  rendezvous->set("agreed/" + key, own);
  return await("agreed/" + key);
}

/// Members of a group that are set up differently, or tuned differently, wait for each other for ever.
void NcclWorld::compareSettings() {
  if (process && agree("nccl settings", process->digest) != process->digest)
    fail("nccl: rank ", rank(), " has other settings than the first rank that came: expected one ",
         ncclSettingsVariable, " for all ranks");
}

/// Rank 0 makes one text of all names, so that each rank asks for one key.
std::vector<std::string> NcclWorld::hosts() {
  if (rank() == 0) {
    std::string all;
    for (int other = 0; other < size(); ++other)
      all += await(concat("host/", other)) + "\n";
    rendezvous->set("hosts", all);
  }
  std::istringstream text(await("hosts"));
  std::vector<std::string> names(static_cast<size_t>(size()));
  for (std::string &name : names)
    std::getline(text, name);
  return names;
}

std::unique_ptr<Communicator> NcclWorld::makeCommunicator(int id, std::string name, std::vector<int> members) {
  if (!std::exchange(compared, true))
    compareSettings();
  auto communicator = std::make_unique<NcclCommunicator>(*this, id, std::move(name), std::move(members));
  communicator->connect();
  return communicator;
}

void *NcclWorld::openWindow(int64_t bytes) {
  auto wants = [](const NcclCommunicator *communicator) { return communicator->wantsWindows(); };
  if (bytes <= 0 || std::none_of(communicators.begin(), communicators.end(), wants))
    return nullptr;
  void *base = nullptr;
  if (int code = library.memAlloc(&base, size_t(bytes)))
    fail("nccl: ncclMemAlloc of ", formatBytes(bytes), " on rank ", rank(), ", ", ownDevice.describe(), ": ",
         library.describe(code, nullptr), "; ", formatBytes(ownDevice.memoryInfo().first), " are free");
  std::lock_guard<std::timed_mutex> lock(issuing);
  for (NcclCommunicator *communicator : communicators)
    if (wants(communicator))
      communicator->registerWindow(base, bytes);
  return base;
}

void NcclWorld::closeWindow(void *base) noexcept {
  std::lock_guard<std::timed_mutex> lock(issuing);
  for (NcclCommunicator *communicator : communicators)
    communicator->deregisterWindow(base);
  library.memFree(base);
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

/// The first reason counts.
void NcclWorld::end(int byRank, const std::string &reason) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (endedBy >= 0)
      return;
    endedBy = byRank;
    endReason = reason;
    endedAt = std::chrono::steady_clock::now();
  }
  over.store(true, std::memory_order_release);
}

void NcclWorld::checkAlive() {
  if (!hasEnded()) {
    if (!rendezvous->isLost())
      return;
    end(0, "its connection is lost");
  }
  std::lock_guard<std::mutex> lock(mutex);
  if (endedBy == rank())
    fail(endReason);
  throw EndedElsewhere(concat("rank ", endedBy, " has ended: ", endReason));
}

void NcclWorld::check() {
  checkAlive();
  TimePoint now = std::chrono::steady_clock::now();
  if (now < nextLook)
    return;
  nextLook = now + 100ms;
  std::lock_guard<std::timed_mutex> lock(issuing);
  for (NcclCommunicator *communicator : communicators)
    communicator->checkState();
}

void NcclWorld::abort(const std::string &reason) noexcept {
  end(rank(), reason);
  rendezvous->set("note/ended", concat(rank(), "\n", reason)); // where another rank was first, its note stays
  std::unique_lock<std::timed_mutex> lock(issuing, std::defer_lock);
  // Another thread that hangs in NCCL keeps it; the watchdog ends the process then.
  if (!lock.try_lock_for(stuckAfter))
    return;
  for (NcclCommunicator *communicator : communicators)
    communicator->abort();
  std::lock_guard<std::mutex> guard(mutex);
  abortedHere = true;
}

void NcclWorld::onNote(const std::string &key, const std::string &value) {
  std::istringstream text(value);
  if (key == "note/ended") {
    int byRank = 0;
    text >> byRank;
    text.get(); // the end of its line
    std::string reason{std::istreambuf_iterator<char>(text), {}};
    return end(byRank, reason);
  }
  // "note/survey/RANK/NUMBER": COMMUNICATOR LANE SEQUENCE by rank, of those who are asked
  int communicator = 0, lane = 0, asked = 0;
  int64_t sequence = 0;
  std::string answer;
  while (text >> asked >> communicator >> lane >> sequence) {
    if (asked != rank())
      continue;
    std::lock_guard<std::mutex> lock(mutex);
    const IssueLog &log = logs[{communicator, lane}];
    answer = concat(log.last, "\n");
    for (const auto &[number, shape] : log.recent)
      if (number == sequence)
        answer += shape;
  }
  if (!answer.empty())
    rendezvous->set(concat(key.substr(5), "/", rank()), answer);
}

std::vector<int> NcclWorld::survey(const NcclOperation &operation) {
  const OperationInfo &info = operation.info;
  const std::vector<int> &members = operation.communicator.members();
  bool message = info.kind == OperationKind::Send || info.kind == OperationKind::Receive;
  std::vector<int> asked;
  std::string question;
  for (int other : members) {
    if (other == rank() || (message && other != members[size_t(info.root)]))
      continue;
    asked.push_back(other);
    int lane = !message ? -1 : rank() * 2 + (info.kind == OperationKind::Send ? 1 : 0); // of the other side
    question += concat(other, " ", info.communicator, " ", lane, " ", info.sequence, "\n");
  }
  std::string key;
  {
    std::lock_guard<std::mutex> lock(mutex);
    key = concat("survey/", rank(), "/", surveys++);
  }
  rendezvous->set("note/" + key, question);
  TimePoint until = std::chrono::steady_clock::now() + surveySpan;
  std::vector<int> absent;
  for (int other : asked) {
    std::optional<std::string> answer = rendezvous->get(concat(key, "/", other), until);
    if (!answer) {
      absent.push_back(other);
      continue;
    }
    size_t line = answer->find('\n');
    std::string shape = answer->substr(line + 1);
    bool same = message || shape == concat(operationName(info.kind), " of ", describeShape(info));
    if (std::stoll(answer->substr(0, line)) < int64_t(info.sequence))
      absent.push_back(other);
    else if (!shape.empty() && !same)
      fail(operation.describe(), ": rank ", other, " has ", shape, " in its place");
  }
  return absent;
}

//===----------------------------------------------------------------------===//
// Watchdog
//===----------------------------------------------------------------------===//

void NcclWorld::submitted(const std::shared_ptr<NcclOperation> &operation) {
  constexpr size_t remembered = 32;
  auto limit = std::chrono::duration<double>(deadline().first * 1.1) + 1s; // whoever waits is first
  operation->overdue = std::chrono::steady_clock::now() + std::chrono::duration_cast<TimePoint::duration>(limit);
  std::lock_guard<std::mutex> lock(mutex);
  IssueLog &log = logs[operation->lane()];
  log.last = int64_t(operation->info.sequence);
  log.recent.emplace_back(log.last,
                          concat(operationName(operation->info.kind), " of ", describeShape(operation->info)));
  if (log.recent.size() > remembered)
    log.recent.pop_front();
  inFlight.push_back(operation);
}

/// What was in flight has passed its mark by now, and must not be compared with the words any more.
void NcclWorld::restartMarks() {
  checkAlive();
  std::lock_guard<std::timed_mutex> issue(issuing);
  std::lock_guard<std::mutex> look(looking);
  std::lock_guard<std::mutex> lock(mutex);
  inFlight.clear();
  for (NcclCommunicator *communicator : communicators)
    communicator->restartMarks();
}

void NcclWorld::forget(const NcclCommunicator &communicator) {
  std::lock_guard<std::mutex> look(looking);
  std::lock_guard<std::mutex> lock(mutex);
  auto isIts = [&](const std::shared_ptr<NcclOperation> &entry) { return &entry->communicator == &communicator; };
  std::deque<std::shared_ptr<NcclOperation>> others;
  std::remove_copy_if(inFlight.begin(), inFlight.end(), std::back_inserter(others), isIts);
  inFlight = std::move(others);
}

void NcclWorld::keepForLater(Event *event, DeviceMemory memory) {
  std::lock_guard<std::mutex> lock(kept);
  unused.emplace_back(event, std::move(memory));
}

/// An operation that nobody waits for on the host, and whose time has come.
void NcclWorld::checkOverdue() {
  std::lock_guard<std::mutex> look(looking);
  std::shared_ptr<NcclOperation> late;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto isOver = [](const std::shared_ptr<NcclOperation> &operation) { return operation->hasPassed(); };
    inFlight.erase(std::remove_if(inFlight.begin(), inFlight.end(), isOver), inFlight.end());
    for (const std::shared_ptr<NcclOperation> &operation : inFlight)
      if (!late && std::chrono::steady_clock::now() > operation->overdue)
        late = operation;
  }
  if (!late || hasEnded())
    return;
  std::string reason;
  try {
    std::vector<int> absent = survey(*late);
    reason = concat(late->describe(), ": not complete long after its deadline, ",
                    absent.empty() ? std::string("though all members are here") : "without " + rankList(absent));
  } catch (const Error &error) {
    reason = error.what();
  }
  end(rank(), reason);
  rendezvous->set("note/ended", concat(rank(), "\n", reason));
}

void NcclWorld::watch() {
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex);
      if (changed.wait_for(lock, 100ms, [&] { return stopping; }))
        return;
      bool stuck = endedBy >= 0 && !abortedHere && std::chrono::steady_clock::now() - endedAt > stuckAfter;
      if (stuck)
        fatal("rank %d of %d does not come back from a call of CUDA or NCCL (or never waits); rank %d has ended: %s",
              rank(), size(), endedBy, endReason.c_str());
    }
    checkOverdue();
  }
}

//===----------------------------------------------------------------------===//
// What others see
//===----------------------------------------------------------------------===//

std::unique_ptr<World> connectNccl(const NcclOptions &options, Device &device) {
  device.makeCurrent();
  return std::make_unique<NcclWorld>(options, device);
}

namespace {
class ServedRendezvous final : public RendezvousHost {
public:
  ServedRendezvous(int port, int ranks) : server(port, ranks) {}
  int port() const override { return server.port(); }

private:
  RendezvousServer server;
};
} // namespace

std::unique_ptr<RendezvousHost> hostRendezvous(int port, int ranks) {
  return std::make_unique<ServedRendezvous>(port, ranks);
}

} // namespace drover::rt
