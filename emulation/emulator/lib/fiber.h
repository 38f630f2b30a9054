//===- fiber.h - threads of a block on one thread of the CPU ----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_EMULATION_FIBER_H
#define DROVER_EMULATION_FIBER_H

#include <cstddef>

namespace drover::emu {

/// A stack and where it stopped. A switch costs some ten instructions: no system call, no signal mask.
class Fiber {
public:
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  /// Makes the fiber start in `entry` at the next switch; whatever it was doing is forgotten.
  /// `entry` must not return.
  void reset(void (*entry)());
  /// Stops the running fiber `self` and goes on in this one.
  void resume(Fiber &self);
  /// To be called first in `entry`.
  void entered();
  /// Whether an address lies on this fiber's stack.
  bool holds(const void *address) const;

private:
  void *stackPointer = nullptr;
  char *stack = nullptr; // null: the stack of the thread itself
  [[maybe_unused]] const void *bottom = nullptr;
  [[maybe_unused]] size_t bytes = 0;
  [[maybe_unused]] void *fakeStack = nullptr;    // AddressSanitizer's
  [[maybe_unused]] void *threadHandle = nullptr; // ThreadSanitizer's
};

} // namespace drover::emu

#endif // DROVER_EMULATION_FIBER_H
