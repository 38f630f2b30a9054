//===- ShapePrimitives.cpp - reshape, transpose, slice and their kin ------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TensorBuilder.h"

using namespace llvm;
using namespace mlir;

namespace drover::onnx {

/// The elements of a known value at the given flat places.
static Known pick(const Value &value, ArrayRef<int64_t> places) {
  Known known;
  for (int64_t place : places)
    if (isFloat(value.type))
      known.floats.push_back(value.floatAt(place));
    else
      known.ints.push_back(value.intAt(place));
  return known;
}

static std::string str(const SymbolTable &symbols, ArrayRef<Expr> shape) {
  std::string text = "[";
  for (const Expr &size : shape)
    text += (text.size() > 1 ? ", " : "") + symbols.str(size);
  return text + "]";
}

/// Known, small and of a shape that can be walked.
static bool isEnumerable(const Value &value) { return value.known && value.isStatic(); }

//===----------------------------------------------------------------------===//
// Equal sizes
//===----------------------------------------------------------------------===//

Expr TensorBuilder::unify(const Expr &lhs, const Expr &rhs) {
  if (lhs == rhs || failed())
    return lhs;
  if (symbols.equal(lhs, rhs) == false) {
    fail("sizes " + symbols.str(lhs) + " and " + symbols.str(rhs) + " do not agree");
    return lhs;
  }
  // Of two symbols the later one is bound, so that the names of inputs stay.
  std::optional<unsigned> a = lhs.asAtom(), b = rhs.asAtom();
  if (a && b && *a > *b ? symbols.bind(*a, rhs) || symbols.bind(*b, lhs)
                        : (b && symbols.bind(*b, lhs)) || (a && symbols.bind(*a, rhs)))
    restart = true;
  else
    fail("sizes " + symbols.str(lhs) + " and " + symbols.str(rhs) + " must be equal, which --dim can make so");
  return lhs;
}

Shape TensorBuilder::broadcastShapes(ArrayRef<Expr> lhs, ArrayRef<Expr> rhs) {
  if (lhs.size() < rhs.size())
    std::swap(lhs, rhs);
  Shape result(lhs.begin(), lhs.end());
  size_t offset = lhs.size() - rhs.size();
  for (auto [dim, size] : enumerate(rhs)) {
    Expr &mine = result[offset + dim];
    if (mine == size || size.is(1))
      continue;
    if (mine.is(1)) {
      mine = size;
      continue;
    }
    if (symbols.equal(mine, size) == false) {
      fail("shapes " + onnx::str(symbols, lhs) + " and " + onnx::str(symbols, rhs) + " do not broadcast");
      return result;
    }
    mine = unify(mine, size);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Reshape, transpose, broadcast
//===----------------------------------------------------------------------===//

Value TensorBuilder::reshape(const Value &value, ArrayRef<Expr> shape) {
  if (failed() || ArrayRef<Expr>(value.shape) == shape)
    return value;
  Expr from = count(value.shape), to = count(shape);
  if (symbols.equal(from, to) == false) {
    fail("shape " + onnx::str(symbols, value.shape) + " cannot become " + onnx::str(symbols, shape));
    return {};
  }
  if (value.known && !value.initializer) {
    Value result = value;
    result.shape.assign(shape.begin(), shape.end());
    return result;
  }
  mlir::Value operand = materialize(value);
  if (failed())
    return {};
  return wrap(tfm::ReshapeOp::create(builder, location, tensorType(value.type, shape), operand, shapeMap(shape)),
              value.type, shape, {&value});
}

Value TensorBuilder::transpose(const Value &value, ArrayRef<int64_t> permutation) {
  if (failed())
    return {};
  SmallVector<int64_t> sorted(permutation);
  sort(sorted);
  if (!equal(sorted, seq<int64_t>(0, value.rank()))) {
    fail("expected a permutation of " + Twine(value.rank()) + " dimensions");
    return {};
  }
  if (equal(permutation, seq<int64_t>(0, value.rank())))
    return value;
  Shape shape;
  for (int64_t dim : permutation)
    shape.push_back(value.shape[dim]);
  if (value.initializer && value.rank() == 2) {
    Value result = value;
    result.shape = shape;
    result.transposed = !value.transposed;
    result.known = nullptr;
    return result;
  }
  if (value.known && value.known->uniform) {
    Value result = value;
    result.shape = shape;
    return result;
  }
  if (isEnumerable(value)) {
    std::vector<int64_t> from = value.dims(), places;
    SmallVector<int64_t> to, source(from.size());
    for (int64_t dim : permutation)
      to.push_back(from[dim]);
    forEachIndex(to, [&](ArrayRef<int64_t> index) {
      for (auto [place, dim] : zip(index, permutation))
        source[dim] = place;
      places.push_back(flatIndex(from, source));
    });
    return fromKnown(value.type, shape, pick(value, places));
  }
  return wrap(
      tfm::TransposeOp::create(builder, location, tensorType(value.type, shape), materialize(value), permutation),
      value.type, shape, {&value});
}

Value TensorBuilder::broadcast(const Value &value, ArrayRef<Expr> shape) {
  if (failed() || ArrayRef<Expr>(value.shape) == shape)
    return value;
  if (value.known && !value.initializer) {
    if (value.known->uniform || value.known->ints.size() + value.known->floats.size() == 1) {
      Known known = *value.known;
      known.uniform = true;
      return fromKnown(value.type, shape, std::move(known));
    }
    std::optional<int64_t> elements = count(shape).constant();
    if (elements && *elements <= maxKnown) {
      std::vector<int64_t> from = value.dims(), places;
      SmallVector<int64_t> to;
      for (const Expr &size : shape)
        to.push_back(*size.constant());
      forEachIndex(to, [&](ArrayRef<int64_t> index) { places.push_back(broadcastIndex(from, index)); });
      return fromKnown(value.type, shape, pick(value, places));
    }
  }
  mlir::Value operand = materialize(value);
  if (failed())
    return {};
  return wrap(tfm::BroadcastOp::create(builder, location, tensorType(value.type, shape), operand, shapeMap(shape)),
              value.type, shape, {&value});
}

//===----------------------------------------------------------------------===//
// Slice, concat
//===----------------------------------------------------------------------===//

Value TensorBuilder::slice(const Value &value, ArrayRef<Expr> offsets, ArrayRef<int64_t> strides,
                           ArrayRef<Expr> sizes) {
  if (failed())
    return {};
  if (ArrayRef<Expr>(value.shape) == sizes && all_of(offsets, [](const Expr &offset) { return offset.is(0); }) &&
      all_of(strides, [](int64_t stride) { return stride == 1; }))
    return value;
  bool constant = all_of(offsets, [](const Expr &offset) { return offset.isConstant(); });
  for (auto [offset, stride, size, full] : zip(offsets, strides, sizes, value.shape)) {
    std::optional<int64_t> first = offset.constant(), count = size.constant(), limit = full.constant();
    if (!first || !count || !limit || *count == 0)
      continue;
    int64_t last = *first + (*count - 1) * stride;
    if (*count < 0 || std::min(*first, last) < 0 || std::max(*first, last) >= *limit) {
      fail("a slice from " + Twine(*first) + " of " + Twine(*count) + " leaves a dimension of " + Twine(*limit));
      return {};
    }
  }
  if (value.known && value.known->uniform) {
    Value result = value;
    result.shape.assign(sizes.begin(), sizes.end());
    return result;
  }
  std::optional<int64_t> elements = count(sizes).constant();
  if (isEnumerable(value) && !value.initializer && constant && elements) {
    std::vector<int64_t> from = value.dims(), places;
    SmallVector<int64_t> to, source(from.size());
    for (const Expr &size : sizes)
      to.push_back(*size.constant());
    forEachIndex(to, [&](ArrayRef<int64_t> index) {
      for (auto [dim, place] : enumerate(index))
        source[dim] = *offsets[dim].constant() + place * strides[dim];
      places.push_back(flatIndex(from, source));
    });
    return fromKnown(value.type, sizes, pick(value, places));
  }
  SmallVector<int64_t> numbers;
  for (const Expr &offset : offsets)
    numbers.push_back(offset.constant().value_or(ShapedType::kDynamic));
  mlir::Value operand = materialize(value);
  if (failed())
    return {};
  return wrap(tfm::SliceOp::create(builder, location, tensorType(value.type, sizes), operand,
                                   builder.getDenseI64ArrayAttr(numbers), builder.getDenseI64ArrayAttr(strides),
                                   constant ? AffineMapAttr() : affineMap(offsets), shapeMap(sizes)),
              value.type, sizes, {&value});
}

Value TensorBuilder::sliceAxis(const Value &value, int64_t axis, const Expr &begin, const Expr &end) {
  if (failed())
    return {};
  SmallVector<Expr> offsets(value.rank(), Expr(0));
  SmallVector<int64_t> strides(value.rank(), 1);
  Shape sizes = value.shape;
  offsets[axis] = begin;
  sizes[axis] = end - begin;
  return slice(value, offsets, strides, sizes);
}

Value TensorBuilder::concat(ArrayRef<Value> values, int64_t axis) {
  if (failed())
    return {};
  if (values.empty()) {
    fail("a concatenation has no operands");
    return {};
  }
  Shape shape = values.front().shape;
  Expr total = 0;
  bool allKnown = true;
  for (const Value &value : values) {
    if (value.rank() != static_cast<int64_t>(shape.size()) || value.type != values.front().type) {
      fail("a concatenation has operands of different rank or type");
      return {};
    }
    for (auto [dim, size] : enumerate(value.shape))
      if (static_cast<int64_t>(dim) != axis)
        shape[dim] = unify(shape[dim], size);
    total = total + value.shape[axis];
    allKnown &= isEnumerable(value) && !value.initializer;
  }
  if (failed())
    return {};
  shape[axis] = total;
  if (values.size() == 1)
    return values.front();
  std::optional<int64_t> elements = count(shape).constant();
  if (allKnown && elements && *elements <= maxKnown) {
    Known known;
    std::vector<int64_t> dims;
    for (const Expr &size : shape)
      dims.push_back(*size.constant());
    forEachIndex(dims, [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> source(index);
      for (const Value &value : values) {
        std::vector<int64_t> from = value.dims();
        if (source[axis] >= from[axis]) {
          source[axis] -= from[axis];
          continue;
        }
        size_t place = flatIndex(from, source);
        if (isFloat(value.type))
          known.floats.push_back(value.floatAt(place));
        else
          known.ints.push_back(value.intAt(place));
        return;
      }
    });
    return fromKnown(values.front().type, shape, std::move(known));
  }
  // Parts without elements (a past of length 0) need not appear.
  SmallVector<mlir::Value> operands;
  SmallVector<const Value *> parts;
  for (const Value &value : values)
    if (!value.shape[axis].is(0)) {
      operands.push_back(materialize(value));
      parts.push_back(&value);
    }
  if (failed())
    return {};
  if (operands.size() == 1)
    return *parts.front();
  if (operands.empty())
    return values.front();
  return wrap(tfm::ConcatOp::create(builder, location, tensorType(values.front().type, shape), operands,
                                    builder.getI64IntegerAttr(axis)),
              values.front().type, shape, parts);
}

} // namespace drover::onnx
