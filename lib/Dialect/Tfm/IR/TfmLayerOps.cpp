//===- TfmLayerOps.cpp - linears, norms, activations ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "OpUtils.h"

using namespace mlir;
using namespace drover::tfm;

static LogicalResult verifyElementType(Operation *op, Value a, Value b, StringRef what) {
  Type left = getElementTypeOrSelf(a), right = getElementTypeOrSelf(b);
  if (left != right)
    return op->emitOpError("expects ") << what << " to have equal element types, not " << left << " and " << right;
  return success();
}

/// Inputs have one element type; gradients have it too, or that of sums over it.
static LogicalResult verifyTypes(Operation *op, ValueRange inputs, ValueRange gradients = {}) {
  if (failed(verifySameElementType(op, inputs)))
    return failure();
  Type type = getElementTypeOrSelf(inputs.front());
  for (Value gradient : gradients)
    if (Type given = getElementTypeOrSelf(gradient); given != type && given != accumulatorType(type))
      return op->emitOpError("expects gradients of ") << type << " or " << accumulatorType(type) << ", not " << given;
  return success();
}

/// Operands and results, as far as they are there, have one element type.
static LogicalResult verifyOneType(Operation *op) {
  SmallVector<Value> values(op->getOperands());
  llvm::append_range(values, op->getResults());
  return verifyTypes(op, values);
}

/// C1 of the norms and bias_add: rows, and where it is given a vector as long as they are.
static LogicalResult verifyVector(Operation *op, Value vector, Value rows, StringRef name) {
  ArrayRef<int64_t> full = shapeOf(rows);
  if (full.empty())
    return op->emitOpError("expects an input of rank 1 or more");
  if (vector && (shapeOf(vector).size() != 1 || !compatible(shapeOf(vector)[0], full.back())))
    return op->emitOpError("expects ") << name << " to have shape " << str(full.take_back()) << ", not "
                                       << str(shapeOf(vector));
  return success();
}

//===----------------------------------------------------------------------===//
// Embedding
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  if (shapeOf(getTable()).size() != 2) // C1
    return emitOpError("expects a table of rank 2, not ") << str(shapeOf(getTable()));
  Shape shape(shapeOf(getIds())); // C2
  shape.push_back(shapeOf(getTable())[1]);
  shapes.push_back(shape);
  return success();
}
LogicalResult EmbeddingOp::verify() {
  if (failed(verifyElementType(*this, getTable(), getResult(), "table and result"))) // C3
    return failure();
  if (shapeOf(getTable()).size() == 2 && !getOffset() &&
      failed(verifyConstantIndices(*this, getIds(), shapeOf(getTable()).take_front(), /*fromEnd=*/false))) // C5
    return failure();
  return verifyShapes(*this);
}
uint64_t EmbeddingOp::getFlops() { return 0; }

LogicalResult EmbeddingGradOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  ArrayRef<int64_t> ids = shapeOf(getIds()), gradient = shapeOf(getGradient());
  if (gradient.size() != ids.size() + 1 || !compatible(gradient.drop_back(), ids)) // C1
    return emitOpError("expects gradient to have the shape of ids and one more size, not ")
           << str(gradient) << " for " << str(ids);
  ArrayRef<int64_t> result = shapeOf(getResult());
  if (result.size() != 2) // C2
    return emitOpError("expects a result of rank 2, not ") << str(result);
  shapes.push_back({result[0], gradient.back()});
  return success();
}
LogicalResult EmbeddingGradOp::verify() { return verifyShapes(*this); }
uint64_t EmbeddingGradOp::getFlops() { return 0; }

//===----------------------------------------------------------------------===//
// Linear
//===----------------------------------------------------------------------===//

LogicalResult LinearOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  ArrayRef<int64_t> input = shapeOf(getInput()), weight = shapeOf(getWeight());
  if (weight.size() != 2) // C1
    return emitOpError("expects a weight of rank 2, not ") << str(weight);
  int64_t in = weight[getInOut() ? 0 : 1], out = weight[getInOut() ? 1 : 0];
  if (input.empty() || !compatible(input.back(), in)) // C2
    return emitOpError("expects the last size of input ") << str(input) << " to be that of weight, " << str({in});
  Shape shape(input); // C3
  shape.back() = out;
  shapes.push_back(shape);
  return success();
}
LogicalResult LinearOp::verify() {
  if (failed(verifyElementType(*this, getInput(), getWeight(), "input and weight"))) // C4
    return failure();
  return verifyShapes(*this);
}
uint64_t LinearOp::getFlops() {
  return shapeOf(getInput()).empty()
             ? 0
             : countProduct({2, elements(getResult()), sizeProduct(shapeOf(getInput()).take_back())});
}

LogicalResult LinearWeightGradOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  ArrayRef<int64_t> input = shapeOf(getInput()), gradient = shapeOf(getGradient());
  if (input.empty() || gradient.empty() || !compatible(input.drop_back(), gradient.drop_back())) // C1
    return emitOpError("expects input and gradient to agree in all but their last size, not ")
           << str(input) << " and " << str(gradient);
  if (getInOut())
    shapes.push_back({input.back(), gradient.back()});
  else
    shapes.push_back({gradient.back(), input.back()});
  return success();
}
LogicalResult LinearWeightGradOp::verify() {
  if (failed(verifyElementType(*this, getInput(), getGradient(), "input and gradient")))
    return failure();
  if (failed(verifyAccumulator(*this, getResult(), getInput(), "a result"))) // C2
    return failure();
  return verifyShapes(*this);
}
uint64_t LinearWeightGradOp::getFlops() {
  return shapeOf(getInput()).empty()
             ? 0
             : countProduct({2, elements(getInput()), sizeProduct(shapeOf(getGradient()).take_back())});
}

LogicalResult BiasAddOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  return inferSame(*this, getInput(), 1, shapes); // C2
}
LogicalResult BiasAddOp::verify() {
  if (failed(verifyVector(*this, getBias(), getInput(), "bias")) || failed(verifyOneType(*this))) // C1, C3
    return failure();
  return verifyShapes(*this);
}
uint64_t BiasAddOp::getFlops() { return 0; }

LogicalResult ColumnSumOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  if (shapeOf(getInput()).empty())
    return emitOpError("expects an input of rank 1 or more");
  shapes.push_back({shapeOf(getInput()).back()}); // C1
  return success();
}
LogicalResult ColumnSumOp::verify() {
  if (failed(verifyAccumulator(*this, getResult(), getInput(), "a result"))) // C2
    return failure();
  return verifyShapes(*this);
}
uint64_t ColumnSumOp::getFlops() { return 0; }

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

static LogicalResult verifyEps(Operation *op, const APFloat &eps) {
  if (eps.isNegative() || !eps.isFinite())
    return op->emitOpError("expects eps to be finite and not negative, not ") << eps.convertToDouble();
  return success();
}

/// Of a norm's gradients; those of weight and bias are sums (verifyAccumulator).
template <typename OpT> static LogicalResult verifyNormTypes(OpT op) {
  SmallVector<Value> inputs{op.getInput()};
  if (op.getWeight())
    inputs.push_back(op.getWeight());
  return verifyTypes(op, inputs, {op.getGradient(), op.getInputGrad()});
}

LogicalResult RmsNormOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  return inferSame(*this, getInput(), 1, shapes); // C2
}
LogicalResult RmsNormOp::verify() {
  if (failed(verifyVector(*this, getWeight(), getInput(), "weight")) ||   // C1
      failed(verifyEps(*this, getEps())) || failed(verifyOneType(*this))) // C3, C4
    return failure();
  return verifyShapes(*this);
}
uint64_t RmsNormOp::getFlops() { return 0; }

LogicalResult RmsNormGradOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  if (failed(inferSame(*this, {getInput(), getGradient()}, 1, shapes))) // C1
    return failure();
  if (getWeight()) // C2
    shapes.push_back(Shape(shapeOf(getWeight())));
  return success();
}
LogicalResult RmsNormGradOp::verify() {
  if (failed(verifyVector(*this, getWeight(), getInput(), "weight")) || failed(verifyEps(*this, getEps()))) // C3
    return failure();
  if (failed(verifyNormTypes(*this))) // C4
    return failure();
  if (getWeightGrad() && failed(verifyAccumulator(*this, getWeightGrad(), getInput(), "weight_grad"))) // C2
    return failure();
  return verifyShapes(*this);
}
uint64_t RmsNormGradOp::getFlops() { return 0; }

LogicalResult LayerNormOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  return inferSame(*this, getInput(), 1, shapes); // C2
}
LogicalResult LayerNormOp::verify() {
  if (failed(verifyVector(*this, getWeight(), getInput(), "weight")) ||                                 // C1
      failed(verifyVector(*this, getBias(), getInput(), "bias")) || failed(verifyEps(*this, getEps()))) // C3
    return failure();
  if (getBias() && !getWeight()) // C4
    return emitOpError("expects weight where bias is given");
  if (failed(verifyOneType(*this))) // C5
    return failure();
  return verifyShapes(*this);
}
uint64_t LayerNormOp::getFlops() { return 0; }

LogicalResult LayerNormGradOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  if (failed(inferSame(*this, {getInput(), getGradient()}, 1, shapes))) // C1
    return failure();
  if (shapes.back().empty()) // C3
    return emitOpError("expects an input of rank 1 or more");
  Shape vector{shapes.back().back()};
  if (getWeightGrad()) // C2
    shapes.push_back(vector);
  if (getBiasGrad())
    shapes.push_back(vector);
  return success();
}
LogicalResult LayerNormGradOp::verify() {
  if (failed(verifyVector(*this, getWeight(), getInput(), "weight")) || failed(verifyEps(*this, getEps()))) // C3
    return failure();
  if (failed(verifyNormTypes(*this))) // C4
    return failure();
  if (getWeightGrad() && !getWeight()) // C2
    return emitOpError("expects weight where weight_grad is a result");
  for (auto [vector, name] : {std::pair(getWeightGrad(), "weight_grad"), std::pair(getBiasGrad(), "bias_grad")})
    if (vector && failed(verifyAccumulator(*this, vector, getInput(), name))) // C2
      return failure();
  return verifyShapes(*this);
}
uint64_t LayerNormGradOp::getFlops() { return 0; }

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

// All shapes are equal (C1), and TYPES agree (C2).
#define DROVER_SAME_SHAPE_OP(OP, RESULTS, TYPES)                                                                       \
  LogicalResult OP::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {                                             \
    return inferSame(*this, getOperation()->getOperands(), RESULTS, shapes);                                           \
  }                                                                                                                    \
  LogicalResult OP::verify() { return failed(TYPES) ? failure() : verifyShapes(*this); }                               \
  uint64_t OP::getFlops() { return 0; }

DROVER_SAME_SHAPE_OP(GeluOp, 1, verifyOneType(*this))
DROVER_SAME_SHAPE_OP(GeluGradOp, 1, verifyTypes(*this, getInput(), {getGradient(), getResult()}))
DROVER_SAME_SHAPE_OP(SiluOp, 1, verifyOneType(*this))
DROVER_SAME_SHAPE_OP(SiluGradOp, 1, verifyTypes(*this, getInput(), {getGradient(), getResult()}))
DROVER_SAME_SHAPE_OP(SwigluOp, 1, verifyOneType(*this))
DROVER_SAME_SHAPE_OP(SwigluGradOp, 2,
                     verifyTypes(*this, {getGate(), getUp()}, {getGradient(), getGateGrad(), getUpGrad()}))
