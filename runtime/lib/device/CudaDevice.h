//===- CudaDevice.h - a GPU by the CUDA driver ------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_LIB_DEVICE_CUDADEVICE_H
#define DROVER_RT_LIB_DEVICE_CUDADEVICE_H

#include "device/CudaLibrary.h"
#include "drover/rt/device.h"
#include <map>
#include <mutex>
#include <thread>

namespace drover::rt {

struct CudaStream final : Stream {
  cuda::Handle handle = nullptr;
};
struct CudaEvent final : Event {
  cuda::Handle handle = nullptr;
};
struct CudaKernel final : Kernel {
  cuda::Handle function = nullptr;
  uint32_t threads = 0, dynamicBytes = 0;
};

struct CudaGraph final : Graph {
  explicit CudaGraph(const CudaLibrary &library) : library(library) {}
  ~CudaGraph() override;
  const CudaLibrary &library;
  cuda::Handle instance = nullptr;
};

/// One device's primary context, which libraries share.
class CudaDevice final : public Device {
public:
  explicit CudaDevice(const CudaOptions &options);
  ~CudaDevice() override;

  bool isHost() const override { return false; }
  std::string describe() const override { return text; }
  int multiprocessors() const override { return numMultiprocessors; }
  void makeCurrent() override;
  bool holds(const void *pointer) const override;
  std::pair<int64_t, int64_t> memoryInfo() const override;

  Stream &stream(drover_stream which) override { return *streams[size_t(which)]; }
  Stream &newStream(bool urgent) override;
  Event &takeEvent() override;
  void giveBack(Event &event) noexcept override;
  void record(Event &event, Stream &stream) override;
  void wait(Stream &stream, Event &event) override;
  bool hasHappened(Event &event) override;
  bool isIdle(Stream &stream) override;
  bool isIdle() override;

  void beginGraph() override;
  std::unique_ptr<Graph> endGraph() override;
  void dropGraph() noexcept override;
  void launch(Graph &graph, Stream &stream) override;

  void copy(void *to, const void *from, int64_t bytes, Stream &stream) override;
  void copyRows(void *to, int64_t toPitch, const void *from, int64_t fromPitch, int64_t rowBytes, int64_t rows,
                Stream &stream) override;
  void fill(void *to, uint8_t value, int64_t bytes, Stream &stream) override;
  void post(uint32_t *word, uint32_t value, Stream &stream) override;

  void load(const drover_gpu_image &image) override;
  Kernel &kernel(const drover_gpu_kernel &description) override;
  void launch(Kernel &kernel, int64_t blocks, void **arguments, Stream &stream) override;

  /// What libraries take for a stream.
  static cuda::Handle handleOf(Stream &stream) { return static_cast<CudaStream &>(stream).handle; }

private:
  static cuda::Handle handleOf(Event &event) { return static_cast<CudaEvent &>(event).handle; }
  void check(int code, const char *call) const;
  /// `after` goes on behind what is on `before`.
  void order(Stream &before, Stream &after);
  void *allocateBytes(int64_t bytes, bool pinned) override;
  void adopt(void *base, int64_t bytes, std::function<void()> free) override;
  void release(void *base, bool pinned) noexcept override;

  CudaLibrary library;
  int ordinal, device = 0, mostSharedBytes = 0, capability = 0, numMultiprocessors = 0;
  int leastPriority = 0, greatestPriority = 0;
  cuda::Handle context = nullptr;
  std::string text;                                 // describe()
  std::vector<std::unique_ptr<CudaStream>> streams; // those of docs/step-program.md first
  std::vector<std::unique_ptr<CudaEvent>> events;
  std::vector<CudaEvent *> freeEvents;
  std::map<std::string, cuda::Handle> modules; // by their kernel
  std::map<std::string, std::unique_ptr<CudaKernel>> kernels;
  mutable std::mutex mutex; // guards allocations
  std::map<cuda::Address, int64_t> allocations;
  std::map<cuda::Address, std::function<void()>> adopted; // of these, how they go
};

} // namespace drover::rt

#endif // DROVER_RT_LIB_DEVICE_CUDADEVICE_H
