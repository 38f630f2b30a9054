//===- TfmGradients.cpp - reverse-mode rules of the layers ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GradientBuilder.h"

using namespace mlir;
using namespace drover::tfm;

/// The type of a parameter's gradient: a sum over rows.
static RankedTensorType sumType(Value parameter) {
  return RankedTensorType::get(shapeOf(parameter), accumulatorType(getElementTypeOrSelf(parameter)));
}

//===----------------------------------------------------------------------===//
// Embedding, linear, bias
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::applyGradientRule(GradientBuilder &rule) {
  if (getOffset())
    return emitOpError("expects no offset to be differentiated: partition afterwards");
  auto type = RankedTensorType::get(shapeOf(getTable()), rule.builder().getF32Type());
  rule.set(1, rule.create<EmbeddingGradOp>(type, getIds(), rule.gradient(), /*offset=*/Value()));
  return success();
}

LogicalResult LinearOp::applyGradientRule(GradientBuilder &rule) {
  // The gradient of f32 logits is rounded once, to the type of the product's operands.
  Value gradient = rule.castLike(rule.gradient(), getInput());
  if (rule.wanted(0))
    rule.set(0, rule.create<LinearOp>(rule.type(0), gradient, getWeight(), /*in_out=*/!getInOut()));
  if (rule.wanted(1))
    rule.set(1, rule.create<LinearWeightGradOp>(sumType(getWeight()), getInput(), gradient, getInOut()));
  return success();
}

LogicalResult BiasAddOp::applyGradientRule(GradientBuilder &rule) {
  rule.set(0, rule.gradient());
  if (rule.wanted(1))
    rule.set(1, rule.create<ColumnSumOp>(sumType(getBias()), rule.gradient()));
  return success();
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

LogicalResult RmsNormOp::applyGradientRule(GradientBuilder &rule) {
  bool weighted = static_cast<bool>(getWeight());
  auto gradients = rule.create<RmsNormGradOp>(rule.type(0), weighted ? sumType(getWeight()) : Type(), getInput(),
                                              rule.gradient(), getWeight(), getEpsAttr(), getWeightOffsetAttr());
  rule.set(0, gradients.getInputGrad());
  if (weighted)
    rule.set(1, gradients.getWeightGrad());
  return success();
}

LogicalResult LayerNormOp::applyGradientRule(GradientBuilder &rule) {
  bool weight = getWeight() && rule.wanted(1), bias = getBias() && rule.wanted(2);
  auto gradients = rule.create<LayerNormGradOp>(rule.type(0), weight ? sumType(getWeight()) : Type(),
                                                bias ? sumType(getBias()) : Type(), getInput(), rule.gradient(),
                                                getWeight(), getEpsAttr());
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

LogicalResult GeluOp::applyGradientRule(GradientBuilder &rule) {
  rule.set(0, rule.create<GeluGradOp>(rule.type(0), getInput(), rule.gradient(), getKind()));
  return success();
}

LogicalResult SiluOp::applyGradientRule(GradientBuilder &rule) {
  rule.set(0, rule.create<SiluGradOp>(rule.type(0), getInput(), rule.gradient()));
  return success();
}

LogicalResult SwigluOp::applyGradientRule(GradientBuilder &rule) {
  auto gradients = rule.create<SwigluGradOp>(rule.type(0), rule.type(1), getGate(), getUp(), rule.gradient());
  rule.set(0, gradients.getGateGrad());
  rule.set(1, gradients.getUpGrad());
  return success();
}

//===----------------------------------------------------------------------===//
// Rope, attention
//===----------------------------------------------------------------------===//

LogicalResult RopeOp::applyGradientRule(GradientBuilder &rule) {
  rule.set(0, rule.create<RopeOp>(rule.type(0), rule.gradient(), getPositions(), getHeadSizeAttr(), getRotaryDimAttr(),
                                  getThetaAttr(), getScalingAttr(), getInvFreqAttr(), getMagnitudeAttr(),
                                  getInterleavedAttr(), getInverse() ? UnitAttr() : rule.builder().getUnitAttr()));
  return success();
}

LogicalResult AttentionOp::applyGradientRule(GradientBuilder &rule) {
  if (getQueryIndex())
    return emitOpError("expects no query_index to be differentiated: partition afterwards");
  if (rule.gradient(1))
    return emitOpError("has no rule for a gradient of log_sum_exp");
  if (getMask() && rule.wanted(3))
    return emitOpError("has no rule for the gradient of its mask");
  auto gradients = rule.create<AttentionGradOp>(
      rule.type(0), rule.type(1), rule.type(2), getQuery(), getKey(), getValue(), getResult(), getLogSumExp(),
      rule.gradient(), getMask(), getKeyMask(), getDocuments(), /*query_index=*/Value(), getNumHeadsAttr(),
      getNumKvHeadsAttr(), getScaleAttr(), getCausalAttr(), getWindowAttr(), getSoftcapAttr(), getAlibiSlopesAttr());
  rule.set(0, gradients.getQueryGrad());
  rule.set(1, gradients.getKeyGrad());
  rule.set(2, gradients.getValueGrad());
  return success();
}
