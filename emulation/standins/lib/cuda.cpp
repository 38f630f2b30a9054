//===- cuda.cpp - the stand-in driver: devices, memory, streams -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "driver.h"
#include "emu.h"
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <set>

using namespace drover::standin;
using namespace drover::rt::cuda;

namespace {
/// A context is its device's primary one.
struct Context {
  int device;
};
std::mutex handlesMutex;
std::set<void *> streams, events;
std::atomic<bool> initialized = false; // ranks may be threads
thread_local Context *current = nullptr;

Context *contextOf(int device) {
  static Context *const all = [] {
    auto *contexts = new Context[size_t(deviceCount())];
    for (int i = 0; i < deviceCount(); ++i)
      contexts[i].device = i;
    return contexts;
  }();
  return all + device;
}

void *pointer(Address address) { return reinterpret_cast<void *>(uintptr_t(address)); } // NOLINT

bool isEvent(void *handle) {
  std::lock_guard<std::mutex> guard(handlesMutex);
  return events.count(handle);
}
} // namespace

int drover::standin::deviceCount() {
  const char *value = std::getenv("DROVER_EMU_DEVICES");
  return value ? std::max(0, std::atoi(value)) : 1;
}

int drover::standin::currentDevice() { return current ? current->device : -1; }

std::string drover::standin::describe(const Stream &stream) {
  return "stream " + std::to_string(stream.actor) + " of device " + std::to_string(stream.device);
}

Stream *drover::standin::streamOf(void *handle, const char *call) {
  {
    std::lock_guard<std::mutex> guard(handlesMutex);
    if (!streams.count(handle)) {
      report(std::string("driver: ") + call + " on " + (handle ? "what is no stream" : "the default stream"));
      return nullptr;
    }
  }
  Stream *stream = static_cast<StreamHandle *>(handle)->stream.get();
  if (stream->device != currentDevice()) {
    report(std::string("driver: ") + call + " on " + describe(*stream) + ", but the thread's device is " +
           std::to_string(currentDevice()));
    return nullptr;
  }
  return stream;
}

extern "C" {

//===----------------------------------------------------------------------===//
// Devices and contexts
//===----------------------------------------------------------------------===//

int cuInit(unsigned flags) {
  initialized = true;
  return flags ? InvalidValue : Success;
}

int cuDriverGetVersion(int *version) {
  *version = 13000;
  return Success;
}

int cuGetErrorName(int error, const char **text) {
  switch (error) {
  case Success:
    *text = "CUDA_SUCCESS";
    return Success;
  case InvalidValue:
    *text = "CUDA_ERROR_INVALID_VALUE";
    return Success;
  case OutOfMemory:
    *text = "CUDA_ERROR_OUT_OF_MEMORY";
    return Success;
  case NoBinaryForGpu:
    *text = "CUDA_ERROR_NO_BINARY_FOR_GPU";
    return Success;
  case InvalidPtx:
    *text = "CUDA_ERROR_INVALID_PTX";
    return Success;
  case NotFound:
    *text = "CUDA_ERROR_NOT_FOUND";
    return Success;
  case NotReady:
    *text = "CUDA_ERROR_NOT_READY";
    return Success;
  case LaunchFailed:
    *text = "CUDA_ERROR_LAUNCH_FAILED";
    return Success;
  case StreamCaptureUnsupported:
    *text = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
    return Success;
  case StreamCaptureInvalidated:
    *text = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED";
    return Success;
  case CapturedEvent:
    *text = "CUDA_ERROR_CAPTURED_EVENT";
    return Success;
  default:
    *text = "CUDA_ERROR_UNKNOWN";
    return Success;
  }
}

int cuGetErrorString(int error, const char **text) { return cuGetErrorName(error, text); }

int cuDeviceGetCount(int *count) {
  *count = deviceCount();
  return initialized ? Success : NotInitialized;
}

int cuDeviceGet(int *device, int ordinal) {
  if (ordinal < 0 || ordinal >= deviceCount())
    return InvalidDevice;
  *device = ordinal;
  return Success;
}

int cuDeviceGetName(char *name, int length, int device) {
  std::strncpy(name, "emulated GPU", size_t(length));
  return Success;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  switch (attribute) {
  case MultiprocessorCount:
    *value = 132;
    return Success;
  case ComputeCapabilityMajor:
    *value = 9;
    return Success;
  case ComputeCapabilityMinor:
    *value = 0;
    return Success;
  case MaxSharedMemoryPerBlockOptin:
    *value = 227 << 10;
    return Success;
  default:
    return InvalidValue;
  }
}

int cuDevicePrimaryCtxRetain(Handle *context, int device) {
  if (device < 0 || device >= deviceCount())
    return InvalidDevice;
  *context = contextOf(device);
  return Success;
}

int cuDevicePrimaryCtxRelease_v2(int device) { return Success; }

int cuCtxSetCurrent(Handle context) {
  current = static_cast<Context *>(context);
  return Success;
}

int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return current ? Success : InvalidContext;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

int cuMemGetInfo_v2(size_t *free, size_t *total) {
  if (!current)
    return InvalidContext;
  *total = deviceBytes;
  *free = deviceBytes - Memory::instance().allocated(current->device);
  return Success;
}

int cuMemAlloc_v2(Address *address, size_t bytes) {
  if (int code = refuseInCapture("cuMemAlloc"))
    return code;
  if (!current || bytes == 0)
    return current ? InvalidValue : InvalidContext;
  void *memory = Memory::instance().allocate(bytes, current->device);
  *address = Address(reinterpret_cast<uintptr_t>(memory));
  return memory ? Success : OutOfMemory;
}

int cuMemFree_v2(Address address) {
  if (int code = refuseInCapture("cuMemFree"))
    return code;
  return Memory::instance().release(pointer(address), false) ? Success : InvalidValue;
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  if (int code = refuseInCapture("cuMemHostAlloc"))
    return code;
  if (!current)
    return InvalidContext;
  *memory = Memory::instance().allocate(bytes, hostMemory);
  return *memory ? Success : OutOfMemory;
}

int cuMemFreeHost(void *memory) {
  if (int code = refuseInCapture("cuMemFreeHost"))
    return code;
  return Memory::instance().release(memory, true) ? Success : InvalidValue;
}

/// Memory that the driver does not know is read when the copy is enqueued, as the driver stages it; a copy to such
/// memory would wait for the device, and the runtime has no use for that.
static int enqueueCopy(const char *what, const Copy2D &copy, Handle handle) {
  Stream *stream = streamOf(handle, what);
  if (!stream)
    return InvalidHandle;
  Memory &memory = Memory::instance();
  if (!memory.isKnown(pointer(copy.destination))) {
    report(std::string("driver: ") + what + " to memory that is neither the device's nor pinned");
    return InvalidValue;
  }
  auto staged = std::make_shared<std::vector<char>>();
  Copy2D how = copy;
  if (!memory.isKnown(pointer(copy.source))) {
    if (Engine::instance().isCapturing(*stream)) {
      report(std::string("driver: ") + what +
             " from memory that a launch of the graph would read, where it may be gone");
      return InvalidValue;
    }
    const char *from = static_cast<const char *>(pointer(copy.source));
    for (size_t row = 0; row < copy.height; ++row)
      staged->insert(staged->end(), from + row * copy.sourcePitch, from + row * copy.sourcePitch + copy.widthBytes);
    how.source = Address(reinterpret_cast<uintptr_t>(staged->data()));
    how.sourcePitch = copy.widthBytes;
  }
  Engine::instance().enqueue(*stream, std::string(what) + " on " + describe(*stream), [how, staged](const Work &work) {
    for (size_t row = 0; row < how.height; ++row) {
      char *to = static_cast<char *>(pointer(how.destination)) + row * how.destinationPitch;
      const char *from = static_cast<const char *>(pointer(how.source)) + row * how.sourcePitch;
      bool fine = staged->empty() ? Memory::instance().touch(work, from, how.widthBytes, false) : true;
      if (!fine || !Memory::instance().touch(work, to, how.widthBytes, true))
        return;
      std::memmove(to, from, how.widthBytes);
      drover_emu_memory_copied(to, from, how.widthBytes);
    }
  });
  return Success;
}

int cuMemcpyAsync(Address destination, Address source, size_t bytes, Handle stream) {
  Copy2D copy = {};
  copy.destination = destination;
  copy.source = source;
  copy.widthBytes = copy.sourcePitch = copy.destinationPitch = bytes;
  copy.height = 1;
  return enqueueCopy("copy", copy, stream);
}

int cuMemcpy2DAsync_v2(const Copy2D *copy, Handle stream) {
  bool plain = copy->sourceType == UnifiedMemory && copy->destinationType == UnifiedMemory && !copy->sourceX &&
               !copy->sourceY && !copy->destinationX && !copy->destinationY && copy->sourcePitch >= copy->widthBytes &&
               copy->destinationPitch >= copy->widthBytes;
  return plain ? enqueueCopy("copy of rows", *copy, stream) : InvalidValue;
}

int cuMemsetD8Async(Address destination, unsigned char value, size_t bytes, Handle handle) {
  Stream *stream = streamOf(handle, "cuMemsetD8Async");
  if (!stream)
    return InvalidHandle;
  Engine::instance().enqueue(*stream, "fill on " + describe(*stream), [=](const Work &work) {
    if (!Memory::instance().touch(work, pointer(destination), bytes, true))
      return;
    std::memset(pointer(destination), value, bytes);
    drover_emu_memory_written(pointer(destination), bytes);
  });
  return Success;
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

int cuStreamCreateWithPriority(Handle *handle, unsigned flags, int priority) {
  if (!current)
    return InvalidContext;
  if (flags != streamNonBlocking) {
    report("driver: a stream that waits for the default stream");
    return InvalidValue;
  }
  auto *stream = new StreamHandle{Engine::instance().createStream(current->device)};
  std::lock_guard<std::mutex> guard(handlesMutex);
  streams.insert(stream);
  *handle = stream;
  return Success;
}

int cuStreamDestroy_v2(Handle handle) {
  {
    std::lock_guard<std::mutex> guard(handlesMutex);
    if (!streams.erase(handle))
      return InvalidHandle;
  }
  delete static_cast<StreamHandle *>(handle);
  return Success;
}

int cuStreamQuery(Handle handle) {
  Stream *stream = streamOf(handle, "cuStreamQuery");
  if (!stream)
    return InvalidHandle;
  if (int code = refuseInCapture("cuStreamQuery"))
    return code;
  return Engine::instance().isIdle(*stream) ? Success : NotReady;
}

int cuStreamWaitEvent(Handle handle, Handle event, unsigned flags) {
  Stream *stream = streamOf(handle, "cuStreamWaitEvent");
  if (!stream || !isEvent(event))
    return InvalidHandle;
  Engine::instance().waitFor(*stream, static_cast<EventHandle *>(event)->event);
  return Success;
}

int cuStreamWriteValue32_v2(Handle handle, Address address, unsigned value, unsigned flags) {
  Stream *stream = streamOf(handle, "cuStreamWriteValue32");
  if (!stream)
    return InvalidHandle;
  Engine::instance().enqueue(*stream, "write of a value on " + describe(*stream), [=](const Work &work) {
    if (Memory::instance().touch(work, pointer(address), sizeof(value), true))
      __atomic_store_n(static_cast<uint32_t *>(pointer(address)), value, __ATOMIC_RELEASE);
  });
  return Success;
}

int cuEventCreate(Handle *handle, unsigned flags) {
  if (!current)
    return InvalidContext;
  auto *event = new EventHandle{{}, current->device};
  std::lock_guard<std::mutex> guard(handlesMutex);
  events.insert(event);
  *handle = event;
  return Success;
}

int cuEventDestroy_v2(Handle handle) {
  {
    std::lock_guard<std::mutex> guard(handlesMutex);
    if (!events.erase(handle))
      return InvalidHandle;
  }
  delete static_cast<EventHandle *>(handle);
  return Success;
}

int cuEventRecord(Handle event, Handle handle) {
  Stream *stream = streamOf(handle, "cuEventRecord");
  if (!stream || !isEvent(event))
    return InvalidHandle;
  if (static_cast<EventHandle *>(event)->device != stream->device)
    return InvalidHandle;
  Engine::instance().record(*stream, static_cast<EventHandle *>(event)->event);
  return Success;
}

int cuEventQuery(Handle event) {
  if (!isEvent(event))
    return InvalidHandle;
  if (int code = refuseInCapture("cuEventQuery"))
    return code;
  if (Engine::instance().isCaptured(static_cast<EventHandle *>(event)->event)) {
    report("driver: cuEventQuery of an event that was recorded in a graph");
    return CapturedEvent;
  }
  return Engine::instance().isDone(static_cast<EventHandle *>(event)->event) ? Success : NotReady;
}

} // extern "C"
