//===- HostDeviceTest.cpp - the host as a device --------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "../TestFiles.h"
#include "drover/rt/body_device.h"

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

TEST(HostDevice, DoesWorkAtOnce) {
  std::unique_ptr<Device> device = createHostDevice();
  Stream &stream = device->stream(DROVER_STREAM_COMPUTE);
  DeviceMemory memory = device->allocate(100), other = device->allocate(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 256, 0u);
  device->fill(memory.data(), 7, 100, stream);
  device->copy(other.data(), memory.data(), 100, stream);
  device->copyRows(other.data() + 1, 10, memory.data(), 3, 1, 5, stream);
  EXPECT_EQ(other.data()[99], 7);
  uint32_t word = 0;
  device->post(&word, 5, stream);
  EXPECT_EQ(word, 5u);
  Event &event = device->takeEvent();
  device->record(event, stream);
  EXPECT_TRUE(device->hasHappened(event));
  EXPECT_TRUE(device->finish(stream, {}));
  EXPECT_TRUE(device->holds(memory.data() + 99));
  EXPECT_FALSE(device->holds(&word));
}

TEST(HostDevice, KernelsOfOthersAreErrors) {
  std::unique_ptr<Device> device = createHostDevice();
  drover_gpu_kernel kernel = {"add_one", nullptr, 64, 0, 3, 0};
  expectError([&] { device->kernel(kernel); }, "host: add_one is a kernel for another device");
  drover_gpu_image image = {"add_one", nullptr, 0, "x", 1, 90, 0};
  expectError([&] { device->load(image); }, "host: add_one is a kernel for another device");
}

} // namespace
