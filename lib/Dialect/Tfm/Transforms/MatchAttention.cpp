//===- MatchAttention.cpp - what lies around a softmax --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "MatchAttention.h"
#include "MaskHypothesis.h"
#include "Matchers.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;

namespace drover::tfm {

//===----------------------------------------------------------------------===//
// From the softmax up: the scores
//===----------------------------------------------------------------------===//

bool leadsToProduct(Value value, int depth) {
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return false;
  if (isa<MatmulOp>(op))
    return true;
  if (isa<arith::ExtFOp, arith::TruncFOp, ReshapeOp, math::TanhOp>(op))
    return leadsToProduct(op->getOperand(0), depth - 1);
  if (isa<arith::AddFOp, arith::MulFOp, arith::DivFOp, arith::MaximumFOp, arith::SelectOp>(op))
    return llvm::any_of(op->getOperands(), [&](Value operand) { return leadsToProduct(operand, depth - 1); });
  return false;
}

std::optional<Scores> matchScores(Value value) {
  Scores scores;
  double scale = 1; // of what is still to come
  while (true) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return std::nullopt;
    if (auto product = dyn_cast<MatmulOp>(op)) {
      scores.product = product;
      scores.scale = scale * scores.softcap.value_or(1.0);
      return scores;
    }
    Value input;
    if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
      value = op->getOperand(0);
    } else if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      // [B * heads, S, T] and [B, heads, S, T] are alternated between.
      auto from = cast<RankedTensorType>(reshape.getInput().getType()), to = cast<RankedTensorType>(reshape.getType());
      std::optional<Sizes> fromSizes = symbolicSizes(reshape.getInput()), toSizes = symbolicSizes(reshape);
      if (from.getRank() < 3 || to.getRank() < 3 || !fromSizes || !toSizes ||
          ArrayRef(*fromSizes).take_back(2) != ArrayRef(*toSizes).take_back(2))
        return std::nullopt;
      value = reshape.getInput();
    } else if (std::optional<double> factor = matchScaled(value, input)) {
      scale *= *factor;
      value = input;
    } else if (auto tanh = dyn_cast<math::TanhOp>(op)) {
      if (scores.softcap || !(scale > 0))
        return std::nullopt;
      scores.softcap = scale;
      scale = 1;
      value = tanh.getOperand();
    } else if (scores.softcap) {
      return std::nullopt; // a mask inside the tanh
    } else if (isa<arith::AddFOp>(op)) {
      unsigned side = leadsToProduct(op->getOperand(0)) ? 0 : 1;
      if (leadsToProduct(op->getOperand(1 - side)))
        return std::nullopt;
      MaskTerm term;
      term.value = op->getOperand(1 - side);
      term.scale = scale;
      scores.masks.push_back(term);
      value = op->getOperand(side);
    } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
      std::optional<double> onFalse = splatValue(select.getFalseValue()), onTrue = splatValue(select.getTrueValue());
      std::optional<double> fill = onFalse ? onFalse : onTrue;
      if (!fill || *fill * scale > kMaskedBelow || !isa<RankedTensorType>(select.getCondition().getType()))
        return std::nullopt;
      MaskTerm term;
      term.value = select.getCondition();
      term.condition = true;
      term.keepsWhere = onFalse.has_value();
      term.fill = *fill * scale;
      scores.masks.push_back(term);
      value = onFalse ? select.getTrueValue() : select.getFalseValue();
    } else if (auto maximum = dyn_cast<arith::MaximumFOp>(op)) {
      // Keeps two added masks from overflowing to -inf.
      std::optional<double> bound = matchWithSplat<arith::MaximumFOp>(value, input);
      if (!bound || *bound > -1e30)
        return std::nullopt;
      value = input;
    } else {
      return std::nullopt;
    }
  }
}

//===----------------------------------------------------------------------===//
// From the softmax down: the product with the values
//===----------------------------------------------------------------------===//

/// The guard `isnan(p) ? 0 : p` that frameworks put behind a softmax; tfm.attention has it built in.
static arith::SelectOp nanGuardOf(Value probabilities) {
  arith::SelectOp guard;
  for (Operation *user : probabilities.getUsers()) {
    if (auto compare = dyn_cast<arith::CmpFOp>(user)) {
      bool isNan = (compare.getPredicate() == arith::CmpFPredicate::UNO ||
                    compare.getPredicate() == arith::CmpFPredicate::UNE) &&
                   compare.getLhs() == compare.getRhs();
      if (!isNan)
        return {};
      continue;
    }
    auto select = dyn_cast<arith::SelectOp>(user);
    if (!select || (guard && guard != select))
      return {};
    guard = select;
  }
  if (!guard || guard.getFalseValue() != probabilities || !isSplat(guard.getTrueValue(), 0.0))
    return {};
  auto compare = guard.getCondition().getDefiningOp<arith::CmpFOp>();
  return compare && compare.getLhs() == probabilities ? guard : arith::SelectOp();
}

/// The maximum over the last dimension of a constant mask that allows a key in every row.
static bool hasKeyInEveryRow(ReduceOp reduce) {
  DenseFPElementsAttr values;
  if (!matchPattern(reduce.getInput(), m_Constant(&values)) ||
      reduce.getAxes() != ArrayRef<int64_t>{values.getType().getRank() - 1})
    return false;
  int64_t length = values.getType().getShape().back(), index = 0;
  bool allowed = false;
  for (const APFloat &value : values.getValues<APFloat>()) {
    allowed |= !(value.isInfinity() && value.isNegative());
    if (++index % length == 0 && !std::exchange(allowed, false))
      return false;
  }
  return true;
}

/// The guard `max(row of the added mask) == -inf ? 0 : p` of the function body of ONNX's Attention: a row whose keys
/// are all masked gives zero, as tfm.attention has it.
static arith::SelectOp maskedRowGuardOf(Value probabilities, const Scores &scores) {
  if (!probabilities.hasOneUse() || scores.masks.size() != 1 || scores.masks.front().condition)
    return {};
  auto guard = dyn_cast<arith::SelectOp>(*probabilities.user_begin());
  if (!guard || guard.getFalseValue() != probabilities || !isSplat(guard.getTrueValue(), 0.0) ||
      !isa<RankedTensorType>(guard.getCondition().getType()))
    return {};
  View rows = View::trace(guard.getCondition(), /*broadcasts=*/true);
  View mask = View::trace(scores.masks.front().value, /*broadcasts=*/true);
  auto compare = rows.root.getDefiningOp<arith::CmpFOp>();
  if (!compare || compare.getPredicate() != arith::CmpFPredicate::OEQ || splatValue(compare.getRhs()) != -INFINITY)
    return {};
  auto reduce = compare.getLhs().getDefiningOp<ReduceOp>();
  if (!reduce || reduce.getKind() != ReduceKind::Max)
    return {};
  if (hasKeyInEveryRow(reduce))
    return guard;
  if (reduce.getInput() != mask.root || !reduce.getKeep() ||
      reduce.getAxes() != ArrayRef<int64_t>{cast<RankedTensorType>(mask.root.getType()).getRank() - 1})
    return {};
  // The rows of the mask and those of the scores meet in the same way in both.
  auto same = [](ArrayRef<Factor> a, ArrayRef<Factor> b) {
    return a.size() == b.size() && llvm::all_of(llvm::zip(a, b), [](auto pair) {
             auto &[x, y] = pair;
             return x.dim == y.dim && x.size == y.size;
           });
  };
  if (rows.dims.size() != mask.dims.size() || rows.dims.empty())
    return {};
  for (auto [a, b] : llvm::zip(ArrayRef(rows.dims).drop_back(), ArrayRef(mask.dims).drop_back()))
    if (!same(a, b))
      return {};
  bool wholeRow = llvm::all_of(rows.dims.back(), [](const Factor &factor) { return factor.isRepeated(); });
  return wholeRow ? guard : arith::SelectOp();
}

MatmulOp matchOutput(Value probabilities, const Scores &scores) {
  while (true) {
    arith::SelectOp guard = nanGuardOf(probabilities);
    if (!guard)
      guard = maskedRowGuardOf(probabilities, scores);
    if (guard) {
      probabilities = guard.getResult();
      continue;
    }
    if (!probabilities.hasOneUse())
      return {};
    Operation *user = *probabilities.user_begin();
    if (auto output = dyn_cast<MatmulOp>(user))
      return output.getLhs() == probabilities && !output.getTransposeLhs() ? output : MatmulOp();
    if (auto reshape = dyn_cast<ReshapeOp>(user)) {
      std::optional<Sizes> from = symbolicSizes(reshape.getInput()), to = symbolicSizes(reshape);
      if (!from || !to || from->size() < 3 || to->size() < 3 ||
          ArrayRef(*from).take_back(2) != ArrayRef(*to).take_back(2))
        return {};
    } else if (!isa<arith::TruncFOp, arith::ExtFOp>(user)) {
      return {};
    }
    probabilities = user->getResult(0);
  }
}

} // namespace drover::tfm
