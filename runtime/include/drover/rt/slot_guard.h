//===- slot_guard.h - what touches a slot without right ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_SLOT_GUARD_H
#define DROVER_RT_SLOT_GUARD_H

#include "drover/rt/program.h"

namespace drover::rt {

/// Bytes of the arena.
struct ByteRange {
  int64_t begin, end;
};

/// For tests; both off by default.
struct GuardOptions {
  bool canaries = false; // DROVER_RT_CANARIES=1: bytes around every slot, which nothing may touch
  bool poison = false;   // DROVER_RT_POISON=1: a slot that dies is filled with NaNs
};
GuardOptions guardsFromEnvironment();

/// Spreads the slots of a stage out so that each has guard bytes around it, and fills slots that die. Slots that share
/// their first byte stay together, others don't share memory any more.
class SlotGuard {
public:
  SlotGuard(const Program &program, int64_t stage, const GuardOptions &options);

  /// With places moved apart where there are canaries.
  StageInfo relocate(const StageInfo &stage) const;
  int64_t arenaBytes() const { return totalBytes; }
  /// Bytes that a space takes for an action, by what the program says; 0 where it says nothing.
  int64_t spaceBytes(const drover_action &action, Space space) const;

  void arm(uint8_t *arena);
  /// Throws Error where guard bytes have changed.
  void check(const uint8_t *arena, int64_t step, const std::string &after) const;
  /// The slots of a binding that are filled when they die.
  std::vector<ByteRange> dyingRanges(const drover_action &action, const Binding &binding) const;
  static void fill(uint8_t *arena, ByteRange range);
  void releaseScratch(uint8_t *arena, const drover_action &action, const Binding &binding) const;
  bool hasCanaries() const { return options.canaries; }

private:
  struct Slot {
    int64_t bytes = 0, moved = 0;
    std::string what;
  };

  void addBinding(const Binding &binding, const drover_action &action);
  void addSlot(int64_t offset, int64_t bytes, std::string what);
  void relocate(Binding &binding) const;

  const Program &program;
  GuardOptions options;
  std::map<int64_t, Slot> slots; // by place in the program
  int64_t totalBytes;
};

} // namespace drover::rt

#endif // DROVER_RT_SLOT_GUARD_H
