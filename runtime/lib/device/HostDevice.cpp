//===- HostDevice.cpp - the host as a device ------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/arena.h"
#include "drover/rt/device.h"
#include "drover/rt/error.h"
#include <cstring>
#include <map>
#include <mutex>

namespace drover::rt {

namespace {
class HostStream final : public Stream {};
class HostEvent final : public Event {};

class HostDevice final : public Device {
public:
  bool isHost() const override { return true; }
  std::string describe() const override { return "host"; }
  int multiprocessors() const override { return 0; }
  void makeCurrent() override {}

  bool holds(const void *pointer) const override {
    std::lock_guard<std::mutex> lock(mutex);
    auto after = arenas.upper_bound(static_cast<const uint8_t *>(pointer));
    if (after == arenas.begin())
      return false;
    --after;
    return pointer < after->first + after->second->size();
  }
  std::pair<int64_t, int64_t> memoryInfo() const override { return {INT64_MAX, INT64_MAX}; } // nothing is promised

  Stream &stream(drover_stream which) override { return theStream; }
  Stream &newStream(bool urgent) override { return theStream; }
  Event &takeEvent() override { return theEvent; }
  void giveBack(Event &event) noexcept override {}
  void record(Event &event, Stream &stream) override {}
  void wait(Stream &stream, Event &event) override {}
  bool hasHappened(Event &event) override { return true; }
  bool isIdle(Stream &stream) override { return true; }
  bool isIdle() override { return true; }
  void beginGraph() override { fail("host: no graphs"); }
  std::unique_ptr<Graph> endGraph() override { fail("host: no graphs"); }
  void dropGraph() noexcept override {}
  void launch(Graph &graph, Stream &stream) override { fail("host: no graphs"); }

  void copy(void *to, const void *from, int64_t bytes, Stream &stream) override {
    if (bytes > 0)
      std::memmove(to, from, size_t(bytes));
  }
  void copyRows(void *to, int64_t toPitch, const void *from, int64_t fromPitch, int64_t rowBytes, int64_t rows,
                Stream &stream) override {
    for (int64_t row = 0; row < rows; ++row)
      copy(static_cast<uint8_t *>(to) + row * toPitch, static_cast<const uint8_t *>(from) + row * fromPitch, rowBytes,
           stream);
  }
  void fill(void *to, uint8_t value, int64_t bytes, Stream &stream) override {
    if (bytes > 0)
      std::memset(to, value, size_t(bytes));
  }
  void post(uint32_t *word, uint32_t value, Stream &stream) override {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
  }

  void load(const drover_gpu_image &image) override { fail("host: ", image.name, " is a kernel for another device"); }
  Kernel &kernel(const drover_gpu_kernel &description) override {
    fail("host: ", description.name, " is a kernel for another device");
  }
  void launch(Kernel &kernel, int64_t blocks, void **arguments, Stream &stream) override {}

private:
  void *allocateBytes(int64_t bytes, bool pinned) override {
    auto arena = std::make_unique<Arena>(bytes + alignment);
    // From a multiple of 256 on, as a GPU's memory is.
    auto address = reinterpret_cast<uintptr_t>(arena->data());
    uint8_t *base = arena->data() + (alignment - address % alignment) % alignment;
    std::lock_guard<std::mutex> lock(mutex);
    arenas[base] = std::move(arena);
    return base;
  }
  void adopt(void *base, int64_t bytes, std::function<void()> free) override { fail("host: memory of another device"); }
  void release(void *base, bool pinned) noexcept override {
    std::lock_guard<std::mutex> lock(mutex);
    arenas.erase(static_cast<uint8_t *>(base));
  }

  static constexpr int64_t alignment = 256;
  HostStream theStream;
  HostEvent theEvent;
  mutable std::mutex mutex;
  std::map<const uint8_t *, std::unique_ptr<Arena>> arenas;
};
} // namespace

std::unique_ptr<Device> createHostDevice() { return std::make_unique<HostDevice>(); }

} // namespace drover::rt
