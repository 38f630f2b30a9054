//===- arena.h - memory of a rank -------------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_ARENA_H
#define DROVER_RT_ARENA_H

#include <cstdint>

namespace drover::rt {

/// A zeroed range of memory, 64-byte aligned, or 2 MiB where it is that large, so that huge pages can back it.
class Arena {
public:
  /// Throws Error where there is no such memory.
  explicit Arena(int64_t bytes);
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  uint8_t *data() const { return base; }
  int64_t size() const { return bytes; }

private:
  void *mapping = nullptr;
  uint64_t mappedBytes = 0;
  uint8_t *base = nullptr;
  int64_t bytes;
};

} // namespace drover::rt

#endif // DROVER_RT_ARENA_H
