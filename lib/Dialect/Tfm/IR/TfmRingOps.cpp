//===- TfmRingOps.cpp - matmuls in steps around a ring ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "OpUtils.h"

using namespace mlir;
using namespace drover::tfm;

using Shapes = SmallVectorImpl<Shape>;

/// C1: the ranks of the ring.
static FailureOr<int64_t> verifyRing(Operation *op, ArrayAttr axes) {
  FailureOr<int64_t> ranks = verifyAxes(op, axes);
  if (succeeded(ranks) && *ranks < 2)
    return op->emitOpError("expects a ring of two or more ranks, not ") << *ranks;
  return ranks;
}

/// C3: a dimension of rows.
static LogicalResult verifyDim(Operation *op, int64_t dim, ArrayRef<int64_t> shape) {
  if (dim < 0 || dim >= static_cast<int64_t>(shape.size()) - 1)
    return op->emitOpError("expects a dimension of ") << str(shape) << " before its last, not " << dim;
  return success();
}

/// C4: the outputs of a weight, whose other size is contracted with `input`.
static FailureOr<int64_t> outputsOf(Operation *op, Value input, Value weight, bool inOut) {
  ArrayRef<int64_t> sizes = shapeOf(weight);
  if (sizes.size() != 2)
    return op->emitOpError("expects weights of rank 2, not ") << str(sizes);
  if (!compatible(shapeOf(input).back(), sizes[inOut ? 0 : 1]))
    return op->emitOpError("expects the last size of ")
           << str(shapeOf(input)) << " to be that of a weight, " << sizes[inOut ? 0 : 1];
  return sizes[inOut ? 1 : 0];
}

/// C2: products in pairs with their orientation.
static LogicalResult verifyCount(Operation *op, size_t products, ArrayRef<bool> inOut) {
  if (products == 0 || products != inOut.size())
    return op->emitOpError("expects one or more weights with an in_out each, not ")
           << products << " and " << inOut.size();
  return success();
}

//===----------------------------------------------------------------------===//
// gather_linear
//===----------------------------------------------------------------------===//

LogicalResult GatherLinearOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  FailureOr<int64_t> ranks = verifyRing(*this, getAxes());
  int64_t dim = getDim();
  Shape rows(shapeOf(getInput()));
  if (failed(ranks) || failed(verifyCount(*this, getWeights().size(), getInOut())) ||
      failed(verifyDim(*this, dim, rows)))
    return failure();
  rows[dim] = product(rows[dim], *ranks);
  for (auto [weight, inOut] : llvm::zip(getWeights(), getInOut())) {
    FailureOr<int64_t> outputs = outputsOf(*this, getInput(), weight, inOut);
    if (failed(outputs))
      return failure();
    shapes.push_back(rows);
    shapes.back().back() = *outputs;
  }
  if (getGathered()) // C6
    shapes.push_back(rows);
  return success();
}

LogicalResult GatherLinearOp::verify() {
  SmallVector<Value> same(getOperands()); // C5
  if (Value gathered = getGathered())
    same.push_back(gathered);
  if (failed(verifySameElementType(*this, same)))
    return failure();
  return verifyShapes(*this);
}

static uint64_t productFlops(Value result, Value input) {
  return countProduct({2, elements(result), sizeProduct(shapeOf(input).take_back())});
}

uint64_t GatherLinearOp::getFlops() {
  uint64_t flops = 0;
  for (auto [weight, result] : llvm::zip(getWeights(), getResults()))
    flops = llvm::SaturatingAdd(flops, productFlops(result, getInput()));
  return flops;
}

//===----------------------------------------------------------------------===//
// linear_scatter
//===----------------------------------------------------------------------===//

LogicalResult LinearScatterOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  FailureOr<int64_t> ranks = verifyRing(*this, getAxes());
  int64_t dim = getDim(), columns = ShapedType::kDynamic;
  if (failed(ranks) || failed(verifyCount(*this, getInputs().size(), getInOut())))
    return failure();
  Shape rows(shapeOf(getInputs().front()));
  if (failed(verifyDim(*this, dim, rows)))
    return failure();
  rows.pop_back();
  for (auto [input, weight, inOut] : llvm::zip(getInputs(), getWeights(), getInOut())) {
    if (shapeOf(input).empty() || !compatible(shapeOf(input).drop_back(), rows)) // C4
      return emitOpError("expects inputs that agree in all but their last size, not ")
             << str(shapeOf(getInputs().front())) << " and " << str(shapeOf(input));
    FailureOr<int64_t> outputs = outputsOf(*this, input, weight, inOut);
    if (failed(outputs))
      return failure();
    if (!compatible(*outputs, columns)) // C4
      return emitOpError("expects weights with as many outputs, not ") << columns << " and " << *outputs;
    columns = refine(columns, *outputs);
  }
  if (!ShapedType::isDynamic(rows[dim])) {
    if (rows[dim] % *ranks) // C5
      return emitOpError("expects the size of dimension ")
             << dim << " to be a multiple of " << *ranks << " ranks, not " << rows[dim];
    rows[dim] /= *ranks;
  }
  rows.push_back(columns);
  shapes.push_back(rows);
  return success();
}

LogicalResult LinearScatterOp::verify() {
  SmallVector<Value> same(getOperands()); // C6
  same.push_back(getResult());
  if (failed(verifySameElementType(*this, same)))
    return failure();
  return verifyShapes(*this);
}

uint64_t LinearScatterOp::getFlops() {
  uint64_t flops = 0, ranks = 1;
  if (FailureOr<SmallVector<int64_t>> sizes = gridSizes(*this, getAxes()); succeeded(sizes))
    for (int64_t size : *sizes)
      ranks = llvm::SaturatingMultiply(ranks, static_cast<uint64_t>(size));
  // A rank multiplies the rows of all parts.
  for (Value input : getInputs())
    flops = llvm::SaturatingAdd(flops, countProduct({ranks, productFlops(getResult(), input)}));
  return flops;
}
