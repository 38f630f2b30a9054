//===- shadow.h - what is known of each piece of memory ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_EMULATION_SHADOW_H
#define DROVER_EMULATION_SHADOW_H

#include <cstddef>
#include <cstdint>
#include <memory>

namespace drover::emu {

/// When something was touched, and by whom. Epochs are counted over the whole process and grow with each block and each
/// barrier, so that a stamp of an earlier block, launch or phase is known by its epoch alone and nothing is ever reset.
struct Stamp {
  uint32_t epoch = 0;
  uint32_t thread : 10;
  uint32_t lanes : 1;  ///< several lanes of that thread's warp
  uint32_t warps : 1;  ///< threads of several warps
  uint32_t blocks : 1; ///< another block of the same launch too
  uint32_t atomic : 1;
  uint32_t warpEpoch : 18; ///< counted by the warp's own barriers

  Stamp() : thread(0), lanes(0), warps(0), blocks(0), atomic(0), warpEpoch(0) {}
};

/// The last write and the last reads of one granule (1, 2 or 4 bytes, as the kernel's narrowest access).
struct Cell {
  Stamp write, read;
};

/// Zeroed memory that takes room only where it is touched.
class LazyMemory {
public:
  explicit LazyMemory(size_t bytes);
  ~LazyMemory();
  LazyMemory(const LazyMemory &) = delete;
  LazyMemory &operator=(const LazyMemory &) = delete;
  void *data() const { return memory; }

private:
  void *memory;
  size_t bytes;
};

/// One bit a byte. Threads may set bits of different bytes at once.
class ByteSet {
public:
  explicit ByteSet(size_t bytes) : words((bytes / 64 + 2) * 8) {}
  void set(size_t from, size_t count) { change(from, count, true); }
  void clear(size_t from, size_t count) { change(from, count, false); }
  bool all(size_t from, size_t count) const { return find(from, count, false) == count; }
  bool none(size_t from, size_t count) const { return find(from, count, true) == count; }
  /// The first of the bytes with this value, as a distance from `from`; `count` if there is none.
  size_t find(size_t from, size_t count, bool value) const;

private:
  void change(size_t from, size_t count, bool value);
  uint64_t *word(size_t index) const { return static_cast<uint64_t *>(words.data()) + index; }
  LazyMemory words;
};

/// Everything about one allocation, or about the shared memory of a block.
struct Shadow {
  Shadow(char *base, size_t bytes) : base(base), bytes(bytes), cellMemory((bytes + 1) * sizeof(Cell)), written(bytes) {}
  Cell *cells() const { return static_cast<Cell *>(cellMemory.data()); }
  bool holds(const void *address, size_t count) const {
    const char *at = static_cast<const char *>(address);
    return at >= base && count <= bytes && size_t(at - base) <= bytes - count;
  }

  char *base;
  size_t bytes;
  LazyMemory cellMemory;
  ByteSet written;
};

/// The allocation that an address lies in, or null.
std::shared_ptr<Shadow> findAllocation(const void *address);

} // namespace drover::emu

#endif // DROVER_EMULATION_SHADOW_H
