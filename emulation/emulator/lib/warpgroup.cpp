//===- warpgroup.cpp - products of 128 threads (wgmma) ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// From PTX ISA 9, "Asynchronous Warpgroup Level Matrix Instructions": wgmma.mma_async with both matrices in shared
// memory. A product is computed where it is issued, and what a GPU leaves undefined is a fault: sums in flight are
// numbers of sums in the guise of NaNs until a wait, and what a product in flight reads may not be written.
//===----------------------------------------------------------------------===//
#include "hooks.h"
#include "machine.h"
#include <cstring>
#include <sstream>

using namespace drover::emu;

static constexpr unsigned warpgroupSize = 128;

struct Machine::ProductSlot {
  uint32_t *registers;
  uint64_t a, b;
  uint32_t n, flags;
  unsigned thread;
};

//===----------------------------------------------------------------------===//
// Matrices in shared memory
//===----------------------------------------------------------------------===//

/// What a matrix descriptor says ("Matrix Descriptor Format", "Canonical Layouts"), of 16-bit elements. A chunk is 16
/// bytes: 8 elements along K of one row where the matrix is K-major, 8 along M or N at one k where it is not.
class Machine::Matrix {
public:
  Matrix(uint64_t descriptor, bool majorIsOuter, const char *base) : majorIsOuter(majorIsOuter) {
    auto decode = [&](unsigned bit) { return uint32_t(descriptor >> bit & 0x3fff) << 4; };
    constexpr unsigned widths[] = {1, 8, 4, 2}; // chunks that are swizzled together, by mode
    // Descriptors have 18 bits of an address, and a block has less memory than that.
    start = (decode(0) - uint32_t(reinterpret_cast<uintptr_t>(base))) & 0x3ffff;
    leading = decode(16);
    stride = decode(32);
    baseOffset = descriptor >> 49 & 7;
    width = widths[descriptor >> 62];
  }

  /// Chunk `outer` (of M or N) at k `inner`, or row `outer`, chunk `inner` of K.
  uint32_t chunkAt(uint32_t outer, uint32_t inner) const {
    uint32_t at = start;
    if (majorIsOuter && width == 1)
      at += outer * stride + inner / 8 * leading + inner % 8 * chunkBytes;
    else if (majorIsOuter)
      at +=
          outer % width * chunkBytes + outer / width * leading + (inner % 8 * width) * chunkBytes + inner / 8 * stride;
    else if (width == 1)
      at += outer % 8 * chunkBytes + outer / 8 * stride + inner * leading;
    else
      at += outer % 8 * width * chunkBytes + outer / 8 * stride + inner * chunkBytes;
    // Swizzle<log2(width), 4, 3>, of the address: bits from 7 on change those from 4 on.
    return at ^ ((at >> 3) & ((width - 1) << 4));
  }

  bool majorIsOuter;
  uint32_t start, leading, stride, baseOffset, width;
};

void Machine::noteGenericWrite(size_t offset, uint32_t bytes, unsigned thread) {
  GenericWrite now;
  now.fences = threads[thread]->proxyFences.size();
  now.thread = thread;
  now.written = true;
  for (size_t i = offset / 4; i <= (offset + bytes - 1) / 4; ++i)
    genericWrites[i] = now;
}

/// What the asynchronous proxy reads, its writers have fenced, and a barrier has followed.
void Machine::checkProxy(size_t offset, uint32_t bytes, uint32_t site) {
  for (size_t i = offset / 4; i <= (offset + bytes - 1) / 4; ++i) {
    const GenericWrite &write = genericWrites[i];
    if (!write.written)
      continue;
    const std::vector<uint32_t> &fences = threads[write.thread]->proxyFences;
    const char *why = fences.size() <= write.fences   ? "without a fence.proxy.async behind it"
                      : fences[write.fences] >= epoch ? "with no barrier behind its fence.proxy.async"
                                                      : nullptr;
    if (!why)
      continue;
    std::ostringstream what;
    what << "wgmma reads shared memory that thread " << write.thread << " wrote " << why;
    return fault("async", site, current, sharedMemory.get() + 4 * i, what.str());
  }
}

//===----------------------------------------------------------------------===//
// Sums in flight
//===----------------------------------------------------------------------===//

/// Register i of sums is a quiet NaN with their number, which is not 0, and i.
static constexpr uint32_t numberMask = 0x3fff;
static uint32_t handleOf(uint32_t number, uint32_t i) { return 0x7fc00000u | number << 8 | i; }
static uint32_t numberOf(uint32_t handle) { return handle >> 8 & numberMask; }

static bool areSums(const uint32_t *registers, uint32_t count) {
  uint32_t number = numberOf(registers[0]);
  for (uint32_t i = 0; i < count; ++i)
    if (registers[i] != handleOf(number, i))
      return false;
  return number != 0;
}

Sums &Machine::sumsOf(ProductSlot &slot, uint32_t site) {
  Thread &me = *threads[slot.thread];
  uint32_t count = slot.n / 2;
  if (areSums(slot.registers, count) && me.sums.count(numberOf(slot.registers[0])))
    return me.sums[numberOf(slot.registers[0])];
  if (!me.registersFenced && (checks & DROVER_EMU_CHECK_ASYNC))
    fault("async", site, slot.thread, nullptr, "wgmma without a wgmma.fence behind what touched its registers");
  me.lastSums = me.lastSums % numberMask + 1;
  Sums &sums = me.sums[me.lastSums];
  sums = Sums();
  sums.values.resize(count);
  std::memcpy(sums.values.data(), slot.registers, count * sizeof(float));
  for (uint32_t i = 0; i < count; ++i)
    slot.registers[i] = handleOf(me.lastSums, i);
  return sums;
}

void Machine::settle(uint32_t *registers, uint32_t count, uint32_t site) {
  Thread &me = *threads[current];
  me.registersFenced = false;
  for (uint32_t first = 0; first < count;) {
    auto found = me.sums.find(numberOf(registers[first]));
    bool isOne = found != me.sums.end() && found->second.values.size() <= count - first &&
                 areSums(registers + first, found->second.values.size());
    if (!isOne) {
      ++first;
      continue;
    }
    Sums &sums = found->second;
    if (sums.inFlight && (checks & DROVER_EMU_CHECK_ASYNC))
      fault("async", site, current, nullptr, "registers of a wgmma are read before its wait");
    else
      std::memcpy(registers + first, sums.values.data(), sums.values.size() * sizeof(float));
    first += sums.values.size();
    me.sums.erase(found);
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void Machine::issueProduct(uint32_t *registers, uint64_t a, uint64_t b, uint32_t n, uint32_t flags, uint32_t site) {
  ProductSlot slot = {registers, a, b, n, flags, current};
  unsigned group = current / warpgroupSize, size = std::min(threadCount - group * warpgroupSize, warpgroupSize);
  WarpgroupGathering &all = warpgroups[group];
  const char *why = size < warpgroupSize              ? "wgmma in a warpgroup of fewer than 128 threads"
                    : all.arrived && all.site != site ? "wgmma while other threads of the warpgroup wait in another one"
                                                      : nullptr;
  if (why) {
    if (checks & DROVER_EMU_CHECK_BARRIER)
      fault("barrier", site, current, nullptr, why);
    abandonBlock();
  }
  all.site = site;
  all.slots[current % warpgroupSize] = &slot;
  if (++all.arrived < warpgroupSize) {
    threads[current]->state = Thread::InWarpOperation;
    threads[current]->site = site;
    yield();
    return;
  }
  all.arrived = 0;
  ++counted.warp_operations;
  multiply(all);
  for (unsigned i = group * warpgroupSize; i < (group + 1) * warpgroupSize; ++i)
    if (i != current) {
      threads[i]->state = Thread::Ready;
      ready.push_back(i);
    }
}

static float bf16ToFloat(uint16_t bits) {
  uint32_t word = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

/// The matrices are read and the sums are made, which nobody sees before a wait.
void Machine::multiply(WarpgroupGathering &all) {
  constexpr unsigned m = 64, k = 16;
  auto slotOf = [&](unsigned i) -> ProductSlot & { return *static_cast<ProductSlot *>(all.slots[i]); };
  ProductSlot &first = slotOf(0);
  for (unsigned i = 1; i < warpgroupSize; ++i)
    if ((slotOf(i).a != first.a || slotOf(i).b != first.b) && (checks & DROVER_EMU_CHECK_BARRIER)) {
      fault("barrier", all.site, slotOf(i).thread, nullptr, "threads of a warpgroup give wgmma other descriptors");
      break;
    }
  auto product = std::make_shared<Product>();
  product->waiting = warpgroupSize;
  auto read = [&](uint64_t descriptor, bool majorIsOuter, unsigned outerSize, std::vector<float> &to) {
    Matrix matrix(descriptor, majorIsOuter, sharedMemory.get());
    if (matrix.baseOffset && (checks & DROVER_EMU_CHECK_ALIGN))
      fault("align", all.site, first.thread, nullptr,
            "the emulator knows matrices whose swizzle starts at a multiple "
            "of its pattern only: base offset 0");
    to.resize(outerSize * k);
    unsigned outers = majorIsOuter ? outerSize / 8 : outerSize, inners = majorIsOuter ? k : k / 8;
    for (unsigned outer = 0; outer < outers; ++outer)
      for (unsigned inner = 0; inner < inners; ++inner) {
        uint32_t offset = matrix.chunkAt(outer, inner);
        // On behalf of two warps: what one warp alone has ordered is not ordered for the warpgroup.
        char *at = sharedMemory.get() + offset;
        for (unsigned warp : {0u, 1u})
          at = static_cast<char *>(sharedAccess(sharedMemory.get() + offset, chunkBytes, DROVER_EMU_SHARED,
                                                first.thread + warp * warpSize, all.site));
        if (at == sharedMemory.get() + offset) {
          if (checks & DROVER_EMU_CHECK_ASYNC)
            checkProxy(offset, chunkBytes, all.site);
          product->chunks.push_back(offset / chunkBytes);
          ++chunkReads[offset / chunkBytes];
        }
        for (unsigned i = 0; i < 8; ++i) {
          uint16_t bits;
          std::memcpy(&bits, at + 2 * i, sizeof bits);
          unsigned row = majorIsOuter ? 8 * outer + i : outer, column = majorIsOuter ? inner : 8 * inner + i;
          to[row * k + column] = bf16ToFloat(bits);
        }
      }
  };
  std::vector<float> a, b;
  read(first.a, first.flags & DROVER_EMU_WGMMA_A_IS_M_MAJOR, m, a);
  read(first.b, first.flags & DROVER_EMU_WGMMA_B_IS_N_MAJOR, first.n, b);
  // "Register Fragments", accumulator of m64nNk16: a warp has 16 rows, laid out as those of mma.m16n8k16.
  for (unsigned lane = 0; lane < warpgroupSize; ++lane) {
    ProductSlot &slot = slotOf(lane);
    bool adds = slot.flags & DROVER_EMU_WGMMA_ADDS;
    Sums &sums = sumsOf(slot, all.site);
    ++sums.inFlight;
    threads[slot.thread]->issuedProducts.push_back({product, numberOf(slot.registers[0])});
    for (unsigned i = 0; i < slot.n / 2; ++i) {
      unsigned row = lane / 32 * 16 + lane % 32 / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      float sum = 0;
      for (unsigned j = 0; j < k; ++j)
        sum += a[row * k + j] * b[column * k + j];
      sums.values[i] = adds ? sums.values[i] + sum : sum;
    }
  }
}

void Machine::commitProducts() {
  Thread &me = *threads[current];
  me.productGroups.push_back(std::move(me.issuedProducts));
  me.issuedProducts.clear();
}

void Machine::waitForProducts(uint32_t pending) {
  Thread &me = *threads[current];
  for (; me.productGroups.size() > pending; me.productGroups.pop_front())
    for (auto &[product, number] : me.productGroups.front()) {
      auto sums = me.sums.find(number);
      if (sums != me.sums.end())
        --sums->second.inFlight;
      if (--product->waiting == 0)
        for (uint32_t chunk : product->chunks)
          --chunkReads[chunk];
    }
}

extern "C" {
void drover_emu_proxy_fence(uint32_t) { running->fenceProxy(); }

void drover_emu_wgmma_fence(uint32_t) { running->fenceRegisters(); }

void drover_emu_wgmma_bf16(uint32_t *registers, uint64_t a, uint64_t b, uint32_t n, uint32_t flags, uint32_t site) {
  running->issueProduct(registers, a, b, n, flags, site);
}

void drover_emu_wgmma_commit(uint32_t) { running->commitProducts(); }

void drover_emu_wgmma_wait(uint32_t pending, uint32_t) { running->waitForProducts(pending); }

void drover_emu_wgmma_settle(uint32_t *registers, uint32_t count, uint32_t site) {
  running->settle(registers, count, site);
}
}
