//===- WarpgroupTest.cpp - wgmma of the emulator ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Layouts are the examples of PTX ISA 9, "Canonical Layouts": what lies where is written out here, and the descriptor
// has the numbers that the example gives.
//===----------------------------------------------------------------------===//
#include "HandWritten.h"
#include <functional>

using namespace drover::emu::test;

namespace {
class EmulatorWarpgroup : public EmulatorTest {};

constexpr unsigned kDepth = 16, kRows = 64, kBytesOfA = kRows * 128;

enum Mistake : uint64_t {
  None,
  NoProxyFence,
  NoBarrier,
  NoRegisterFence,
  NoWait,
  WriteBeforeWait,
  OtherDescriptors,
  NeverSettled
};

/// Where an element of X (n, k) lies, in elements, before the swizzle.
struct Layout {
  unsigned n;
  std::function<unsigned(unsigned n, unsigned k)> place;
  unsigned leadingBytes, strideBytes, mode;
  bool isNMajor;
};

unsigned swizzled(unsigned byte, unsigned mode) {
  constexpr unsigned masks[] = {0, 7, 3, 1}; // of 128, 64 and 32 bytes
  return byte ^ ((byte >> 7 & masks[mode]) << 4);
}

uint64_t descriptor(uint64_t address, unsigned leadingBytes, unsigned strideBytes, uint64_t mode) {
  auto encode = [](uint64_t x) { return (x & 0x3ffff) >> 4; };
  return encode(address) | encode(leadingBytes) << 16 | encode(strideBytes) << 32 | mode << 62;
}

uint16_t bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits >> 16; // the tests' values are exact
}
float valueOfA(unsigned row, unsigned k) { return float((row * 7 + k * 3) % 13) - 6; }
float valueOfX(unsigned n, unsigned k) { return float((n * 5 + k * 11) % 17) - 8; }

const Layout *layout;

/// out[64][n] = 2 * (A X^T + 1): A is K-major with the 128-byte swizzle, and everything is added twice.
void product(void **arguments) {
  auto *out = argument<float *>(arguments, 0);
  auto mistake = argument<uint64_t>(arguments, 1);
  auto *shared = static_cast<char *>(drover_emu_shared());
  unsigned thread = threadIndex(), n = layout->n;
  for (unsigned i = thread; i < kRows * kDepth; i += 128) {
    unsigned row = i / kDepth, k = i % kDepth;
    store(reinterpret_cast<uint16_t *>(shared + swizzled(row * 128 + 2 * k, 1)), bf16(valueOfA(row, k)), 0);
  }
  for (unsigned i = thread; i < n * kDepth; i += 128)
    store(reinterpret_cast<uint16_t *>(shared + kBytesOfA +
                                       swizzled(2 * layout->place(i / kDepth, i % kDepth), layout->mode)),
          bf16(valueOfX(i / kDepth, i % kDepth)), 1);
  if (mistake != NoProxyFence)
    drover_emu_proxy_fence(2);
  if (mistake != NoBarrier)
    drover_emu_barrier(3);
  uint32_t registers[128];
  float one = 1;
  for (unsigned i = 0; i < n / 2; ++i)
    std::memcpy(registers + i, &one, sizeof one);
  auto base = reinterpret_cast<uintptr_t>(shared);
  uint64_t a = descriptor(base, 0, 1024, 1);
  uint64_t x = descriptor(base + kBytesOfA, layout->leadingBytes, layout->strideBytes, layout->mode);
  if (mistake == OtherDescriptors && thread == 77)
    ++x;
  uint32_t flags = layout->isNMajor ? DROVER_EMU_WGMMA_B_IS_N_MAJOR : 0;
  if (mistake != NoRegisterFence)
    drover_emu_wgmma_fence(4);
  for (int i = 0; i < 2; ++i)
    drover_emu_wgmma_bf16(registers, a, x, n, flags | DROVER_EMU_WGMMA_ADDS, 5);
  drover_emu_wgmma_commit(6);
  if (mistake == WriteBeforeWait && thread == 5)
    store(reinterpret_cast<uint16_t *>(shared), uint16_t(0), 7);
  if (mistake != NoWait)
    drover_emu_wgmma_wait(0, 7);
  if (mistake != NeverSettled)
    drover_emu_wgmma_settle(registers, n / 2, 8);
  for (unsigned i = 0; i < n / 2; ++i) {
    unsigned row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + thread % 4 * 2 + i % 2;
    float value;
    std::memcpy(&value, registers + i, sizeof value);
    store(out + row * n + column, value, 9, 0);
  }
}

constexpr unsigned kSharedBytes = kBytesOfA + 16384;

std::vector<float> run(const Layout &of, uint64_t mistake, uint64_t seed = 1) {
  layout = &of;
  DeviceArray<float> out(kRows * of.n);
  Launcher launcher(product, {pointer<float>(kRows * of.n), {8, 0, 0}}, /*granule=*/1);
  launcher.run({out.data(), reinterpret_cast<void *>(uintptr_t(mistake))}, 1, 128, kSharedBytes, seed);
  return out.values;
}

const Layout kKMajor = {16, [](unsigned n, unsigned k) { return n * 64 + k; }, 0, 1024, 1, false};

const Layout kLayouts[] = {
    kKMajor,
    // K-major without a swizzle: of 128-bit elements ((8,2),(1,4)):((1,8),(1,16)).
    {16, [](unsigned n, unsigned k) { return n % 8 * 8 + n / 8 * 64 + k % 8 + k / 8 * 128; }, 256, 128, 0, false},
    // K-major, 32B: of 128-bit elements ((8,2),(1,4)):((2,16),(1,1)).
    {16, [](unsigned n, unsigned k) { return n % 8 * 16 + n / 8 * 128 + k; }, 0, 256, 3, false},
    {16, [](unsigned n, unsigned k) { return n * 32 + k; }, 0, 512, 2, false},
    // ((8,1,2),(8,2)):((1,8,64),(8,128)), ((8,2,2),(8,2)):((1,8,128),(16,256)), ((8,4,2),(8,2)):((1,8,256),(32,512)).
    {16, [](unsigned n, unsigned k) { return n % 8 + n / 8 * 64 + k % 8 * 8 + k / 8 * 128; }, 256, 128, 0, true},
    {32, [](unsigned n, unsigned k) { return n % 16 + n / 16 * 128 + k % 8 * 16 + k / 8 * 256; }, 256, 512, 3, true},
    {64, [](unsigned n, unsigned k) { return n % 32 + n / 32 * 256 + k % 8 * 32 + k / 8 * 512; }, 512, 1024, 2, true},
    {128, [](unsigned n, unsigned k) { return n % 64 + n / 64 * 1024 + k * 64; }, 2048, 1024, 1, true},
};

TEST_F(EmulatorWarpgroup, MultipliesAllLayouts) {
  for (const Layout &of : kLayouts)
    for (uint64_t seed : {1, 2}) {
      std::vector<float> got = run(of, None, seed);
      EXPECT_EQ(faults(), "");
      for (unsigned row = 0; row < kRows; ++row)
        for (unsigned n = 0; n < of.n; ++n) {
          float sum = 0;
          for (unsigned k = 0; k < kDepth; ++k)
            sum += valueOfA(row, k) * valueOfX(n, k);
          ASSERT_EQ(got[row * of.n + n], 1 + 2 * sum) << "layout " << &of - kLayouts << ", " << row << ", " << n;
        }
    }
}

TEST_F(EmulatorWarpgroup, WritesAreFencedForTheProxy) {
  run(kKMajor, NoProxyFence);
  EXPECT_FAULT("without a fence.proxy.async behind it");
}

TEST_F(EmulatorWarpgroup, ABarrierFollowsTheFence) {
  run(kKMajor, NoBarrier);
  EXPECT_FAULT("with no barrier behind its fence.proxy.async");
}

TEST_F(EmulatorWarpgroup, RegistersAreFenced) {
  run(kKMajor, NoRegisterFence);
  EXPECT_FAULT("wgmma without a wgmma.fence behind what touched its registers");
}

TEST_F(EmulatorWarpgroup, SumsAreThereAfterTheWait) {
  run(kKMajor, NoWait);
  EXPECT_FAULT("registers of a wgmma are read before its wait");
  EXPECT_FAULT("a wgmma was never waited for");
}

TEST_F(EmulatorWarpgroup, SumsThatAreNotSettledAreNoNumbers) {
  for (float value : run(kKMajor, NeverSettled))
    EXPECT_TRUE(value != value);
}

TEST_F(EmulatorWarpgroup, SharedMemoryStaysUntilTheWait) {
  run(kKMajor, WriteBeforeWait);
  EXPECT_FAULT("write to shared memory that a wgmma without a wait reads");
}

TEST_F(EmulatorWarpgroup, DescriptorsAreTheSameInAllThreads) {
  run(kKMajor, OtherDescriptors);
  EXPECT_FAULT("threads of a warpgroup give wgmma other descriptors");
}
} // namespace
