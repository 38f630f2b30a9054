//===- device.h - where a rank's tensors are and its bodies run -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The host does at once what it is asked to; a CUDA device does it on streams, later. Nothing here blocks: who must
// know that something is done asks whether an event has happened, and gives up at a deadline of his own.
#ifndef DROVER_RT_DEVICE_H
#define DROVER_RT_DEVICE_H

#include "drover/rt/abi.h"
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace drover::rt {

/// Handles are owned by the device, which knows what is behind them.
class DeviceHandle {
public:
  DeviceHandle(const DeviceHandle &) = delete;
  DeviceHandle &operator=(const DeviceHandle &) = delete;

protected:
  DeviceHandle() = default;
  ~DeviceHandle() = default;
};
/// A queue of a device: what is on it is done in order.
class Stream : public DeviceHandle {};
/// A place in a stream that has been passed or not.
class Event : public DeviceHandle {};
/// A kernel of a loaded image.
class Kernel : public DeviceHandle {};
/// Work of several streams that is kept, and done at each launch (docs/cuda.md, Graphs). Destroyed before the device.
class Graph {
public:
  virtual ~Graph() = default;
};

class Device;

/// Memory of a device, or memory of the host that it copies from and to while the host goes on.
class DeviceMemory {
public:
  DeviceMemory() = default;
  DeviceMemory(Device &device, int64_t bytes, bool pinned);
  /// Memory of the device that a library has allocated, which `free` gives back.
  DeviceMemory(Device &device, void *base, int64_t bytes, std::function<void()> free);
  DeviceMemory(DeviceMemory &&other) noexcept { *this = std::move(other); }
  DeviceMemory &operator=(DeviceMemory &&other) noexcept {
    std::swap(device, other.device);
    std::swap(base, other.base);
    std::swap(bytes, other.bytes);
    std::swap(pinned, other.pinned);
    return *this;
  }
  ~DeviceMemory();

  uint8_t *data() const { return base; }
  int64_t size() const { return bytes; }

private:
  Device *device = nullptr;
  uint8_t *base = nullptr;
  int64_t bytes = 0;
  bool pinned = false;
};

/// Used by one thread of its rank at a time, unless it says otherwise. All throw Error, which names the call and the
/// device.
class Device {
public:
  virtual ~Device() = default;
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// The tensors are in the host's memory, and everything is done when the call returns.
  virtual bool isHost() const = 0;
  /// "host"; "cuda 0 (NVIDIA H100 80GB HBM3, sm_90)"
  virtual std::string describe() const = 0;
  /// Of a GPU; 0: the host.
  virtual int multiprocessors() const = 0;
  /// The calling thread uses this device from now on.
  virtual void makeCurrent() = 0;

  /// Of the device: 256-byte aligned, without contents. Pinned: in the host.
  DeviceMemory allocate(int64_t bytes) { return {*this, bytes, false}; }
  DeviceMemory allocatePinned(int64_t bytes) { return {*this, bytes, true}; }
  /// Whether a pointer is to memory of the device that this object allocated or adopted. Any thread.
  virtual bool holds(const void *pointer) const = 0;
  /// Bytes that are free and that there are.
  virtual std::pair<int64_t, int64_t> memoryInfo() const = 0;

  /// The streams of docs/step-program.md.
  virtual Stream &stream(drover_stream which) = 0;
  /// One more; lives as long as the device. `urgent`: its work goes before that of other streams.
  virtual Stream &newStream(bool urgent) = 0;

  /// One that is not in use.
  virtual Event &takeEvent() = 0;
  virtual void giveBack(Event &event) noexcept = 0;
  virtual void record(Event &event, Stream &stream) = 0;
  /// What is put on the stream from now on begins after the event's last record.
  virtual void wait(Stream &stream, Event &event) = 0;
  virtual bool hasHappened(Event &event) = 0;
  virtual bool isIdle(Stream &stream) = 0;
  /// Nothing is left on any of its streams.
  virtual bool isIdle() = 0;

  /// What is put on any stream from now on is kept, in the order that streams and events give it, until endGraph. Until
  /// then nothing is asked of streams and events, nothing is allocated or given back, and nothing that was recorded
  /// before is waited for.
  virtual void beginGraph() = 0;
  virtual std::unique_ptr<Graph> endGraph() = 0;
  /// In place of endGraph, after a failure.
  virtual void dropGraph() noexcept = 0;
  /// All of it comes after what is on the stream, and before what is put there next. On other streams of the graph
  /// nothing may be left, and nothing be put before the stream has got past it.
  virtual void launch(Graph &graph, Stream &stream) = 0;

  /// Between memory of the device and pinned memory in any direction; from other memory of the host, which is read
  /// before the call returns.
  virtual void copy(void *to, const void *from, int64_t bytes, Stream &stream) = 0;
  /// `rows` rows of `rowBytes` bytes, whose first bytes are `toPitch` and `fromPitch` bytes apart.
  virtual void copyRows(void *to, int64_t toPitch, const void *from, int64_t fromPitch, int64_t rowBytes, int64_t rows,
                        Stream &stream) = 0;
  virtual void fill(void *to, uint8_t value, int64_t bytes, Stream &stream) = 0;
  /// Writes `value` to a word of pinned memory, when all before it on the stream is done: for a thread that asks
  /// nothing of the device.
  virtual void post(uint32_t *word, uint32_t value, Stream &stream) = 0;

  /// Loads the code of a kernel now: a first launch that loads would wait for the device.
  virtual void load(const drover_gpu_image &image) = 0;
  /// One that was loaded.
  virtual Kernel &kernel(const drover_gpu_kernel &description) = 0;
  virtual void launch(Kernel &kernel, int64_t blocks, void **arguments, Stream &stream) = 0;

  /// Waits until the stream is idle, by asking. False at the deadline.
  bool finish(Stream &stream, std::chrono::steady_clock::time_point deadline);

protected:
  Device() = default;

private:
  friend class DeviceMemory;
  virtual void *allocateBytes(int64_t bytes, bool pinned) = 0;
  virtual void adopt(void *base, int64_t bytes, std::function<void()> free) = 0;
  virtual void release(void *base, bool pinned) noexcept = 0;
};

std::unique_ptr<Device> createHostDevice();

struct CudaOptions {
  int ordinal = 0;
  /// Tried instead of the usual name; else DROVER_RT_CUDA names one.
  std::string library;
};
/// Throws Error where there is no driver (naming where it was looked for), or no such device.
std::unique_ptr<Device> openCudaDevice(const CudaOptions &options);
/// Devices that the driver shows this process. Throws as openCudaDevice.
int countCudaDevices(const CudaOptions &options);

} // namespace drover::rt

#endif // DROVER_RT_DEVICE_H
