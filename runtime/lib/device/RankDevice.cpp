//===- RankDevice.cpp - a rank's device, as its interpreter uses it -------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/rank_device.h"
#include <algorithm>
#include <cstring>
#include <thread>

namespace drover::rt {

static constexpr int64_t stagedBytes = int64_t(16) << 20;

RankDevice::RankDevice(const Program &program, World &world)
    : algorithms([&world](const std::string &key, const std::string &own) { return world.agree(key, own); }),
      world(world) {
  if (!program.usesGpu()) {
    own = createHostDevice();
    place = own.get();
    return;
  }
  if (!world.device()) {
    if (world.size() > 1)
      fail("a world of ", world.backend(), " with ", world.size(), " ranks, whose tensors are in GPUs: expected nccl");
    own = openCudaDevice({});
  }
  place = own ? own.get() : world.device();
  place->makeCurrent();
  open(program);
}

void RankDevice::open(const Program &program) {
  freeAtStart = place->memoryInfo().first;
  for (uint64_t i = 0; i < program.numGpuImages; ++i)
    place->load(program.gpuImages[i]);
  // Bodies of phases and flat ones; casts in gathers; sums in reductions.
  for (int which : {DROVER_STREAM_COMPUTE, DROVER_STREAM_GATHER, DROVER_STREAM_REDUCE})
    sides[size_t(which)] = std::make_unique<drover_device>(*place, stream(which));
  sides[DROVER_STREAM_COMPUTE]->openMatmul(algorithms, program.communicationSms);
}

RankDevice::~RankDevice() = default;

drover_device *RankDevice::bodies(int which) const {
  if (isHost())
    return nullptr;
  if (!sides[size_t(which)])
    fail(place->describe(), ": a body on stream ", which, ", where none is expected");
  return sides[size_t(which)].get();
}

DeviceMemory RankDevice::allocateTensors(int64_t bytes) const {
  void *window = isHost() ? nullptr : world.openWindow(bytes);
  if (!window)
    return place->allocate(bytes);
  return {*place, window, bytes, [this, window] { world.closeWindow(window); }};
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

void RankDevice::wait(const std::function<bool()> &isDone, const std::function<std::string()> &describe) const {
  auto [limit, phase] = world.deadline();
  // Who is missing is known to the world, whose watchdog needs a moment longer to find out.
  double patience = world.device() ? limit * 0.1 + 8 : 0;
  auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit + patience);
  for (int tries = 0; !isDone(); ++tries) {
    world.check();
    if (std::chrono::steady_clock::now() >= until)
      fail(place->describe(), ", rank ", world.rank(), ": ", describe(), ": not complete within ", limit,
           " s (deadline of ", phase,
           "); look at the device (nvidia-smi, dmesg for Xid); a step that needs longer has --deadline=SECONDS");
    if (tries < 64)
      std::this_thread::yield();
    else // a step lasts long; its ends must not wait, nor eight ranks ask all the time
      std::this_thread::sleep_for(std::chrono::microseconds(std::min(tries, 500)));
  }
}

void RankDevice::finish(int which, const std::function<std::string()> &describe) const {
  Stream &queue = stream(which);
  wait([&] { return place->isIdle(queue); }, describe);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void RankDevice::inPieces(int64_t bytes, const std::function<void(int64_t, int64_t)> &move) {
  if (bytes > staged.size() && staged.size() < stagedBytes)
    staged = place->allocatePinned(std::min(bytes, stagedBytes));
  for (int64_t offset = 0; offset < bytes; offset += stagedBytes)
    move(offset, std::min(stagedBytes, bytes - offset));
}

void RankDevice::toHost(void *to, const void *from, int64_t bytes) {
  inPieces(bytes, [&](int64_t offset, int64_t count) {
    place->copy(staged.data(), static_cast<const uint8_t *>(from) + offset, count, stream(DROVER_STREAM_COMPUTE));
    finish(DROVER_STREAM_COMPUTE, [] { return "a copy to the host"; });
    std::memcpy(static_cast<uint8_t *>(to) + offset, staged.data(), size_t(count));
  });
}

void RankDevice::toDevice(void *to, const void *from, int64_t bytes) {
  inPieces(bytes, [&](int64_t offset, int64_t count) {
    std::memcpy(staged.data(), static_cast<const uint8_t *>(from) + offset, size_t(count));
    place->copy(static_cast<uint8_t *>(to) + offset, staged.data(), count, stream(DROVER_STREAM_COMPUTE));
    finish(DROVER_STREAM_COMPUTE, [] { return "a copy to the device"; });
  });
}

int64_t RankDevice::usedBytes() const { return isHost() ? 0 : freeAtStart - place->memoryInfo().first; }

} // namespace drover::rt
