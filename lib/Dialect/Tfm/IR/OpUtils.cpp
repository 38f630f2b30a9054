//===- OpUtils.cpp - shared pieces of the verifiers -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "OpUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace drover::tfm;

bool drover::tfm::compatible(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  return succeeded(verifyCompatibleShape(a, b));
}

Shape drover::tfm::refine(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  Shape result;
  for (auto [x, y] : llvm::zip(a, b))
    result.push_back(refine(x, y));
  return result;
}

std::string drover::tfm::str(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << '[';
  llvm::interleave(
      shape, stream,
      [&](int64_t size) {
        if (ShapedType::isDynamic(size))
          stream << '?';
        else
          stream << size;
      },
      "x");
  stream << ']';
  return text;
}

SmallVector<int64_t> drover::tfm::evaluateSizes(AffineMap map, ArrayRef<int64_t> symbols) {
  MLIRContext *context = map.getContext();
  SmallVector<AffineExpr> replacements;
  for (unsigned i = 0; i < map.getNumSymbols(); ++i)
    replacements.push_back(i < symbols.size() && !ShapedType::isDynamic(symbols[i])
                               ? getAffineConstantExpr(symbols[i], context)
                               : getAffineSymbolExpr(i, context));
  Shape result;
  for (AffineExpr expr : map.getResults()) {
    AffineExpr value = simplifyAffineExpr(expr.replaceSymbols(replacements), map.getNumDims(), map.getNumSymbols());
    auto constant = dyn_cast<AffineConstantExpr>(value);
    result.push_back(constant ? constant.getValue() : ShapedType::kDynamic);
  }
  return result;
}

LogicalResult drover::tfm::verifyShapes(Operation *op) {
  SmallVector<SmallVector<int64_t>> shapes;
  if (failed(cast<ShapeInferenceOpInterface>(op).inferResultShapes({}, shapes)))
    return failure();
  if (shapes.size() != op->getNumResults())
    return op->emitOpError("expects ") << shapes.size() << " results, has " << op->getNumResults();
  for (auto [index, shape] : llvm::enumerate(shapes))
    if (!compatible(shape, shapeOf(op->getResult(index))))
      return op->emitOpError("expects result ")
             << index << " to have shape " << str(shape) << ", not " << str(shapeOf(op->getResult(index)));
  return success();
}

uint64_t drover::tfm::countProduct(ArrayRef<uint64_t> counts) {
  if (llvm::is_contained(counts, 0))
    return 0; // also where the rest exceeds 64 bits
  uint64_t result = 1;
  for (uint64_t count : counts)
    result = llvm::SaturatingMultiply(result, count);
  return result;
}

uint64_t drover::tfm::sizeProduct(ArrayRef<int64_t> sizes) {
  SmallVector<uint64_t> counts;
  for (int64_t size : sizes)
    counts.push_back(ShapedType::isDynamic(size) ? 0 : static_cast<uint64_t>(size));
  return countProduct(counts);
}

uint64_t drover::tfm::elements(Value value) { return sizeProduct(shapeOf(value)); }

int64_t drover::tfm::product(int64_t a, int64_t b) {
  int64_t result;
  if (ShapedType::isDynamic(a) || ShapedType::isDynamic(b) || llvm::MulOverflow(a, b, result))
    return ShapedType::kDynamic;
  return result;
}

uint64_t drover::tfm::detail::minimumBytes(Operation *op) {
  uint64_t total = 0;
  auto add = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return;
    Type element = type.getElementType();
    uint64_t bytes = element.isIndex() ? 8 : (element.getIntOrFloatBitWidth() + 7) / 8;
    total = llvm::SaturatingMultiplyAdd(elements(value), bytes, total);
  };
  llvm::SmallPtrSet<Value, 8> seen;
  for (Value operand : op->getOperands())
    if (seen.insert(operand).second)
      add(operand);
  for (Value result : op->getResults())
    add(result);
  return total;
}

LogicalResult drover::tfm::verifyConstantIndices(Operation *op, Value indices, ArrayRef<int64_t> sizes, bool fromEnd) {
  DenseIntElementsAttr constant;
  if (sizes.empty() || !matchPattern(indices, m_Constant(&constant)))
    return success();
  auto check = [&](const APInt &index, int64_t size) -> LogicalResult {
    int64_t low = fromEnd && !ShapedType::isDynamic(size) ? -size : 0;
    if (ShapedType::isDynamic(size) || (index.sge(low) && index.slt(size)))
      return success();
    return op->emitOpError("expects indices in [") << low << ", " << size << "), not " << index.getSExtValue();
  };
  if (constant.empty())
    return success();
  if (constant.isSplat()) {
    for (int64_t size : sizes)
      if (failed(check(constant.getSplatValue<APInt>(), size)))
        return failure();
    return success();
  }
  for (auto [i, index] : llvm::enumerate(constant.getValues<APInt>()))
    if (failed(check(index, sizes[i % sizes.size()])))
      return failure();
  return success();
}

LogicalResult drover::tfm::verifySameElementType(Operation *op, ValueRange values) {
  Type first = getElementTypeOrSelf(values.front());
  for (Value value : values.drop_front())
    if (getElementTypeOrSelf(value) != first)
      return op->emitOpError("expects equal element types, not ") << first << " and " << getElementTypeOrSelf(value);
  return success();
}

LogicalResult drover::tfm::verifyAccumulator(Operation *op, Value value, Value of, StringRef name) {
  Type expected = accumulatorType(getElementTypeOrSelf(of)), actual = getElementTypeOrSelf(value);
  if (actual != expected)
    return op->emitOpError("expects ") << name << " of " << expected << ", not " << actual;
  return success();
}

Type drover::tfm::accumulatorType(Type type) { return type.isF64() ? type : Float32Type::get(type.getContext()); }

LogicalResult drover::tfm::inferSame(Operation *op, ValueRange operands, unsigned results, Shapes &shapes) {
  Shape shape(shapeOf(operands.front()));
  for (Value operand : operands.drop_front()) {
    if (!compatible(shape, shapeOf(operand)))
      return op->emitOpError("expects operands of equal shapes, not ")
             << str(shape) << " and " << str(shapeOf(operand));
    shape = refine(shape, shapeOf(operand));
  }
  shapes.append(results, shape);
  return success();
}
