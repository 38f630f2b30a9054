//===- NcclCommunicator.cpp - a group with a communicator of NCCL ---------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "comm/NcclWorld.h"
#include "comm/Parts.h"
#include "device/CudaDevice.h"
#include "drover/rt/error.h"
#include <algorithm>

namespace drover::rt {

using namespace std::chrono_literals;

static int dataTypeOf(DType dtype) {
  switch (dtype) {
  case DROVER_F32:
    return nccl::Float32;
  case DROVER_BF16:
    return nccl::Bfloat16;
  case DROVER_F16:
    return nccl::Float16;
  case DROVER_F64:
    return nccl::Float64;
  case DROVER_I64:
    return nccl::Int64;
  case DROVER_I32:
    return nccl::Int32;
  default:
    return nccl::Int8;
  }
}

NcclCommunicator::NcclCommunicator(NcclWorld &world, int id, std::string name, std::vector<int> members)
    : Communicator(world, id, std::move(name), std::move(members)), stream(world.ownDevice.newStream(true)),
      owner(world), words(world.ownDevice.allocatePinned(sizeof(uint32_t))),
      token(world.ownDevice.allocate(sizeof(int64_t))) {
  *word() = 0;
}

//===----------------------------------------------------------------------===//
// From its start to its end
//===----------------------------------------------------------------------===//

static std::string describeGroup(int id, const std::string &name, const std::vector<int> &members) {
  return concat("communicator ", id, " (", name, ", ", rankList(members), ")");
}

/// The first member hands out NCCL's identity of the group, with its name and members: they are compared.
void NcclCommunicator::connect() {
  std::string what = describeGroup(id(), name(), members()), list;
  for (int member : members())
    list += concat(member, " ");
  int first = members().front();
  std::string key = concat("group/", id(), "/", first, "/", owner.created[{id(), ""}]++);
  joinKey = key + "/";
  owner.rendezvous->set(joinKey + std::to_string(owner.rank()), "");
  nccl::UniqueId identity = {};
  std::string own = concat(name(), "\n", list, "\n");
  if (size() > 1 && rank() == 0) {
    if (int code = owner.library.getUniqueId(&identity))
      fail("nccl: ncclGetUniqueId for ", what, ": ", owner.library.describe(code, nullptr), "; ", adviceFor(code));
    owner.rendezvous->set(key, own + std::string(identity.bytes, sizeof(identity.bytes)));
  } else if (size() > 1) {
    std::optional<std::string> value =
        owner.rendezvous->get(key, owner.startDeadline(), [&] { return owner.hasEnded(); });
    owner.checkAlive();
    if (!value)
      fail(what, ": rank ", first, " has not come within ", owner.deadline().first, " s (deadline of ",
           owner.deadline().second, ")");
    size_t end = value->size() - std::min(value->size(), sizeof(identity.bytes));
    if (value->substr(0, end) != own)
      fail(what, ": for rank ", first, " it is ", value->substr(0, value->find('\n')), " of ranks ",
           value->substr(value->find('\n') + 1, end - value->find('\n') - 3));
    std::copy_n(value->data() + end, sizeof(identity.bytes), identity.bytes);
  }
  std::lock_guard<std::timed_mutex> lock(owner.issuing);
  owner.communicators.push_back(this);
  if (size() == 1)
    return;
  nccl::Config config;
  config.blocking = 0;
  config.commName = name().c_str();
  if (const NcclDimension *dimension = owner.process ? owner.process->settings.find(id()) : nullptr) {
    configure(config, *dimension, owner.library.versionNumber());
    auto wanted = dimension->fields.find("windows");
    windowed = wanted != dimension->fields.end() && wanted->second && owner.library.windowRegister;
  }
  if (owner.process && owner.process->creating)
    owner.process->creating(id());
  settle(owner.library.commInit(&handle, size(), identity, rank(), &config), "ncclCommInitRankConfig");
}

/// Of those who should have come to the group.
std::string NcclCommunicator::describeAbsent() const {
  std::vector<int> absent;
  TimePoint until = std::chrono::steady_clock::now() + 5s; // who has come has said so long since
  for (int member : members())
    if (!owner.rendezvous->get(joinKey + std::to_string(member), until))
      absent.push_back(member);
  return absent.empty() ? "though all members are here: they cannot reach each other; look at NCCL_DEBUG=INFO"
                        : "without " + rankList(absent);
}

void NcclCommunicator::settle(int code, const char *call) {
  TimePoint deadline = owner.startDeadline();
  auto complain = [&](const std::string &why) {
    fail("nccl: ", call, " on ", describeGroup(id(), name(), members()), ", rank ", owner.rank(), ", ",
         owner.ownDevice.describe(), ": ", why);
  };
  if (code == nccl::Success && !handle)
    return;
  for (int tries = 0; code == nccl::InProgress || code == nccl::Success; ++tries) {
    int state = nccl::Success;
    code = owner.library.commGetAsyncError(handle, &state);
    if (code == nccl::Success)
      code = state;
    if (code == nccl::Success)
      return;
    if (code != nccl::InProgress)
      break;
    owner.checkAlive();
    if (std::chrono::steady_clock::now() >= deadline)
      complain(concat("still in progress after ", owner.deadline().first, " s (deadline of ", owner.deadline().second,
                      "), ", describeAbsent()));
    if (tries < 64)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(50us);
  }
  complain(concat(owner.library.describe(code, handle), "; ", adviceFor(code)));
}

void NcclCommunicator::checkState() {
  if (!handle)
    return;
  int state = nccl::Success;
  int code = owner.library.commGetAsyncError(handle, &state);
  code = code == nccl::Success ? state : code;
  if (code != nccl::Success && code != nccl::InProgress)
    settle(code, "ncclCommGetAsyncError");
}

/// Kernels of NCCL that wait for a peer end now; what is behind them on the stream follows.
void NcclCommunicator::abort() noexcept {
  if (handle)
    owner.library.commAbort(std::exchange(handle, nullptr));
  try {
    owner.ownDevice.finish(stream, std::chrono::steady_clock::now() + 5s);
  } catch (const Error &) {
    // The device has failed: it touches nothing any more.
  }
}

NcclCommunicator::~NcclCommunicator() {
  owner.forget(*this);
  std::lock_guard<std::timed_mutex> lock(owner.issuing);
  auto &all = owner.communicators;
  all.erase(std::remove(all.begin(), all.end(), this), all.end());
  try {
    bool idle = owner.ownDevice.finish(stream, std::chrono::steady_clock::now() + 5s);
    if (idle && handle && !owner.hasEnded()) {
      settle(owner.library.commFinalize(handle), "ncclCommFinalize");
      owner.library.commDestroy(std::exchange(handle, nullptr));
    }
  } catch (const Error &) {
    // It goes all the same.
  }
  abort();
}

void NcclCommunicator::registerWindow(void *base, int64_t bytes) {
  nccl::Handle window = nullptr;
  settle(owner.library.windowRegister(handle, base, size_t(bytes), &window, nccl::windowIsSymmetric),
         "ncclCommWindowRegister");
  windows[base] = window;
}

void NcclCommunicator::deregisterWindow(void *base) noexcept {
  auto found = windows.find(base);
  if (found == windows.end())
    return;
  if (handle && !owner.hasEnded()) // an aborted one has none any more
    owner.library.windowDeregister(handle, found->second);
  windows.erase(found);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Of one rank's communicator, whose operations follow each other on one stream: the last one's contents are not needed
/// any more, but they may be in use.
uint8_t *NcclCommunicator::scratch(DeviceMemory &memory, int64_t bytes) {
  if (memory.size() < bytes) {
    retired.push_back(std::move(memory));
    memory = owner.ownDevice.allocate(bytes);
  }
  return memory.data();
}

std::shared_ptr<Operation> NcclCommunicator::start(const OperationInfo &info, const void *in, void *out) {
  std::lock_guard<std::timed_mutex> lock(owner.issuing);
  owner.checkAlive();
  Device &device = owner.ownDevice;
  auto operation = std::make_shared<NcclOperation>(owner, *this, info);
  operation->event = &device.takeEvent();
  if (owner.before) {
    device.record(*operation->event, *owner.before);
    device.wait(stream, *operation->event);
  }
  Buffers buffers = fromHost(info, {in, out}, *operation);
  issue(info, buffers);
  if (operation->hostOut)
    device.copy(operation->hostCopy.data(), buffers.out, operation->hostBytes, stream);
  device.record(*operation->event, stream);
  operation->mark = ++marks;
  device.post(word(), operation->mark, stream);
  if (!owner.keepsOperations())
    owner.submitted(operation);
  return operation;
}

void NcclCommunicator::startAgain(const OperationInfo &info, uint32_t mark) {
  auto operation = std::make_shared<NcclOperation>(owner, *this, info);
  operation->mark = mark;
  owner.submitted(operation);
}

void NcclCommunicator::restartMarks() {
  marks = 0;
  __atomic_store_n(word(), 0, __ATOMIC_RELEASE);
}

/// Scalars and what is saved lie in the host's memory: they go through the device, by pinned memory of the operation.
NcclCommunicator::Buffers NcclCommunicator::fromHost(const OperationInfo &info, Buffers buffers,
                                                     NcclOperation &operation) {
  Device &device = owner.ownDevice;
  int64_t part = info.cut.elements() * byteSize(info.dtype);
  bool gathers = info.kind == OperationKind::AllGather, scatters = info.kind == OperationKind::ReduceScatter;
  int64_t inBytes = scatters ? part * size() : part, outBytes = gathers ? part * size() : part;
  bool reads = buffers.in && inBytes > 0 && !device.holds(buffers.in);
  bool writes = buffers.out && outBytes > 0 && !device.holds(buffers.out);
  if (!reads && !writes)
    return buffers;
  operation.hostCopy = device.allocatePinned(inBytes + outBytes);
  if (writes) {
    operation.hostOut = buffers.out;
    operation.hostBytes = outBytes;
    buffers.out = scratch(hostOut, outBytes);
  }
  if (reads) {
    uint8_t *pinned = operation.hostCopy.data() + outBytes;
    std::memcpy(pinned, buffers.in, size_t(inBytes));
    void *to = info.kind == OperationKind::Broadcast ? buffers.out : scratch(hostIn, inBytes);
    device.copy(to, pinned, inBytes, stream);
    buffers.in = to;
  }
  return buffers;
}

/// Between the whole tensor and the members' parts, one after the other.
void NcclCommunicator::copyParts(const OperationInfo &info, const void *from, void *to, bool pack) {
  const TensorCut &cut = info.cut;
  int64_t element = byteSize(info.dtype), row = cut.local * cut.inner * element;
  int64_t chunks = cut.twoChunk ? 2 : 1, chunk = row / chunks;
  for (int member = 0; member < size(); ++member)
    for (int64_t which = 0; which < chunks; ++which) {
      int64_t place = which == 0 ? member : 2 * size() - 1 - member;
      int64_t inWhole = place * chunk, inParts = member * cut.outer * row + which * chunk;
      const auto *source = static_cast<const uint8_t *>(from) + (pack ? inWhole : inParts);
      uint8_t *result = static_cast<uint8_t *>(to) + (pack ? inParts : inWhole);
      owner.ownDevice.copyRows(result, pack ? row : row * size(), source, pack ? row * size() : row, chunk, cut.outer,
                               stream);
    }
}

/// NCCL's parts are contiguous, member 0's first: other cuts are packed and unpacked on the device.
void NcclCommunicator::issue(const OperationInfo &info, Buffers buffers) {
  int64_t part = info.cut.elements() * byteSize(info.dtype);
  bool gathers = info.kind == OperationKind::AllGather, scatters = info.kind == OperationKind::ReduceScatter;
  bool permuted = (gathers || scatters) && !isContiguous(info.cut) && size() > 1 && part > 0;
  if (!permuted)
    return exchange(info, buffers);
  uint8_t *parts = scratch(packed, part * size());
  if (scatters) {
    copyParts(info, buffers.in, parts, true);
    return exchange(info, {parts, buffers.out});
  }
  exchange(info, {buffers.in, parts});
  copyParts(info, parts, buffers.out, false);
}

void NcclCommunicator::exchange(const OperationInfo &info, Buffers buffers) {
  auto count = size_t(info.cut.elements());
  int64_t bytes = info.cut.elements() * byteSize(info.dtype);
  if (size() == 1) {
    if (buffers.out != buffers.in && buffers.in)
      owner.ownDevice.copy(buffers.out, buffers.in, bytes, stream);
    return;
  }
  const NcclLibrary &library = owner.library;
  nccl::Handle queue = CudaDevice::handleOf(stream);
  int dtype = dataTypeOf(info.dtype), op = info.op == ReduceOp::Max ? nccl::Max : nccl::Sum;
  switch (info.kind) {
  case OperationKind::AllGather:
    return settle(library.allGather(buffers.in, buffers.out, count, dtype, handle, queue), "ncclAllGather");
  case OperationKind::ReduceScatter:
    return settle(library.reduceScatter(buffers.in, buffers.out, count, dtype, op, handle, queue), "ncclReduceScatter");
  case OperationKind::AllReduce:
    if (count == 0) // a handshake or a barrier: NCCL would do nothing
      return settle(library.allReduce(token.data(), token.data(), 1, nccl::Int64, nccl::Max, handle, queue),
                    "ncclAllReduce");
    return settle(library.allReduce(buffers.in, buffers.out, count, dtype, op, handle, queue), "ncclAllReduce");
  case OperationKind::Broadcast:
    return settle(library.broadcast(buffers.out, buffers.out, count, dtype, info.root, handle, queue), "ncclBroadcast");
  case OperationKind::Send:
    return settle(library.send(buffers.in, count, dtype, info.root, handle, queue), "ncclSend");
  case OperationKind::Receive:
    return settle(library.receive(buffers.out, count, dtype, info.root, handle, queue), "ncclRecv");
  case OperationKind::Shift: {
    // Alone either would wait for the other around the ring.
    library.groupStart();
    int sent = library.send(buffers.in, count, dtype, (rank() + 1) % size(), handle, queue);
    int received = library.receive(buffers.out, count, dtype, (rank() + size() - 1) % size(), handle, queue);
    int ended = library.groupEnd();
    settle(sent, "ncclSend");
    settle(received, "ncclRecv");
    return settle(ended, "ncclGroupEnd");
  }
  }
}

} // namespace drover::rt
