//===- warp.cpp - operations of a whole warp --------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "hooks.h"
#include "machine.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>

using namespace drover::emu;

namespace {
enum Kind { WarpBarrier, Shuffle, Vote, Redux = Vote + 8, Mma = Redux + 8, LdMatrix, StMatrix };

struct ShuffleSlot {
  uint32_t mask, value, offset, clamp, kind;
  uint32_t result;
  bool valid;
};

struct ValueSlot {
  uint32_t value, kind, result;
};

struct MmaSlot {
  const uint32_t *a, *b;
  const float *c;
  float *d;
};

struct MatrixSlot {
  uint32_t *registers;
  void *row;
  uint32_t count, transposed, site;
};

float bf16ToFloat(uint32_t bits) {
  uint32_t word = bits << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}
} // namespace

/// Why a lane may not take part in an operation, given those that wait in its warp; empty if it may.
static std::string refusal(uint32_t mask, unsigned lane, uint32_t live, const Gathering *open, bool same,
                           const drover_emu_kernel &kernel) {
  bool isIn = mask >> lane & 1;
  if (isIn && !(mask & ~live) && (!open || same))
    return {}; // nearly always: no stream is made
  std::ostringstream text;
  if (!isIn)
    text << "warp operation by lane " << lane << ", which its mask 0x" << std::hex << mask << " leaves out";
  else if (mask & ~live)
    text << "warp operation whose mask 0x" << std::hex << mask << " has lanes that are not there, 0x" << (mask & ~live);
  else if (open && !same)
    text << "divergent warp operation: other lanes wait in "
         << (open->site < kernel.site_count ? kernel.sites[open->site] : "another one") << " with mask 0x" << std::hex
         << open->mask;
  return text.str();
}

void Machine::collective(uint32_t mask, int kind, uint32_t site, void *slot, void (*combine)(Machine &, Gathering &)) {
  Warp &warp = warps[current / warpSize];
  unsigned lane = current % warpSize;
  auto open = std::find_if(warp.gatherings.begin(), warp.gatherings.end(),
                           [&](const Gathering &other) { return other.mask & mask; });
  bool found = open != warp.gatherings.end();
  bool same = found && open->mask == mask && open->kind == kind && open->site == site;
  bool refused = false;
  {
    std::string why = refusal(mask, lane, warp.live, found ? &*open : nullptr, same, *kernel);
    refused = !why.empty();
    if (refused && (checks & DROVER_EMU_CHECK_BARRIER))
      fault("barrier", site, current, nullptr, why);
  }
  if (refused)
    abandonBlock(); // this stack is left for good: nothing on it may own memory
  if (open == warp.gatherings.end()) {
    warp.gatherings.push_back({mask, 0, kind, site, {}});
    open = warp.gatherings.end() - 1;
  }
  open->slots[lane] = slot;
  open->arrived |= 1u << lane;
  if (open->arrived != mask) {
    threads[current]->state = Thread::InWarpOperation;
    threads[current]->site = site;
    yield();
    return;
  }
  Gathering whole = *open;
  warp.gatherings.erase(open);
  ++counted.warp_operations;
  combine(*this, whole);
  for (unsigned i = 0; i < warpSize; ++i)
    if ((mask >> i & 1) && i != lane) {
      unsigned index = current / warpSize * warpSize + i;
      threads[index]->state = Thread::Ready;
      ready.push_back(index);
    }
}

/// Orders the accesses of the warp's lanes, where all of them take part.
void Machine::advanceWarp(uint32_t mask) {
  Warp &warp = warps[current / warpSize];
  if (mask == warp.live)
    ++warp.epoch;
}

/// PTX ISA, shfl.sync: the source lane, from the segment and the clamp in `clamp`.
static void combineShuffle(Machine &, Gathering &all) {
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    if (!(all.mask >> lane & 1))
      continue;
    auto &mine = *static_cast<ShuffleSlot *>(all.slots[lane]);
    int offset = mine.offset & 31, clamp = mine.clamp & 31, segment = mine.clamp >> 8 & 31;
    int last = (int(lane) & segment) | (clamp & ~segment), first = int(lane) & segment;
    int source = lane;
    bool valid = true;
    switch (mine.kind) {
    case DROVER_EMU_SHUFFLE_UP:
      source = int(lane) - offset;
      valid = source >= last;
      break;
    case DROVER_EMU_SHUFFLE_DOWN:
      source = int(lane) + offset;
      valid = source <= last;
      break;
    case DROVER_EMU_SHUFFLE_BFLY:
      source = int(lane) ^ offset;
      valid = source <= last;
      break;
    default:
      source = first | (offset & ~segment);
      valid = source <= last;
    }
    if (!valid)
      source = lane;
    mine.valid = valid;
    // A lane outside the mask has no defined value; a quiet NaN makes its use visible.
    bool present = all.mask >> source & 1;
    mine.result = present ? static_cast<ShuffleSlot *>(all.slots[source])->value : 0x7fffffffu;
  }
}

static void combineVote(Machine &, Gathering &all) {
  uint32_t ballot = 0;
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if ((all.mask >> lane & 1) && static_cast<ValueSlot *>(all.slots[lane])->value)
      ballot |= 1u << lane;
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    if (!(all.mask >> lane & 1))
      continue;
    auto &mine = *static_cast<ValueSlot *>(all.slots[lane]);
    switch (mine.kind) {
    case DROVER_EMU_VOTE_ANY:
      mine.result = ballot != 0;
      break;
    case DROVER_EMU_VOTE_ALL:
      mine.result = ballot == all.mask;
      break;
    case DROVER_EMU_VOTE_UNI:
      mine.result = ballot == 0 || ballot == all.mask;
      break;
    default:
      mine.result = ballot;
    }
  }
}

static uint32_t reduce(uint32_t kind, uint32_t a, uint32_t b) {
  switch (kind) {
  case DROVER_EMU_REDUX_ADD:
    return a + b;
  case DROVER_EMU_REDUX_MIN:
    return std::min(int32_t(a), int32_t(b));
  case DROVER_EMU_REDUX_MAX:
    return std::max(int32_t(a), int32_t(b));
  case DROVER_EMU_REDUX_UMIN:
    return std::min(a, b);
  case DROVER_EMU_REDUX_UMAX:
    return std::max(a, b);
  case DROVER_EMU_REDUX_AND:
    return a & b;
  case DROVER_EMU_REDUX_OR:
    return a | b;
  default:
    return a ^ b;
  }
}

static void combineRedux(Machine &, Gathering &all) {
  bool first = true;
  uint32_t result = 0;
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (all.mask >> lane & 1) {
      auto &slot = *static_cast<ValueSlot *>(all.slots[lane]);
      result = first ? slot.value : reduce(slot.kind, result, slot.value);
      first = false;
    }
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (all.mask >> lane & 1)
      static_cast<ValueSlot *>(all.slots[lane])->result = result;
}

/// PTX ISA, fragments of mma.m16n8k16: lane = 4 * group + member; a register holds two neighbours in k.
static void combineMma(Machine &, Gathering &all) {
  float a[16][16], b[16][8];
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    unsigned group = lane / 4, member = lane % 4;
    auto &slot = *static_cast<MmaSlot *>(all.slots[lane]);
    for (unsigned half = 0; half < 2; ++half) {
      for (unsigned i = 0; i < 4; ++i)
        a[group + (i & 1) * 8][2 * member + half + (i >> 1) * 8] = bf16ToFloat(slot.a[i] >> (16 * half) & 0xffff);
      for (unsigned i = 0; i < 2; ++i)
        b[2 * member + half + i * 8][group] = bf16ToFloat(slot.b[i] >> (16 * half) & 0xffff);
    }
  }
  float d[16][8] = {};
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned k = 0; k < 16; ++k)
      for (unsigned j = 0; j < 8; ++j)
        d[i][j] += a[i][k] * b[k][j];
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    auto &slot = *static_cast<MmaSlot *>(all.slots[lane]);
    for (unsigned i = 0; i < 4; ++i)
      slot.d[i] = slot.c[i] + d[lane / 4 + (i >> 1) * 8][2 * (lane % 4) + (i & 1)];
  }
}

/// Calls visit(row address, byte offset in the row, register, half) for each element of each matrix.
template <typename Visit> static void forEachElement(Gathering &all, const MatrixSlot &shape, Visit visit) {
  for (unsigned matrix = 0; matrix < shape.count; ++matrix)
    for (unsigned lane = 0; lane < warpSize; ++lane)
      for (unsigned half = 0; half < 2; ++half) {
        unsigned outer = lane / 4, inner = 2 * (lane % 4) + half;
        unsigned row = shape.transposed ? inner : outer, column = shape.transposed ? outer : inner;
        auto &from = *static_cast<MatrixSlot *>(all.slots[matrix * 8 + row]);
        auto &mine = *static_cast<MatrixSlot *>(all.slots[lane]);
        visit(static_cast<char *>(from.row) + 2 * column, mine.registers[matrix], half);
      }
}

/// Holds each lane's row to the checks of shared memory, on behalf of that lane.
static void checkRows(Machine &machine, Gathering &all, uint32_t flags) {
  unsigned first = machine.currentThread() / warpSize * warpSize;
  const auto &shape = *static_cast<MatrixSlot *>(all.slots[0]);
  for (unsigned lane = 0; lane < 8 * shape.count; ++lane) {
    auto &slot = *static_cast<MatrixSlot *>(all.slots[lane]);
    slot.row = machine.sharedAccess(static_cast<char *>(slot.row), 16, flags, first + lane, all.site);
  }
}

static void combineLdMatrix(Machine &machine, Gathering &all) {
  checkRows(machine, all, DROVER_EMU_SHARED);
  const auto &shape = *static_cast<MatrixSlot *>(all.slots[0]);
  forEachElement(all, shape, [](const char *from, uint32_t &to, unsigned half) {
    uint16_t element;
    std::memcpy(&element, from, sizeof element);
    to = half ? (to & 0xffffu) | uint32_t(element) << 16 : element;
  });
}

static void combineStMatrix(Machine &machine, Gathering &all) {
  checkRows(machine, all, DROVER_EMU_SHARED | DROVER_EMU_WRITE);
  const auto &shape = *static_cast<MatrixSlot *>(all.slots[0]);
  forEachElement(all, shape, [](char *to, uint32_t &from, unsigned half) {
    uint16_t element = from >> (16 * half);
    std::memcpy(to, &element, sizeof element);
  });
}

extern "C" {
void drover_emu_warp_barrier(uint32_t mask, uint32_t site) {
  running->collective(mask, WarpBarrier, site, nullptr,
                      [](Machine &machine, Gathering &all) { machine.advanceWarp(all.mask); });
}

uint32_t drover_emu_shuffle(uint32_t mask, uint32_t value, uint32_t offset, uint32_t clamp, uint32_t kind,
                            uint8_t *valid, uint32_t site) {
  ShuffleSlot slot = {mask, value, offset, clamp, kind, value, false};
  running->collective(mask, Shuffle, site, &slot, combineShuffle);
  if (valid)
    *valid = slot.valid;
  return slot.result;
}

uint32_t drover_emu_vote(uint32_t mask, uint32_t predicate, uint32_t kind, uint32_t site) {
  ValueSlot slot = {predicate, kind, 0};
  running->collective(mask, Vote + kind, site, &slot, combineVote);
  return slot.result;
}

uint32_t drover_emu_redux(uint32_t mask, uint32_t value, uint32_t kind, uint32_t site) {
  ValueSlot slot = {value, kind, 0};
  running->collective(mask, Redux + kind, site, &slot, combineRedux);
  return slot.result;
}

void drover_emu_mma_m16n8k16_bf16(float *d, const uint32_t *a, const uint32_t *b, const float *c, uint32_t site) {
  MmaSlot slot = {a, b, c, d};
  running->collective(~0u, Mma, site, &slot, combineMma);
}

void drover_emu_ldmatrix(uint32_t *registers, const void *row, uint32_t count, uint32_t transposed, uint32_t site) {
  MatrixSlot slot = {registers, const_cast<void *>(row), count, transposed, site};
  running->collective(~0u, LdMatrix, site, &slot, combineLdMatrix);
}

void drover_emu_stmatrix(const uint32_t *registers, void *row, uint32_t count, uint32_t transposed, uint32_t site) {
  MatrixSlot slot = {const_cast<uint32_t *>(registers), row, count, transposed, site};
  running->collective(~0u, StMatrix, site, &slot, combineStMatrix);
}
}
