//===- Scratch.h - per-thread buffers of the kernels ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_KERNELS_SCRATCH_H
#define DROVER_RT_KERNELS_SCRATCH_H

#include <cstdint>

namespace drover::rt {

/// What a buffer is for; a kernel that holds one does not call another that takes the same.
enum class ScratchUse { Task, Shared, Count };

/// The calling thread's buffer of at least `floats` floats, 64-byte aligned, uninitialized. It is kept for the thread's
/// life and grows; an earlier pointer of the same use is invalid then.
float *threadScratch(ScratchUse use, int64_t floats);

/// Hands out consecutive 64-byte aligned parts of a buffer; without one it only counts.
class ScratchLayout {
public:
  explicit ScratchLayout(float *base = nullptr) : base(base) {}
  float *take(int64_t floats) {
    float *part = base ? base + used : nullptr;
    used += (floats + 15) / 16 * 16;
    return part;
  }
  int64_t floats() const { return used; }

private:
  float *base;
  int64_t used = 0;
};

} // namespace drover::rt

#endif // DROVER_RT_KERNELS_SCRATCH_H
