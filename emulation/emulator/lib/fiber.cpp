//===- fiber.cpp - switching stacks -----------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "fiber.h"
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DROVER_EMU_ASAN 1
#include <sanitizer/common_interface_defs.h>
#endif
#if __has_feature(thread_sanitizer)
#define DROVER_EMU_TSAN 1
#include <sanitizer/tsan_interface.h>
#endif
#endif

using namespace drover::emu;

// Saves what a callee must keep, stores the stack pointer to *from, takes the other one and restores.
extern "C" void drover_emu_switch(void **from, void *to);
#if defined(__x86_64__)
static constexpr size_t savedWords = 6;
asm(R"(
.text
.type drover_emu_switch,@function
drover_emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size drover_emu_switch,.-drover_emu_switch
)");
#elif defined(__aarch64__)
static constexpr size_t savedWords = 20;
asm(R"(
.text
.type drover_emu_switch,@function
drover_emu_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size drover_emu_switch,.-drover_emu_switch
)");
#else
#error "the emulator switches stacks on x86-64 and AArch64 only"
#endif

namespace {
constexpr size_t stackBytes = 256 << 10; // touched as far as a kernel needs it
constexpr size_t guardBytes = 4096;
#ifdef DROVER_EMU_ASAN
// Which fiber the last switch left: its bounds are known on arrival only.
thread_local Fiber *left = nullptr;
#endif
} // namespace

Fiber::~Fiber() {
  if (stack)
    munmap(stack, stackBytes + guardBytes);
#ifdef DROVER_EMU_TSAN
  if (stack && threadHandle)
    __tsan_destroy_fiber(threadHandle);
#endif
}

void Fiber::reset(void (*entry)()) {
  if (!stack) {
    void *memory = mmap(nullptr, stackBytes + guardBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, guardBytes, PROT_NONE) != 0) {
      std::fprintf(stderr, "drover-emu: no memory for the stack of a thread\n");
      std::abort();
    }
    stack = static_cast<char *>(memory);
    bottom = stack + guardBytes;
    bytes = stackBytes;
#ifdef DROVER_EMU_TSAN
    threadHandle = __tsan_create_fiber(0);
#endif
  }
  fakeStack = nullptr;
  // As if `entry` had been called by nobody: aligned as the ABI wants it at a function's start.
  auto **top = reinterpret_cast<void **>(stack + guardBytes + stackBytes);
  *--top = nullptr;
#if defined(__x86_64__)
  *--top = reinterpret_cast<void *>(entry);
  top -= savedWords;
  std::memset(top, 0, savedWords * sizeof(void *));
#else
  --top;
  top -= savedWords;
  std::memset(top, 0, savedWords * sizeof(void *));
  top[11] = reinterpret_cast<void *>(entry); // x30
#endif
  stackPointer = top;
}

void Fiber::resume(Fiber &self) {
#ifdef DROVER_EMU_TSAN
  if (!self.threadHandle)
    self.threadHandle = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(threadHandle, 0);
#endif
#ifdef DROVER_EMU_ASAN
  left = &self;
  __sanitizer_start_switch_fiber(&self.fakeStack, bottom, bytes);
#endif
  drover_emu_switch(&self.stackPointer, stackPointer);
#ifdef DROVER_EMU_ASAN
  self.entered();
#endif
}

void Fiber::entered() {
#ifdef DROVER_EMU_ASAN
  const void *from = nullptr;
  size_t size = 0;
  __sanitizer_finish_switch_fiber(fakeStack, &from, &size);
  if (left && !left->stack) {
    left->bottom = from;
    left->bytes = size;
  }
#endif
}

bool Fiber::holds(const void *address) const {
  const char *at = static_cast<const char *>(address);
  return stack && at >= stack && at < stack + guardBytes + stackBytes;
}
