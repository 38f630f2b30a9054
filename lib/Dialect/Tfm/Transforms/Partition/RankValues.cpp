//===- RankValues.cpp - values that differ from rank to rank ----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Places of a rank's elements, and what follows from them: zeros in padding, and what one rank alone counts.
#include "../TransformUtils.h"
#include "BodyPartitioner.h"

using namespace mlir;

namespace drover::tfm {

Value BodyPartitioner::shardOffset(ArrayRef<Axis> axes, int64_t size) {
  Distribution distribution;
  SmallVector<StringRef> names;
  for (Axis axis : axes) {
    distribution[axis] = AxisState::varying();
    names.push_back(name(axis));
  }
  auto type = distribution.encode(RankedTensorType::get({}, builder.getI64Type()));
  return ShardOffsetOp::create(builder, body.getLoc(), type, builder.getStrArrayAttr(names),
                               builder.getI64IntegerAttr(size));
}

Value BodyPartitioner::globalIndex(const Distribution &distribution, unsigned dim, int64_t size) {
  Distribution own;
  SmallVector<StringRef> names;
  for (Axis axis : distribution.axesOf(dim)) {
    own[axis] = AxisState::sharded(0, distribution[axis].twoChunk);
    names.push_back(name(axis));
  }
  DenseI64ArrayAttr segments;
  if (SegmentsAttr layout = distribution.layoutOf(dim)) {
    own.setLayout(0, layout);
    SmallVector<int64_t> numbers;
    for (const PaddedSegment &segment : layout.getSegments())
      numbers.append({segment.groups, segment.valid, segment.padded, segment.total});
    segments = builder.getDenseI64ArrayAttr(numbers);
  }
  auto type = own.encode(RankedTensorType::get({size}, builder.getI64Type()));
  Value &entry = masks[{const_cast<void *>(type.getAsOpaquePointer()), nullptr}];
  if (!entry)
    entry = GlobalIndexOp::create(builder, body.getLoc(), type, builder.getStrArrayAttr(names), segments,
                                  own[Axis::Cp].twoChunk ? builder.getUnitAttr() : UnitAttr());
  return entry;
}

/// Sets the padding of a value to zero.
Value BodyPartitioner::maskPadding(Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Distribution distribution = Distribution::of(type);
  for (unsigned dim = 0; dim < static_cast<unsigned>(type.getRank()); ++dim) {
    SegmentsAttr layout = distribution.layoutOf(dim);
    if (!layout || !layout.isPadded())
      continue;
    Value index = globalIndex(distribution, dim, type.getDimSize(dim));
    auto indexType = cast<RankedTensorType>(index.getType());
    Value zero =
        arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(indexType, builder.getI64IntegerAttr(0)));
    Value isValid = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, index, zero);
    // Beside the dimension's own axes those of the others, on which the mask is the same.
    Distribution row;
    for (Axis axis : distribution.axesOf(dim))
      row[axis] = distribution[axis];
    row.setLayout(dim, layout);
    SmallVector<int64_t> shape(type.getRank(), 1);
    shape[dim] = type.getDimSize(dim);
    Type bit = builder.getI1Type();
    if (type.getRank() > 1)
      isValid = ReshapeOp::create(builder, loc, row.encode(RankedTensorType::get(shape, bit)), isValid,
                                  /*shape=*/AffineMapAttr());
    Distribution full = distribution;
    for (Axis axis : kAxes)
      if (full[axis].isPartial())
        full[axis] = AxisState();
    RankedTensorType maskType = full.encode(RankedTensorType::get(type.getShape(), bit));
    if (isValid.getType() != maskType)
      isValid = BroadcastOp::create(builder, loc, maskType, isValid, /*shape=*/AffineMapAttr());
    Value zeros = arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(type)));
    value = arith::SelectOp::create(builder, loc, isValid, value, zeros);
  }
  return value;
}

/// Element by element: `arith.mulf` has operands of one type, a matrix product passes on what is partial.
Value BodyPartitioner::product(Location loc, Value pending, Value factor) {
  auto type = cast<RankedTensorType>(pending.getType());
  SmallVector<int64_t> ones(type.getShape());
  ones.append({1, 1});
  auto asMatrices = [&](Value value) -> Value {
    RankedTensorType matrices = Distribution::of(value).encode(RankedTensorType::get(ones, type.getElementType()));
    return ReshapeOp::create(builder, loc, matrices, value, /*shape=*/AffineMapAttr());
  };
  Value lhs = asMatrices(pending), rhs = asMatrices(factor);
  Value result = MatmulOp::create(builder, loc, cast<RankedTensorType>(lhs.getType()), lhs, rhs,
                                  /*transpose_lhs=*/false, /*transpose_rhs=*/false);
  return ReshapeOp::create(builder, loc, type, result, /*shape=*/AffineMapAttr());
}

/// What is whole on each rank of an axis, as a sum over it in f32: the first rank's value and zeros. One times it,
/// where that one is such a sum: products pass on what is partial.
Value BodyPartitioner::onFirstRank(Location loc, Value value, Axis axis) {
  value = castTo(builder, loc, value, builder.getF32Type());
  auto type = cast<RankedTensorType>(value.getType());
  Distribution part, sum;
  part[axis] = AxisState::sharded(0);
  sum[axis] = AxisState::partial(Reduction::Sum, ReductionType::F32);
  Value index = globalIndex(part, 0, /*size=*/1);
  auto indexType = cast<RankedTensorType>(index.getType());
  RankedTensorType partType = part.encode(RankedTensorType::get({1}, builder.getF32Type()));
  auto splat = [&](RankedTensorType type, Attribute value) -> Value {
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, value));
  };
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, index,
                                        splat(indexType, builder.getI64IntegerAttr(0)));
  Value one = arith::SelectOp::create(builder, loc, isFirst, splat(partType, builder.getF32FloatAttr(1)),
                                      splat(partType, builder.getF32FloatAttr(0)));
  one = ReduceOp::create(builder, loc, sum.encode(RankedTensorType::get({1}, builder.getF32Type())), one,
                         ReduceKind::Sum, /*axes=*/ArrayRef<int64_t>{0}, /*keep=*/true);

  // [.., n, 1] times [.., 1, 1]: all dimensions but the last are a batch of products.
  Distribution own = Distribution::of(type), batch;
  SmallVector<int64_t> columns(type.getShape());
  if (columns.empty())
    columns.push_back(1);
  SmallVector<int64_t> ones(columns.size() + 1, 1), batches = ones;
  for (unsigned dim = 0; dim + 1 < columns.size(); ++dim) {
    batches[dim] = columns[dim];
    for (Axis cut : own.axesOf(dim))
      batch[cut] = own[cut];
    if (SegmentsAttr layout = own.layoutOf(dim))
      batch.setLayout(dim, layout);
  }
  columns.push_back(1);
  auto reshape = [&](const Distribution &distribution, ArrayRef<int64_t> shape, Value from) -> Value {
    return ReshapeOp::create(builder, loc, distribution.encode(RankedTensorType::get(shape, builder.getF32Type())),
                             from, /*shape=*/AffineMapAttr());
  };
  one = reshape(sum, ones, one);
  batch[axis] = sum[axis];
  if (batches != ones)
    one = BroadcastOp::create(builder, loc, batch.encode(RankedTensorType::get(batches, builder.getF32Type())), one,
                              /*shape=*/AffineMapAttr());
  value = reshape(own, columns, value);
  own[axis] = sum[axis];
  value = MatmulOp::create(builder, loc, own.encode(cast<RankedTensorType>(value.getType())), value, one,
                           /*transpose_lhs=*/false, /*transpose_rhs=*/false);
  return reshape(own, type.getShape(), value);
}

} // namespace drover::tfm
