//===- TfmStructuralGradients.cpp - rules of data movement ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GradientBuilder.h"

using namespace mlir;
using namespace drover::tfm;

LogicalResult ReshapeOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                        SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  if (rule.wanted(0))
    rule.set(0, rule.reshape(rule.gradient(), shapeOf(getInput())));
  return success();
}

LogicalResult TransposeOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                          SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  if (!rule.wanted(0))
    return success();
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [to, from] : llvm::enumerate(getPermutation()))
    inverse[from] = static_cast<int64_t>(to);
  auto type = RankedTensorType::get(shapeOf(getInput()), getElementTypeOrSelf(rule.gradient()));
  rule.set(0, TransposeOp::create(builder, getLoc(), type, rule.gradient(), inverse));
  return success();
}

LogicalResult BroadcastOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                          SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  if (!rule.wanted(0))
    return success();
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

LogicalResult SliceOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                      SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  if (!rule.wanted(0))
    return success();
  auto type = RankedTensorType::get(shapeOf(getInput()), getElementTypeOrSelf(rule.gradient()));
  rule.set(0, PadOp::create(builder, getLoc(), type, rule.gradient(), getOffsetsAttr(), getStridesAttr(),
                            getOffsetMapAttr(), AffineMapAttr()));
  return success();
}

LogicalResult PadOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                    SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  if (!rule.wanted(0))
    return success();
  auto type = RankedTensorType::get(shapeOf(getInput()), getElementTypeOrSelf(rule.gradient()));
  rule.set(0, SliceOp::create(builder, getLoc(), type, rule.gradient(), getOffsetsAttr(), getStridesAttr(),
                              getOffsetMapAttr(), AffineMapAttr()));
  return success();
}

LogicalResult ConcatOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                       SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  SmallVector<int64_t> offsets(shapeOf(getResult()).size(), 0), strides(offsets.size(), 1);
  for (auto [index, input] : llvm::enumerate(getInputs())) {
    if (rule.wanted(index)) {
      auto type = RankedTensorType::get(shapeOf(input), getElementTypeOrSelf(rule.gradient()));
      rule.set(index, SliceOp::create(builder, getLoc(), type, rule.gradient(), offsets, strides, AffineMapAttr(),
                                      AffineMapAttr()));
    }
    offsets[getAxis()] += shapeOf(input)[getAxis()];
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions and contractions
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                       SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  if (!rule.wanted(0))
    return success();
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

LogicalResult MatmulOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                       SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  if (!rule.gradient())
    return success();
  auto product = [&](unsigned operand, Value lhs, Value rhs, bool transposeLhs, bool transposeRhs) {
    if (rule.wanted(operand))
      rule.set(operand, MatmulOp::create(builder, getLoc(), rule.type(operand), lhs, rhs, transposeLhs, transposeRhs));
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

LogicalResult SoftmaxOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                        SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  if (!rule.wanted(0))
    return success();
  // dx = y (dy - sum(dy y))
  Shape kept(shapeOf(getInput()));
  kept[getAxis()] = 1;
  Value result = rule.wide(getResult()), gradient = rule.wideGradient();
  Value sum = rule.sum(rule.mul(gradient, result), static_cast<int64_t>(getAxis()));
  Value spread = rule.broadcast(rule.reshape(sum, kept), shapeOf(getInput()));
  rule.set(0, rule.mul(result, rule.sub(gradient, spread)));
  return success();
}

LogicalResult GatherOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                       SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  if (!rule.wanted(0))
    return success();
  Value gradient = rule.wideGradient();
  auto type = RankedTensorType::get(shapeOf(getInput()), getElementTypeOrSelf(gradient));
  rule.set(0, ScatterAddOp::create(builder, getLoc(), type, gradient, getIndices(), getAxisAttr(), AffineMapAttr()));
  return success();
}
