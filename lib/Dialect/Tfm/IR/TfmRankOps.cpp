//===- TfmRankOps.cpp - values that differ by rank --------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "OpUtils.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace drover::tfm;

static DictionaryAttr gridOf(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto grid = op->getAttrOfType<DictionaryAttr>(TfmDialect::kGridAttr))
      return grid;
  return {};
}

FailureOr<SmallVector<int64_t>> drover::tfm::gridSizes(Operation *op, ArrayAttr axes) {
  DictionaryAttr grid = gridOf(op);
  SmallVector<int64_t> sizes;
  for (StringAttr axis : axes.getAsRange<StringAttr>()) {
    auto size = grid ? grid.getAs<IntegerAttr>(axis) : IntegerAttr();
    if (!size || size.getValue().getSignificantBits() > 32 || size.getInt() <= 0)
      return failure();
    sizes.push_back(size.getInt());
  }
  return sizes;
}

FailureOr<int64_t> drover::tfm::verifyAxes(Operation *op, ArrayAttr axes) {
  llvm::StringSet<> seen;
  for (StringAttr axis : axes.getAsRange<StringAttr>()) {
    if (!seen.insert(axis).second)
      return op->emitOpError("expects axes named once, not ") << axes;
    if (failed(gridSizes(op, ArrayAttr::get(op->getContext(), {axis}))))
      return op->emitOpError("expects axes of an enclosing tfm.grid, not ") << axis;
  }
  int64_t ranks = 1;
  for (int64_t size : *gridSizes(op, axes))
    ranks = product(ranks, size);
  if (ShapedType::isDynamic(ranks))
    return op->emitOpError("expects fewer ranks than 2^63");
  return ranks;
}

//===----------------------------------------------------------------------===//
// Global index
//===----------------------------------------------------------------------===//

SmallVector<PaddedSegment> GlobalIndexOp::segmentList() {
  SmallVector<PaddedSegment> segments;
  for (ArrayRef<int64_t> rest = getSegments().value_or(ArrayRef<int64_t>()); rest.size() >= 4;
       rest = rest.drop_front(4))
    segments.push_back({rest[0], rest[1], rest[2], rest[3]});
  return segments;
}

LogicalResult GlobalIndexOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  shapes.push_back(Shape(shapeOf(getResult())));
  return success();
}

/// C5 and C6.
static LogicalResult verifySegments(GlobalIndexOp op, int64_t ranks, int64_t size) {
  ArrayRef<int64_t> numbers = *op.getSegments();
  if (numbers.empty() || numbers.size() % 4)
    return op.emitOpError("expects four numbers a segment, not ") << numbers.size();
  int64_t sum = 0;
  for (PaddedSegment segment : op.segmentList()) {
    int64_t all = product(segment.total, segment.padded);
    if (segment.valid <= 0 || segment.padded < segment.valid || segment.groups <= 0 || segment.total < segment.groups ||
        ShapedType::isDynamic(all) || all % ranks)
      return op.emitOpError("expects segments [groups, valid, padded, total] with 0 < valid <= padded, 0 < groups <= "
                            "total and total * padded a multiple of ")
             << ranks << ", not [" << segment.groups << ", " << segment.valid << ", " << segment.padded << ", "
             << segment.total << "]";
    if (llvm::AddOverflow(sum, all / ranks, sum))
      return op.emitOpError("expects segments of fewer than 2^63 elements");
  }
  if (sum != size)
    return op.emitOpError("expects a result of ") << sum << " elements, a rank's share of the segments, not " << size;
  return success();
}

LogicalResult GlobalIndexOp::verify() {
  FailureOr<int64_t> ranks = verifyAxes(*this, getAxes()); // C1
  if (failed(ranks))
    return failure();
  int64_t size = shapeOf(getResult())[0];
  if (ShapedType::isDynamic(size)) // C2
    return emitOpError("expects a result of a static size");
  if (getSegments() && getTwoChunk()) // C3
    return emitOpError("expects segments or two_chunk, not both");
  if (getTwoChunk()) { // C4
    if (getAxes().empty())
      return emitOpError("expects axes with two_chunk");
    int64_t inner = *ranks / gridSizes(*this, getAxes())->front(), rows = product(size, inner);
    if (ShapedType::isDynamic(rows) || rows % 2)
      return emitOpError("expects an even number of elements in two chunks, not ") << size << " times " << inner;
  }
  return getSegments() ? verifySegments(*this, *ranks, size) : verifyShapes(*this);
}
uint64_t GlobalIndexOp::getFlops() { return 0; }

//===----------------------------------------------------------------------===//
// Shard offset
//===----------------------------------------------------------------------===//

LogicalResult ShardOffsetOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  shapes.push_back({});
  return success();
}
LogicalResult ShardOffsetOp::verify() {
  if (failed(verifyAxes(*this, getAxes()))) // C1
    return failure();
  if (static_cast<int64_t>(getSize()) <= 0) // C2
    return emitOpError("expects a positive size, not ") << static_cast<int64_t>(getSize());
  return verifyShapes(*this);
}
uint64_t ShardOffsetOp::getFlops() { return 0; }
