//===- TfmStructuralGradients.cpp - rules of data movement ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GradientBuilder.h"

using namespace mlir;
using namespace drover::tfm;

LogicalResult ReshapeOp::applyGradientRule(GradientBuilder &rule) {
  rule.set(0, rule.reshape(rule.gradient(), shapeOf(getInput())));
  return success();
}

LogicalResult TransposeOp::applyGradientRule(GradientBuilder &rule) {
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [to, from] : llvm::enumerate(getPermutation()))
    inverse[from] = static_cast<int64_t>(to);
  auto type = rule.gradientType(shapeOf(getInput()));
  rule.set(0, rule.create<TransposeOp>(type, rule.gradient(), inverse));
  return success();
}

LogicalResult BroadcastOp::applyGradientRule(GradientBuilder &rule) {
  ArrayRef<int64_t> input = shapeOf(getInput()), result = shapeOf(getResult());
  SmallVector<int64_t> axes;
  int64_t leading = static_cast<int64_t>(result.size() - input.size());
  for (int64_t dim = 0; dim < static_cast<int64_t>(result.size()); ++dim)
    if (dim < leading || input[dim - leading] != result[dim])
      axes.push_back(dim);
  // Without an axis to sum over nothing is to be widened either.
  Value summed = axes.empty() ? rule.gradient() : rule.sum(rule.wideGradient(), axes);
  rule.set(0, rule.reshape(summed, input));
  return success();
}

/// A box is moved back to where it came from: slice and pad are each other's adjoint.
template <typename AdjointT, typename BoxOpT> static LogicalResult moveBoxBack(BoxOpT op, GradientBuilder &rule) {
  auto type = rule.gradientType(shapeOf(op.getInput()));
  rule.set(0, rule.create<AdjointT>(type, rule.gradient(), op.getOffsetsAttr(), op.getStridesAttr(),
                                    op.getOffsetMapAttr(), AffineMapAttr()));
  return success();
}

LogicalResult SliceOp::applyGradientRule(GradientBuilder &rule) { return moveBoxBack<PadOp>(*this, rule); }

LogicalResult PadOp::applyGradientRule(GradientBuilder &rule) { return moveBoxBack<SliceOp>(*this, rule); }

LogicalResult ConcatOp::applyGradientRule(GradientBuilder &rule) {
  SmallVector<int64_t> offsets(shapeOf(getResult()).size(), 0), strides(offsets.size(), 1);
  for (auto [index, input] : llvm::enumerate(getInputs())) {
    if (rule.wanted(index)) {
      auto type = rule.gradientType(shapeOf(input));
      rule.set(index, rule.create<SliceOp>(type, rule.gradient(), offsets, strides, AffineMapAttr(), AffineMapAttr()));
    }
    offsets[getAxis()] += shapeOf(input)[getAxis()];
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions and contractions
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::applyGradientRule(GradientBuilder &rule) {
  if (getKind() == ReduceKind::Prod)
    return emitOpError("has no gradient rule for kind prod; sum, mean, max and min have one");
  ArrayRef<int64_t> input = shapeOf(getInput());
  Shape kept(input);
  int64_t count = 1;
  for (int64_t axis : getAxes()) {
    count *= input[axis];
    kept[axis] = 1;
  }
  Value gradient = rule.wideGradient();
  if (getKind() == ReduceKind::Mean)
    gradient = rule.mul(gradient, rule.constant(1.0 / static_cast<double>(count), gradient));
  if (getKind() == ReduceKind::Sum || getKind() == ReduceKind::Mean) {
    rule.set(0, rule.broadcast(rule.reshape(gradient, kept), input));
    return success();
  }
  // Elements that tie for the extremum share its gradient equally, as PyTorch's amax and amin do.
  Value wide = rule.wide(getInput());
  Value extremum = rule.broadcast(rule.reshape(rule.wide(getResult()), kept), input);
  Value isExtremum = rule.compare(arith::CmpFPredicate::OEQ, wide, extremum);
  Value zero = rule.constant(0, wide);
  Value ties = rule.sum(rule.select(isExtremum, rule.constant(1, wide), zero), getAxes());
  Value share = rule.div(rule.reshape(gradient, shapeOf(ties)), ties);
  rule.set(0, rule.select(isExtremum, rule.broadcast(rule.reshape(share, kept), input), zero));
  return success();
}

LogicalResult MatmulOp::applyGradientRule(GradientBuilder &rule) {
  auto product = [&](unsigned operand, Value lhs, Value rhs, bool transposeLhs, bool transposeRhs) {
    if (rule.wanted(operand))
      rule.set(operand, rule.create<MatmulOp>(rule.type(operand), lhs, rhs, transposeLhs, transposeRhs));
  };
  // With Y = A B: dA = dY B^T, dB = A^T dY; an operand that is stored transposed gets the transposed product.
  Value forLhs = rule.castLike(rule.gradient(), getRhs()), forRhs = rule.castLike(rule.gradient(), getLhs());
  if (getTransposeLhs())
    product(0, getRhs(), forLhs, getTransposeRhs(), true);
  else
    product(0, forLhs, getRhs(), false, !getTransposeRhs());
  if (getTransposeRhs())
    product(1, forRhs, getLhs(), true, getTransposeLhs());
  else
    product(1, getLhs(), forRhs, !getTransposeLhs(), false);
  return success();
}

LogicalResult SoftmaxOp::applyGradientRule(GradientBuilder &rule) {
  // dx = y (dy - sum(dy y))
  Shape kept(shapeOf(getInput()));
  kept[getAxis()] = 1;
  Value result = rule.wide(getResult()), gradient = rule.wideGradient();
  Value sum = rule.sum(rule.mul(gradient, result), static_cast<int64_t>(getAxis()));
  Value spread = rule.broadcast(rule.reshape(sum, kept), shapeOf(getInput()));
  rule.set(0, rule.mul(result, rule.sub(gradient, spread)));
  return success();
}

LogicalResult GatherOp::applyGradientRule(GradientBuilder &rule) {
  Value gradient = rule.wideGradient();
  auto type = RankedTensorType::get(shapeOf(getInput()), getElementTypeOrSelf(gradient));
  rule.set(0, rule.create<ScatterAddOp>(type, gradient, getIndices(), getAxisAttr(), AffineMapAttr()));
  return success();
}
