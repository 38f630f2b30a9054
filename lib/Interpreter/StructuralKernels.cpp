//===- StructuralKernels.cpp - data movement and reductions -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Strided.h"
#include <cmath>

using namespace mlir;
using namespace drover;
using namespace drover::interpreter;

static LogicalResult reshape(tfm::ReshapeOp op, Call &call) {
  const Tensor &input = call.operand(0);
  SmallVector<int64_t> shape;
  if (failed(call.shapeOf(0, op.getShape(), shape)))
    return failure();
  if (countElements(shape) != input.size())
    return call.fail("result has another number of elements than the operand (" + Twine(input.size()) + ")");
  call.results[0] = input;
  call.results[0].shape = shape;
  return success();
}

static LogicalResult transpose(tfm::TransposeOp op, Call &call) {
  const Tensor &input = call.operand(0);
  SmallVector<int64_t> from = stridesOf(input.shape), shape, strides;
  for (int64_t dim : op.getPermutation()) {
    shape.push_back(input.shape[dim]);
    strides.push_back(from[dim]);
  }
  if (failed(call.allocate(0, shape)))
    return failure();
  forEachIndex(shape, {strides},
               [&](int64_t i, ArrayRef<int64_t> at) { copyElement(input, at[0], call.results[0], i); });
  return success();
}

static LogicalResult broadcast(tfm::BroadcastOp op, Call &call) {
  const Tensor &input = call.operand(0);
  SmallVector<int64_t> shape;
  if (failed(call.shapeOf(0, op.getShape(), shape)))
    return failure();
  SmallVector<int64_t> from = stridesOf(input.shape), strides(shape.size());
  for (size_t i = 1; i <= input.shape.size(); ++i) {
    int64_t size = input.shape[input.shape.size() - i];
    if (size != 1 && size != shape[shape.size() - i])
      return call.fail("operand does not broadcast to the result's sizes");
    strides[shape.size() - i] = size == 1 ? 0 : from[input.shape.size() - i];
  }
  if (failed(call.allocate(0, shape)))
    return failure();
  forEachIndex(shape, {strides},
               [&](int64_t i, ArrayRef<int64_t> at) { copyElement(input, at[0], call.results[0], i); });
  return success();
}

//===----------------------------------------------------------------------===//
// Slice, pad, concat
//===----------------------------------------------------------------------===//

/// The offsets of a slice or pad, those that are dynamic from `offset_map`; the box must lie within `outer`.
template <typename OpT>
static LogicalResult boxOffsets(OpT op, Call &call, ArrayRef<int64_t> inner, ArrayRef<int64_t> outer,
                                SmallVectorImpl<int64_t> &offsets) {
  offsets.assign(op.getOffsets().begin(), op.getOffsets().end());
  if (llvm::any_of(offsets, ShapedType::isDynamic)) {
    SmallVector<int64_t> values;
    if (!op.getOffsetMap() || failed(evaluateMap(*op.getOffsetMap(), call.options.symbols, values)) ||
        values.size() != offsets.size())
      return call.fail("an offset depends on a symbol without a value");
    for (auto [offset, value] : llvm::zip(offsets, values))
      if (ShapedType::isDynamic(offset))
        offset = value;
  }
  for (auto [offset, stride, size, full] : llvm::zip(offsets, op.getStrides(), inner, outer)) {
    if (size == 0)
      continue;
    // Sizes are those of tensors in memory, but a stride is any number.
    __int128 last = offset + static_cast<__int128>(size - 1) * stride;
    if (offset < 0 || offset >= full || last < 0 || last >= full)
      return call.fail("the box does not lie within " + Twine(full));
  }
  return success();
}

/// Strides of a box in the elements of its tensor, and where it starts.
static int64_t boxStart(ArrayRef<int64_t> outer, ArrayRef<int64_t> offsets, ArrayRef<int64_t> steps,
                        SmallVectorImpl<int64_t> &strides) {
  int64_t start = 0;
  for (auto [stride, offset, step] : llvm::zip(stridesOf(outer), offsets, steps)) {
    strides.push_back(static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(step)));
    start += stride * offset;
  }
  return start;
}

static LogicalResult slice(tfm::SliceOp op, Call &call) {
  const Tensor &input = call.operand(0);
  SmallVector<int64_t> shape, offsets, strides;
  if (failed(call.shapeOf(0, op.getShape(), shape)) || failed(boxOffsets(op, call, shape, input.shape, offsets)) ||
      failed(call.allocate(0, shape)))
    return failure();
  int64_t start = boxStart(input.shape, offsets, op.getStrides(), strides);
  forEachIndex(shape, {strides},
               [&](int64_t i, ArrayRef<int64_t> at) { copyElement(input, start + at[0], call.results[0], i); });
  return success();
}

static LogicalResult pad(tfm::PadOp op, Call &call) {
  const Tensor &input = call.operand(0);
  SmallVector<int64_t> shape, offsets, strides;
  if (failed(call.shapeOf(0, op.getShape(), shape)) || failed(boxOffsets(op, call, input.shape, shape, offsets)) ||
      failed(call.allocate(0, shape)))
    return failure();
  int64_t start = boxStart(shape, offsets, op.getStrides(), strides);
  forEachIndex(input.shape, {strides},
               [&](int64_t i, ArrayRef<int64_t> at) { copyElement(input, i, call.results[0], start + at[0]); });
  return success();
}

static LogicalResult concat(tfm::ConcatOp op, Call &call) {
  int64_t axis = op.getAxis();
  SmallVector<int64_t> shape(call.operand(0).shape);
  shape[axis] = 0;
  for (const Tensor *input : call.operands) {
    for (auto [dim, size] : llvm::enumerate(input->shape))
      if (static_cast<int64_t>(dim) != axis && size != shape[dim])
        return call.fail("operands of different sizes");
    shape[axis] += input->shape[axis];
  }
  if (failed(call.allocate(0, shape)))
    return failure();
  int64_t start = 0, stride = stridesOf(shape)[axis];
  for (const Tensor *input : call.operands) {
    forEachIndex(input->shape, {stridesOf(shape)},
                 [&](int64_t i, ArrayRef<int64_t> at) { copyElement(*input, i, call.results[0], start + at[0]); });
    start += input->shape[axis] * stride;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Reduce
//===----------------------------------------------------------------------===//

template <typename T> static T combine(tfm::ReduceKind kind, T a, T b) {
  switch (kind) {
  case tfm::ReduceKind::Sum:
  case tfm::ReduceKind::Mean:
    return a + b;
  case tfm::ReduceKind::Prod:
    return a * b;
  case tfm::ReduceKind::Max:
    return b > a || b != b ? b : a; // NaN spreads
  case tfm::ReduceKind::Min:
    return b < a || b != b ? b : a;
  }
  llvm_unreachable("every kind is handled");
}

/// What a reduction over nothing gives.
static double neutral(tfm::ReduceKind kind) {
  switch (kind) {
  case tfm::ReduceKind::Sum:
    return 0;
  case tfm::ReduceKind::Prod:
    return 1;
  case tfm::ReduceKind::Max:
    return -INFINITY;
  case tfm::ReduceKind::Min:
    return INFINITY;
  case tfm::ReduceKind::Mean:
    return NAN;
  }
  llvm_unreachable("every kind is handled");
}

static LogicalResult reduce(tfm::ReduceOp op, Call &call) {
  const Tensor &input = call.operand(0);
  tfm::ReduceKind kind = op.getKind();
  SmallVector<int64_t> kept, shape; // sizes with 1 for what is reduced, and the result's
  int64_t count = 1;
  for (auto [dim, size] : llvm::enumerate(input.shape)) {
    bool reduced = llvm::is_contained(op.getAxes(), static_cast<int64_t>(dim));
    kept.push_back(reduced ? 1 : size);
    if (!reduced || op.getKeep())
      shape.push_back(kept.back());
    if (reduced)
      count *= size;
  }
  if (failed(call.allocate(0, shape)))
    return failure();
  Tensor &result = call.results[0];
  bool floats = isFloat(input.kind);
  if (!floats && (kind == tfm::ReduceKind::Mean || count == 0))
    return call.fail("integers have no mean, and no reduction over nothing");
  if (count == 0) {
    std::fill(result.floats.begin(), result.floats.end(), neutral(kind));
    return success();
  }
  SmallVector<int64_t> strides = stridesOf(kept);
  for (auto [stride, size] : llvm::zip(strides, kept))
    if (size == 1)
      stride = 0;
  std::vector<bool> started(result.size());
  forEachIndex(input.shape, {strides}, [&](int64_t i, ArrayRef<int64_t> at) {
    int64_t to = at[0];
    if (!started[to])
      copyElement(input, i, result, to);
    else if (floats)
      result.floats[to] = combine(kind, result.floats[to], input.floats[i]);
    else
      result.ints[to] =
          static_cast<int64_t>(kind == tfm::ReduceKind::Max || kind == tfm::ReduceKind::Min
                                   ? combine(kind, result.ints[to], input.ints[i])
                                   : static_cast<int64_t>(combine(kind, static_cast<uint64_t>(result.ints[to]),
                                                                  static_cast<uint64_t>(input.ints[i]))));
    started[to] = true;
  });
  if (kind == tfm::ReduceKind::Mean)
    for (double &value : result.floats)
      value /= static_cast<double>(count);
  return success();
}

void interpreter::addStructuralKernels(KernelTable &table) {
  table.add<tfm::ReshapeOp>(reshape);
  table.add<tfm::TransposeOp>(transpose);
  table.add<tfm::BroadcastOp>(broadcast);
  table.add<tfm::SliceOp>(slice);
  table.add<tfm::PadOp>(pad);
  table.add<tfm::ConcatOp>(concat);
  table.add<tfm::ReduceOp>(reduce);
}
