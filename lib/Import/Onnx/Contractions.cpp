//===- Contractions.cpp - reductions, products, gathers -------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TensorBuilder.h"
#include <cmath>

using namespace llvm;
using namespace mlir;

namespace drover::onnx {

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static std::optional<Expr> foldReduce(SymbolTable &symbols, tfm::ReduceKind kind, ArrayRef<Expr> values) {
  if (values.empty())
    return std::nullopt;
  Expr result = values.front();
  for (const Expr &value : values.drop_front()) {
    std::optional<bool> less = symbols.less(result, value);
    switch (kind) {
    case tfm::ReduceKind::Sum:
      result = result + value;
      break;
    case tfm::ReduceKind::Prod:
      result = result * value;
      break;
    case tfm::ReduceKind::Max:
    case tfm::ReduceKind::Min:
      if (!less)
        return std::nullopt;
      if (*less == (kind == tfm::ReduceKind::Max))
        result = value;
      break;
    case tfm::ReduceKind::Mean:
      return std::nullopt;
    }
  }
  return result.isValid() ? std::optional<Expr>(result) : std::nullopt;
}

Value TensorBuilder::reduce(tfm::ReduceKind kind, const Value &value, ArrayRef<int64_t> axes, bool keep) {
  if (failed() || axes.empty())
    return value;
  Shape shape;
  for (auto [dim, size] : enumerate(value.shape))
    if (!is_contained(axes, static_cast<int64_t>(dim)))
      shape.push_back(size);
    else if (keep)
      shape.push_back(1);
  bool isInt = !isFloat(value.type);
  // All of a small vector of integers: the element count of a shape, say.
  if (isInt && value.known && !value.known->uniform && static_cast<int64_t>(axes.size()) == value.rank())
    if (std::optional<Expr> folded = foldReduce(symbols, kind, value.known->ints)) {
      Known known;
      known.ints = {*folded};
      return fromKnown(value.type, shape, std::move(known));
    }
  // The sum of an attention mask of ones is the sequence length.
  if (isInt && value.known && value.known->uniform && kind != tfm::ReduceKind::Prod) {
    Expr elements = 1;
    for (int64_t axis : axes)
      elements = elements * value.shape[axis];
    Known known;
    known.uniform = true;
    known.ints = {kind == tfm::ReduceKind::Sum ? value.intAt(0) * elements : value.intAt(0)};
    return fromKnown(value.type, shape, std::move(known));
  }
  if (isInt && kind == tfm::ReduceKind::Mean) {
    Expr elements = 1;
    for (int64_t axis : axes)
      elements = elements * value.shape[axis];
    return div(reduce(tfm::ReduceKind::Sum, value, axes, keep), scalarInt(elements, value.type));
  }
  SmallVector<int64_t> sorted(axes);
  sort(sorted);
  mlir::Value operand = materialize(value);
  if (failed())
    return {};
  return wrap(tfm::ReduceOp::create(builder, location, tensorType(value.type, shape), operand, kind, sorted, keep),
              value.type, shape, {&value});
}

Value TensorBuilder::softmax(const Value &value, int64_t axis) {
  if (failed())
    return {};
  mlir::Value operand = materialize(value);
  return wrap(tfm::SoftmaxOp::create(builder, location, tensorType(value), operand, builder.getI64IntegerAttr(axis)),
              value.type, value.shape, {&value});
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Without the last two dimensions.
static ArrayRef<Expr> batch(const Value &value) { return ArrayRef<Expr>(value.shape).drop_back(2); }

Value TensorBuilder::matmul(const Value &lhs, const Value &rhs, bool transposeLhs, bool transposeRhs) {
  if (failed())
    return {};
  if (!isFloat(lhs.type) || lhs.type != rhs.type || lhs.rank() < 2 || rhs.rank() < 2) {
    fail("a matrix product has operands of " + str(lhs.type) + " rank " + Twine(lhs.rank()) + " and " + str(rhs.type) +
         " rank " + Twine(rhs.rank()) + ", expected float matrices of one type");
    return {};
  }
  Shape shape = broadcastShapes(batch(lhs), batch(rhs));
  unify(lhs.shape[lhs.rank() - (transposeLhs ? 2 : 1)], rhs.shape[rhs.rank() - (transposeRhs ? 1 : 2)]);
  if (failed())
    return {};
  auto expand = [&](const Value &value) {
    Shape full = shape;
    full.append(value.shape.end() - 2, value.shape.end());
    return materialize(broadcast(value, full));
  };
  mlir::Value left = expand(lhs), right = expand(rhs);
  shape.push_back(lhs.shape[lhs.rank() - (transposeLhs ? 1 : 2)]);
  shape.push_back(rhs.shape[rhs.rank() - (transposeRhs ? 2 : 1)]);
  if (failed())
    return {};
  return wrap(
      tfm::MatmulOp::create(builder, location, tensorType(lhs.type, shape), left, right, transposeLhs, transposeRhs),
      lhs.type, shape, {&lhs, &rhs});
}

Value TensorBuilder::linear(const Value &input, const Value &weight, bool inOut) {
  if (failed())
    return {};
  if (!isFloat(input.type) || input.type != weight.type || weight.rank() != 2 || input.rank() < 1) {
    fail("a linear has an input of " + str(input.type) + " and a weight of " + str(weight.type) + " rank " +
         Twine(weight.rank()) + ", expected float operands of one type and a matrix");
    return {};
  }
  unify(input.shape.back(), weight.shape[inOut ? 0 : 1]);
  Shape shape = input.shape;
  shape.back() = weight.shape[inOut ? 1 : 0];
  mlir::Value x = materialize(input), w = materialize(weight);
  if (failed())
    return {};
  return wrap(tfm::LinearOp::create(builder, location, tensorType(input.type, shape), x, w, inOut), input.type, shape,
              {&input, &weight});
}

Value TensorBuilder::biasAdd(const Value &input, const Value &bias) {
  if (failed())
    return {};
  mlir::Value x = materialize(input), b = materialize(bias);
  return wrap(tfm::BiasAddOp::create(builder, location, tensorType(input), x, b), input.type, input.shape,
              {&input, &bias});
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

/// Picks elements of a known value by known indices.
static std::optional<Known> foldGather(const Value &value, const Value &indices, int64_t axis) {
  std::vector<int64_t> dims = value.dims(), places = indices.dims();
  Known known;
  bool computed = true;
  std::vector<int64_t> result(dims.begin(), dims.begin() + axis);
  result.insert(result.end(), places.begin(), places.end());
  result.insert(result.end(), dims.begin() + axis + 1, dims.end());
  forEachIndex(result, [&](ArrayRef<int64_t> index) {
    const Expr &expr = indices.intAt(flatIndex(places, index.slice(axis, places.size())));
    std::optional<int64_t> at = expr.constant();
    if (at && *at < 0)
      *at += dims[axis];
    if (!at || *at < 0 || *at >= dims[axis]) {
      computed = false;
      return;
    }
    SmallVector<int64_t> source(index.take_front(axis));
    source.push_back(*at);
    source.append(index.begin() + axis + places.size(), index.end());
    size_t place = flatIndex(dims, source);
    if (isFloat(value.type))
      known.floats.push_back(value.floatAt(place));
    else
      known.ints.push_back(value.intAt(place));
  });
  return computed ? std::optional<Known>(std::move(known)) : std::nullopt;
}

Value TensorBuilder::gather(const Value &value, const Value &indices, int64_t axis) {
  if (failed())
    return {};
  Shape shape(value.shape.begin(), value.shape.begin() + axis);
  shape.append(indices.shape.begin(), indices.shape.end());
  shape.append(value.shape.begin() + axis + 1, value.shape.end());
  if (value.known && value.known->uniform) {
    Value result = value;
    result.shape = shape;
    return result;
  }
  if (value.known && !value.initializer && indices.known && value.isStatic() && indices.isStatic())
    if (std::optional<Known> known = foldGather(value, indices, axis))
      return fromKnown(value.type, shape, std::move(*known));
  // One constant place is a slice.
  if (indices.known && indices.known->ints.size() == 1 && indices.rank() == 0) {
    Expr at = indices.intAt(0);
    Sign sign = symbols.sign(at);
    if (sign == Sign::Negative)
      at = at + value.shape[axis];
    if (symbols.less(at, value.shape[axis]) == false || symbols.sign(at) == Sign::Negative) {
      fail("index " + symbols.str(indices.intAt(0)) + " is out of a dimension of " + symbols.str(value.shape[axis]));
      return {};
    }
    return reshape(sliceAxis(value, axis, at, at + 1), shape);
  }
  mlir::Value operand = materialize(value);
  ElemType type = indices.type == ElemType::Int32 ? ElemType::Int32 : ElemType::Int64;
  mlir::Value places = materialize(cast(indices, type));
  if (failed())
    return {};
  return wrap(tfm::GatherOp::create(builder, location, tensorType(value.type, shape), operand, places,
                                    builder.getI64IntegerAttr(axis)),
              value.type, shape, {&value, &indices});
}

Value TensorBuilder::scatterNd(const Value &value, const Value &indices, const Value &updates) {
  if (failed())
    return {};
  mlir::Value operand = materialize(value), places = materialize(cast(indices, ElemType::Int64)),
              parts = materialize(updates);
  if (failed())
    return {};
  return wrap(tfm::ScatterNdOp::create(builder, location, tensorType(value), operand, places, parts), value.type,
              value.shape, {&value, &indices, &updates});
}

} // namespace drover::onnx
