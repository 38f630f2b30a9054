//===- Kernels.cpp - a library of kernels written by hand -----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "emu.h"
#include "hooks.h"

namespace {

template <typename T> T argument(void **arguments, unsigned index) { return *static_cast<T *>(arguments[index]); }

uint32_t threadIndex() {
  return drover_emu_special_register(DROVER_EMU_CTAID_X) * drover_emu_special_register(DROVER_EMU_NTID_X) +
         drover_emu_special_register(DROVER_EMU_TID_X);
}

template <typename T> T *at(T *address, uint32_t flags, int32_t argument) {
  return static_cast<T *>(drover_emu_access(address, sizeof(T), flags | DROVER_EMU_GLOBAL, alignof(T), argument, 0));
}

/// y[i] = x[i] + 1, i below n
void addOne(void **arguments) {
  auto *x = argument<float *>(arguments, 0), *y = argument<float *>(arguments, 1);
  auto n = argument<int64_t>(arguments, 2);
  uint32_t i = threadIndex();
  if (i < n)
    *at(y + i, DROVER_EMU_WRITE, 1) = *at(x + i, 0, 0) + 1;
}

/// An index of 77 is bad: the error words are told, as generated kernels do.
void checksIndex(void **arguments) {
  auto number = argument<int64_t>(arguments, 1);
  auto *errors = argument<int64_t *>(arguments, 2);
  *at(errors, DROVER_EMU_WRITE | DROVER_EMU_ATOMIC, 2) = number;
  *at(errors + 1, DROVER_EMU_WRITE, 2) = 77;
}

/// Needs more shared memory than a launch gives without asking.
void usesSharedMemory(void **arguments) {
  auto *y = argument<float *>(arguments, 0);
  if (threadIndex() == 0)
    *at(y, DROVER_EMU_WRITE, 0) = 5;
}

constexpr uint32_t flags = DROVER_EMU_POINTER | DROVER_EMU_NOALIAS;
const drover_emu_argument addOneArguments[] = {{8, flags | DROVER_EMU_READONLY, 0}, {8, flags, 0}, {8, 0, 0}};
const drover_emu_argument checkArguments[] = {{8, flags, 0}, {8, 0, 0}, {8, flags, 16}};
const drover_emu_argument sharedArguments[] = {{8, flags, 4}};
const char *const sites[] = {"by hand"};
const drover_emu_kernel kernels[] = {
    {"add_one", addOne, addOneArguments, sites, 3, 1, 0, 0, 64, 2},
    {"checks_index", checksIndex, checkArguments, sites, 3, 1, 0, 0, 1, 2},
    {"uses_shared_memory", usesSharedMemory, sharedArguments, sites, 1, 1, 0, 100 << 10, 32, 2},
};

} // namespace

/// Under the name of its type, which C++ has no way to say.
extern const drover_emu_library table __asm__(DROVER_EMU_LIBRARY_SYMBOL);
const drover_emu_library table = {DROVER_EMU_LIBRARY_VERSION, 3, kernels};
