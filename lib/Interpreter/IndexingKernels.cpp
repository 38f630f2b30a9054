//===- IndexingKernels.cpp - gather, scatter, iota, fill --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Strided.h"

using namespace mlir;
using namespace drover;
using namespace drover::interpreter;

/// An index into `size` elements, counted from the end where it is negative; nothing where it is out of range.
static std::optional<int64_t> resolve(int64_t index, int64_t size) {
  if (index < -size || index >= size)
    return std::nullopt;
  return index < 0 ? index + size : index;
}

static LogicalResult outOfRange(Call &call, int64_t index, int64_t size) {
  return call.fail("index " + Twine(index) + " is not in [" + Twine(-size) + ", " + Twine(size) + ")");
}

/// Visits the elements that indices pick along dimension `axis` of `shape`: where each is there, and its number among
/// the picked ones.
static LogicalResult forEachPicked(Call &call, ArrayRef<int64_t> shape, int64_t axis, ArrayRef<int64_t> indices,
                                   llvm::function_ref<void(int64_t place, int64_t number)> visit) {
  int64_t length = shape[axis], inner = countElements(shape.drop_front(axis + 1)), number = 0;
  for (int64_t outer = 0; outer < countElements(shape.take_front(axis)); ++outer) {
    for (int64_t index : indices) {
      std::optional<int64_t> at = resolve(index, length);
      if (!at)
        return outOfRange(call, index, length);
      for (int64_t c = 0; c < inner; ++c)
        visit((outer * length + *at) * inner + c, number++);
    }
  }
  return success();
}

static LogicalResult gather(tfm::GatherOp op, Call &call) {
  const Tensor &input = call.operand(0), &indices = call.operand(1);
  int64_t axis = op.getAxis();
  SmallVector<int64_t> shape(ArrayRef(input.shape).take_front(axis));
  llvm::append_range(shape, indices.shape);
  llvm::append_range(shape, ArrayRef(input.shape).drop_front(axis + 1));
  if (failed(call.allocate(0, shape)))
    return failure();
  return forEachPicked(call, input.shape, axis, indices.ints,
                       [&](int64_t place, int64_t number) { copyElement(input, place, call.results[0], number); });
}

static LogicalResult scatterAdd(tfm::ScatterAddOp op, Call &call) {
  const Tensor &updates = call.operand(0), &indices = call.operand(1);
  SmallVector<int64_t> shape;
  if (failed(call.shapeOf(0, op.getShape(), shape)) || failed(call.allocate(0, shape)))
    return failure();
  int64_t axis = op.getAxis(), outer = countElements(ArrayRef(shape).take_front(axis)),
          inner = countElements(ArrayRef(shape).drop_front(axis + 1));
  if (updates.size() != outer * indices.size() * inner)
    return call.fail("updates and indices of different sizes");
  return forEachPicked(call, shape, axis, indices.ints,
                       [&](int64_t place, int64_t number) { call.results[0].floats[place] += updates.floats[number]; });
}

static LogicalResult scatterNd(tfm::ScatterNdOp, Call &call) {
  const Tensor &input = call.operand(0), &indices = call.operand(1), &updates = call.operand(2);
  int64_t depth = indices.shape.back();
  ArrayRef<int64_t> slice = ArrayRef(input.shape).drop_front(depth);
  int64_t inner = countElements(slice), tuples = countElements(ArrayRef(indices.shape).drop_back());
  if (updates.size() != tuples * inner || updates.kind != input.kind)
    return call.fail("updates and indices of different sizes");
  call.results[0] = input;
  for (int64_t tuple = 0; tuple < tuples; ++tuple) {
    int64_t start = 0;
    for (int64_t dim = 0; dim < depth; ++dim) {
      std::optional<int64_t> at = resolve(indices.ints[tuple * depth + dim], input.shape[dim]);
      if (!at)
        return outOfRange(call, indices.ints[tuple * depth + dim], input.shape[dim]);
      start = start * input.shape[dim] + *at;
    }
    for (int64_t c = 0; c < inner; ++c)
      copyElement(updates, tuple * inner + c, call.results[0], start * inner + c);
  }
  return success();
}

static LogicalResult iota(tfm::IotaOp op, Call &call) {
  SmallVector<int64_t> shape;
  if (failed(call.shapeOf(0, op.getShape(), shape)) || failed(call.allocate(0, shape)))
    return failure();
  int64_t axis = op.getAxis(), stride = stridesOf(shape)[axis], length = shape[axis];
  for (int64_t i = 0; i < call.results[0].size(); ++i) {
    // Wraps as integers do.
    uint64_t value = op.getStart() + op.getStep() * static_cast<uint64_t>(i / stride % length);
    if (isFloat(call.results[0].kind))
      call.results[0].floats[i] = static_cast<double>(static_cast<int64_t>(value));
    else
      call.results[0].ints[i] = static_cast<int64_t>(value);
  }
  return success();
}

static LogicalResult size(tfm::SizeOp op, Call &call) {
  SmallVector<int64_t> value;
  if (failed(evaluateMap(op.getValue(), call.options.symbols, value)))
    return call.fail("the value depends on a symbol without a value");
  if (failed(call.allocate(0, {})))
    return failure();
  if (isFloat(call.results[0].kind))
    call.results[0].floats[0] = static_cast<double>(value[0]);
  else
    call.results[0].ints[0] = value[0];
  return success();
}

static LogicalResult fill(tfm::FillOp op, Call &call) {
  SmallVector<int64_t> shape;
  FailureOr<Tensor> value = readConstant(cast<TypedAttr>(op.getValue()), call.reason);
  if (failed(value) || failed(call.shapeOf(0, op.getShape(), shape)) || failed(call.allocate(0, shape)))
    return failure();
  if (value->kind != call.results[0].kind || value->size() != 1)
    return call.fail("value of another type than the result's elements");
  for (int64_t i = 0; i < call.results[0].size(); ++i)
    copyElement(*value, 0, call.results[0], i);
  return success();
}

void interpreter::addIndexingKernels(KernelTable &table) {
  table.add<tfm::GatherOp>(gather);
  table.add<tfm::ScatterAddOp>(scatterAdd);
  table.add<tfm::ScatterNdOp>(scatterNd);
  table.add<tfm::IotaOp>(iota);
  table.add<tfm::SizeOp>(size);
  table.add<tfm::FillOp>(fill);
}
