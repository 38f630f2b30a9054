//===- GraphTest.cpp - work that is kept and launched ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TestDevice.h"

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

class Graphs : public ::testing::Test {
protected:
  void TearDown() override { drover_standin_set_seed(0); }

  std::unique_ptr<Device> device = openStandin();
  Stream &compute = device->stream(DROVER_STREAM_COMPUTE), &gather = device->stream(DROVER_STREAM_GATHER);
  FaultLog log;
};

/// What is captured happens at the launches only, each time with what the memory has by then.
TEST_F(Graphs, LaunchesReadWhatIsThereByThen) {
  DeviceMemory from = device->allocatePinned(1), middle = device->allocate(1), seen = device->allocatePinned(1);
  for (uint64_t seed : {0, 1, 5}) {
    drover_standin_set_seed(seed);
    from.data()[0] = 1;
    seen.data()[0] = 0;
    device->beginGraph();
    device->copy(middle.data(), from.data(), 1, gather);
    Event &event = device->takeEvent();
    device->record(event, gather);
    device->wait(compute, event);
    device->giveBack(event);
    device->copy(seen.data(), middle.data(), 1, compute);
    std::unique_ptr<Graph> graph = device->endGraph();
    finish(*device, compute);
    EXPECT_EQ(seen.data()[0], 0);
    for (uint8_t value : {7, 8}) {
      from.data()[0] = value;
      device->launch(*graph, compute);
      finish(*device, compute);
      EXPECT_EQ(seen.data()[0], value);
    }
    EXPECT_EQ(log.first(), "");
  }
}

/// A graph comes after what is on the stream that it is launched on, and before what is put there next.
TEST_F(Graphs, AreInTheOrderOfTheirStream) {
  DeviceMemory memory = device->allocate(4);
  for (uint64_t seed : {0, 2, 3}) {
    drover_standin_set_seed(seed);
    device->beginGraph();
    device->fill(memory.data(), 1, 4, gather);
    std::unique_ptr<Graph> graph = device->endGraph();
    device->fill(memory.data(), 2, 4, compute);
    device->launch(*graph, compute);
    device->fill(memory.data(), 3, 4, compute);
    finish(*device, compute);
    EXPECT_EQ(log.first(), "");
    EXPECT_TRUE(device->isIdle());
    device->launch(*graph, compute);
    device->fill(memory.data(), 4, 4, gather); // nothing orders it
    finish(*device, compute);
    finish(*device, gather);
    EXPECT_NE(log.first().find(", in a graph writes"), std::string::npos) << log.first();
    drover_emu_clear_faults();
  }
}

TEST_F(Graphs, WhatCannotBeCapturedIsAnError) {
  DeviceMemory memory = device->allocate(64);
  auto expectRefused = [&](const std::function<void()> &call, const char *what) {
    device->beginGraph();
    EXPECT_THROW(call(), std::exception) << what;
    EXPECT_NE(log.first().find(what), std::string::npos) << log.first();
    expectError([&] { device->endGraph(); },
                "cuda 0 (emulated GPU, sm_90): cuStreamEndCapture: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
    drover_emu_clear_faults();
  };
  expectRefused([&] { device->allocate(64); }, "driver: cuMemAlloc while the thread captures a graph");
  expectRefused([&] { device->isIdle(gather); }, "driver: cuStreamQuery while the thread captures a graph");
  Event &event = device->takeEvent();
  device->record(event, compute);
  expectRefused([&] { device->hasHappened(event); }, "driver: cuEventQuery while the thread captures a graph");
  device->beginGraph();
  device->wait(gather, event);
  EXPECT_THROW(device->endGraph(), std::exception);
  EXPECT_NE(log.first().find("waits for an event of before the capture"), std::string::npos) << log.first();
  drover_emu_clear_faults();
  device->beginGraph();
  uint8_t pageable = 0;
  EXPECT_THROW(device->copy(memory.data(), &pageable, 1, compute), std::exception);
  EXPECT_NE(log.first().find("that a launch of the graph would read"), std::string::npos) << log.first();
  device->dropGraph();
  drover_emu_clear_faults();
  device->fill(memory.data(), 0, 64, compute); // the stream is as before
  finish(*device, compute);
  EXPECT_EQ(log.first(), "");
}

} // namespace
