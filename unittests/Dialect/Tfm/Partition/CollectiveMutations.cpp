//===- CollectiveMutations.cpp - wrong collectives of right ones ----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "CollectiveMutations.h"
#include "drover/Dialect/Tfm/IR/Distribution.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"

using namespace mlir;
using namespace drover::tfm;

namespace {

bool isCollective(Operation *op) {
  return isa<shard::AllGatherOp, shard::AllReduceOp, shard::AllSliceOp, shard::ReduceScatterOp>(op);
}
bool isRing(Operation *op) { return isa<GatherLinearOp, LinearScatterOp>(op); }
bool looksAtRank(Operation *op) { return isa<GlobalIndexOp, ShardOffsetOp>(op); }

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// `like` with other elements.
RankedTensorType withElements(RankedTensorType like, RankedTensorType elements) {
  return RankedTensorType::get(like.getShape(), elements.getElementType(), like.getEncoding());
}

/// An id of its own, so that nothing but the states can tell.
void renumber(Operation *op) {
  if (op->hasAttr(TfmDialect::kReductionAttr))
    op->setAttr(TfmDialect::kReductionAttr, Builder(op->getContext()).getI64IntegerAttr(1 << 20));
}

//===----------------------------------------------------------------------===//
// Left out, there twice, elsewhere
//===----------------------------------------------------------------------===//

bool drop(Operation *op) {
  op->getResult(0).replaceAllUsesWith(op->getOperand(0));
  op->erase();
  return true;
}

bool doubleIt(Operation *op) {
  OpBuilder builder(op->getBlock(), std::next(op->getIterator()));
  Operation *again = builder.clone(*op);
  op->getResult(0).replaceAllUsesWith(again->getResult(0));
  again->setOperand(0, op->getResult(0));
  renumber(again);
  return true;
}

/// The value that an element-wise op makes of another of the same shape.
bool passesOn(Operation *op, Value operand) {
  return op->getNumResults() == 1 && !isCollective(op) && !isa<func::CallOp>(op) &&
         isa<RankedTensorType>(op->getResult(0).getType()) &&
         typeOf(op->getResult(0)).getShape() == typeOf(operand).getShape();
}

/// The collective is done to what a reader makes of its operand.
bool moveBehind(Operation *op, unsigned reader) {
  Value whole = op->getResult(0);
  Operation *user = std::next(whole.use_begin(), reader)->getOwner();
  if (!passesOn(user, whole))
    return false;
  OpBuilder builder(user->getBlock(), std::next(user->getIterator()));
  Operation *moved = builder.clone(*op);
  user->replaceUsesOfWith(whole, op->getOperand(0));
  RankedTensorType type = typeOf(user->getResult(0));
  moved->getResult(0).setType(type);
  user->getResult(0).replaceAllUsesWith(moved->getResult(0));
  user->getResult(0).setType(withElements(typeOf(op->getOperand(0)), type));
  moved->setOperand(0, user->getResult(0));
  if (whole.use_empty())
    op->erase();
  else
    renumber(moved);
  return true;
}

/// The collective is done to what its operand is made of.
bool moveBefore(Operation *op) {
  Value operand = op->getOperand(0);
  Operation *maker = operand.getDefiningOp();
  if (!maker || maker->getNumOperands() == 0 || !isa<RankedTensorType>(maker->getOperand(0).getType()) ||
      !passesOn(maker, maker->getOperand(0)))
    return false;
  OpBuilder builder(op);
  Operation *moved = builder.clone(*op), *again = builder.clone(*maker);
  moved->setOperand(0, maker->getOperand(0));
  moved->getResult(0).setType(withElements(typeOf(op->getResult(0)), typeOf(maker->getOperand(0))));
  again->setOperand(0, moved->getResult(0));
  again->getResult(0).setType(op->getResult(0).getType());
  op->getResult(0).replaceAllUsesWith(again->getResult(0));
  op->erase();
  if (operand.use_empty())
    maker->erase();
  return true;
}

void forEachPlace(Operation *op, ChangeVisitor visit) {
  visit("drop", drop);
  visit("double", doubleIt);
  visit("move before", moveBefore);
  unsigned readers = std::distance(op->getResult(0).use_begin(), op->getResult(0).use_end());
  for (unsigned reader = 0; reader < readers; ++reader) {
    visit("move behind", [&](Operation *twin) { return moveBehind(twin, reader); });
    if (readers > 1)
      visit("drop for a reader", [&](Operation *twin) {
        std::next(twin->getResult(0).use_begin(), reader)->set(twin->getOperand(0));
        return true;
      });
  }
}

//===----------------------------------------------------------------------===//
// Over other axes, along another dimension
//===----------------------------------------------------------------------===//

/// Every list of one or two axes of the grid, and of the op's axes in reverse.
template <typename T> SmallVector<SmallVector<T>> otherLists(ArrayRef<T> all, ArrayRef<T> own) {
  SmallVector<SmallVector<T>> lists;
  for (T first : all) {
    lists.push_back({first});
    for (T second : all)
      if (first != second)
        lists.push_back({first, second});
  }
  llvm::erase_if(lists, [&](const SmallVector<T> &list) { return ArrayRef(list) == own; });
  return lists;
}

void forEachAxes(Operation *op, ChangeVisitor visit) {
  Builder builder(op->getContext());
  Grid grid = gridOf(op);
  if (auto indices = op->getAttrOfType<DenseI16ArrayAttr>("grid_axes")) {
    SmallVector<int16_t> all;
    for (size_t index = 0; index < grid.axes().size(); ++index)
      all.push_back(static_cast<int16_t>(index));
    for (const SmallVector<int16_t> &list : otherLists<int16_t>(all, indices.asArrayRef()))
      visit("retarget axes", [&](Operation *twin) {
        twin->setAttr("grid_axes", DenseI16ArrayAttr::get(op->getContext(), list));
        return true;
      });
    return;
  }
  auto names = op->getAttrOfType<ArrayAttr>("axes");
  SmallVector<StringRef> all, own;
  for (Axis axis : grid.axes())
    all.push_back(name(axis));
  for (StringAttr axis : names.getAsRange<StringAttr>())
    own.push_back(axis);
  for (const SmallVector<StringRef> &list : otherLists<StringRef>(all, own))
    visit("retarget axes", [&](Operation *twin) {
      twin->setAttr("axes", builder.getStrArrayAttr(list));
      return true;
    });
}

/// The attribute that names the dimension of a collective or a ring; empty where there is none.
StringRef dimensionOf(Operation *op) {
  for (StringRef name : {"gather_axis", "slice_axis", "scatter_axis", "dim"})
    if (op->hasAttr(name))
      return name;
  return "";
}

/// Along another dimension, with a result of the sizes that this gives.
void forEachDimension(Operation *op, ChangeVisitor visit) {
  StringRef attr = dimensionOf(op);
  if (attr.empty())
    return;
  int64_t own = op->getAttrOfType<IntegerAttr>(attr).getInt(), rank = typeOf(op->getOperand(0)).getRank();
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (dim == own)
      continue;
    visit("retarget dimension", [&](Operation *twin) {
      twin->setAttr(attr, IntegerAttr::get(op->getAttrOfType<IntegerAttr>(attr).getType(), dim));
      if (isRing(op))
        return true;
      SmallVector<int64_t> shape(typeOf(op->getOperand(0)).getShape());
      int64_t whole = typeOf(op->getResult(0)).getShape()[own];
      bool isGather = isa<shard::AllGatherOp>(op);
      int64_t ranks = isGather ? whole / shape[own] : shape[own] / whole;
      if (!isGather && shape[dim] % ranks)
        return false;
      shape[dim] = isGather ? shape[dim] * ranks : shape[dim] / ranks;
      RankedTensorType type = typeOf(op->getResult(0));
      twin->getResult(0).setType(RankedTensorType::get(shape, type.getElementType(), type.getEncoding()));
      return true;
    });
  }
}

//===----------------------------------------------------------------------===//
// Another sum, type, pattern, id
//===----------------------------------------------------------------------===//

/// The reduction in a type of its own, between casts.
bool reduceIn(Operation *op, Type element) {
  RankedTensorType in = typeOf(op->getOperand(0)), out = typeOf(op->getResult(0));
  unsigned width = element.getIntOrFloatBitWidth(), own = in.getElementTypeBitWidth();
  OpBuilder builder(op);
  auto cast = [&](Value value, RankedTensorType type, bool isWider) -> Value {
    return isWider ? arith::ExtFOp::create(builder, op->getLoc(), type, value).getResult()
                   : arith::TruncFOp::create(builder, op->getLoc(), type, value).getResult();
  };
  op->setOperand(0, cast(op->getOperand(0), in.clone(element), width > own));
  op->getResult(0).setType(out.clone(element));
  builder.setInsertionPointAfter(op);
  Value result = cast(op->getResult(0), out, width < own);
  op->getResult(0).replaceAllUsesExcept(result, result.getDefiningOp());
  return true;
}

/// A part of the sum in place of the part of one, and the other way round.
bool takeForAnother(Operation *op) {
  OpBuilder builder(op);
  Operation *other;
  if (auto scatter = dyn_cast<shard::ReduceScatterOp>(op)) {
    other = shard::AllSliceOp::create(builder, op->getLoc(), scatter.getType(), scatter.getGridAttr(),
                                      scatter.getGridAxesAttr(), scatter.getInput(), scatter.getScatterAxisAttr());
  } else if (auto slice = dyn_cast<shard::AllSliceOp>(op)) {
    auto sum = shard::ReductionKindAttr::get(op->getContext(), shard::ReductionKind::Sum);
    other = shard::ReduceScatterOp::create(builder, op->getLoc(), slice.getType(), slice.getGridAttr(),
                                           slice.getGridAxesAttr(), slice.getInput(), sum, slice.getSliceAxisAttr());
    other->setAttr(TfmDialect::kReductionAttr, builder.getI64IntegerAttr(1 << 20));
  } else {
    return false;
  }
  if (op->hasAttr(TfmDialect::kTwoChunkAttr))
    other->setAttr(TfmDialect::kTwoChunkAttr, builder.getUnitAttr());
  op->getResult(0).replaceAllUsesWith(other->getResult(0));
  op->erase();
  return true;
}

/// A reduction takes the id of the one before it.
bool takeId(Operation *op) {
  for (Operation *other = op->getPrevNode(); other; other = other->getPrevNode())
    if (Attribute id = other->getAttr(TfmDialect::kReductionAttr)) {
      op->setAttr(TfmDialect::kReductionAttr, id);
      return true;
    }
  return false;
}

void forEachReduction(Operation *op, ChangeVisitor visit) {
  if (!op->hasAttr(TfmDialect::kReductionAttr))
    return;
  visit("retarget id", takeId);
  visit("drop id", [](Operation *twin) { return bool(twin->removeAttr(TfmDialect::kReductionAttr)); });
  if (isRing(op))
    return;
  auto own = op->getAttrOfType<shard::ReductionKindAttr>("reduction");
  for (shard::ReductionKind kind : {shard::ReductionKind::Sum, shard::ReductionKind::Max, shard::ReductionKind::Min,
                                    shard::ReductionKind::Product, shard::ReductionKind::Average})
    if (kind != (own ? own.getValue() : shard::ReductionKind::Sum))
      visit("retarget reduction", [&](Operation *twin) {
        twin->setAttr("reduction", shard::ReductionKindAttr::get(op->getContext(), kind));
        return true;
      });
  Builder builder(op->getContext());
  Type element = typeOf(op->getOperand(0)).getElementType();
  if (isa<FloatType>(element))
    for (Type other : {Type(builder.getBF16Type()), Type(builder.getF32Type()), Type(builder.getF64Type())})
      if (other.getIntOrFloatBitWidth() != element.getIntOrFloatBitWidth())
        visit("retarget dtype", [&](Operation *twin) { return reduceIn(twin, other); });
}

void forEachPattern(Operation *op, ChangeVisitor visit) {
  StringRef attr = isa<GlobalIndexOp>(op) ? StringRef("two_chunk") : StringRef(TfmDialect::kTwoChunkAttr);
  visit("retarget pattern", [&](Operation *twin) {
    if (!twin->removeAttr(attr))
      twin->setAttr(attr, UnitAttr::get(op->getContext()));
    return true;
  });
}

//===----------------------------------------------------------------------===//
// What looks at the rank
//===----------------------------------------------------------------------===//

void forEachRankValue(Operation *op, ChangeVisitor visit) {
  Builder builder(op->getContext());
  if (auto offset = dyn_cast<ShardOffsetOp>(op)) {
    auto own = static_cast<int64_t>(offset.getSize());
    for (int64_t size : {own - 1, own + 1, 2 * own})
      visit("retarget size", [&](Operation *twin) {
        twin->setAttr("size", builder.getI64IntegerAttr(size));
        return true;
      });
    return;
  }
  forEachPattern(op, visit);
  auto segments = op->getAttrOfType<DenseI64ArrayAttr>("segments");
  if (!segments)
    return;
  visit("drop segments", [](Operation *twin) { return bool(twin->removeAttr("segments")); });
  for (size_t index = 0; index < segments.asArrayRef().size(); ++index)
    for (int64_t by : {-1, 1})
      visit("retarget segments", [&](Operation *twin) {
        SmallVector<int64_t> numbers(segments.asArrayRef());
        numbers[index] += by;
        twin->setAttr("segments", builder.getDenseI64ArrayAttr(numbers));
        return true;
      });
}

} // namespace

void forEachCollectiveChange(Operation *op, ChangeVisitor visit) {
  if (!isCollective(op) && !isRing(op) && !looksAtRank(op))
    return;
  forEachAxes(op, visit);
  if (looksAtRank(op))
    return forEachRankValue(op, visit);
  forEachDimension(op, visit);
  forEachReduction(op, visit);
  if (isRing(op)) // is a collective and linears in one: neither goes alone
    return;
  forEachPlace(op, visit);
  forEachPattern(op, visit);
  visit("retarget operation", takeForAnother);
}
