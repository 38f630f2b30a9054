//===- Device.cpp - what all devices have in common -----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/device.h"
#include <thread>

namespace drover::rt {

DeviceMemory::DeviceMemory(Device &device, int64_t bytes, bool pinned) : device(&device), bytes(bytes), pinned(pinned) {
  if (bytes > 0)
    base = static_cast<uint8_t *>(device.allocateBytes(bytes, pinned));
}

DeviceMemory::DeviceMemory(Device &device, void *base, int64_t bytes, std::function<void()> free)
    : device(&device), base(static_cast<uint8_t *>(base)), bytes(bytes) {
  device.adopt(base, bytes, std::move(free));
}

DeviceMemory::~DeviceMemory() {
  if (base)
    device->release(base, pinned);
}

bool Device::finish(Stream &stream, std::chrono::steady_clock::time_point deadline) {
  for (int tries = 0; !isIdle(stream); ++tries) {
    if (std::chrono::steady_clock::now() >= deadline)
      return false;
    if (tries < 64)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

} // namespace drover::rt
