//===- CudaDevice.cpp - a GPU by the CUDA driver --------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "device/CudaDevice.h"
#include "drover/rt/error.h"
#include "drover/rt/text.h"
#include <algorithm>

namespace drover::rt {

using namespace cuda;

static Address addressOf(const void *pointer) { return Address(reinterpret_cast<uintptr_t>(pointer)); }

CudaDevice::CudaDevice(const CudaOptions &options) : library(options.library), ordinal(options.ordinal) {
  int count = 0;
  if (int code = library.deviceGetCount(&count))
    fail("cuda: cuDeviceGetCount: ", library.describe(code));
  if (ordinal < 0 || ordinal >= count)
    fail("cuda: device ", ordinal, ": the driver shows this process ", count,
         count ? concat(" (0 to ", count - 1, ")") : "",
         "; expected one for each rank of a machine, by "
         "CUDA_VISIBLE_DEVICES or the launcher's options (--gpus-per-task)");
  char name[256] = {};
  int major = 0, minor = 0;
  check(library.deviceGet(&device, ordinal), "cuDeviceGet");
  check(library.deviceGetName(name, int(sizeof(name)) - 1, device), "cuDeviceGetName");
  check(library.deviceGetAttribute(&major, ComputeCapabilityMajor, device), "cuDeviceGetAttribute");
  check(library.deviceGetAttribute(&minor, ComputeCapabilityMinor, device), "cuDeviceGetAttribute");
  check(library.deviceGetAttribute(&mostSharedBytes, MaxSharedMemoryPerBlockOptin, device), "cuDeviceGetAttribute");
  check(library.deviceGetAttribute(&numMultiprocessors, MultiprocessorCount, device), "cuDeviceGetAttribute");
  capability = 10 * major + minor;
  text = concat("cuda ", ordinal, " (", name, ", sm_", capability, ")");
  check(library.primaryContextRetain(&context, device), "cuDevicePrimaryCtxRetain");
  makeCurrent();
  check(library.streamPriorityRange(&leastPriority, &greatestPriority), "cuCtxGetStreamPriorityRange");
  for (int i = 0; i < DROVER_NUM_STREAMS; ++i)
    newStream(i != DROVER_STREAM_COMPUTE);
}

/// What still runs uses memory that goes now; a device that has failed says so at once.
CudaDevice::~CudaDevice() {
  library.contextSetCurrent(context);
  auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (const std::unique_ptr<CudaStream> &stream : streams) {
    while (library.streamQuery(stream->handle) == NotReady && std::chrono::steady_clock::now() < patience)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    library.streamDestroy(stream->handle);
  }
  for (const std::unique_ptr<CudaEvent> &event : events)
    library.eventDestroy(event->handle);
  for (const auto &[name, module] : modules)
    library.moduleUnload(module);
  library.primaryContextRelease(device);
}

void CudaDevice::check(int code, const char *call) const {
  if (code != Success)
    fail(text, ": ", call, ": ", library.describe(code));
}

void CudaDevice::makeCurrent() { check(library.contextSetCurrent(context), "cuCtxSetCurrent"); }

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void *CudaDevice::allocateBytes(int64_t bytes, bool pinned) {
  if (pinned) {
    void *memory = nullptr;
    if (int code = library.memHostAlloc(&memory, size_t(bytes), hostAllocPortable))
      fail(text, ": cuMemHostAlloc of ", formatBytes(bytes), " pinned in the host: ", library.describe(code),
           "; look at the limit of locked memory (ulimit -l) and the host's free memory");
    return memory;
  }
  Address address = 0;
  if (int code = library.memAlloc(&address, size_t(bytes))) {
    auto [free, total] = memoryInfo();
    fail(text, ": cuMemAlloc of ", formatBytes(bytes), ": ", library.describe(code), "; ", formatBytes(free), " of ",
         formatBytes(total),
         " are free; other processes on the device, and what NCCL and libraries hold, take the rest");
  }
  std::lock_guard<std::mutex> lock(mutex);
  allocations[address] = bytes;
  return reinterpret_cast<void *>(uintptr_t(address)); // NOLINT(performance-no-int-to-ptr): unified addressing
}

void CudaDevice::release(void *base, bool pinned) noexcept {
  if (pinned) {
    library.memFreeHost(base);
    return;
  }
  std::function<void()> free = [&] { library.memFree(addressOf(base)); };
  {
    std::lock_guard<std::mutex> lock(mutex);
    allocations.erase(addressOf(base));
    if (auto own = adopted.find(addressOf(base)); own != adopted.end()) {
      free = std::move(own->second);
      adopted.erase(own);
    }
  }
  free();
}

void CudaDevice::adopt(void *base, int64_t bytes, std::function<void()> free) {
  std::lock_guard<std::mutex> lock(mutex);
  allocations[addressOf(base)] = bytes;
  adopted[addressOf(base)] = std::move(free);
}

bool CudaDevice::holds(const void *pointer) const {
  Address address = addressOf(pointer);
  std::lock_guard<std::mutex> lock(mutex);
  auto after = allocations.upper_bound(address);
  if (after == allocations.begin())
    return false;
  --after;
  return address - after->first < Address(after->second);
}

std::pair<int64_t, int64_t> CudaDevice::memoryInfo() const {
  size_t free = 0, total = 0;
  check(library.memGetInfo(&free, &total), "cuMemGetInfo");
  return {int64_t(free), int64_t(total)};
}

void CudaDevice::copy(void *to, const void *from, int64_t bytes, Stream &stream) {
  if (bytes > 0)
    check(library.memcpyAsync(addressOf(to), addressOf(from), size_t(bytes), handleOf(stream)), "cuMemcpyAsync");
}

void CudaDevice::copyRows(void *to, int64_t toPitch, const void *from, int64_t fromPitch, int64_t rowBytes,
                          int64_t rows, Stream &stream) {
  if (rowBytes == 0 || rows == 0)
    return;
  if (rows == 1 || (toPitch == rowBytes && fromPitch == rowBytes))
    return copy(to, from, rowBytes * rows, stream);
  Copy2D how = {};
  how.sourceType = how.destinationType = UnifiedMemory;
  how.source = addressOf(from);
  how.sourcePitch = size_t(fromPitch);
  how.destination = addressOf(to);
  how.destinationPitch = size_t(toPitch);
  how.widthBytes = size_t(rowBytes);
  how.height = size_t(rows);
  check(library.memcpy2DAsync(&how, handleOf(stream)), "cuMemcpy2DAsync");
}

void CudaDevice::fill(void *to, uint8_t value, int64_t bytes, Stream &stream) {
  if (bytes > 0)
    check(library.memsetAsync(addressOf(to), value, size_t(bytes), handleOf(stream)), "cuMemsetD8Async");
}

void CudaDevice::post(uint32_t *word, uint32_t value, Stream &stream) {
  check(library.streamWriteValue32(handleOf(stream), addressOf(word), value, 0), "cuStreamWriteValue32");
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

Stream &CudaDevice::newStream(bool urgent) {
  auto stream = std::make_unique<CudaStream>();
  int priority = urgent ? greatestPriority : leastPriority;
  check(library.streamCreate(&stream->handle, streamNonBlocking, priority), "cuStreamCreateWithPriority");
  streams.push_back(std::move(stream));
  return *streams.back();
}

Event &CudaDevice::takeEvent() {
  if (freeEvents.empty()) {
    auto event = std::make_unique<CudaEvent>();
    check(library.eventCreate(&event->handle, eventDisableTiming), "cuEventCreate");
    freeEvents.reserve(events.size() + 1); // so that giving back never allocates
    events.push_back(std::move(event));
    return *events.back();
  }
  CudaEvent *event = freeEvents.back();
  freeEvents.pop_back();
  return *event;
}

void CudaDevice::giveBack(Event &event) noexcept { freeEvents.push_back(static_cast<CudaEvent *>(&event)); }

void CudaDevice::record(Event &event, Stream &stream) {
  check(library.eventRecord(handleOf(event), handleOf(stream)), "cuEventRecord");
}

void CudaDevice::wait(Stream &stream, Event &event) {
  check(library.streamWaitEvent(handleOf(stream), handleOf(event), 0), "cuStreamWaitEvent");
}

bool CudaDevice::hasHappened(Event &event) {
  int code = library.eventQuery(handleOf(event));
  if (code != NotReady)
    check(code, "cuEventQuery (work before it has failed)");
  return code == Success;
}

bool CudaDevice::isIdle(Stream &stream) {
  int code = library.streamQuery(handleOf(stream));
  if (code != NotReady)
    check(code, "cuStreamQuery (work on the stream has failed)");
  return code == Success;
}

bool CudaDevice::isIdle() {
  return std::all_of(streams.begin(), streams.end(),
                     [&](const std::unique_ptr<CudaStream> &stream) { return isIdle(*stream); });
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

CudaGraph::~CudaGraph() {
  if (instance)
    library.graphExecDestroy(instance);
}

void CudaDevice::order(Stream &before, Stream &after) {
  Event &event = takeEvent();
  record(event, before);
  wait(after, event);
  giveBack(event);
}

/// A stream belongs to a capture once it waits for one of its events.
void CudaDevice::beginGraph() {
  Stream &origin = stream(DROVER_STREAM_COMPUTE);
  check(library.streamBeginCapture(handleOf(origin), CaptureThreadLocal), "cuStreamBeginCapture");
  for (const std::unique_ptr<CudaStream> &other : streams)
    if (other.get() != &origin)
      order(origin, *other);
}

std::unique_ptr<Graph> CudaDevice::endGraph() {
  Stream &origin = stream(DROVER_STREAM_COMPUTE);
  for (const std::unique_ptr<CudaStream> &other : streams)
    if (other.get() != &origin)
      order(*other, origin);
  Handle captured = nullptr;
  check(library.streamEndCapture(handleOf(origin), &captured), "cuStreamEndCapture");
  auto graph = std::make_unique<CudaGraph>(library);
  int code = library.graphInstantiate(&graph->instance, captured, 0);
  library.graphDestroy(captured);
  check(code, "cuGraphInstantiate");
  return graph;
}

/// A capture that has failed ends with an error, and then the streams are as before.
void CudaDevice::dropGraph() noexcept {
  Handle captured = nullptr;
  if (library.streamEndCapture(handleOf(stream(DROVER_STREAM_COMPUTE)), &captured) == Success && captured)
    library.graphDestroy(captured);
}

void CudaDevice::launch(Graph &graph, Stream &stream) {
  check(library.graphLaunch(static_cast<CudaGraph &>(graph).instance, handleOf(stream)), "cuGraphLaunch");
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// A cubin runs on its architecture and later ones of the same generation; for others the driver compiles the PTX.
void CudaDevice::load(const drover_gpu_image &image) {
  Handle module = nullptr;
  if (image.architecture_specific && int(image.architecture) != capability)
    fail(text, ": kernel ", image.name, " is for sm_", image.architecture, "a alone: compile for this device");
  int code = image.cubin ? library.moduleLoadData(&module, image.cubin, 0, nullptr, nullptr) : int(NoBinaryForGpu);
  bool otherArchitecture = code == NoBinaryForGpu || code == InvalidImage;
  if (otherArchitecture && image.ptx) {
    char log[4096] = {};
    int names[] = {JitErrorLogBuffer, JitErrorLogBufferBytes};
    void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)}; // NOLINT(performance-no-int-to-ptr): the ABI
    code = library.moduleLoadData(&module, image.ptx, 2, names, values);
    if (code != Success)
      fail(text, ": the PTX of kernel ", image.name, " cannot be loaded: ", library.describe(code),
           "; the driver is for CUDA ", library.version(), *log ? concat("; it says: ", log) : "");
  } else if (code != Success) {
    fail(text, ": kernel ", image.name, " (sm_", image.architecture, ") cannot be loaded: ", library.describe(code),
         image.ptx ? "" : "; the executable has no PTX that the driver could compile for this device");
  }
  modules[image.name] = module;
}

Kernel &CudaDevice::kernel(const drover_gpu_kernel &description) {
  std::unique_ptr<CudaKernel> &known = kernels[description.name];
  if (known)
    return *known;
  auto module = modules.find(description.name);
  if (module == modules.end())
    fail(text, ": kernel ", description.name, " is not among the ", modules.size(), " that were loaded");
  auto found = std::make_unique<CudaKernel>();
  if (int code = library.moduleGetFunction(&found->function, module->second, description.name))
    fail(text, ": kernel ", description.name, ": cuModuleGetFunction: ", library.describe(code));
  int fixed = 0;
  check(library.functionGetAttribute(&fixed, StaticSharedBytes, found->function), "cuFuncGetAttribute");
  found->threads = description.threads;
  found->dynamicBytes = uint32_t(std::max(int(description.shared_bytes) - fixed, 0));
  if (int(description.shared_bytes) > mostSharedBytes)
    fail(text, ": kernel ", description.name, " needs ", description.shared_bytes,
         " bytes of shared memory, a block has at most ", mostSharedBytes);
  constexpr uint32_t withoutAsking = 48 << 10; // CUDA guide, shared memory of compute capability 7.x and later
  if (found->dynamicBytes + uint32_t(fixed) > withoutAsking)
    check(library.functionSetAttribute(found->function, MaxDynamicSharedBytes, int(found->dynamicBytes)),
          "cuFuncSetAttribute");
  known = std::move(found);
  return *known;
}

void CudaDevice::launch(Kernel &kernel, int64_t blocks, void **arguments, Stream &stream) {
  auto &what = static_cast<CudaKernel &>(kernel);
  if (blocks == 0)
    return;
  if (blocks < 0 || blocks > INT32_MAX)
    fail(text, ": a launch of ", blocks, " blocks, expected at most ", INT32_MAX);
  check(library.launchKernel(what.function, unsigned(blocks), 1, 1, what.threads, 1, 1, what.dynamicBytes,
                             handleOf(stream), arguments, nullptr),
        "cuLaunchKernel");
}

std::unique_ptr<Device> openCudaDevice(const CudaOptions &options) { return std::make_unique<CudaDevice>(options); }

int countCudaDevices(const CudaOptions &options) {
  CudaLibrary library(options.library);
  int count = 0;
  if (int code = library.deviceGetCount(&count))
    fail("cuda: cuDeviceGetCount: ", library.describe(code));
  return count;
}

} // namespace drover::rt
