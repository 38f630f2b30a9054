//===- WarpTest.cpp - shuffles, votes, mma, ldmatrix ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "HandWritten.h"
#include <cmath>

using namespace drover::emu::test;

namespace {
using EmulatorWarp = EmulatorTest;

/// Writes result and predicate of a shuffle of the lane's number to two rows of the output.
template <uint32_t Kind, uint32_t Offset, uint32_t Clamp> void shuffle(void **arguments) {
  auto *out = argument<uint32_t *>(arguments, 0);
  uint8_t valid = 0;
  unsigned lane = threadIndex();
  uint32_t value = drover_emu_shuffle(~0u, lane, Offset, Clamp, Kind, &valid, 0);
  store(out + lane, value, 1, 0);
  store(out + 32 + lane, uint32_t(valid), 2, 0);
}

template <typename Source> void expectShuffle(void (*kernel)(void **), Source source) {
  DeviceArray<uint32_t> out(64);
  ASSERT_EQ(Launcher(kernel, {pointer<uint32_t>(64)}).run({out.data()}, 1, 32), 0u);
  for (int lane = 0; lane < 32; ++lane) {
    int from = source(lane);
    EXPECT_EQ(out.values[lane], uint32_t(from < 0 ? lane : from)) << "lane " << lane;
    EXPECT_EQ(out.values[32 + lane], uint32_t(from >= 0)) << "lane " << lane;
  }
}

TEST_F(EmulatorWarp, ShufflesTakeTheLaneThatPtxNames) {
  expectShuffle(shuffle<DROVER_EMU_SHUFFLE_BFLY, 5, 31>, [](int lane) { return lane ^ 5; });
  expectShuffle(shuffle<DROVER_EMU_SHUFFLE_UP, 3, 0>, [](int lane) { return lane >= 3 ? lane - 3 : -1; });
  expectShuffle(shuffle<DROVER_EMU_SHUFFLE_DOWN, 3, 31>, [](int lane) { return lane + 3 < 32 ? lane + 3 : -1; });
  expectShuffle(shuffle<DROVER_EMU_SHUFFLE_IDX, 7, 31>, [](int) { return 7; });
  // Segments of eight lanes: mask 0x18 in bits 8 to 12, clamp 7.
  expectShuffle(shuffle<DROVER_EMU_SHUFFLE_IDX, 2, 0x1807>, [](int lane) { return (lane & ~7) + 2; });
  expectShuffle(shuffle<DROVER_EMU_SHUFFLE_DOWN, 1, 0x1807>, [](int lane) { return lane % 8 == 7 ? -1 : lane + 1; });
}

TEST_F(EmulatorWarp, HalvesOfAWarpShuffleApart) {
  auto kernel = [](void **arguments) {
    unsigned lane = threadIndex();
    uint32_t mask = lane < 16 ? 0xffffu : 0xffff0000u;
    uint32_t sum = lane;
    for (uint32_t offset = 8; offset; offset /= 2)
      sum += drover_emu_shuffle(mask, sum, offset, 31, DROVER_EMU_SHUFFLE_BFLY, nullptr, lane < 16 ? 1 : 2);
    store(argument<uint32_t *>(arguments, 0) + lane, sum, 3, 0);
  };
  DeviceArray<uint32_t> out(32);
  EXPECT_EQ(Launcher(kernel, {pointer<uint32_t>(32)}).run({out.data()}, 1, 32), 0u) << faults();
  EXPECT_EQ(out.values[3], 120u);
  EXPECT_EQ(out.values[20], 376u);
}

TEST_F(EmulatorWarp, VotesAndReductions) {
  auto kernel = [](void **arguments) {
    auto *out = argument<uint32_t *>(arguments, 0);
    unsigned lane = threadIndex();
    uint32_t results[] = {drover_emu_vote(~0u, lane == 3, DROVER_EMU_VOTE_ANY, 0),
                          drover_emu_vote(~0u, lane != 3, DROVER_EMU_VOTE_ALL, 1),
                          drover_emu_vote(~0u, 0, DROVER_EMU_VOTE_UNI, 2),
                          drover_emu_vote(~0u, lane % 2, DROVER_EMU_VOTE_BALLOT, 3),
                          drover_emu_redux(~0u, lane, DROVER_EMU_REDUX_ADD, 4),
                          drover_emu_redux(~0u, lane - 5, DROVER_EMU_REDUX_MIN, 5),
                          drover_emu_redux(~0u, lane - 5, DROVER_EMU_REDUX_UMAX, 6)};
    if (lane == 0)
      for (unsigned i = 0; i < 7; ++i)
        store(out + i, results[i], 7, 0);
  };
  DeviceArray<uint32_t> out(7);
  EXPECT_EQ(Launcher(kernel, {pointer<uint32_t>(7)}).run({out.data()}, 1, 32), 0u) << faults();
  EXPECT_EQ(out.values, (std::vector<uint32_t>{1, 0, 1, 0xaaaaaaaau, 496, uint32_t(-5), uint32_t(-1)}));
}

uint16_t bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits >> 16; // the tests' values are exact
}

/// C += A * B of 16x16 and 16x8: A by ldmatrix.x4, B (stored k by n) by ldmatrix.x2.trans.
void multiply(void **arguments) {
  unsigned lane = threadIndex();
  auto *a = argument<uint16_t *>(arguments, 0), *b = argument<uint16_t *>(arguments, 1);
  auto *c = argument<float *>(arguments, 2);
  auto *shared = static_cast<uint16_t *>(drover_emu_shared());
  for (unsigned i = lane; i < 256; i += 32)
    store(shared + i, load(a + i, 0, 0), 1);
  for (unsigned i = lane; i < 128; i += 32)
    store(shared + 256 + i, load(b + i, 2, 1), 3);
  drover_emu_barrier(4);
  uint32_t fragmentA[4], fragmentB[2];
  drover_emu_ldmatrix(fragmentA, shared + lane % 16 * 16 + lane / 16 * 8, 4, 0, 5);
  drover_emu_ldmatrix(fragmentB, shared + 256 + lane % 16 * 8, 2, 1, 6);
  float in[4], out[4];
  unsigned row = lane / 4, column = lane % 4 * 2;
  for (unsigned i = 0; i < 4; ++i)
    in[i] = load(c + (row + i / 2 * 8) * 8 + column + i % 2, 7, 2);
  drover_emu_mma_m16n8k16_bf16(out, fragmentA, fragmentB, in, 8);
  for (unsigned i = 0; i < 4; ++i)
    store(c + (row + i / 2 * 8) * 8 + column + i % 2, out[i], 9, 2);
}

TEST_F(EmulatorWarp, MatricesMultiplyThroughLdmatrixAndMma) {
  DeviceArray<uint16_t> a(256), b(128);
  DeviceArray<float> c(128);
  std::vector<float> wanted(128);
  auto value = [](int i) { return float((i * 7 + 3) % 13 - 6); };
  for (int i = 0; i < 256; ++i)
    a.values[i] = bf16(value(i));
  for (int i = 0; i < 128; ++i) {
    b.values[i] = bf16(value(i + 5));
    wanted[i] = c.values[i] = i;
  }
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j)
      for (int k = 0; k < 16; ++k)
        wanted[i * 8 + j] += value(i * 16 + k) * value(k * 8 + j + 5);
  Launcher launcher(multiply, {pointer<uint16_t>(256), pointer<uint16_t>(128), pointer<float>(128)}, /*granule=*/1);
  EXPECT_EQ(launcher.run({a.data(), b.data(), c.data()}, 1, 32, 768, 4), 0u) << faults();
  EXPECT_EQ(c.values, wanted);
}

TEST_F(EmulatorWarp, StmatrixIsTheInverseOfLdmatrix) {
  for (unsigned transposed = 0; transposed < 2; ++transposed) {
    auto kernel = [](void **arguments) {
      unsigned lane = threadIndex();
      uint32_t transposed = argument<uint64_t>(arguments, 1);
      auto *shared = static_cast<uint16_t *>(drover_emu_shared());
      for (unsigned i = lane; i < 256; i += 32)
        store(shared + i, uint16_t(i), 0);
      drover_emu_barrier(1);
      uint32_t registers[4];
      drover_emu_ldmatrix(registers, shared + lane * 8, 4, transposed, 2);
      drover_emu_stmatrix(registers, shared + 256 + lane * 8, 4, transposed, 3);
      drover_emu_barrier(4);
      for (unsigned i = lane; i < 256; i += 32)
        store(argument<uint16_t *>(arguments, 0) + i, load(shared + 256 + i, 5), 6, 0);
    };
    DeviceArray<uint16_t> out(256);
    Launcher launcher(kernel, {pointer<uint16_t>(256), {8, 0, 0}}, /*granule=*/1);
    EXPECT_EQ(launcher.run({out.data(), reinterpret_cast<void *>(uintptr_t(transposed))}, 1, 32, 1024), 0u) << faults();
    for (int i = 0; i < 256; ++i)
      EXPECT_EQ(out.values[i], i);
  }
}

TEST_F(EmulatorWarp, LdmatrixRowsAreHeldToTheChecks) {
  auto kernel = [](void **) {
    uint32_t registers[4];
    drover_emu_ldmatrix(registers, static_cast<char *>(drover_emu_shared()) + threadIndex() * 16, 4, 0, 2);
  };
  Launcher(kernel).run({}, 1, 32, 500);
  EXPECT_FAULT("init: read of shared memory that nobody wrote");
  EXPECT_FAULT("bounds: read of 16 bytes at offset 496 of 500 bytes");
}
} // namespace
