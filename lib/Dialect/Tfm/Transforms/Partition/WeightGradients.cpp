//===- WeightGradients.cpp - what is reduced once a step --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Gradients of weights leave a body as sums over cp and dp, which the step program takes. Where the model reads a
// weight through arithmetic of its own, that sum is still pending while the arithmetic's gradient is built: bodies do
// not communicate over dp, and need not, since a gradient is linear in the one that it comes from.
//===----------------------------------------------------------------------===//
#include "../TransformUtils.h"
#include "BodyPartitioner.h"

using namespace mlir;

namespace drover::tfm {

LogicalResult BodyPartitioner::partitionAccumulate(AccumulateOp op) {
  auto argument = cast<BlockArgument>(op.getAccumulator());
  ArgumentState &accumulator = arguments[argument.getArgNumber()];
  Distribution target = accumulator.distribution;
  Value gradient = op.getValue();
  Distribution has = distributionOf(gradient);
  // A weight that is added as a batch of one has the batch's gradient.
  Value summed;
  if (!remade.contains(gradient) && has[Axis::Dp].isSharded()) {
    summed = collectives.sumOverDp(op.getLoc(), locals.lookup(gradient));
    has = Distribution::of(summed);
  }
  if (!accumulator.isDecided) {
    if (accumulator.parameter)
      target = accumulator.parameter->distribution;
    for (Axis axis : has.partialAxes())
      if (target[axis] == AxisState())
        target[axis] = has[axis];
  }
  // Once a step every gradient is summed over cp and dp: one that is whole there would count once a rank.
  Axes whole;
  for (Axis axis : {Axis::Cp, Axis::Dp})
    if (grid.size(axis) > 1 && !has[axis].isPartial()) {
      whole.push_back(axis);
      target[axis] = AxisState();
    }
  FailureOr<Value> value = summed ? resolveLocal(op, summed, target) : resolve(op, gradient, target);
  if (failed(value))
    return failure();
  for (Axis axis : whole) {
    *value = onFirstRank(op.getLoc(), *value, axis);
    target[axis] = Distribution::of(*value)[axis];
  }
  accumulator.isDecided = true;
  accumulator.distribution = target;
  Value own = locals.lookup(argument);
  own.setType(localType(argument, target));
  locals[op.getResult()] = AccumulateOp::create(builder, op.getLoc(), own.getType(), own, *value);
  return success();
}

bool BodyPartitioner::keepsType(Operation *op) {
  return isa<PadOp, ReshapeOp, SliceOp, TransposeOp, BroadcastOp, ReduceOp, arith::AddFOp, arith::SubFOp,
             arith::NegFOp>(op);
}

/// A sum over dp still, of f32.
bool BodyPartitioner::isPendingOverDp(Value global) const {
  return !remade.contains(global) && distributionOf(global)[Axis::Dp].isPartial() &&
         getElementTypeOrSelf(locals.lookup(global).getType()).isF32();
}

/// The operand of a product or quotient that is a sum over dp still.
std::optional<unsigned> BodyPartitioner::pendingFactor(Operation *op) const {
  if (!isa<arith::MulFOp, arith::DivFOp>(op))
    return std::nullopt;
  bool isLhs = isPendingOverDp(op->getOperand(0)), isRhs = isPendingOverDp(op->getOperand(1));
  if (isLhs == isRhs || (isRhs && isa<arith::DivFOp>(op)))
    return std::nullopt;
  return isLhs ? 0 : 1;
}

LogicalResult BodyPartitioner::partitionScaling(Operation *op, unsigned index) {
  Location loc = op->getLoc();
  Value pending = locals.lookup(op->getOperand(index));
  Distribution target = Distribution::of(pending);
  for (Axis axis : target.partialAxes())
    target[axis] = AxisState();
  FailureOr<Value> factor = resolve(op, op->getOperand(1 - index), target);
  if (failed(factor))
    return failure();
  Value by = castTo(builder, loc, *factor, builder.getF32Type());
  if (isa<arith::DivFOp>(op)) {
    auto type = cast<RankedTensorType>(by.getType());
    Value one = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, builder.getF32FloatAttr(1)));
    by = maskPadding(loc, arith::DivFOp::create(builder, loc, one, by)); // 1/0 in padding
  }
  locals[op->getResult(0)] = product(loc, pending, by);
  return success();
}

/// True where a value is accumulated element by element: no product or sum makes something else of it.
static bool isAccumulated(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<AccumulateOp>(user))
      return use.getOperandNumber() == 1;
    return isa<PadOp, ReshapeOp, SliceOp, TransposeOp, arith::AddFOp, arith::SubFOp, arith::NegFOp, arith::MulFOp,
               arith::DivFOp, arith::ExtFOp, arith::TruncFOp>(user) &&
           isAccumulated(user->getResult(0));
  });
}

/// Takes a weight's gradient out of the batch: the weight was reshaped or sliced before it was added to a batch of
/// one, whose gradient dp's ranks have side by side.
bool BodyPartitioner::dropsBatch(Operation *op) const {
  if (!isa<PadOp, ReshapeOp>(op) || remade.contains(op->getOperand(0)) || !isAccumulated(op->getResult(0)))
    return false;
  AxisState batch = distributionOf(op->getOperand(0))[Axis::Dp];
  if (!batch.isSharded())
    return false;
  ArrayRef<int64_t> from = cast<RankedTensorType>(op->getOperand(0).getType()).getShape();
  ArrayRef<int64_t> to = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  return from.take_front(batch.dim + 1) != to.take_front(batch.dim + 1);
}

} // namespace drover::tfm
