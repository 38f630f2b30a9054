//===- KernelsTest.cpp - kernels compiled by drover-emulate-kernels -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "HandWritten.h"
#include <cmath>
#include <cstdlib>
#include <dlfcn.h>

using namespace drover::emu::test;

namespace {
constexpr uint64_t seeds = 10;

/// A library of kernels that the build made from a file of this folder.
struct Library {
  explicit Library(const char *stem) {
    std::string path = std::string(DROVER_TEST_KERNELS) + "/" + stem + ".so";
    void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    table = handle ? static_cast<drover_emu_library *>(dlsym(handle, DROVER_EMU_LIBRARY_SYMBOL)) : nullptr;
    EXPECT_NE(table, nullptr) << path << ": " << (handle ? "" : dlerror());
  }
  const drover_emu_kernel *find(const std::string &name) const {
    for (uint32_t i = 0; table && i < table->kernel_count; ++i)
      if (name == table->kernels[i].name)
        return &table->kernels[i];
    ADD_FAILURE() << "no kernel " << name;
    return nullptr;
  }
  drover_emu_library *table = nullptr;
};

uint64_t launch(const drover_emu_kernel *kernel, unsigned blocks, unsigned threads, std::vector<void *> arguments,
                uint64_t seed, unsigned sharedBytes = 0) {
  drover_emu_launch how = {{blocks, 1, 1}, {threads, 1, 1}, sharedBytes, seed, nullptr, nullptr};
  return drover_emu_run(kernel, &how, arguments.data());
}

uint64_t flopsSoFar() {
  drover_emu_counters counters;
  drover_emu_read_counters(&counters);
  return counters.flops;
}

float floatOf(uint16_t half) {
  uint32_t bits = uint32_t(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

uint16_t bf16Of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

float randomValue() { return float(std::rand()) / float(RAND_MAX) - 0.5f; }

using EmulatedKernels = EmulatorTest;

TEST_F(EmulatedKernels, VectorAddWithATail) {
  Library library("vector-add");
  const drover_emu_kernel *kernel = library.find("vector_add");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->argument_count, 4u);
  EXPECT_EQ(kernel->max_threads, 128u);
  EXPECT_EQ(kernel->granule, 2u);
  DeviceArray<float> a(1000), b(1000), out(1000, /*written=*/false);
  for (int i = 0; i < 1000; ++i) {
    a.values[i] = randomValue();
    b.values[i] = randomValue();
  }
  float *pa = a.data(), *pb = b.data(), *po = out.data();
  int64_t count = 1000;
  uint64_t flops = flopsSoFar();
  for (uint64_t seed = 0; seed < seeds; ++seed)
    EXPECT_EQ(launch(kernel, 2, 128, {&pa, &pb, &po, &count}, seed), 0u) << faults();
  EXPECT_EQ(flopsSoFar() - flops, seeds * 1000);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(out.values[i], a.values[i] + b.values[i]);
  EXPECT_EQ(drover_emu_memory_unwritten(po, 4000), nullptr);
}

TEST_F(EmulatedKernels, OneThreadTooManyIsNamed) {
  Library library("vector-add");
  DeviceArray<float> a(1100), out(1100);
  float *pa = a.data(), *po = out.data();
  int64_t count = 1000;
  EXPECT_EQ(launch(library.find("vector_add_overrun"), 8, 128, {&pa, &po, &count}, 1), 2u);
  EXPECT_FAULT("kernel vector_add_overrun: bounds: read of 4 bytes at offset 4000 of argument 0, which has 4000 bytes");
  EXPECT_FAULT("block (7,0,0), thread (104,0,0)");
  EXPECT_FAULT("in llvm.load at vector-add.mlir:");
  EXPECT_FAULT("write of 4 bytes at offset 4000 of argument 1");
}

TEST_F(EmulatedKernels, RmsNormByShuffles) {
  Library library("rms-norm");
  const drover_emu_kernel *kernel = library.find("rms_norm");
  ASSERT_NE(kernel, nullptr);
  constexpr int rows = 5, width = 250;
  DeviceArray<uint16_t> x(rows * width), out(rows * width);
  for (uint16_t &value : x.values)
    value = bf16Of(randomValue());
  uint16_t *px = x.data(), *po = out.data();
  float eps = 1e-5f;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    std::fill(out.values.begin(), out.values.end(), 0xffff);
    ASSERT_EQ(launch(kernel, rows, 128, {&px, &po, &eps}, seed), 0u) << faults();
    for (int row = 0; row < rows; ++row) {
      double squares = 0;
      for (int i = 0; i < width; ++i)
        squares += std::pow(floatOf(x.values[row * width + i]), 2);
      for (int i = 0; i < width; ++i) {
        double wanted = floatOf(x.values[row * width + i]) / std::sqrt(squares / width + eps);
        EXPECT_NEAR(floatOf(out.values[row * width + i]), wanted, 0.005 * std::fabs(wanted) + 1e-6);
      }
    }
  }
}

TEST_F(EmulatedKernels, MatmulByTensorCores) {
  Library library("matmul");
  const drover_emu_kernel *kernel = library.find("matmul");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->shared_bytes, 8192u);
  EXPECT_EQ(kernel->static_shared_bytes, 0u);
  constexpr int m = 32, n = 32, k = 64;
  DeviceArray<uint16_t> a(m * k), b(k * n);
  DeviceArray<float> c(m * n, /*written=*/false);
  for (uint16_t &value : a.values)
    value = bf16Of(randomValue());
  for (uint16_t &value : b.values)
    value = bf16Of(randomValue());
  uint16_t *pa = a.data(), *pb = b.data();
  float *pc = c.data();
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    std::fill(c.values.begin(), c.values.end(), NAN);
    uint64_t flops = flopsSoFar();
    ASSERT_EQ(launch(kernel, 1, 128, {&pa, &pb, &pc}, seed, 8192), 0u) << faults();
    EXPECT_EQ(flopsSoFar() - flops, 2u * m * n * k);
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double wanted = 0;
        for (int l = 0; l < k; ++l)
          wanted += double(floatOf(a.values[i * k + l])) * floatOf(b.values[l * n + j]);
        ASSERT_NEAR(c.values[i * n + j], wanted, 1e-5) << i << "," << j;
      }
  }
  EXPECT_EQ(drover_emu_memory_unwritten(pc, 4096), nullptr);
  EXPECT_NE(launch(kernel, 1, 128, {&pa, &pb, &pc}, 1, 4096), 0u);
  EXPECT_FAULT("launched with 4096 bytes of shared memory, needs 8192");
}
} // namespace
