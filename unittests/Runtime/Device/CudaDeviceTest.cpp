//===- CudaDeviceTest.cpp - a GPU by the stand-in driver ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TestDevice.h"
#include "drover/rt/body_device.h"

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

drover_gpu_image imageOf(const char *name, const char *ptx = ".version 8.0") {
  return {name, nullptr, 0, ptx, std::strlen(ptx), 90, 0};
}

/// With the kernels that are written by hand.
std::unique_ptr<Device> openWithKernels() {
  ::setenv("DROVER_EMU_KERNELS", DROVER_STANDIN_KERNELS, 1);
  std::unique_ptr<Device> device = openStandin();
  for (const char *name : {"add_one", "checks_index", "uses_shared_memory"})
    device->load(imageOf(name));
  return device;
}

const drover_gpu_kernel addOne = {"add_one", nullptr, 64, 0, 3, 0};
const drover_gpu_kernel checksIndex = {"checks_index", "layer: tfm.gather", 1, 0, 1, 0};
const drover_gpu_kernel usesSharedMemory = {"uses_shared_memory", nullptr, 32, 100 << 10, 1, 0};

TEST(CudaDevice, KernelsRunInTheOrderOfTheirStream) {
  std::unique_ptr<Device> device = openWithKernels();
  drover_device body(*device, device->stream(DROVER_STREAM_COMPUTE));
  drover_call call = {};
  call.device = &body;
  constexpr int64_t count = 150;
  FaultLog log;
  for (uint64_t seed : {0, 1, 2}) {
    drover_standin_set_seed(seed);
    std::vector<float> values(count, 1.5f);
    DeviceMemory x = device->allocate(count * 4), y = device->allocate(count * 4),
                 seen = device->allocatePinned(count * 4);
    device->copy(x.data(), values.data(), count * 4, body.stream);
    // The arguments are the driver's once the launch has returned.
    for (int i = 0; i < 4; ++i) {
      void *from = i % 2 ? y.data() : x.data(), *to = i % 2 ? x.data() : y.data();
      int64_t n = count;
      void *arguments[5] = {&from, &to, &n};
      drover_rt_gpu_launch(&call, &addOne, (count + 63) / 64, arguments);
      from = to = nullptr;
      n = -1;
    }
    body.check();
    device->copy(seen.data(), x.data(), count * 4, body.stream);
    finish(*device, body.stream);
    EXPECT_EQ(std::count(reinterpret_cast<float *>(seen.data()), reinterpret_cast<float *>(seen.data()) + count, 5.5f),
              count);
    EXPECT_EQ(log.first(), "");
  }
  drover_standin_set_seed(0);
}

/// The same as between copies: a kernel's reads and writes are those that it made.
TEST(CudaDevice, KernelsThatNothingOrdersRace) {
  std::unique_ptr<Device> device = openWithKernels();
  Kernel &kernel = device->kernel(addOne);
  DeviceMemory x = device->allocate(600), y = device->allocate(600);
  Stream &first = device->stream(DROVER_STREAM_COMPUTE), &second = device->stream(DROVER_STREAM_GATHER);
  int64_t n = 150;
  void *from = x.data(), *to = y.data();
  void *arguments[] = {&from, &to, &n};
  for (uint64_t seed = 0; seed < 6; ++seed) {
    FaultLog log;
    drover_standin_set_seed(seed);
    device->fill(x.data(), 0, 600, first);
    device->launch(kernel, 3, arguments, first);
    device->fill(y.data() + 596, 0, 4, second); // the last element that the kernel writes
    finish(*device, first);
    finish(*device, second);
    EXPECT_NE(log.first().find("race: "), std::string::npos) << seed;
    EXPECT_NE(log.first().find("kernel add_one"), std::string::npos) << log.first();
  }
  drover_standin_set_seed(0);
}

TEST(CudaDevice, ABadIndexIsNamedWhereTheHostWaits) {
  std::unique_ptr<Device> device = openWithKernels();
  drover_device body(*device, device->stream(DROVER_STREAM_COMPUTE));
  body.fetchIndexErrors();
  finish(*device, body.stream);
  body.checkIndices();
  DeviceMemory x = device->allocate(4);
  void *pointer = x.data(), *arguments[3] = {&pointer};
  body.launch(checksIndex, 1, arguments);
  body.check();
  body.fetchIndexErrors();
  finish(*device, body.stream);
  expectError([&] { body.checkIndices(); }, "layer: tfm.gather: index 77 is out of range");
}

TEST(CudaDevice, LargeSharedMemoryIsAskedFor) {
  std::unique_ptr<Device> device = openWithKernels();
  FaultLog log;
  DeviceMemory y = device->allocate(4);
  void *pointer = y.data(), *arguments[] = {&pointer};
  device->launch(device->kernel(usesSharedMemory), 1, arguments, device->stream(DROVER_STREAM_COMPUTE));
  EXPECT_EQ(log.first(), "");
  drover_gpu_kernel more = usesSharedMemory;
  more.name = "checks_index";
  more.shared_bytes = 300 << 10;
  expectError([&] { device->kernel(more); }, "needs 307200 bytes of shared memory, a block has at most 232448");
}

TEST(CudaDevice, WhatIsMissingIsNamed) {
  CudaOptions options;
  options.library = "libnowhere.so.1";
  expectError([&] { openCudaDevice(options); }, "cuda: library not found; it comes with the NVIDIA driver");
  expectError([&] { openCudaDevice(options); }, "\n  libnowhere.so.1: ");
  expectError([&] { openStandin(8); }, "cuda: device 8: the driver shows this process 8 (0 to 7)");
  std::unique_ptr<Device> device = openStandin(3);
  EXPECT_EQ(device->describe(), "cuda 3 (emulated GPU, sm_90)");
  expectError([&] { device->kernel(addOne); },
              "cuda 3 (emulated GPU, sm_90): kernel add_one is not among the 0 that were loaded");
  expectError([&] { device->load(imageOf("add_one", "unknown text")); },
              "the PTX of kernel add_one cannot be loaded: CUDA_ERROR_INVALID_PTX; the driver is for CUDA 13.0");
  drover_gpu_image specific = {"attention", "", 0, nullptr, 0, 100, 1};
  expectError([&] { device->load(specific); }, "kernel attention is for sm_100a alone: compile for this device");
  drover_gpu_image other = {"other", nullptr, 0, nullptr, 0, 90, 0};
  expectError([&] { device->load(other); }, "kernel other (sm_90) cannot be loaded: CUDA_ERROR_NO_BINARY_FOR_GPU; the "
                                            "executable has no PTX");
  device->load(imageOf("nowhere"));
  drover_gpu_kernel nowhere = addOne;
  nowhere.name = "nowhere";
  expectError([&] { device->kernel(nowhere); }, "kernel nowhere: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND");
  expectError([&] { device->allocate(int64_t(1) << 40); },
              "cuMemAlloc of 1.0 TiB: CUDA_ERROR_OUT_OF_MEMORY; 80.0 GiB of 80.0 GiB are free");
}

/// A body cannot throw: what fails comes out after it, and nothing is launched meanwhile.
TEST(CudaDevice, AFailureComesOutAfterTheBody) {
  std::unique_ptr<Device> device = openStandin();
  drover_device body(*device, device->stream(DROVER_STREAM_COMPUTE));
  void *arguments[2] = {};
  body.launch(addOne, 1, arguments);
  body.launch(addOne, 1, arguments);
  expectError([&] { body.check(); }, "kernel add_one is not among the 0 that were loaded");
  body.check();
}

TEST(CudaDevice, RowsAreCopiedByTheirPitch) {
  std::unique_ptr<Device> device = openStandin();
  Stream &stream = device->stream(DROVER_STREAM_COMPUTE);
  DeviceMemory memory = device->allocate(24), seen = device->allocatePinned(24);
  std::vector<uint8_t> bytes = {1, 2, 3, 4, 5, 6};
  device->fill(memory.data(), 0, 24, stream);
  device->copyRows(memory.data() + 1, 8, bytes.data(), 2, 2, 3, stream);
  device->copy(seen.data(), memory.data(), 24, stream);
  finish(*device, stream);
  EXPECT_EQ(std::vector<uint8_t>(seen.data(), seen.data() + 24),
            (std::vector<uint8_t>{0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 5, 6, 0, 0, 0, 0, 0}));
}

} // namespace
