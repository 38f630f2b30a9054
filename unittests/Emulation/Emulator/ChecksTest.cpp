//===- ChecksTest.cpp - each check of the emulator, with its fault -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "HandWritten.h"

using namespace drover::emu::test;

namespace {
constexpr uint64_t seeds = 20;

using EmulatorChecks = EmulatorTest;

float *sharedFloats() { return static_cast<float *>(drover_emu_shared()); }

/// Reverses a block's 64 values through shared memory. With Barrier false the barrier is missing.
template <bool Barrier> void reverse(void **arguments) {
  float *data = argument<float *>(arguments, 0);
  unsigned i = threadIndex();
  store(sharedFloats() + i, load(data + i, 0, 0), 1);
  if (Barrier)
    drover_emu_barrier(2);
  store(data + i, load(sharedFloats() + 63 - i, 3), 4, 0);
}

TEST_F(EmulatorChecks, CorrectKernelPassesUnderEveryOrder) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    DeviceArray<float> data(64);
    for (int i = 0; i < 64; ++i)
      data.values[i] = i;
    EXPECT_EQ(Launcher(reverse<true>, {pointer<float>(64)}).run({data.data()}, 1, 64, 256, seed), 0u) << faults();
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(data.values[i], 63 - i);
  }
}

TEST_F(EmulatorChecks, MissingBarrierIsARaceUnderEveryOrder) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    drover_emu_clear_faults();
    DeviceArray<float> data(64);
    EXPECT_NE(Launcher(reverse<false>, {pointer<float>(64)}).run({data.data()}, 1, 64, 256, seed), 0u);
    // Either order of the two accesses is a fault: a race, or a read before the write.
    EXPECT_TRUE(faults().find("race: ") != std::string::npos) << faults();
  }
}

TEST_F(EmulatorChecks, FaultNamesKernelBlockThreadAddressAndSite) {
  DeviceArray<float> data(4);
  auto kernel = [](void **arguments) {
    if (blockIndex() == 1 && threadIndex() == 2)
      store(argument<float *>(arguments, 0) + 4, 1.0f, 5, 0);
  };
  EXPECT_EQ(Launcher(kernel, {pointer<float>(4)}).run({data.data()}, 2, 32), 1u);
  EXPECT_FAULT("kernel hand_written: bounds: write of 4 bytes at offset 16 of argument 0, which has 16 bytes");
  EXPECT_FAULT("block (1,0,0), thread (2,0,0), address 0x");
  EXPECT_FAULT("in site 5");
}

TEST_F(EmulatorChecks, ExtentOfAnArgumentIsHeldInsideItsAllocation) {
  DeviceArray<float> data(64);
  auto kernel = [](void **arguments) { load(argument<float *>(arguments, 0) + threadIndex(), 0, 0); };
  EXPECT_EQ(Launcher(kernel, {pointer<float>(32)}).run({data.data()}, 1, 32), 0u) << faults();
  EXPECT_EQ(Launcher(kernel, {pointer<float>(31)}).run({data.data()}, 1, 32), 1u);
  EXPECT_FAULT("read of 4 bytes at offset 124 of argument 0, which has 124 bytes");
}

TEST_F(EmulatorChecks, AddressOfUnknownOriginMustLieInSomeArgument) {
  DeviceArray<float> data(8), other(8);
  auto kernel = [](void **arguments) { load(argument<float *>(arguments, 0) + 8, 0, -1); };
  EXPECT_EQ(Launcher(kernel, {pointer<float>(8)}).run({data.data()}, 1, 1), 1u);
  EXPECT_FAULT("outside the extents of all arguments");
}

TEST_F(EmulatorChecks, PromisedExtentMustFitTheAllocation) {
  DeviceArray<float> data(8);
  Launcher([](void **) {}, {pointer<float>(9)}).run({data.data()}, 1, 1);
  EXPECT_FAULT("argument 0 promises 36 bytes, its allocation ends after 32");
}

TEST_F(EmulatorChecks, WriteToReadonlyArgument) {
  DeviceArray<float> data(8);
  data.values[0] = 7;
  auto kernel = [](void **arguments) { store(argument<float *>(arguments, 0), 1.0f, 0, 0); };
  Launcher(kernel, {pointer<float>(8, DROVER_EMU_READONLY)}).run({data.data()}, 1, 1);
  EXPECT_FAULT("write of 4 bytes through a readonly argument");
  EXPECT_EQ(data.values[0], 7);
}

TEST_F(EmulatorChecks, NoaliasArgumentsMayNotOverlap) {
  DeviceArray<float> data(8);
  auto none = [](void **) {};
  Launcher writes(none, {pointer<float>(8, DROVER_EMU_NOALIAS), pointer<float>(4, DROVER_EMU_READONLY)});
  EXPECT_EQ(writes.run({data.data(), data.data() + 6}, 1, 1), 2u); // promises more than there is, too
  EXPECT_FAULT("arguments 0 and 1 overlap, and one of them is noalias");
  Launcher reads(none, {pointer<float>(8, DROVER_EMU_NOALIAS | DROVER_EMU_READONLY),
                        pointer<float>(4, DROVER_EMU_NOALIAS | DROVER_EMU_READONLY)});
  EXPECT_EQ(reads.run({data.data(), data.data()}, 1, 1), 0u);
}

TEST_F(EmulatorChecks, MisalignedVectorAccess) {
  DeviceArray<float> data(8);
  auto kernel = [](void **arguments) { drover_emu_access(argument<float *>(arguments, 0) + 1, 16, 0, 16, 0, 3); };
  Launcher(kernel, {pointer<float>(8)}).run({data.data()}, 1, 1);
  EXPECT_FAULT("align: read of 16 bytes at an address that is no multiple of 16");
}

TEST_F(EmulatorChecks, UninitializedSharedAndGlobalReads) {
  DeviceArray<float> data(8, /*written=*/false);
  auto global = [](void **arguments) { load(argument<float *>(arguments, 0), 0, 0); };
  auto shared = [](void **) { load(sharedFloats(), 1); };
  Launcher(global, {pointer<float>(8)}).run({data.data()}, 1, 1);
  EXPECT_FAULT("init: read of global memory that nobody wrote");
  Launcher(shared).run({}, 1, 1, 64);
  EXPECT_FAULT("init: read of shared memory that nobody wrote");
}

TEST_F(EmulatorChecks, SharedMemoryStartsAnewInEachBlock) {
  auto kernel = [](void **) {
    if (threadIndex() == 0 && blockIndex() == 0)
      store(sharedFloats(), 1.0f, 0);
    if (threadIndex() == 0 && blockIndex() != 0)
      load(sharedFloats(), 1);
  };
  EXPECT_EQ(Launcher(kernel).run({}, 2, 1, 64), 1u);
  EXPECT_FAULT("nobody wrote");
}

TEST_F(EmulatorChecks, SharedOutOfBounds) {
  auto kernel = [](void **) { store(sharedFloats() + 16, 1.0f, 0, -1, DROVER_EMU_SHARED); };
  Launcher(kernel).run({}, 1, 1, 64);
  EXPECT_FAULT("bounds: write of 4 bytes at offset 64 of 64 bytes of shared memory");
}

TEST_F(EmulatorChecks, RaceBetweenBlocksIsFoundInEitherDirection) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    drover_emu_clear_faults();
    DeviceArray<float> data(8);
    auto kernel = [](void **arguments) {
      float *data = argument<float *>(arguments, 0);
      if (blockIndex() == 0)
        store(data, 1.0f, 0, 0);
      else
        load(data, 1, 0);
    };
    Launcher(kernel, {pointer<float>(8)}).run({data.data()}, 2, 1, 0, seed);
    EXPECT_FAULT("of another block");
  }
}

TEST_F(EmulatorChecks, BlocksMayReadWhatAnEarlierLaunchWrote) {
  DeviceArray<float> data(64, /*written=*/false);
  auto writes = [](void **arguments) { store(argument<float *>(arguments, 0) + threadIndex(), 1.0f, 0, 0); };
  auto reads = [](void **arguments) { load(argument<float *>(arguments, 0) + 63 - threadIndex(), 0, 0); };
  EXPECT_EQ(Launcher(writes, {pointer<float>(64)}).run({data.data()}, 1, 64), 0u);
  EXPECT_EQ(Launcher(reads, {pointer<float>(64)}).run({data.data()}, 3, 64), 0u) << faults();
}

TEST_F(EmulatorChecks, WriteAfterReadsOfSeveralBlocksIsARace) {
  DeviceArray<float> data(8);
  auto kernel = [](void **arguments) {
    float *data = argument<float *>(arguments, 0);
    load(data, 0, 0);
    drover_emu_barrier(2);
    if (blockIndex() == 0 && threadIndex() == 0)
      store(data, 1.0f, 1, 0);
  };
  EXPECT_NE(Launcher(kernel, {pointer<float>(8)}).run({data.data()}, 3, 32), 0u);
  EXPECT_FAULT("of another block");
  EXPECT_EQ(Launcher(kernel, {pointer<float>(8)}).run({data.data()}, 1, 32), 0u);
}

TEST_F(EmulatorChecks, AtomicsRaceWithPlainAccessesOnly) {
  auto kernel = [](void **arguments) {
    auto *data = argument<uint32_t *>(arguments, 0);
    drover_emu_access(data, 4, DROVER_EMU_WRITE | DROVER_EMU_ATOMIC, 4, 0, 0);
    if (argument<uint64_t>(arguments, 1) && threadIndex() == 5)
      store(data, 1u, 1, 0);
  };
  DeviceArray<uint32_t> data(8);
  Launcher launcher(kernel, {pointer<uint32_t>(8), {8, 0, 0}});
  EXPECT_EQ(launcher.run({data.data(), nullptr}, 2, 32), 0u) << faults();
  EXPECT_NE(launcher.run({data.data(), reinterpret_cast<void *>(1)}, 2, 32), 0u);
}

TEST_F(EmulatorChecks, NeighbouringBytesAreDifferentMemory) {
  auto kernel = [](void **arguments) { store(argument<uint8_t *>(arguments, 0) + threadIndex(), uint8_t(1), 0, 0); };
  DeviceArray<uint8_t> data(32);
  EXPECT_EQ(Launcher(kernel, {pointer<uint8_t>(32)}, /*granule=*/0).run({data.data()}, 1, 32), 0u) << faults();
}

TEST_F(EmulatorChecks, DivergentBarriersAreNamed) {
  auto twoPlaces = [](void **) { drover_emu_barrier(threadIndex() % 2 ? 3 : 4); };
  EXPECT_EQ(Launcher(twoPlaces).run({}, 1, 64), 1u);
  EXPECT_FAULT("divergent barrier: other threads wait in site");
  drover_emu_clear_faults();
  auto someLeave = [](void **) {
    if (threadIndex() != 7)
      drover_emu_barrier(3);
  };
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    drover_emu_clear_faults();
    EXPECT_EQ(Launcher(someLeave).run({}, 1, 64, 0, seed), 1u);
    EXPECT_FAULT("barrier: ");
    EXPECT_FAULT("in site 3");
  }
}

TEST_F(EmulatorChecks, BarrierAgainstWarpOperationIsADeadlock) {
  auto kernel = [](void **) {
    if (threadIndex() < 32)
      drover_emu_barrier(3);
    else if (threadIndex() < 48)
      drover_emu_warp_barrier(~0u, 4);
    else
      drover_emu_barrier(3);
  };
  EXPECT_EQ(Launcher(kernel).run({}, 1, 64), 1u);
  EXPECT_FAULT("no thread can go on: 48 of 64 wait at a barrier, 16 in a warp operation (barrier: site 3)");
  EXPECT_FAULT("in site 4");
}

TEST_F(EmulatorChecks, WarpOperationsOfAbsentLanesAndOfSeveralPlaces) {
  auto absent = [](void **) { drover_emu_shuffle(~0u, 1, 1, 31, DROVER_EMU_SHUFFLE_BFLY, nullptr, 1); };
  EXPECT_EQ(Launcher(absent).run({}, 1, 48), 1u);
  EXPECT_FAULT("mask 0xffffffff has lanes that are not there, 0xffff0000");
  drover_emu_clear_faults();
  auto divergent = [](void **) {
    drover_emu_shuffle(~0u, 1, 1, 31, DROVER_EMU_SHUFFLE_BFLY, nullptr, threadIndex() % 2 ? 1 : 2);
  };
  EXPECT_EQ(Launcher(divergent).run({}, 1, 32), 1u);
  EXPECT_FAULT("divergent warp operation: other lanes wait in site");
  drover_emu_clear_faults();
  auto leftOut = [](void **) { drover_emu_warp_barrier(0xfffe, 1); };
  Launcher(leftOut).run({}, 1, 32);
  EXPECT_FAULT("which its mask 0xfffe leaves out");
}

TEST_F(EmulatorChecks, WarpBarrierOrdersItsWarpOnly) {
  auto kernel = [](void **arguments) {
    unsigned i = threadIndex(), partner = argument<uint64_t>(arguments, 0) ? i ^ 32 : i ^ 1;
    store(sharedFloats() + i, 1.0f, 0);
    drover_emu_warp_barrier(~0u, 1);
    load(sharedFloats() + partner, 2);
  };
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    drover_emu_clear_faults();
    Launcher launcher(kernel, {{8, 0, 0}});
    EXPECT_EQ(launcher.run({nullptr}, 1, 64, 256, seed), 0u) << faults();
    EXPECT_NE(launcher.run({reinterpret_cast<void *>(1)}, 1, 64, 256, seed), 0u);
    EXPECT_FAULT("race: ");
  }
}

/// Copies 16 bytes a thread to shared memory and reads a neighbour's; Fault 1 forgets the wait, 2 the commit, 3 the
/// barrier.
template <int Fault> void asyncCopy(void **arguments) {
  float *data = argument<float *>(arguments, 0);
  unsigned i = threadIndex();
  drover_emu_cp_async(sharedFloats() + 4 * i, data + 4 * i, 16, i == 31 ? 8 : 16, 0, 1);
  if (Fault != 2)
    drover_emu_cp_async_commit(2);
  if (Fault != 1)
    drover_emu_cp_async_wait(0, 3);
  if (Fault != 3)
    drover_emu_barrier(4);
  unsigned partner = i ^ 1;
  float sum = 0;
  for (unsigned j = 0; j < 4; ++j)
    sum += load(sharedFloats() + 4 * partner + j, 5);
  store(argument<float *>(arguments, 1) + i, sum, 6, 1);
}

TEST_F(EmulatorChecks, AsyncCopiesArriveAtTheirWait) {
  DeviceArray<float> data(128), sums(32);
  for (int i = 0; i < 128; ++i)
    data.values[i] = i;
  std::vector<drover_emu_argument> arguments = {pointer<float>(128, DROVER_EMU_READONLY), pointer<float>(32)};
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    EXPECT_EQ(Launcher(asyncCopy<0>, arguments).run({data.data(), sums.data()}, 1, 32, 512, seed), 0u) << faults();
    EXPECT_EQ(sums.values[0], 4 + 5 + 6 + 7);
    EXPECT_EQ(sums.values[30], 124 + 125); // the rest of the last copy is zero
    Launcher(asyncCopy<1>, arguments).run({data.data(), sums.data()}, 1, 32, 512, seed);
    EXPECT_FAULT("access to shared memory that a cp.async without a wait is to fill");
    drover_emu_clear_faults();
    Launcher(asyncCopy<2>, arguments).run({data.data(), sums.data()}, 1, 32, 512, seed);
    EXPECT_FAULT("a cp.async was never committed");
    drover_emu_clear_faults();
    Launcher(asyncCopy<3>, arguments).run({data.data(), sums.data()}, 1, 32, 512, seed);
    EXPECT_TRUE(faults().find("race: ") != std::string::npos || faults().find("async: ") != std::string::npos);
    drover_emu_clear_faults();
  }
}

TEST_F(EmulatorChecks, LaunchesHoldTheKernelsLimits) {
  Launcher launcher([](void **) {});
  launcher.kernel.max_threads = 64;
  launcher.kernel.shared_bytes = 128;
  EXPECT_EQ(launcher.run({}, 1, 64, 128), 0u);
  EXPECT_EQ(launcher.run({}, 1, 96, 128), 1u);
  EXPECT_FAULT("launched with 96 threads a block, at most 64 are allowed");
  drover_emu_clear_faults();
  EXPECT_EQ(launcher.run({}, 1, 64, 64), 1u);
  EXPECT_FAULT("launched with 64 bytes of shared memory, needs 128");
}

TEST_F(EmulatorChecks, ChecksCanBeTurnedOff) {
  DeviceArray<float> data(64);
  drover_emu_set_checks(DROVER_EMU_CHECK_BOUNDS);
  EXPECT_EQ(Launcher(reverse<false>, {pointer<float>(64)}).run({data.data()}, 1, 64, 256), 0u);
}

TEST_F(EmulatorChecks, TouchedBytesAreExact) {
  struct Range {
    size_t from, bytes;
    bool written;
    bool operator==(const Range &other) const {
      return from == other.from && bytes == other.bytes && written == other.written;
    }
  };
  struct Ranges {
    char *base;
    std::vector<Range> all;
  } ranges;
  DeviceArray<float> data(64);
  ranges.base = reinterpret_cast<char *>(data.data());
  auto kernel = [](void **arguments) {
    float *data = argument<float *>(arguments, 0);
    store(data + 8 + threadIndex(), load(data + 32 + 2 * threadIndex(), 0, 0), 1, 0);
  };
  Launcher launcher(kernel, {pointer<float>(64)});
  launcher.context = &ranges;
  launcher.touched = [](void *context, const void *base, size_t bytes, int written) {
    auto &ranges = *static_cast<Ranges *>(context);
    ranges.all.push_back({size_t(static_cast<const char *>(base) - ranges.base), bytes, written != 0});
  };
  launcher.run({data.data()}, 1, 3);
  std::vector<Range> wanted = {{128, 4, false}, {136, 4, false}, {144, 4, false}, {32, 12, true}};
  EXPECT_EQ(ranges.all, wanted);
}
} // namespace
