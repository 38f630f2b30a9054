//===- TfmGradients.cpp - reverse-mode rules of the layers ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GradientBuilder.h"

using namespace mlir;
using namespace drover::tfm;

//===----------------------------------------------------------------------===//
// Embedding, linear, bias
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                          SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  if (getOffset())
    return emitOpError("expects no offset to be differentiated: partition afterwards");
  if (rule.wanted(1)) {
    auto type = RankedTensorType::get(shapeOf(getTable()), builder.getF32Type());
    rule.set(1, EmbeddingGradOp::create(builder, getLoc(), type, getIds(), rule.gradient(), /*offset=*/Value()));
  }
  return success();
}

LogicalResult LinearOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                       SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  if (!rule.gradient())
    return success();
  // The gradient of f32 logits is rounded once, to the type of the product's operands.
  Value gradient = rule.castLike(rule.gradient(), getInput());
  if (rule.wanted(0))
    rule.set(0, LinearOp::create(builder, getLoc(), rule.type(0), gradient, getWeight(), /*in_out=*/!getInOut()));
  if (rule.wanted(1)) {
    auto type = RankedTensorType::get(shapeOf(getWeight()), accumulatorType(getElementTypeOrSelf(getWeight())));
    rule.set(1, LinearWeightGradOp::create(builder, getLoc(), type, getInput(), gradient, getInOut()));
  }
  return success();
}

LogicalResult BiasAddOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                        SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  if (rule.wanted(0))
    rule.set(0, rule.gradient());
  if (rule.wanted(1)) {
    auto type = RankedTensorType::get(shapeOf(getBias()), accumulatorType(getElementTypeOrSelf(rule.gradient())));
    rule.set(1, ColumnSumOp::create(builder, getLoc(), type, rule.gradient()));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// The type of a norm's weight or bias gradient: a sum over rows.
static RankedTensorType vectorGradientType(Value vector) {
  return RankedTensorType::get(shapeOf(vector), accumulatorType(getElementTypeOrSelf(vector)));
}

LogicalResult RmsNormOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                        SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  bool weighted = static_cast<bool>(getWeight());
  if (!rule.wanted(0) && !(weighted && rule.wanted(1)))
    return success();
  auto gradients =
      RmsNormGradOp::create(builder, getLoc(), rule.type(0), weighted ? vectorGradientType(getWeight()) : Type(),
                            getInput(), rule.gradient(), getWeight(), getEpsAttr(), getWeightOffsetAttr());
  rule.set(0, gradients.getInputGrad());
  if (weighted)
    rule.set(1, gradients.getWeightGrad());
  return success();
}

LogicalResult LayerNormOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                          SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  bool weight = getWeight() && rule.wanted(1), bias = getBias() && rule.wanted(2);
  if (!rule.wanted(0) && !weight && !bias)
    return success();
  auto gradients = LayerNormGradOp::create(
      builder, getLoc(), rule.type(0), weight ? vectorGradientType(getWeight()) : Type(),
      bias ? vectorGradientType(getBias()) : Type(), getInput(), rule.gradient(), getWeight(), getEpsAttr());
  rule.set(0, gradients.getInputGrad());
  if (weight)
    rule.set(1, gradients.getWeightGrad());
  if (bias)
    rule.set(2, gradients.getBiasGrad());
  return success();
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

LogicalResult GeluOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                     SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  if (rule.wanted(0))
    rule.set(0, GeluGradOp::create(builder, getLoc(), rule.type(0), getInput(), rule.gradient(), getKind()));
  return success();
}

LogicalResult SiluOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                     SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  if (rule.wanted(0))
    rule.set(0, SiluGradOp::create(builder, getLoc(), rule.type(0), getInput(), rule.gradient()));
  return success();
}

LogicalResult SwigluOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                       SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  if (!rule.wanted(0) && !rule.wanted(1))
    return success();
  auto gradients =
      SwigluGradOp::create(builder, getLoc(), rule.type(0), rule.type(1), getGate(), getUp(), rule.gradient());
  rule.set(0, gradients.getGateGrad());
  rule.set(1, gradients.getUpGrad());
  return success();
}

//===----------------------------------------------------------------------===//
// Rope, attention
//===----------------------------------------------------------------------===//

LogicalResult RopeOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                     SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  if (rule.wanted(0))
    rule.set(0,
             RopeOp::create(builder, getLoc(), rule.type(0), rule.gradient(), getPositions(), getHeadSizeAttr(),
                            getRotaryDimAttr(), getThetaAttr(), getScalingAttr(), getInvFreqAttr(), getMagnitudeAttr(),
                            getInterleavedAttr(), getInverse() ? UnitAttr() : builder.getUnitAttr()));
  return success();
}

LogicalResult AttentionOp::buildGradients(OpBuilder &builder, ValueRange resultGradients, TypeRange operandTypes,
                                          SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(rule.checkStatic()))
    return failure();
  if (getQueryIndex())
    return emitOpError("expects no query_index to be differentiated: partition afterwards");
  if (resultGradients[1])
    return emitOpError("has no rule for a gradient of log_sum_exp");
  if (getMask() && rule.wanted(3))
    return emitOpError("has no rule for the gradient of its mask");
  if (!rule.wanted(0) && !rule.wanted(1) && !rule.wanted(2))
    return success();
  auto gradients =
      AttentionGradOp::create(builder, getLoc(), rule.type(0), rule.type(1), rule.type(2), getQuery(), getKey(),
                              getValue(), getResult(), getLogSumExp(), rule.gradient(), getMask(), getKeyMask(),
                              getDocuments(), /*query_index=*/Value(), getNumHeadsAttr(), getNumKvHeadsAttr(),
                              getScaleAttr(), getCausalAttr(), getWindowAttr(), getSoftcapAttr(), getAlibiSlopesAttr());
  rule.set(0, gradients.getQueryGrad());
  rule.set(1, gradients.getKeyGrad());
  rule.set(2, gradients.getValueGrad());
  return success();
}
