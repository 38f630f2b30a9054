//===- Matchers.cpp - spellings of small formulas -------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Matchers.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace drover::tfm;

static std::optional<double> numberOf(Attribute attribute) {
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  if (auto number = dyn_cast<IntegerAttr>(attribute))
    return number.getType().isInteger(1) ? static_cast<double>(number.getValue().getBoolValue())
                                         : static_cast<double>(number.getInt());
  return std::nullopt;
}

std::optional<double> drover::tfm::splatValue(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<ReshapeOp, TransposeOp, BroadcastOp, SliceOp, arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp>(op)) {
      value = op->getOperand(0);
      continue;
    }
    if (auto fill = dyn_cast<FillOp>(op))
      return numberOf(fill.getValue());
    Attribute attribute;
    if (!matchPattern(op, m_Constant(&attribute)))
      return std::nullopt;
    auto elements = dyn_cast<DenseElementsAttr>(attribute);
    if (!elements || !elements.isSplat())
      return std::nullopt;
    return numberOf(elements.getSplatValue<Attribute>());
  }
  return std::nullopt;
}

bool drover::tfm::isSplat(Value value, double expected) {
  std::optional<double> splat = splatValue(value);
  return splat && std::abs(*splat - expected) <= 1e-6 * std::abs(expected);
}

Value drover::tfm::stripCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

std::optional<double> drover::tfm::matchScaled(Value value, Value &input) {
  if (std::optional<double> factor = matchWithSplat<arith::MulFOp>(value, input))
    return factor;
  if (std::optional<double> divisor = matchWithSplat<arith::DivFOp>(value, input, /*commutes=*/false);
      divisor && *divisor != 0)
    return 1.0 / *divisor;
  return std::nullopt;
}

Value drover::tfm::matchVector(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  View view = View::trace(value, /*broadcasts=*/true);
  auto root = cast<RankedTensorType>(view.root.getType());
  if (root.getRank() != 1 || type.getRank() == 0 || view.dims.size() != static_cast<size_t>(type.getRank()))
    return {};
  for (const auto &dim : ArrayRef(view.dims).drop_back())
    if (!llvm::all_of(dim, [](const Factor &factor) { return factor.isRepeated(); }))
      return {};
  if (root.getDimSize(0) == 1 ? !view.dims.back().empty() : view.wholeRootDim(type.getRank() - 1) != 0u)
    return {};
  return view.root;
}

Value drover::tfm::matchRow(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  View view = View::trace(value, /*broadcasts=*/true);
  if (type.getRank() == 0 || view.dims.size() != static_cast<size_t>(type.getRank()))
    return {};
  std::optional<Sizes> sizes = symbolicSizes(view.root);
  if (!sizes || !llvm::all_of(view.dims.back(), [](const Factor &factor) { return factor.isRepeated(); }))
    return {};
  // The leading dimensions are those of the root, in order; what the root has beyond has size 1.
  unsigned leading = type.getRank() - 1;
  if (sizes->size() < leading ||
      !llvm::all_of(ArrayRef(*sizes).drop_front(leading), [](const Size &s) { return s.isOne(); }))
    return {};
  for (unsigned dim = 0; dim < leading; ++dim)
    if (view.dims[dim].empty() ? !(*sizes)[dim].isOne() : view.wholeRootDim(dim) != std::optional<unsigned>(dim))
      return {};
  return view.root;
}

bool drover::tfm::matchRowMean(Value value, Value &input) {
  value = stripCasts(value);
  Value summed = value;
  std::optional<double> factor = matchScaled(value, summed);
  auto reduce = summed.getDefiningOp<ReduceOp>();
  if (!reduce)
    return false;
  auto type = cast<RankedTensorType>(reduce.getInput().getType());
  if (reduce.getAxes() != ArrayRef<int64_t>{type.getRank() - 1})
    return false;
  input = stripCasts(reduce.getInput());
  if (reduce.getKind() == ReduceKind::Mean)
    return !factor;
  int64_t size = type.getShape().back();
  return reduce.getKind() == ReduceKind::Sum && factor && !ShapedType::isDynamic(size) &&
         std::abs(*factor * size - 1.0) < 1e-6;
}

bool drover::tfm::matchSquare(Value value, Value &input) {
  value = stripCasts(value);
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumOperands() != 2)
    return false;
  bool square = isa<arith::MulFOp>(op) ? stripCasts(op->getOperand(0)) == stripCasts(op->getOperand(1))
                                       : isa<math::PowFOp, math::FPowIOp>(op) && isSplat(op->getOperand(1), 2.0);
  input = stripCasts(op->getOperand(0));
  return square;
}

bool drover::tfm::matchSigmoid(Value value, Value &input) {
  auto divide = value.getDefiningOp<arith::DivFOp>();
  if (!divide || !isSplat(divide.getLhs(), 1.0))
    return false;
  Value exponential;
  std::optional<double> one = matchWithSplat<arith::AddFOp>(divide.getRhs(), exponential);
  if (!one || *one != 1.0)
    return false;
  auto exp = exponential.getDefiningOp<math::ExpOp>();
  if (!exp)
    return false;
  if (auto negate = exp.getOperand().getDefiningOp<arith::NegFOp>()) {
    input = negate.getOperand();
    return true;
  }
  std::optional<double> factor = matchScaled(exp.getOperand(), input);
  return factor && *factor == -1.0;
}

bool drover::tfm::isParameter(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  return function && function.getArgAttr(argument.getArgNumber(), TfmDialect::kParameterAttr);
}

WalkResult drover::tfm::walkSources(Value value, function_ref<WalkResult(Value)> visit) {
  SmallVector<Value> worklist{value};
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (visit(next).wasInterrupted())
      return WalkResult::interrupt();
    if (Operation *op = next.getDefiningOp())
      llvm::append_range(worklist, op->getOperands());
  }
  return WalkResult::advance();
}

bool drover::tfm::isTable(Value value) {
  WalkResult result = walkSources(value, [](Value source) {
    Operation *op = source.getDefiningOp();
    bool excluded = op ? isa<EmbeddingOp, LinearOp, RmsNormOp, LayerNormOp, AttentionOp>(op)
                       : isParameter(source) || isa<FloatType>(getElementTypeOrSelf(source));
    return excluded ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !result.wasInterrupted();
}
