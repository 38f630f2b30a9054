//===- Distribution.cpp - how a grid of ranks holds a tensor ----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Dialect/Tfm/IR/Distribution.h"

using namespace mlir;
using namespace drover::tfm;

//===----------------------------------------------------------------------===//
// Axes and types of reductions
//===----------------------------------------------------------------------===//

StringRef drover::tfm::name(Axis axis) {
  static constexpr StringRef names[] = {"tp", "kv", "replica", "cp", "dp"};
  return names[static_cast<unsigned>(axis)];
}

std::optional<Axis> drover::tfm::parseAxis(StringRef word) {
  for (Axis axis : kAxes)
    if (word == name(axis))
      return axis;
  return std::nullopt;
}

StringRef drover::tfm::name(Reduction reduction) { return reduction == Reduction::Sum ? "sum" : "max"; }

StringRef drover::tfm::name(ReductionType type) {
  static constexpr StringRef names[] = {"f32", "bf16", "f64", "i64"};
  return names[static_cast<unsigned>(type)];
}

std::optional<ReductionType> drover::tfm::reductionTypeOf(Type type) {
  if (type.isF32())
    return ReductionType::F32;
  if (type.isBF16())
    return ReductionType::BF16;
  if (type.isF64())
    return ReductionType::F64;
  if (type.isInteger(64))
    return ReductionType::I64;
  return std::nullopt;
}

Type drover::tfm::elementTypeOf(ReductionType type, MLIRContext *context) {
  switch (type) {
  case ReductionType::F32:
    return Float32Type::get(context);
  case ReductionType::BF16:
    return BFloat16Type::get(context);
  case ReductionType::F64:
    return Float64Type::get(context);
  case ReductionType::I64:
    return IntegerType::get(context, 64);
  }
  llvm_unreachable("unknown reduction type");
}

unsigned drover::tfm::bitWidth(ReductionType type) {
  static constexpr unsigned widths[] = {32, 16, 64, 64};
  return widths[static_cast<unsigned>(type)];
}

//===----------------------------------------------------------------------===//
// Grid
//===----------------------------------------------------------------------===//

Grid::Grid(DictionaryAttr attr) : Grid() {
  if (!attr)
    return;
  for (NamedAttribute entry : attr)
    if (std::optional<Axis> axis = parseAxis(entry.getName()))
      if (auto size = dyn_cast<IntegerAttr>(entry.getValue()))
        setSize(*axis, size.getInt());
  split = attr.contains(name(Axis::Kv));
}

Grid drover::tfm::gridOf(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto attr = op->getAttrOfType<DictionaryAttr>(TfmDialect::kGridAttr))
      return Grid(attr);
  return Grid();
}

int64_t Grid::product(ArrayRef<Axis> axes) const {
  int64_t result = 1;
  for (Axis axis : axes)
    result *= size(axis);
  return result;
}

SmallVector<Axis, 2> Grid::tensorAxes() const {
  SmallVector<Axis, 2> result;
  for (Axis axis : {Axis::Tp, Axis::Kv, Axis::Replica})
    if (size(axis) > 1 && !(split && axis == Axis::Tp)) // then tp is kv and replica together
      result.push_back(axis);
  return result;
}

SmallVector<Axis, 4> Grid::axes() const {
  if (split)
    return {Axis::Kv, Axis::Replica, Axis::Cp, Axis::Dp};
  return {Axis::Tp, Axis::Cp, Axis::Dp};
}

DictionaryAttr Grid::getAttr(MLIRContext *context) const {
  Builder builder(context);
  SmallVector<NamedAttribute> entries;
  auto add = [&](Axis axis, int64_t size) {
    entries.push_back(builder.getNamedAttr(name(axis), builder.getI64IntegerAttr(size)));
  };
  add(Axis::Tp, split ? size(Axis::Kv) * size(Axis::Replica) : size(Axis::Tp));
  add(Axis::Cp, size(Axis::Cp));
  add(Axis::Dp, size(Axis::Dp));
  if (split) {
    add(Axis::Kv, size(Axis::Kv));
    add(Axis::Replica, size(Axis::Replica));
  }
  return builder.getDictionaryAttr(entries);
}

std::array<int64_t, kNumAxes> Grid::coordinates(int64_t rank) const {
  std::array<int64_t, kNumAxes> result;
  result.fill(0);
  // tp = kv * replicas + replica is innermost, as in the plan's order.
  for (Axis axis : {Axis::Tp, Axis::Replica, Axis::Kv, Axis::Cp, Axis::Dp}) {
    if (axis == Axis::Tp && split)
      continue;
    result[static_cast<unsigned>(axis)] = rank % size(axis);
    rank /= size(axis);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Distribution
//===----------------------------------------------------------------------===//

Distribution::Distribution(DistAttr attr) {
  if (!attr)
    return;
  llvm::copy(attr.getStates(), states.begin());
  layouts.assign(attr.getLayouts().begin(), attr.getLayouts().end());
}

Distribution Distribution::of(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return Distribution(tensor ? dyn_cast_or_null<DistAttr>(tensor.getEncoding()) : DistAttr());
}

SmallVector<Axis, 4> Distribution::axesOf(unsigned dim) const {
  SmallVector<Axis, 4> result;
  for (Axis axis : kNestingOrder)
    if ((*this)[axis].isSharded() && (*this)[axis].dim == dim)
      result.push_back(axis);
  return result;
}

SmallVector<Axis, 4> Distribution::partialAxes() const {
  SmallVector<Axis, 4> result;
  for (Axis axis : kAxes)
    if ((*this)[axis].isPartial())
      result.push_back(axis);
  return result;
}

bool Distribution::isReplicated() const {
  return llvm::all_of(states, [](const AxisState &state) { return state == AxisState(); });
}

bool Distribution::removeSuffix(unsigned dim, ArrayRef<Axis> axes) {
  SmallVector<Axis, 4> all = axesOf(dim);
  if (axes.empty() || all.size() < axes.size() || ArrayRef<Axis>(all).take_back(axes.size()) != axes)
    return false;
  for (Axis axis : axes)
    (*this)[axis] = AxisState();
  return true;
}

bool Distribution::append(unsigned dim, ArrayRef<Axis> axes, bool twoChunk) {
  if (axes.empty())
    return false;
  for (Axis axis : axes) {
    if ((*this)[axis] != AxisState())
      return false;
    (*this)[axis] = AxisState::sharded(dim, twoChunk && axis == Axis::Cp);
  }
  return ArrayRef<Axis>(axesOf(dim)).take_back(axes.size()) == axes;
}

SegmentsAttr Distribution::layoutOf(unsigned dim) const {
  for (const DimLayout &layout : layouts)
    if (layout.dim == dim)
      return cast<SegmentsAttr>(layout.segments);
  return {};
}

void Distribution::setLayout(unsigned dim, SegmentsAttr segments) {
  llvm::erase_if(layouts, [&](const DimLayout &layout) { return layout.dim == dim; });
  if (!segments)
    return;
  layouts.insert(llvm::find_if(layouts, [&](const DimLayout &layout) { return layout.dim > dim; }), {dim, segments});
}

bool Distribution::sameLayouts(const Distribution &other) const { return ArrayRef(layouts) == ArrayRef(other.layouts); }

DistAttr Distribution::getAttr(MLIRContext *context) const {
  if (isReplicated() && layouts.empty())
    return {};
  return DistAttr::get(context, states, layouts);
}

RankedTensorType Distribution::encode(RankedTensorType type) const {
  return RankedTensorType::get(type.getShape(), type.getElementType(), getAttr(type.getContext()));
}

int64_t Distribution::localSize(unsigned dim, int64_t size, const Grid &grid) const {
  SmallVector<Axis, 4> axes = axesOf(dim);
  llvm::erase(axes, Axis::Dp);
  SegmentsAttr layout = layoutOf(dim);
  return (layout ? layout.paddedSize() : size) / grid.product(axes);
}

int64_t Distribution::globalSize(unsigned dim, int64_t size, const Grid &grid) const {
  if (SegmentsAttr layout = layoutOf(dim))
    return layout.validSize();
  return size * grid.product(axesOf(dim));
}

/// The place in a dimension of a rank's element `index` of `size` before `axis` cut it.
static int64_t indexBefore(int64_t index, int64_t size, const AxisState &state, int64_t ranks, int64_t coordinate) {
  if (!state.twoChunk)
    return coordinate * size + index;
  int64_t chunk = size / 2;
  return index < chunk ? coordinate * chunk + index : (2 * ranks - 1 - coordinate) * chunk + index - chunk;
}

SmallVector<int64_t> drover::tfm::globalIndices(const Distribution &distribution, unsigned dim, int64_t size,
                                                const Grid &grid, const std::array<int64_t, kNumAxes> &coordinates) {
  SmallVector<Axis, 4> axes = distribution.axesOf(dim);
  SmallVector<int64_t> result;
  if (SegmentsAttr layout = distribution.layoutOf(dim)) {
    int64_t rank = 0, first = 0;
    for (Axis axis : axes)
      rank = rank * grid.size(axis) + coordinates[static_cast<unsigned>(axis)];
    for (const PaddedSegment &segment : layout.getSegments()) {
      int64_t share = segment.paddedSize() / grid.product(axes);
      for (int64_t element = rank * share; element < (rank + 1) * share; ++element) {
        int64_t group = element / segment.padded, inner = element % segment.padded;
        bool isValid = group < segment.groups && inner < segment.valid;
        result.push_back(isValid ? first + group * segment.valid + inner : -1);
      }
      first += segment.validSize();
    }
    return result;
  }
  for (int64_t element = 0; element < size; ++element) {
    int64_t index = element, extent = size;
    for (Axis axis : llvm::reverse(axes)) {
      index = indexBefore(index, extent, distribution[axis], grid.size(axis), coordinates[static_cast<unsigned>(axis)]);
      extent *= grid.size(axis);
    }
    result.push_back(index);
  }
  return result;
}
