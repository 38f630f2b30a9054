//===- Parts.h - the parts of a cut tensor, and their sums ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_LIB_COMM_PARTS_H
#define DROVER_RT_LIB_COMM_PARTS_H

#include "drover/rt/communicator.h"
#include <algorithm>

namespace drover::rt {

/// Whether a member's part is one range of the whole tensor.
inline bool isContiguous(const TensorCut &cut) { return cut.outer == 1 && !cut.twoChunk; }

/// Calls fn(place in the whole, place in the part, count) for the contiguous runs, in elements, that make up
/// [begin, end) of `member`'s part.
template <typename Fn>
void forEachRun(const TensorCut &cut, int members, int member, int64_t begin, int64_t end, Fn &&fn) {
  int64_t row = cut.local * cut.inner, chunk = cut.twoChunk ? row / 2 : row;
  while (begin < end) {
    int64_t outer = begin / row, inRow = begin % row;
    bool second = inRow >= chunk;
    int64_t inChunk = second ? inRow - chunk : inRow;
    int64_t index = second ? 2 * members - 1 - member : member;
    int64_t count = std::min(chunk - inChunk, end - begin);
    fn(outer * row * members + index * chunk + inChunk, begin, count);
    begin += count;
  }
}

/// Copies [begin, end) of a member's part between the whole tensor and `packed`, which holds that range alone.
void packPart(const TensorCut &cut, int members, int member, int64_t begin, int64_t end, int64_t elementBytes,
              const void *whole, void *packed);
void unpackPart(const TensorCut &cut, int members, int member, int64_t begin, int64_t end, int64_t elementBytes,
                const void *packed, void *whole);

bool canReduce(DType dtype);

/// results[..][i] = sources[0][i] op sources[1][i] op .., from the left, i below count; in f32 for f32 and bf16,
/// rounded once. A result may be one of the sources.
void reduceInOrder(DType dtype, ReduceOp op, const std::vector<const void *> &sources, int64_t count,
                   const std::vector<void *> &results);

} // namespace drover::rt

#endif // DROVER_RT_LIB_COMM_PARTS_H
