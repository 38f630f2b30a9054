//===- RankKernels.cpp - values that differ by rank -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Kernels.h"

using namespace mlir;
using namespace drover;
using namespace drover::interpreter;

/// The rank's index over axes of `sizes`: its coordinates, outermost first.
static FailureOr<int64_t> linearIndex(Call &call, ArrayAttr axes, ArrayRef<int64_t> sizes) {
  int64_t index = 0;
  for (auto [axis, size] : llvm::zip(axes.getAsRange<StringAttr>(), sizes)) {
    int64_t coordinate = call.options.coordinates.lookup(axis);
    if (coordinate < 0 || coordinate >= size)
      return call.fail("coordinate " + Twine(coordinate) + " of " + axis.getValue() + " is not below " + Twine(size));
    index = index * size + coordinate;
  }
  return index;
}

static LogicalResult globalIndex(tfm::GlobalIndexOp op, Call &call) {
  SmallVector<int64_t> sizes = *tfm::gridSizes(op, op.getAxes());
  FailureOr<int64_t> rank = linearIndex(call, op.getAxes(), sizes);
  int64_t size = op.getType().getDimSize(0), ranks = 1;
  for (int64_t axis : sizes)
    ranks *= axis;
  if (failed(rank) || failed(call.allocate(0, {size})))
    return failure();
  std::vector<int64_t> &result = call.results[0].ints;
  if (op.getTwoChunk()) {
    // Of the first axis' rank c, rows [0, chunk) are chunk c and the others chunk 2m - 1 - c.
    int64_t inner = ranks / sizes[0], outer = *rank / inner, chunk = size * inner / 2;
    for (int64_t i = 0; i < size; ++i) {
      int64_t row = *rank % inner * size + i;
      result[i] = row < chunk ? outer * chunk + row : (2 * sizes[0] - 1 - outer) * chunk + row - chunk;
    }
    return success();
  }
  if (!op.getSegments()) {
    for (int64_t i = 0; i < size; ++i)
      result[i] = *rank * size + i;
    return success();
  }
  int64_t at = 0, first = 0; // the next local element, the segment's first global one
  for (tfm::PaddedSegment segment : op.segmentList()) {
    int64_t share = segment.total * segment.padded / ranks;
    for (int64_t p = *rank * share; p < (*rank + 1) * share; ++p) {
      bool valid = p / segment.padded < segment.groups && p % segment.padded < segment.valid;
      result[at++] = valid ? first + p / segment.padded * segment.valid + p % segment.padded : -1;
    }
    first += segment.groups * segment.valid;
  }
  return success();
}

static LogicalResult shardOffset(tfm::ShardOffsetOp op, Call &call) {
  FailureOr<int64_t> rank = linearIndex(call, op.getAxes(), *tfm::gridSizes(op, op.getAxes()));
  if (failed(rank) || failed(call.allocate(0, {})))
    return failure();
  call.results[0].ints[0] = *rank * static_cast<int64_t>(op.getSize());
  return success();
}

void interpreter::addRankKernels(KernelTable &table) {
  table.add<tfm::GlobalIndexOp>(globalIndex);
  table.add<tfm::ShardOffsetOp>(shardOffset);
}
