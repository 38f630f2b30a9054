//===- OrderTest.cpp - every wait that is left out is a race --------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TestDevice.h"

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

constexpr int64_t bytes = 5000;
constexpr int numWaits = 4;

/// Two streams hand a buffer to and fro, as a gather and a forward do: the gather fills what the forward has read.
/// `left` is the wait that is left out. As a graph it is launched twice. Whether what the host sees at the end is
/// right.
bool handToAndFro(Device &device, int left, bool asGraph = false) {
  Stream &gather = device.stream(DROVER_STREAM_GATHER), &compute = device.stream(DROVER_STREAM_COMPUTE);
  DeviceMemory parameter = device.allocate(bytes), result = device.allocate(2 * bytes);
  DeviceMemory seen = device.allocatePinned(2 * bytes);
  int next = 0;
  auto order = [&](Stream &before, Stream &after) {
    Event &event = device.takeEvent();
    device.record(event, before);
    if (next++ != left)
      device.wait(after, event);
    device.giveBack(event);
  };
  if (asGraph)
    device.beginGraph();
  device.fill(parameter.data(), 1, bytes, gather);
  order(gather, compute);
  device.copy(result.data(), parameter.data(), bytes, compute);
  order(compute, gather);
  device.fill(parameter.data(), 2, bytes, gather);
  order(gather, compute);
  device.copy(result.data() + bytes, parameter.data(), bytes, compute);
  order(compute, gather);
  device.copy(seen.data(), result.data(), 2 * bytes, gather);
  std::unique_ptr<Graph> graph = asGraph ? device.endGraph() : nullptr;
  for (int launches = 0; graph && launches < 2; ++launches)
    device.launch(*graph, compute);
  finish(device, gather);
  finish(device, compute);
  return std::count(seen.data(), seen.data() + bytes, 1) == bytes &&
         std::count(seen.data() + bytes, seen.data() + 2 * bytes, 2) == bytes;
}

class OrderOfWork : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Order, OrderOfWork, ::testing::Bool(),
                         [](const auto &info) { return info.param ? "InGraphs" : "OnStreams"; });

TEST_P(OrderOfWork, CompleteProgramsAreRightUnderEverySeed) {
  std::unique_ptr<Device> device = openStandin();
  FaultLog log;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    drover_standin_set_seed(seed);
    EXPECT_TRUE(handToAndFro(*device, -1, GetParam())) << seed;
    EXPECT_EQ(log.first(), "") << seed;
  }
  drover_standin_set_seed(0);
}

TEST_P(OrderOfWork, AnyWaitLeftOutIsARaceUnderEverySeed) {
  std::unique_ptr<Device> device = openStandin();
  int wrong = 0;
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (int left = 0; left < numWaits; ++left) {
      FaultLog log;
      drover_standin_set_seed(seed);
      wrong += !handToAndFro(*device, left, GetParam());
      EXPECT_NE(log.first().find("race: "), std::string::npos) << "seed " << seed << ", wait " << left;
    }
  drover_standin_set_seed(0);
  EXPECT_GT(wrong, 0) << "work is never late";
}

TEST(Order, WhatTheHostHasSeenIsBeforeWhatItEnqueues) {
  std::unique_ptr<Device> device = openStandin();
  Stream &first = device->stream(DROVER_STREAM_COMPUTE), &second = device->newStream(true);
  DeviceMemory memory = device->allocate(bytes);
  for (uint64_t seed : {0, 4, 5}) {
    FaultLog log;
    drover_standin_set_seed(seed);
    device->fill(memory.data(), 1, bytes, first);
    finish(*device, first);
    device->fill(memory.data(), 2, bytes, second);
    Event &event = device->takeEvent();
    device->record(event, second);
    while (!device->hasHappened(event)) {
    }
    device->fill(memory.data(), 3, bytes, first);
    finish(*device, first);
    EXPECT_EQ(log.first(), "");
  }
  drover_standin_set_seed(0);
}

TEST(Order, APostedWordComesAfterTheWorkBeforeIt) {
  std::unique_ptr<Device> device = openStandin();
  Stream &stream = device->stream(DROVER_STREAM_COMPUTE);
  DeviceMemory memory = device->allocatePinned(bytes), word = device->allocatePinned(4);
  std::memset(word.data(), 0, 4);
  drover_standin_set_seed(5);
  device->fill(memory.data(), 9, bytes, stream);
  device->post(reinterpret_cast<uint32_t *>(word.data()), 1, stream);
  while (__atomic_load_n(reinterpret_cast<uint32_t *>(word.data()), __ATOMIC_ACQUIRE) != 1) {
  }
  EXPECT_EQ(memory.data()[bytes - 1], 9);
  finish(*device, stream);
  drover_standin_set_seed(0);
}

#if __has_feature(thread_sanitizer)
constexpr bool racesByDesign = false;
#else
constexpr bool racesByDesign = true;
#endif

/// Memory of the host that is not pinned is read at the call; pinned memory when the copy's turn comes.
TEST(Order, PinnedMemoryIsReadLate) {
  std::unique_ptr<Device> device = openStandin();
  Stream &stream = device->stream(DROVER_STREAM_COMPUTE);
  DeviceMemory memory = device->allocate(2), seen = device->allocatePinned(2), pinned = device->allocatePinned(1);
  int late = 0;
  for (uint64_t seed = 1; seed < 10; ++seed) {
    drover_standin_set_seed(seed);
    uint8_t pageable = 1;
    pinned.data()[0] = 1;
    for (int i = 0; i < 50; ++i)
      device->fill(memory.data(), 0, 2, stream);
    device->copy(memory.data(), &pageable, 1, stream);
    device->copy(memory.data() + 1, pinned.data(), 1, stream);
    pageable = 2;
    if (racesByDesign)
      pinned.data()[0] = 2;
    device->copy(seen.data(), memory.data(), 2, stream);
    finish(*device, stream);
    EXPECT_EQ(seen.data()[0], 1);
    late += seen.data()[1] == 2;
  }
  drover_standin_set_seed(0);
  EXPECT_EQ(late > 0, racesByDesign);
}

TEST(Order, AccessesOutsideOfMemoryAreReported) {
  std::unique_ptr<Device> device = openStandin();
  Stream &stream = device->stream(DROVER_STREAM_COMPUTE);
  DeviceMemory memory = device->allocate(100);
  FaultLog log;
  device->fill(memory.data() + 50, 0, 51, stream);
  EXPECT_NE(log.first().find("writes 51 bytes outside of what is allocated"), std::string::npos) << log.first();
  uint8_t pageable[4];
  expectError([&] { device->copy(pageable, memory.data(), 4, stream); },
              "cuda 0 (emulated GPU, sm_90): cuMemcpyAsync: CUDA_ERROR_INVALID_VALUE");
}

} // namespace
