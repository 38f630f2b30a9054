//===- ShapeOperators.cpp - shapes, slices, constants, ranges -------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Operators.h"
#include <cmath>

using namespace llvm;

namespace drover::onnx {
namespace {

//===----------------------------------------------------------------------===//
// Shape queries
//===----------------------------------------------------------------------===//

void shape(NodeContext &n) {
  const Value &x = n.in(0);
  int64_t rank = x.rank();
  auto bound = [&](StringRef name, int64_t otherwise) {
    int64_t value = n.intAttr(name, otherwise);
    return std::clamp<int64_t>(value < 0 ? value + rank : value, 0, rank);
  };
  int64_t start = bound("start", 0), end = std::max(start, bound("end", rank));
  n.out(0, n.b.ints(ArrayRef<Expr>(x.shape).slice(start, end - start)));
}

void size(NodeContext &n) { n.out(0, n.b.scalarInt(n.b.count(n.in(0).shape))); }

//===----------------------------------------------------------------------===//
// New shapes
//===----------------------------------------------------------------------===//

void reshape(NodeContext &n) {
  const Value &x = n.in(0);
  std::vector<Expr> wanted = n.exprs(1, "the target shape");
  if (n.b.failed() || !n.unsupportedWhy.empty())
    return;
  bool allowZero = n.intAttr("allowzero", 0) != 0;
  std::optional<size_t> inferred;
  Expr product = 1;
  for (auto [dim, size] : enumerate(wanted)) {
    if (size.is(-1)) {
      if (inferred)
        return n.b.fail("a target shape has -1 twice");
      inferred = dim;
      continue;
    }
    if (size.is(0) && !allowZero) {
      if (dim >= x.shape.size())
        return n.b.fail("a target shape copies dimension " + Twine(dim) + " of rank " + Twine(x.rank()));
      size = x.shape[dim];
    }
    Sign sign = n.b.symbols.sign(size);
    if (sign == Sign::Negative)
      return n.b.fail("a target shape has the size " + n.b.symbols.str(size));
    product = product * size;
  }
  if (inferred) {
    Expr total = n.b.count(x.shape);
    if (product.is(0))
      return n.b.fail("a target shape has -1 beside a size of 0");
    if (std::optional<Expr> quotient = SymbolTable::exactDiv(total, product))
      wanted[*inferred] = *quotient;
    else if (total.isConstant() && product.isConstant())
      return n.b.fail("a tensor of " + n.b.symbols.str(total) + " elements cannot have rows of " +
                      n.b.symbols.str(product));
    else
      wanted[*inferred] = n.b.symbols.floorDiv(total, product);
  }
  // [1, 1, H] and the like only add a batch: views of an initializer are read where they are used.
  n.out(0, n.b.reshape(n.plain(x), wanted));
}

void flatten(NodeContext &n) {
  Value x = n.plain(0);
  int64_t axis = n.intAttr("axis", 1);
  axis = axis < 0 ? axis + x.rank() : axis;
  if (axis < 0 || axis > x.rank())
    return n.b.fail("axis " + Twine(axis) + " is out of rank " + Twine(x.rank()));
  ArrayRef<Expr> sizes = x.shape;
  n.out(0, n.b.reshape(x, {n.b.count(sizes.take_front(axis)), n.b.count(sizes.drop_front(axis))}));
}

void squeeze(NodeContext &n) {
  Value x = n.plain(0);
  std::optional<std::vector<int64_t>> axes = n.axesFrom("axes", 1, x.rank());
  if (n.b.failed() || !n.unsupportedWhy.empty())
    return;
  Shape result;
  for (auto [dim, size] : enumerate(x.shape)) {
    bool drop = axes ? is_contained(*axes, static_cast<int64_t>(dim)) : size.is(1);
    if (drop && !size.is(1))
      n.b.unify(size, 1);
    if (!drop)
      result.push_back(size);
  }
  n.out(0, n.b.reshape(x, result));
}

void unsqueeze(NodeContext &n) {
  Value x = n.plain(0);
  // Counted in the result's rank.
  size_t added = n.has(1) ? n.constants(1, "axes").size() : n.intsAttr("axes").value_or(std::vector<int64_t>()).size();
  std::optional<std::vector<int64_t>> axes = n.axesFrom("axes", 1, x.rank() + added);
  if (n.b.failed() || !n.unsupportedWhy.empty())
    return;
  if (!axes)
    return n.b.fail("axes are missing");
  Shape result;
  auto next = x.shape.begin();
  for (int64_t dim = 0, rank = x.rank() + added; dim < rank; ++dim)
    result.push_back(is_contained(*axes, dim) ? Expr(1) : *next++);
  n.out(0, n.b.reshape(x, result));
}

void transpose(NodeContext &n) {
  const Value &x = n.in(0);
  std::vector<int64_t> permutation;
  if (auto given = n.intsAttr("perm"))
    permutation = *given;
  else
    for (int64_t dim = x.rank(); dim-- > 0;)
      permutation.push_back(dim);
  // A transposed matrix of weights stays a view of its parameter.
  n.out(0, n.b.transpose(x.initializer && x.rank() == 2 ? x : n.plain(x), permutation));
}

void expand(NodeContext &n) {
  Value x = n.plain(0);
  std::vector<Expr> wanted = n.exprs(1, "the target shape");
  if (n.b.failed() || !n.unsupportedWhy.empty())
    return;
  // -1 keeps a size: exporters write it although the standard does not say so.
  size_t rank = std::max<size_t>(wanted.size(), x.rank());
  for (auto [dim, size] : enumerate(wanted)) {
    int64_t mine = static_cast<int64_t>(dim) - (static_cast<int64_t>(rank) - x.rank()) + (rank - wanted.size());
    if (size.is(-1))
      size = mine >= 0 ? x.shape[mine] : Expr(1);
  }
  n.out(0, n.b.broadcast(x, n.b.broadcastShapes(x.shape, wanted)));
}

void tile(NodeContext &n) {
  Value x = n.plain(0);
  std::vector<Expr> repeats = n.exprs(1, "the repeats");
  if (n.b.failed() || !n.unsupportedWhy.empty())
    return;
  if (static_cast<int64_t>(repeats.size()) != x.rank())
    return n.b.fail("expected " + Twine(x.rank()) + " repeats, not " + Twine(repeats.size()));
  // [a, b] -> [1, a, 1, b] -> [r, a, s, b] -> [r a, s b].
  Shape inner, outer, result;
  for (auto [size, repeat] : zip(x.shape, repeats)) {
    if (n.b.symbols.sign(repeat) == Sign::Negative)
      return n.b.fail("a dimension is repeated " + n.b.symbols.str(repeat) + " times");
    inner.append({Expr(1), size});
    outer.append({repeat, size});
    result.push_back(repeat * size);
  }
  n.out(0, n.b.reshape(n.b.broadcast(n.b.reshape(x, inner), outer), result));
}

//===----------------------------------------------------------------------===//
// Slice, split, concat, pad
//===----------------------------------------------------------------------===//

/// A bound of Slice as an offset in [0, size]. Where that cannot be decided the bound is taken to lie
/// within the dimension, as it must for the model to work at that size.
Expr clampBound(const SymbolTable &symbols, Expr bound, const Expr &size, int64_t low, const Expr &high) {
  // INT64_MAX, INT32_MAX and their negatives stand for the ends: no symbolic size reaches them.
  constexpr int64_t beyond = INT32_MAX;
  if (std::optional<int64_t> number = bound.constant(); number && !size.constant()) {
    if (*number >= beyond)
      return high;
    if (*number <= -beyond)
      return low;
  } else if (number) {
    bound = std::clamp<int64_t>(*number, -(int64_t(1) << 60), int64_t(1) << 60);
  }
  Sign sign = symbols.sign(bound);
  if (sign == Sign::Negative || (sign == Sign::NonPositive && !bound.is(0)))
    bound = bound + size;
  if (symbols.less(bound, low) == true)
    return low;
  return symbols.less(high, bound) == true ? high : bound;
}

void slice(NodeContext &n) {
  const Value &x = n.in(0);
  std::vector<Expr> starts, ends;
  std::vector<int64_t> axes, steps;
  auto fromAttr = [&](StringRef name, std::vector<Expr> &list) {
    for (int64_t value : n.intsAttr(name).value_or(std::vector<int64_t>()))
      list.push_back(value);
  };
  if (n.has(1)) {
    starts = n.exprs(1, "the start of a slice");
    ends = n.exprs(2, "the end of a slice");
  } else {
    fromAttr("starts", starts);
    fromAttr("ends", ends);
  }
  if (n.has(4))
    steps = n.constants(4, "the step of a slice");
  if (std::optional<std::vector<int64_t>> given = n.axesFrom("axes", 3, x.rank()))
    axes = *given;
  else
    for (size_t dim = 0; dim < starts.size(); ++dim)
      axes.push_back(dim);
  if (n.b.failed() || !n.unsupportedWhy.empty())
    return;
  if (steps.empty())
    steps.assign(starts.size(), 1);
  if (starts.size() != ends.size() || starts.size() != axes.size() || starts.size() != steps.size() ||
      static_cast<int64_t>(axes.size()) > x.rank())
    return n.b.fail("starts, ends, axes and steps of a slice differ in length");
  SmallVector<Expr> offsets(x.rank(), Expr(0));
  SmallVector<int64_t> strides(x.rank(), 1);
  Shape sizes = x.shape;
  for (auto [start, end, axis, step] : zip(starts, ends, axes, steps)) {
    if (step == 0 || step == INT64_MIN)
      return n.b.fail("a slice has the step " + Twine(step));
    const Expr &size = x.shape[axis];
    SymbolTable &symbols = n.b.symbols;
    Expr begin, stop;
    if (step > 0) {
      begin = clampBound(symbols, start, size, 0, size);
      stop = clampBound(symbols, end, size, 0, size);
    } else {
      begin = clampBound(symbols, start, size, 0, size - 1);
      // INT64_MIN and -size - 1 mean "to the front".
      stop = clampBound(symbols, end, size, -1, size - 1);
    }
    Expr length = symbols.ceilDiv(step > 0 ? stop - begin : begin - stop, Expr(step > 0 ? step : -step));
    if (symbols.sign(length) == Sign::Negative)
      length = 0;
    if (!length.isValid())
      return n.b.fail("a slice has a length that is too large");
    if (length.is(0))
      begin = 0;
    offsets[axis] = begin;
    strides[axis] = step;
    sizes[axis] = length;
  }
  n.out(0, n.b.slice(n.plain(x), offsets, strides, sizes));
}

void split(NodeContext &n) {
  Value x = n.plain(0);
  int64_t axis = n.axis(n.intAttr("axis", 0), x.rank());
  std::vector<Expr> sizes;
  if (n.has(1))
    sizes = n.exprs(1, "the sizes of a split");
  else
    for (int64_t size : n.intsAttr("split").value_or(std::vector<int64_t>()))
      sizes.push_back(size);
  if (n.b.failed() || !n.unsupportedWhy.empty() || x.rank() == 0)
    return;
  int64_t parts = n.node.outputs.size();
  if (sizes.empty()) {
    int64_t count = n.intAttr("num_outputs", parts);
    if (count != parts)
      return n.b.fail("num_outputs is " + Twine(count) + " where the node has " + Twine(parts) + " outputs");
    // Equal parts, the last one smaller where they do not come out even.
    Expr each = n.b.symbols.ceilDiv(x.shape[axis], count);
    sizes.assign(parts, each);
    if (parts)
      sizes.back() = x.shape[axis] - each * Expr(parts - 1);
  }
  if (static_cast<int64_t>(sizes.size()) != parts)
    return n.b.fail("a split has " + Twine(sizes.size()) + " sizes for " + Twine(parts) + " outputs");
  Expr offset = 0;
  for (auto [index, size] : enumerate(sizes)) {
    if (n.b.symbols.sign(size) == Sign::Negative)
      return n.b.fail("a split has a part of " + n.b.symbols.str(size));
    n.out(index, n.b.sliceAxis(x, axis, offset, offset + size));
    offset = offset + size;
  }
  if (n.b.symbols.equal(offset, x.shape[axis]) == false)
    n.b.fail("the parts of a split have " + n.b.symbols.str(offset) + " elements together, the dimension has " +
             n.b.symbols.str(x.shape[axis]));
}

void concat(NodeContext &n) {
  std::vector<Value> values;
  for (size_t i = 0; i < n.numInputs(); ++i)
    values.push_back(n.plain(i));
  if (n.b.failed() || values.empty())
    return n.b.fail("a concatenation has no operands");
  n.out(0, n.b.concat(values, n.axis(n.intAttr("axis", 1), values.front().rank())));
}

void pad(NodeContext &n) {
  Value x = n.plain(0);
  if (n.stringAttr("mode", "constant") != "constant")
    return n.unsupported("padding in mode '" + n.stringAttr("mode", "") + "'", "constant padding is supported");
  std::vector<Expr> pads;
  if (n.has(1))
    pads = n.exprs(1, "the padding");
  else
    for (int64_t size : n.intsAttr("pads").value_or(std::vector<int64_t>()))
      pads.push_back(size);
  std::vector<int64_t> axes;
  if (n.has(3))
    axes = n.axes(n.constants(3, "the axes of a padding"), x.rank());
  else
    for (int64_t dim = 0; dim < x.rank(); ++dim)
      axes.push_back(dim);
  if (n.b.failed() || !n.unsupportedWhy.empty())
    return;
  if (pads.size() != 2 * axes.size())
    return n.b.fail("expected " + Twine(2 * axes.size()) + " paddings, not " + Twine(pads.size()));
  Value fill = n.has(2) ? n.b.reshape(n.plain(2), {}) : n.b.number(x, n.floatAttr("value", 0));
  for (size_t index = 0; index < axes.size(); ++index) {
    int64_t axis = axes[index];
    auto block = [&](const Expr &size) {
      Shape shape = x.shape;
      shape[axis] = size;
      return n.b.broadcast(fill, shape);
    };
    const Expr &before = pads[index], &after = pads[axes.size() + index];
    if (n.b.symbols.sign(before) == Sign::Negative || n.b.symbols.sign(after) == Sign::Negative)
      return n.unsupported("negative padding", "a Slice does the same");
    std::vector<Value> parts;
    if (!before.is(0))
      parts.push_back(block(before));
    parts.push_back(x);
    if (!after.is(0))
      parts.push_back(block(after));
    x = n.b.concat(parts, axis);
    if (n.b.failed())
      return;
  }
  n.out(0, x);
}

//===----------------------------------------------------------------------===//
// Constants and ranges
//===----------------------------------------------------------------------===//

/// A tensor attribute: known where it is small and no weight, else as an initializer.
Value fromTensor(NodeContext &n, const Tensor &tensor) {
  Expected<StringRef> bytes = n.data.bytes(tensor);
  if (!bytes) {
    n.b.fail(toString(bytes.takeError()));
    return {};
  }
  if (n.parameters.refuseEmpty(tensor))
    return {};
  Value value;
  value.type = tensor.type;
  value.shape.assign(tensor.dims.begin(), tensor.dims.end());
  if (tensor.count() <= TensorBuilder::maxKnown && !n.parameters.mayBeParameter(tensor))
    return n.b.fromKnown(tensor.type, value.shape, decode(tensor.type, *bytes, tensor.count()));
  value.initializer = &tensor;
  value.name = n.node.outputs.front();
  return value;
}

void constant(NodeContext &n) {
  const Node &node = n.node;
  auto vector = [&](ElemType type, Known known, size_t count) {
    n.out(0, n.b.fromKnown(type, {Expr(count)}, std::move(known)));
  };
  if (const Attribute *attribute = node.attribute("value"); attribute && attribute->t)
    return n.out(0, fromTensor(n, *attribute->t));
  if (const Attribute *attribute = node.attribute("value_int"))
    return n.out(0, n.b.scalarInt(attribute->i));
  if (const Attribute *attribute = node.attribute("value_float"))
    return n.out(0, n.b.scalar(ElemType::Float, attribute->f));
  Known known;
  if (const Attribute *attribute = node.attribute("value_ints")) {
    known.ints.assign(attribute->ints.begin(), attribute->ints.end());
    return vector(ElemType::Int64, known, attribute->ints.size());
  }
  // Of a function's call; others are tensors by now.
  if (const Attribute *attribute = node.attribute("value_floats")) {
    known.floats.assign(attribute->floats.begin(), attribute->floats.end());
    return vector(ElemType::Float, known, attribute->floats.size());
  }
  n.unsupported("a constant that is sparse or a string", "dense numeric constants are supported");
}

void constantOfShape(NodeContext &n) {
  std::vector<Expr> shape = n.exprs(0, "the target shape");
  if (n.b.failed() || !n.unsupportedWhy.empty())
    return;
  for (const Expr &size : shape)
    if (n.b.symbols.sign(size) == Sign::Negative)
      return n.b.fail("a target shape has the size " + n.b.symbols.str(size));
  Value value = n.b.scalar(ElemType::Float, 0);
  if (const Attribute *attribute = n.node.attribute("value"); attribute && attribute->t) {
    value = n.plain(fromTensor(n, *attribute->t));
    if (n.b.failed())
      return;
    if (!n.b.count(value.shape).is(1))
      return n.b.fail("a fill value has " + n.b.symbols.str(n.b.count(value.shape)) + " elements, expected one");
    value = n.b.reshape(value, {});
  }
  n.out(0, n.b.broadcast(value, shape));
}

void range(NodeContext &n) {
  const Value &start = n.in(0), &limit = n.in(1), &delta = n.in(2);
  if (n.b.failed())
    return;
  ElemType type = start.type;
  std::optional<double> step = delta.splat();
  if (!step || *step == 0)
    return n.unsupported("a range whose step is not a constant");
  if (!start.known || !limit.known)
    return n.unsupported("a range whose bounds depend on data", "fix an input with --input");
  if (isFloat(type)) {
    std::optional<double> first = start.splat(), last = limit.splat();
    if (first && last) {
      double count = std::max(0.0, std::ceil((*last - *first) / *step));
      if (!(count <= TensorBuilder::maxKnown))
        return n.unsupported("a float range of " + Twine(static_cast<int64_t>(std::min(count, 1e15))) + " elements",
                             "an integer range with a Cast has any length");
      Known known;
      for (int64_t i = 0; i < count; ++i)
        known.floats.push_back(roundTo(type, *first + i * *step));
      return n.out(0, n.b.fromKnown(type, {Expr(static_cast<int64_t>(count))}, std::move(known)));
    }
    return n.unsupported("a float range whose bounds are not constants");
  }
  Expr first = start.intAt(0), last = limit.intAt(0), length;
  int64_t by = static_cast<int64_t>(*step);
  length = n.b.symbols.ceilDiv(by > 0 ? last - first : first - last, Expr(by > 0 ? by : -by));
  if (n.b.symbols.sign(length) == Sign::Negative)
    length = 0;
  if (length.isConstant() && *length.constant() <= TensorBuilder::maxKnown) {
    Known known;
    for (int64_t i = 0; i < *length.constant(); ++i)
      known.ints.push_back(first + Expr(i) * Expr(by));
    return n.out(0, n.b.fromKnown(type, {length}, std::move(known)));
  }
  n.out(0, n.b.iota(type, {length}, 0, first, by));
}

} // namespace

void addShapeOperators(OperatorTable &table) {
  table.add("", "Shape", shape);
  table.add("", "Size", size);
  table.add("", "Reshape", reshape);
  table.add("", "Flatten", flatten);
  table.add("", "Squeeze", squeeze);
  table.add("", "Unsqueeze", unsqueeze);
  table.add("", "Transpose", transpose);
  table.add("", "Expand", expand);
  table.add("", "Tile", tile);
  table.add("", "Slice", slice);
  table.add("", "Split", split);
  table.add("", "Concat", concat);
  table.add("", "Pad", pad);
  table.add("", "Constant", constant);
  table.add("", "ConstantOfShape", constantOfShape);
  table.add("", "Range", range);
}

} // namespace drover::onnx
