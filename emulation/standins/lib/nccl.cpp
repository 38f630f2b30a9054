//===- nccl.cpp - the stand-in NCCL ---------------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "nccl_group.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

using namespace drover::standin;
using namespace drover::rt::nccl;

#define DROVER_DECLARE(result, member, symbol, parameters) extern "C" result symbol parameters;
DROVER_NCCL_FUNCTIONS(DROVER_DECLARE)
#undef DROVER_DECLARE

namespace {
std::mutex idsMutex;
std::map<std::string, std::shared_ptr<Group>> groups; // until all members have joined

thread_local int depth = 0;
thread_local std::vector<Pending> inGroup;
thread_local std::string lastError;

int refuse(int code, const std::string &why) {
  lastError = why;
  report("nccl: " + why);
  return code;
}

/// A line of the file that DROVER_EMU_NCCL_LOG names for each communicator of a rank: what its configuration says.
void logConfiguration(const Config &config, int count, int rank) {
  const char *path = std::getenv("DROVER_EMU_NCCL_LOG");
  FILE *file = path && *path ? std::fopen(path, "a") : nullptr;
  if (!file)
    return;
  std::string line = "{\"name\": \"" + std::string(config.commName ? config.commName : "") +
                     "\", \"size\": " + std::to_string(count) + ", \"rank\": " + std::to_string(rank);
  auto add = [&](const char *name, int value) {
    if (value != undefined)
      line += std::string(", \"") + name + "\": " + std::to_string(value);
  };
  add("min_ctas", config.minCtas);
  add("max_ctas", config.maxCtas);
  add("cga_cluster_size", config.cgaClusterSize);
  add("cta_policy", config.ctaPolicy);
  add("channels_per_net_peer", config.channelsPerNetPeer);
  add("traffic_class", config.trafficClass);
  for (const char *name : {"NCCL_BUFFSIZE", "NCCL_IB_QPS_PER_CONNECTION", "NCCL_ENV_PLUGIN", "NCCL_TUNER_PLUGIN"})
    if (const char *value = std::getenv(name))
      line += std::string(", \"") + name + "\": \"" + value + "\"";
  std::fputs((line + "}\n").c_str(), file); // at once: lines of several ranks do not mix
  std::fclose(file);
}

/// Where the communicator does not block, an operation may be enqueued later: after ncclCommGetAsyncError has said that
/// nothing is in progress any more.
int submit(std::vector<Pending> calls) {
  Comm &comm = *calls.front().comm;
  for (const Pending &call : calls)
    if (call.stream != calls.front().stream)
      return refuse(InvalidUsage, "one group of calls on several streams");
  bool late = !comm.blocking && (!comm.deferred.empty() || Engine::instance().draw(3));
  if (!late)
    return enqueueTogether(calls);
  comm.deferred.push_back(std::move(calls));
  return InProgress;
}

int submitGroup(std::vector<Pending> calls) {
  int result = Success;
  while (!calls.empty()) {
    Comm *comm = calls.front().comm;
    std::vector<Pending> own, rest;
    for (Pending &call : calls)
      (call.comm == comm ? own : rest).push_back(std::move(call));
    int code = submit(std::move(own));
    if (code != Success && (result == Success || result == InProgress))
      result = code;
    calls = std::move(rest);
  }
  return result;
}

bool isOwn(const Comm &comm, const void *buffer, size_t bytes) {
  int device = -2;
  return bytes == 0 || (Memory::instance().find(buffer, bytes, device) && device == comm.device);
}

int issue(Pending pending) {
  Comm &comm = *pending.comm;
  const Call &call = pending.call;
  size_t part = call.count * bytesOf(call.dtype), members = comm.group->members.size();
  size_t inBytes = call.kind == Kind::ReduceScatter ? part * members : part;
  size_t outBytes = call.kind == Kind::AllGather ? part * members : part;
  bool message = call.kind == Kind::Message;
  if ((message || call.kind == Kind::Broadcast) && (std::max(pending.peer, call.root) >= int(members)))
    return refuse(InvalidArgument, call.describe() + ": no such member");
  bool sums = call.kind == Kind::AllReduce || call.kind == Kind::ReduceScatter;
  bool summed = call.dtype == Float32 || call.dtype == Bfloat16 || call.dtype == Float64 || call.dtype == Int64;
  if (sums && !summed)
    return refuse(InvalidArgument, call.describe() + ": the stand-in has no sums of this type");
  bool reads = message ? pending.sends : call.kind != Kind::Broadcast || comm.rank == call.root;
  bool readable = !reads || isOwn(comm, call.in, inBytes);
  bool writable = (message && pending.sends) || isOwn(comm, call.out, outBytes);
  if (!readable || !writable)
    return refuse(InvalidArgument,
                  call.describe() + ": a buffer is not in memory of device " + std::to_string(comm.device));
  {
    std::lock_guard<std::mutex> guard(Engine::instance().lock());
    if (comm.aborted || !comm.group->failure.empty() || comm.group->joined < int(members)) {
      lastError = comm.group->failure.empty() ? "a communicator that is not ready" : comm.group->failure;
      return InvalidUsage;
    }
  }
  if (depth == 0)
    return submit({pending});
  inGroup.push_back(pending);
  return Success;
}
} // namespace

extern "C" {

int ncclGetVersion(int *version) {
  *version = 22809;
  return Success;
}

int ncclGetUniqueId(UniqueId *id) {
  static std::random_device source;
  std::lock_guard<std::mutex> guard(idsMutex);
  std::memset(id->bytes, 0, sizeof(id->bytes));
  for (int i = 0; i < 16; ++i)
    id->bytes[i] = char('a' + source() % 26);
  return Success;
}

const char *ncclGetErrorString(int result) {
  static constexpr const char *names[] = {"no error",
                                          "unhandled cuda error",
                                          "unhandled system error",
                                          "internal error",
                                          "invalid argument",
                                          "invalid usage",
                                          "remote process exited or there was a network error",
                                          "NCCL operation in progress"};
  return result >= 0 && result < 8 ? names[result] : "unknown result code";
}

const char *ncclGetLastError(Handle handle) {
  if (handle) {
    std::lock_guard<std::mutex> guard(Engine::instance().lock());
    const Comm &comm = *static_cast<Comm *>(handle);
    if (!comm.group->failure.empty())
      lastError = comm.group->failure;
  }
  return lastError.c_str();
}

int ncclCommInitRankConfig(Handle *handle, int count, UniqueId id, int rank, Config *config) {
  if (currentDevice() < 0 || rank < 0 || rank >= count || !config || config->magic != 0xcafebeef)
    return refuse(InvalidArgument, "ncclCommInitRankConfig: no device, no such rank, or no configuration");
  logConfiguration(*config, count, rank);
  auto comm = std::make_unique<Comm>();
  comm->rank = rank;
  comm->name = config->commName ? config->commName : "";
  comm->device = currentDevice();
  comm->blocking = config->blocking != 0;
  comm->sends.resize(size_t(count));
  comm->receives.resize(size_t(count));
  {
    std::lock_guard<std::mutex> guard(idsMutex);
    std::shared_ptr<Group> &group = groups[id.bytes];
    if (!group)
      group = std::make_shared<Group>(count);
    comm->group = group;
    std::lock_guard<std::mutex> state(Engine::instance().lock());
    if (int(group->members.size()) != count || group->members[size_t(rank)])
      group->failure = "members disagree about their number, or two of them are rank " + std::to_string(rank);
    for (const Comm *other : group->members)
      if (other && other->device == comm->device)
        group->failure = "Duplicate GPU detected: ranks " + std::to_string(rank) + " and " +
                         std::to_string(other->rank) + " both on device " + std::to_string(comm->device);
    group->members[size_t(rank) % group->members.size()] = comm.get();
    if (++group->joined == count)
      groups.erase(id.bytes);
  }
  static auto *const all = new std::vector<std::unique_ptr<Comm>>; // kept: others' operations may look at them
  Comm *own = comm.get();
  {
    std::lock_guard<std::mutex> guard(idsMutex);
    all->push_back(std::move(comm));
  }
  *handle = own;
  if (!own->blocking)
    return InProgress;
  int state = InProgress;
  while (ncclCommGetAsyncError(own, &state) == Success && state == InProgress)
    std::this_thread::yield();
  return state;
}

int ncclCommGetAsyncError(Handle handle, int *state) {
  Comm &comm = *static_cast<Comm *>(handle);
  {
    std::lock_guard<std::mutex> guard(Engine::instance().lock());
    *state = !comm.group->failure.empty()                           ? InvalidUsage
             : comm.group->joined < int(comm.group->members.size()) ? InProgress
                                                                    : Success;
  }
  if (*state != Success || comm.deferred.empty())
    return Success;
  if (++comm.polls % 2 == 1) {
    *state = InProgress;
    return Success;
  }
  for (const std::vector<Pending> &calls : std::exchange(comm.deferred, {}))
    if (int code = enqueueTogether(calls))
      *state = code;
  return Success;
}

int ncclCommFinalize(Handle handle) { return Success; }

/// The communicator goes; what is still on streams of this member ends without data.
static int leave(Comm &comm, bool abort) {
  int inFlight;
  {
    std::lock_guard<std::mutex> moving(comm.group->moving);
    std::lock_guard<std::mutex> guard(Engine::instance().lock());
    comm.aborted = true;
    inFlight = comm.inFlight;
  }
  if (!abort && inFlight)
    report("nccl: a communicator is destroyed with operations in flight");
  for (const Comm::Window &window : comm.windows)
    if (!abort && window.open)
      report("nccl: a communicator is destroyed before its windows");
  if (!abort && comm.graphs.use_count() > 1) // ncclCommDestroy waits for them
    report("nccl: a communicator is destroyed before the graphs with its operations");
  Engine::instance().wake();
  return Success;
}

int ncclCommDestroy(Handle handle) { return leave(*static_cast<Comm *>(handle), false); }
int ncclCommAbort(Handle handle) { return leave(*static_cast<Comm *>(handle), true); }

int ncclAllGather(const void *in, void *out, size_t count, int dtype, Handle handle, Handle stream) {
  auto *comm = static_cast<Comm *>(handle);
  return issue({comm, {Kind::AllGather, count, dtype, 0, 0, in, out, placeInWindow(*comm, out)}, -1, false, stream});
}

int ncclReduceScatter(const void *in, void *out, size_t count, int dtype, int op, Handle comm, Handle stream) {
  return issue({static_cast<Comm *>(comm), {Kind::ReduceScatter, count, dtype, op, 0, in, out}, -1, false, stream});
}

int ncclAllReduce(const void *in, void *out, size_t count, int dtype, int op, Handle comm, Handle stream) {
  return issue({static_cast<Comm *>(comm), {Kind::AllReduce, count, dtype, op, 0, in, out}, -1, false, stream});
}

int ncclBroadcast(const void *in, void *out, size_t count, int dtype, int root, Handle handle, Handle stream) {
  auto *comm = static_cast<Comm *>(handle);
  const void *own = comm->rank == root ? in : nullptr; // the others' inputs are not read
  return issue({comm, {Kind::Broadcast, count, dtype, 0, root, own, out}, -1, false, stream});
}

int ncclSend(const void *in, size_t count, int dtype, int peer, Handle comm, Handle stream) {
  return issue({static_cast<Comm *>(comm), {Kind::Message, count, dtype, 0, 0, in, nullptr}, peer, true, stream});
}

int ncclRecv(void *out, size_t count, int dtype, int peer, Handle comm, Handle stream) {
  return issue({static_cast<Comm *>(comm), {Kind::Message, count, dtype, 0, 0, nullptr, out}, peer, false, stream});
}

int ncclGroupStart() {
  ++depth;
  return Success;
}

int ncclGroupEnd() {
  if (depth == 0)
    return refuse(InvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--depth > 0)
    return Success;
  return submitGroup(std::exchange(inGroup, {}));
}

} // extern "C"
