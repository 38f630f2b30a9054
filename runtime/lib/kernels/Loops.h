//===- Loops.h - small helpers of the kernels -------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_KERNELS_LOOPS_H
#define DROVER_RT_KERNELS_LOOPS_H

#include "drover/rt/abi.h"
#include "drover/rt/fatal.h"
#include "drover/rt/thread_pool.h"

namespace drover::rt {

inline int64_t roundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }
inline int64_t ceilDiv(int64_t value, int64_t step) { return (value + step - 1) / step; }

/// Of f32 and bf16, the element types that kernels compute with.
inline int64_t elementBytes(int32_t dtype) { return dtype == DROVER_BF16 ? 2 : 4; }
inline const char *at(const void *base, int32_t dtype, int64_t index) {
  return static_cast<const char *>(base) + index * elementBytes(dtype);
}
inline char *at(void *base, int32_t dtype, int64_t index) {
  return static_cast<char *>(base) + index * elementBytes(dtype);
}

inline void checkFloatType(const char *kernel, int32_t dtype) {
  if (dtype != DROVER_F32 && dtype != DROVER_BF16)
    fatal("%s of element type %d: f32 (%d) and bf16 (%d) are supported", kernel, dtype, DROVER_F32, DROVER_BF16);
}

/// Whether a result is added to what its memory holds.
inline bool addsTo(const drover_call *call, int32_t store) {
  return store == DROVER_ADD || (store == DROVER_ACCUMULATE && call && call->accumulate);
}

inline int threadsOf(const drover_call *call) { return call && call->pool ? call->pool->threads() : 1; }

/// The pool's loop; without a pool, one call.
template <typename Fn> void parallelFor(const drover_call *call, int64_t count, int64_t grain, Fn &&fn) {
  if (call && call->pool)
    return call->pool->parallelFor(count, grain, fn);
  if (count > 0)
    fn(0, count);
}

} // namespace drover::rt

#endif // DROVER_RT_KERNELS_LOOPS_H
