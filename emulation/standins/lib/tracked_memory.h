//===- tracked_memory.h - allocations, and who touched what when -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_STANDINS_TRACKED_MEMORY_H
#define DROVER_STANDINS_TRACKED_MEMORY_H

#include "engine.h"
#include <map>

namespace drover::standin {

constexpr int hostMemory = -1;

/// Device memory is memory of the host that is known here, and so is pinned memory.
class Memory {
public:
  static Memory &instance();

  /// Null where a device would hold more than it has.
  void *allocate(size_t bytes, int device);
  bool release(void *base, bool pinned);
  /// The device of the allocation that holds all of the range, hostMemory where it is pinned, or nothing.
  bool find(const void *base, size_t bytes, int &device) const;
  bool isKnown(const void *base) const;
  size_t allocated(int device) const;

  /// The work touches the range. Reports an access outside of what is allocated (false), and one that is not ordered
  /// against an earlier one of which either writes.
  bool touch(const Work &work, const void *base, size_t bytes, bool written);

private:
  struct Access {
    uint32_t actor = 0;
    uint64_t tick = 0; // 0: none
    std::shared_ptr<const std::string> what;
  };
  struct Span { // of bytes with one history; keyed by its first byte
    uintptr_t end = 0;
    Access write;
    std::vector<Access> reads; // since the write; one an actor
  };
  struct Allocation {
    size_t bytes;
    int device, number;
    std::map<uintptr_t, Span> spans;
  };
  using Allocations = std::map<uintptr_t, Allocation>;

  Allocations::iterator holding(const void *base, size_t bytes);
  static void splitAt(std::map<uintptr_t, Span> &spans, uintptr_t at);
  bool touchSpan(const Work &work, Span &span, const std::shared_ptr<const std::string> &what, bool written,
                 std::string &conflict);

  mutable std::mutex mutex;
  Allocations allocations;
  std::map<int, size_t> totals;
  int count = 0;
};

/// Bytes that a device has in all.
constexpr size_t deviceBytes = size_t(80) << 30;

/// Adds a line to the emulator's log.
void report(const std::string &line);

} // namespace drover::standin

#endif // DROVER_STANDINS_TRACKED_MEMORY_H
