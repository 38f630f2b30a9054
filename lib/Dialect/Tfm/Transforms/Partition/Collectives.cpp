//===- Collectives.cpp - from one distribution to another -------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Collectives.h"
#include "../TransformUtils.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"

using namespace mlir;

namespace drover::tfm {

/// Axes that are reduced or gathered by one collective, in the order in which they are discharged: CP first, since a
/// scatter over it leaves less to the others.
static SmallVector<SmallVector<Axis, 4>> groupsOf(const Grid &grid) {
  SmallVector<Axis, 4> tensor;
  llvm::append_range(tensor, grid.tensorAxes());
  return {{Axis::Cp}, {Axis::Dp}, tensor};
}

Value Collectives::build(Location loc, Kind kind, ArrayRef<Axis> axes, unsigned dim, Value value) {
  std::vector<int> key;
  for (Axis axis : axes)
    key.push_back(static_cast<int>(axis));
  Value &entry = cache[{value.getAsOpaquePointer(), static_cast<int>(kind), key, dim}];
  if (!entry)
    entry = create(loc, kind, axes, dim, value);
  return entry;
}

Value Collectives::create(Location loc, Kind kind, ArrayRef<Axis> axes, unsigned dim, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Distribution distribution = Distribution::of(type);
  SmallVector<int64_t> shape(type.getShape());
  bool twoChunk = axes == ArrayRef<Axis>(Axis::Cp) && kind != Kind::AllReduce &&
                  (kind != Kind::AllGather || distribution[Axis::Cp].twoChunk);
  shard::ReductionKind reduction = shard::ReductionKind::Sum;
  if (kind == Kind::AllReduce || kind == Kind::ReduceScatter) {
    if (distribution[axes.front()].reduction == Reduction::Max)
      reduction = shard::ReductionKind::Max;
    for (Axis axis : axes)
      distribution[axis] = AxisState();
  }
  if (kind == Kind::AllGather) {
    distribution.removeSuffix(dim, axes);
    shape[dim] *= grid.product(axes);
  }
  if (kind == Kind::ReduceScatter || kind == Kind::AllSlice) {
    distribution.append(dim, axes, twoChunk);
    shape[dim] /= grid.product(axes);
  }
  auto resultType = distribution.encode(RankedTensorType::get(shape, type.getElementType()));
  SmallVector<Axis, 4> all = grid.axes();
  SmallVector<int16_t> gridAxes;
  for (Axis axis : axes)
    gridAxes.push_back(llvm::find(all, axis) - all.begin());
  auto gridName = FlatSymbolRefAttr::get(builder.getContext(), kGridSymbol);
  auto axesAttr = builder.getDenseI16ArrayAttr(gridAxes);
  auto reductionAttr = shard::ReductionKindAttr::get(builder.getContext(), reduction);
  IntegerAttr dimAttr = builder.getIndexAttr(dim);
  Operation *op = nullptr;
  switch (kind) {
  case Kind::AllGather:
    op = shard::AllGatherOp::create(builder, loc, resultType, gridName, axesAttr, value, dimAttr);
    break;
  case Kind::AllReduce:
    op = shard::AllReduceOp::create(builder, loc, resultType, gridName, axesAttr, value, reductionAttr);
    break;
  case Kind::ReduceScatter:
    op = shard::ReduceScatterOp::create(builder, loc, resultType, gridName, axesAttr, value, reductionAttr, dimAttr);
    break;
  case Kind::AllSlice:
    op = shard::AllSliceOp::create(builder, loc, resultType, gridName, axesAttr, value, dimAttr);
    break;
  }
  if (kind == Kind::AllReduce || kind == Kind::ReduceScatter)
    op->setAttr(TfmDialect::kReductionAttr, builder.getI64IntegerAttr(nextReduction++));
  if (twoChunk)
    op->setAttr(TfmDialect::kTwoChunkAttr, builder.getUnitAttr());
  return op->getResult(0);
}

/// Discharges the partial states of `axes` in their type: by a scatter where the target shards a dimension over exactly
/// these, inside what it has.
Value Collectives::reduce(Location loc, ArrayRef<Axis> axes, const Distribution &target, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Distribution distribution = Distribution::of(type);
  Type elementType = type.getElementType();
  Type reduced = elementTypeOf(distribution[axes.front()].type, builder.getContext());
  auto castCached = [&](Value from, Type to) {
    if (getElementTypeOrSelf(from.getType()) == to)
      return from;
    Value &entry = casts[{from.getAsOpaquePointer(), const_cast<void *>(to.getAsOpaquePointer())}];
    if (!entry)
      entry = castTo(builder, loc, from, to);
    return entry;
  };
  value = castCached(value, reduced);
  std::optional<unsigned> scatter;
  for (unsigned dim = 0; dim < static_cast<unsigned>(type.getRank()); ++dim) {
    SmallVector<Axis, 4> wanted = distribution.axesOf(dim);
    llvm::append_range(wanted, axes);
    if (ArrayRef<Axis>(target.axesOf(dim)).take_front(wanted.size()) == ArrayRef<Axis>(wanted) &&
        type.getDimSize(dim) % grid.product(axes) == 0 && distribution[axes.front()].reduction == Reduction::Sum)
      scatter = dim;
  }
  value =
      scatter ? build(loc, Kind::ReduceScatter, axes, *scatter, value) : build(loc, Kind::AllReduce, axes, 0, value);
  return castCached(value, elementType);
}

/// A gathered dimension has its padding still: contiguous padding at its end is cut off.
Value Collectives::dropPadding(Location loc, unsigned dim, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Distribution distribution = Distribution::of(type);
  SegmentsAttr layout = distribution.layoutOf(dim);
  if (!layout || layout.getSegments().size() != 1 || !distribution.axesOf(dim).empty())
    return value;
  PaddedSegment segment = layout.getSegments().front();
  if (segment.valid != segment.padded && segment.groups > 1)
    return value;
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = segment.validSize();
  Distribution result = distribution;
  result.setLayout(dim, {});
  SmallVector<int64_t> offsets(shape.size(), 0), strides(shape.size(), 1);
  return SliceOp::create(builder, loc, result.encode(RankedTensorType::get(shape, type.getElementType())), value,
                         builder.getDenseI64ArrayAttr(offsets), builder.getDenseI64ArrayAttr(strides),
                         /*offset_map=*/AffineMapAttr(), /*shape=*/AffineMapAttr());
}

/// Splits dimension `dim` of n elements in [1, n], of which the first is cut over dp if `isCut`.
static Value splitBatch(OpBuilder &builder, Location loc, unsigned dim, bool isCut, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Distribution distribution = Distribution::of(type), result;
  for (Axis axis : kAxes) {
    result[axis] = distribution[axis];
    if (result[axis].isSharded() && (result[axis].dim > dim || (result[axis].dim == dim && axis != Axis::Dp)))
      ++result[axis].dim;
  }
  for (unsigned from = 0; from < static_cast<unsigned>(type.getRank()); ++from)
    result.setLayout(from < dim ? from : from + 1, distribution.layoutOf(from));
  if (isCut)
    result[Axis::Dp] = AxisState::sharded(dim);
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + dim, 1);
  return ReshapeOp::create(builder, loc, result.encode(RankedTensorType::get(shape, type.getElementType())), value,
                           /*shape=*/AffineMapAttr());
}

Value Collectives::repeatOverDp(Location loc, unsigned dim, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Distribution distribution = Distribution::of(type);
  distribution[Axis::Dp] = AxisState::sharded(dim);
  RankedTensorType repeated = distribution.encode(type);
  bool isOne = type.getDimSize(dim) == 1;
  if (!isOne)
    value = splitBatch(builder, loc, dim, /*isCut=*/false, value);
  auto splitType = cast<RankedTensorType>(value.getType());
  Distribution split = Distribution::of(splitType);
  split[Axis::Dp] = AxisState::sharded(dim);
  value = BroadcastOp::create(builder, loc, split.encode(splitType), value, /*shape=*/AffineMapAttr());
  return isOne ? value : ReshapeOp::create(builder, loc, repeated, value, /*shape=*/AffineMapAttr());
}

Value Collectives::sumOverDp(Location loc, Value value) {
  unsigned dim = Distribution::of(value)[Axis::Dp].dim;
  value = splitBatch(builder, loc, dim, /*isCut=*/true, castTo(builder, loc, value, builder.getF32Type()));
  auto type = cast<RankedTensorType>(value.getType());
  Distribution distribution = Distribution::of(type), result;
  for (Axis axis : kAxes) {
    result[axis] = distribution[axis];
    if (result[axis].isSharded() && result[axis].dim > dim)
      --result[axis].dim;
  }
  for (unsigned from = 0; from < static_cast<unsigned>(type.getRank()); ++from)
    if (from != dim)
      result.setLayout(from < dim ? from : from - 1, distribution.layoutOf(from));
  result[Axis::Dp] = AxisState::partial(Reduction::Sum, ReductionType::F32);
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + dim);
  return ReduceOp::create(builder, loc, result.encode(RankedTensorType::get(shape, builder.getF32Type())), value,
                          ReduceKind::Sum, /*axes=*/ArrayRef<int64_t>{dim}, /*keep=*/false);
}

FailureOr<Value> Collectives::resolve(Location loc, Value value, const Distribution &target, std::string &reason) {
  auto current = [&] { return Distribution::of(value); };
  for (const SmallVector<Axis, 4> &group : groupsOf(grid)) {
    SmallVector<Axis, 4> pending;
    for (Axis axis : group)
      if (current()[axis].isPartial() && !target[axis].isPartial())
        pending.push_back(axis);
    if (!pending.empty())
      value = reduce(loc, pending, target, value);
  }
  unsigned rank = cast<RankedTensorType>(value.getType()).getRank();
  SmallVector<SmallVector<Axis, 4>> groups = groupsOf(grid);
  for (unsigned dim = 0; dim < rank; ++dim) {
    SmallVector<Axis, 4> has = current().axesOf(dim), wanted = target.axesOf(dim);
    // A dp rank's batch is its own, of the size that the program has: bodies do not communicate over dp. Of what is the
    // same on all of them each takes its own.
    bool isBatch = llvm::is_contained(has, Axis::Dp), wantsBatch = llvm::is_contained(wanted, Axis::Dp);
    if (!isBatch && wantsBatch && has.empty()) {
      value = repeatOverDp(loc, dim, value);
      has = current().axesOf(dim);
    } else if (isBatch != wantsBatch) {
      reason = ("dimension " + Twine(dim) + " is the batch of a dp rank in one of its values and not in another; " +
                "accepted with dp 1")
                   .str();
      return failure();
    }
    size_t common = 0;
    while (common < has.size() && common < wanted.size() && has[common] == wanted[common])
      ++common;
    // Group by group, innermost first: a collective has one communicator.
    for (const SmallVector<Axis, 4> &group : llvm::reverse(groups)) {
      SmallVector<Axis, 4> gathered;
      for (Axis axis : ArrayRef(has).drop_front(common))
        if (llvm::is_contained(group, axis))
          gathered.push_back(axis);
      if (gathered.empty())
        continue;
      if (SegmentsAttr layout = current().layoutOf(dim); layout && layout.getSegments().size() > 1) {
        reason = ("cannot gather dimension " + Twine(dim) + " of segments " + str(layout.getSegments())).str();
        return failure();
      }
      value = build(loc, Kind::AllGather, gathered, dim, value);
      if (target.axesOf(dim).empty() && !target.layoutOf(dim))
        value = dropPadding(loc, dim, value);
    }
  }
  for (unsigned dim = 0; dim < rank; ++dim)
    for (const SmallVector<Axis, 4> &group : groups) {
      SmallVector<Axis, 4> sliced;
      for (Axis axis : target.axesOf(dim))
        if (llvm::is_contained(group, axis) && !llvm::is_contained(current().axesOf(dim), axis))
          sliced.push_back(axis);
      if (sliced.empty())
        continue;
      int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(dim), ranks = grid.product(sliced);
      // CP's two chunks are cut in half.
      int64_t parts = sliced.front() == Axis::Cp ? 2 * ranks : ranks;
      if (size % parts) {
        reason = ("cannot cut dimension " + Twine(dim) + " of size " + Twine(size) + " into " + Twine(parts)).str();
        return failure();
      }
      value = build(loc, Kind::AllSlice, sliced, dim, value);
    }
  if (current() != target) {
    reason = "cannot turn " + current().str() + " into " + target.str();
    return failure();
  }
  return value;
}

} // namespace drover::tfm
