//===- TfmGradients.cpp - reverse-mode rules --------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "OpUtils.h"

using namespace mlir;
using namespace drover::tfm;

LogicalResult ReshapeOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult TransposeOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult BroadcastOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult SliceOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult PadOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult ConcatOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult ReduceOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult MatmulOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult SoftmaxOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult GatherOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult EmbeddingOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult LinearOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult BiasAddOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult RmsNormOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult LayerNormOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult GeluOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult SiluOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult SwigluOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult RopeOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
LogicalResult AttentionOp::buildGradients(OpBuilder &, ValueRange, TypeRange, SmallVectorImpl<Value> &) {
  return emitOpError("has no gradient rule");
}
