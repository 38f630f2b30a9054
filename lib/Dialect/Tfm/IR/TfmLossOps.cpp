//===- TfmLossOps.cpp - cross-entropy, accumulation, optimizer --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "OpUtils.h"

using namespace mlir;
using namespace drover::tfm;

/// Labels and row statistics have the shape of the logits without their last size.
static LogicalResult verifyRows(Operation *op, Value logits, ValueRange rows) {
  ArrayRef<int64_t> shape = shapeOf(logits);
  if (shape.empty())
    return op->emitOpError("expects logits of rank 1 or more");
  for (Value row : rows)
    if (!compatible(shape.drop_back(), shapeOf(row)))
      return op->emitOpError("expects rows of shape ") << str(shape.drop_back()) << ", not " << str(shapeOf(row));
  return success();
}

/// Columns from the vocabulary's size on are padding.
template <typename OpT> static LogicalResult verifyVocabulary(OpT op) {
  if (std::optional<uint64_t> vocabulary = op.getVocabulary(); vocabulary && static_cast<int64_t>(*vocabulary) <= 0)
    return op.emitOpError("expects a positive vocabulary, not ") << static_cast<int64_t>(*vocabulary);
  return success();
}

LogicalResult LogitsMaxOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  if (failed(verifyRows(*this, getLogits(), {})))
    return failure();
  shapes.push_back(Shape(shapeOf(getLogits()).drop_back())); // C1
  return success();
}
LogicalResult LogitsMaxOp::verify() {
  if (failed(verifyAccumulator(*this, getMaximum(), getLogits(), "a maximum"))) // C1
    return failure();
  if (failed(verifyVocabulary(*this))) // C3
    return failure();
  return verifyShapes(*this);
}
uint64_t LogitsMaxOp::getFlops() { return 0; }

LogicalResult LogitsSumOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  if (failed(verifyRows(*this, getLogits(), {getLabels(), getMaximum()}))) // C1
    return failure();
  shapes.append(2, Shape(shapeOf(getLogits()).drop_back()));
  return success();
}
LogicalResult LogitsSumOp::verify() {
  for (auto [value, name] :
       {std::pair(getMaximum(), "a maximum"), std::pair(getSum(), "a sum"), std::pair(getTarget(), "a target")})
    if (failed(verifyAccumulator(*this, value, getLogits(), name))) // C2
      return failure();
  if (failed(verifyVocabulary(*this))) // C4
    return failure();
  return verifyShapes(*this);
}
uint64_t LogitsSumOp::getFlops() { return 0; }

LogicalResult CrossEntropyOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  for (Value operand : getOperands().drop_front())
    if (!compatible(shapeOf(getLabels()), shapeOf(operand))) // C1
      return emitOpError("expects operands of equal shapes, not ")
             << str(shapeOf(getLabels())) << " and " << str(shapeOf(operand));
  shapes.push_back({});
  return success();
}
LogicalResult CrossEntropyOp::verify() { return verifyShapes(*this); }
uint64_t CrossEntropyOp::getFlops() { return 0; }

LogicalResult CrossEntropyGradOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  if (failed(verifyRows(*this, getLogits(), {getLabels(), getMaximum(), getSum()}))) // C1
    return failure();
  if (!shapeOf(getSeed()).empty()) // C2
    return emitOpError("expects a seed of rank 0, not ") << str(shapeOf(getSeed()));
  shapes.push_back(Shape(shapeOf(getLogits())));
  return success();
}
LogicalResult CrossEntropyGradOp::verify() {
  for (auto [value, name] : {std::pair(getMaximum(), "a maximum"), std::pair(getSum(), "a sum")})
    if (failed(verifyAccumulator(*this, value, getLogits(), name))) // C1
      return failure();
  if (failed(verifyAccumulator(*this, getSeed(), getLogits(), "a seed"))) // C2
    return failure();
  if (failed(verifyVocabulary(*this))) // C4
    return failure();
  return verifyShapes(*this);
}
uint64_t CrossEntropyGradOp::getFlops() { return 0; }

LogicalResult AccumulateOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  return inferSame(*this, getOperands(), 1, shapes); // C1
}
LogicalResult AccumulateOp::verify() {
  Type element = getElementTypeOrSelf(getAccumulator());
  if (!element.isF32() && !element.isF64()) // C1
    return emitOpError("expects an accumulator of f32 or f64, not ") << element;
  if (getElementTypeOrSelf(getResult()) != element)
    return emitOpError("expects a result of ") << element << ", not " << getElementTypeOrSelf(getResult());
  return verifyShapes(*this);
}
uint64_t AccumulateOp::getFlops() { return 0; }

LogicalResult SumOfSquaresOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  shapes.push_back({}); // C1
  return success();
}
LogicalResult SumOfSquaresOp::verify() { return verifyShapes(*this); }
uint64_t SumOfSquaresOp::getFlops() { return 0; }

static LogicalResult verifyHyper(Operation *op, Value hyper) {
  ArrayRef<int64_t> shape = shapeOf(hyper);
  if (shape.size() != 1 || !compatible(shape[0], 8))
    return op->emitOpError("expects hyper to have shape [8], not ") << str(shape);
  return success();
}

LogicalResult AdamWOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  return inferSame(*this, getOperands().drop_back(), 3, shapes); // C1
}
LogicalResult AdamWOp::verify() { return failed(verifyHyper(*this, getHyper())) ? failure() : verifyShapes(*this); }
uint64_t AdamWOp::getFlops() { return 0; }

LogicalResult SgdOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  return inferSame(*this, getOperands().drop_back(), 1, shapes); // C1
}
LogicalResult SgdOp::verify() { return failed(verifyHyper(*this, getHyper())) ? failure() : verifyShapes(*this); }
uint64_t SgdOp::getFlops() { return 0; }
