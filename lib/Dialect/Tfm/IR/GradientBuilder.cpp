//===- GradientBuilder.cpp - what a reverse-mode rule builds with ---------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GradientBuilder.h"

using namespace mlir;
using namespace drover::tfm;

//===----------------------------------------------------------------------===//
// The entry of every rule
//===----------------------------------------------------------------------===//

/// Fails where the op has a dynamic shape: differentiation comes after specialization.
static LogicalResult checkStatic(Operation *op) {
  auto isDynamic = [](Type type) {
    auto shaped = dyn_cast<ShapedType>(type);
    return shaped && !shaped.hasStaticShape();
  };
  if (llvm::any_of(op->getOperandTypes(), isDynamic) || llvm::any_of(op->getResultTypes(), isDynamic))
    return op->emitOpError("expects static shapes to be differentiated: run tfm-specialize first");
  return success();
}

LogicalResult DifferentiableOpInterface::buildGradients(OpBuilder &builder, ValueRange resultGradients,
                                                        TypeRange operandTypes,
                                                        SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder rule(builder, *this, resultGradients, operandTypes, operandGradients);
  if (failed(checkStatic(*this)))
    return failure();
  auto given = [](auto value) { return static_cast<bool>(value); };
  if (llvm::none_of(resultGradients, given) || llvm::none_of(operandTypes, given))
    return success();
  return applyGradientRule(rule);
}

//===----------------------------------------------------------------------===//
// The builder
//===----------------------------------------------------------------------===//

GradientBuilder::GradientBuilder(OpBuilder &builder, Operation *op, ValueRange resultGradients, TypeRange operandTypes,
                                 SmallVectorImpl<Value> &operandGradients)
    : opBuilder(builder), op(op), resultGradients(resultGradients), operandTypes(operandTypes),
      operandGradients(operandGradients) {
  assert(resultGradients.size() == op->getNumResults() && operandTypes.size() == op->getNumOperands() &&
         "one gradient per result and one type per operand");
  operandGradients.assign(op->getNumOperands(), Value());
}

RankedTensorType GradientBuilder::type(unsigned i) const {
  return llvm::cast<RankedTensorType>(operandTypes[i] ? operandTypes[i] : op->getOperand(i).getType());
}

void GradientBuilder::set(unsigned i, Value value) {
  if (wanted(i))
    operandGradients[i] = cast(value, operandTypes[i]);
}

Value GradientBuilder::cast(Value value, Type like) {
  Type from = getElementTypeOrSelf(value), to = getElementTypeOrSelf(like);
  if (from == to)
    return value;
  Type type = to;
  if (auto shaped = dyn_cast<ShapedType>(value.getType()))
    type = shaped.clone(to);
  unsigned fromWidth = from.getIntOrFloatBitWidth(), toWidth = to.getIntOrFloatBitWidth();
  if (fromWidth < toWidth)
    return create<arith::ExtFOp>(type, value);
  if (fromWidth == toWidth) // bf16 and f16: neither holds the other
    return cast(wide(value), like);
  return create<arith::TruncFOp>(type, value);
}

Value GradientBuilder::wide(Value value) { return cast(value, accumulatorType(getElementTypeOrSelf(value))); }

Value GradientBuilder::add(Value a, Value b) { return create<arith::AddFOp>(a, b); }
Value GradientBuilder::sub(Value a, Value b) { return create<arith::SubFOp>(a, b); }
Value GradientBuilder::mul(Value a, Value b) { return create<arith::MulFOp>(a, b); }
Value GradientBuilder::div(Value a, Value b) { return create<arith::DivFOp>(a, b); }
Value GradientBuilder::neg(Value a) { return create<arith::NegFOp>(a); }
Value GradientBuilder::select(Value condition, Value yes, Value no) {
  return create<arith::SelectOp>(condition, yes, no);
}
Value GradientBuilder::compare(arith::CmpFPredicate predicate, Value a, Value b) {
  return create<arith::CmpFOp>(predicate, a, b);
}

Value GradientBuilder::constant(double value, Value like) {
  FloatAttr element = opBuilder.getFloatAttr(getElementTypeOrSelf(like), value);
  TypedAttr attr = element;
  if (auto type = dyn_cast<ShapedType>(like.getType()))
    attr = DenseElementsAttr::get(type, element.getValue());
  return create<arith::ConstantOp>(attr);
}

Value GradientBuilder::reshape(Value value, ArrayRef<int64_t> shape) {
  auto type = llvm::cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  return create<ReshapeOp>(RankedTensorType::get(shape, type.getElementType()), value, AffineMapAttr());
}

Value GradientBuilder::broadcast(Value value, ArrayRef<int64_t> shape) {
  auto type = llvm::cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  return create<BroadcastOp>(RankedTensorType::get(shape, type.getElementType()), value, AffineMapAttr());
}

Value GradientBuilder::sum(Value value, ArrayRef<int64_t> axes) {
  if (axes.empty())
    return value;
  auto type = llvm::cast<RankedTensorType>(value.getType());
  Shape shape;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (!llvm::is_contained(axes, static_cast<int64_t>(dim)))
      shape.push_back(size);
  return create<ReduceOp>(RankedTensorType::get(shape, type.getElementType()), value, ReduceKind::Sum, axes,
                          /*keep=*/false);
}
