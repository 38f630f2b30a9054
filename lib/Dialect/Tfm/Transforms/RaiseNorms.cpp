//===- RaiseNorms.cpp - rms_norm and layer_norm ---------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Matchers.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMRAISENORMS
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {
/// mean(input^2) + eps, one value a row.
struct MeanSquare {
  Value input;
  double eps;
};

/// A mean may be reshaped to kept dimensions before it is used.
Value belowReshapes(Value mean) {
  View view = View::trace(mean, /*broadcasts=*/false);
  return view.dims.empty() ? mean : view.root;
}

/// True where `value` is the mean of the squares of `input` (set).
bool matchMeanOfSquares(Value value, Value &input) {
  Value squared;
  return matchRowMean(belowReshapes(value), squared) && matchSquare(squared, input);
}

std::optional<MeanSquare> matchMeanSquare(Value value) {
  MeanSquare result;
  Value mean;
  std::optional<double> eps = matchWithSplat<arith::AddFOp>(value, mean);
  if (!eps || !(*eps >= 0) || !matchMeanOfSquares(mean, result.input))
    return std::nullopt;
  result.eps = *eps;
  return result;
}

/// mean(input^2) - mean(input)^2 + eps: the variance as the function body of ONNX's LayerNormalization has it.
std::optional<MeanSquare> matchVariance(Value value) {
  MeanSquare result;
  Value variance, mean, averaged;
  std::optional<double> eps = matchWithSplat<arith::AddFOp>(value, variance);
  auto difference = variance ? variance.getDefiningOp<arith::SubFOp>() : arith::SubFOp();
  if (!eps || !(*eps >= 0) || !difference || !matchMeanOfSquares(difference.getLhs(), result.input) ||
      !matchSquare(difference.getRhs(), mean) || !matchRowMean(belowReshapes(mean), averaged) ||
      averaged != result.input)
    return std::nullopt;
  result.eps = *eps;
  return result;
}

/// x where `value` is x - mean(x), each row with its own mean.
Value matchCentred(Value value) {
  auto centred = value.getDefiningOp<arith::SubFOp>();
  Value mean = centred ? matchRow(centred.getRhs()) : Value(), averaged;
  if (!mean || !matchRowMean(belowReshapes(mean), averaged) || averaged != stripCasts(centred.getLhs()))
    return {};
  return centred.getLhs();
}

/// `value` is 1/sqrt(v) (reciprocal true) or sqrt(v) (false) of `operand`.
bool matchRoot(Value value, Value &operand, bool &reciprocal) {
  value = stripCasts(value);
  if (auto root = value.getDefiningOp<math::SqrtOp>()) {
    operand = root.getOperand();
    reciprocal = false;
    return true;
  }
  reciprocal = true;
  if (auto root = value.getDefiningOp<math::RsqrtOp>()) {
    operand = root.getOperand();
    return true;
  }
  if (auto power = value.getDefiningOp<math::PowFOp>()) {
    operand = power.getLhs();
    if (isSplat(power.getRhs(), -0.5))
      return true;
    reciprocal = false;
    return isSplat(power.getRhs(), 0.5);
  }
  auto divide = value.getDefiningOp<arith::DivFOp>();
  if (!divide || !isSplat(divide.getLhs(), 1.0))
    return false;
  bool inner = false;
  return matchRoot(divide.getRhs(), operand, inner) && !inner;
}

/// `op` divides `input` by the root of a value per row: x * rsqrt(v) or x / sqrt(v).
bool matchDividedByRoot(Operation *op, Value &input, Value &variance) {
  for (unsigned side : {1u, 0u}) {
    if (side == 0 && !isa<arith::MulFOp>(op))
      break;
    Value row = matchRow(op->getOperand(side));
    bool reciprocal = false;
    if (!row || !matchRoot(row, variance, reciprocal) || reciprocal != isa<arith::MulFOp>(op))
      continue;
    input = op->getOperand(1 - side);
    return true;
  }
  return false;
}

/// The value from which `value` was widened, where a cast back to its type follows.
FloatAttr f64(PatternRewriter &rewriter, double value) { return rewriter.getF64FloatAttr(value); }

/// The shortest decimal that is `value` in f32: 1e-6 rather than 9.9999999747e-7.
double shortest(double value) {
  for (int digits = 1; digits < 9; ++digits) {
    llvm::SmallString<32> text;
    llvm::raw_svector_ostream(text) << llvm::format("%.*e", digits - 1, value);
    double candidate = 0;
    if (!text.str().getAsDouble(candidate) && static_cast<float>(candidate) == static_cast<float>(value))
      return candidate;
  }
  return value;
}

/// x / sqrt(mean(x^2) + eps) -> rms_norm without weight; (x - mean) / sqrt(variance + eps) -> layer_norm.
struct NormalizedRows : RewritePattern {
  NormalizedRows(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<arith::MulFOp, arith::DivFOp>(op) || !isa<RankedTensorType>(op->getResult(0).getType()))
      return failure();
    Value input, variance;
    if (!matchDividedByRoot(op, input, variance))
      return failure();
    Type type = op->getResult(0).getType();
    // Centred rows make it a layer norm. Each use may have its own subtraction.
    Value source = matchCentred(stripCasts(input));
    std::optional<MeanSquare> square = matchMeanSquare(variance), moments;
    bool centred = source && source.getType() == type;
    if (!square && centred && (moments = matchVariance(variance)) && moments->input == stripCasts(source)) {
      rewriter.replaceOpWithNewOp<LayerNormOp>(op, type, source, Value(), Value(),
                                               f64(rewriter, shortest(moments->eps)));
      return success();
    }
    if (!square || stripCasts(input) != square->input)
      return failure();
    FloatAttr eps = f64(rewriter, shortest(square->eps));
    if (centred)
      rewriter.replaceOpWithNewOp<LayerNormOp>(op, type, source, Value(), Value(), eps);
    else
      rewriter.replaceOpWithNewOp<RmsNormOp>(op, type, input, Value(), eps, f64(rewriter, 0.0));
    return success();
  }
};

/// norm(x) * w -> norm(x, w); (1 + w) becomes the weight_offset of rms_norm.
struct ScaledNorm : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::MulFOp op, PatternRewriter &rewriter) const override {
    for (unsigned side : {0u, 1u}) {
      Value normed = op->getOperand(side);
      auto rms = normed.getDefiningOp<RmsNormOp>();
      auto layer = normed.getDefiningOp<LayerNormOp>();
      if ((!rms || rms.getWeight()) && (!layer || layer.getWeight()))
        continue;
      Value weight = matchVector(op->getOperand(1 - side));
      if (!weight)
        continue;
      if (layer) {
        rewriter.replaceOpWithNewOp<LayerNormOp>(op, op.getType(), layer.getInput(), weight, Value(),
                                                 layer.getEpsAttr());
        return success();
      }
      double offset = 0;
      Value plain;
      if (std::optional<double> plus = matchWithSplat<arith::AddFOp>(weight, plain); plus && matchVector(plain)) {
        offset = *plus;
        weight = matchVector(plain);
      }
      rewriter.replaceOpWithNewOp<RmsNormOp>(op, op.getType(), rms.getInput(), weight, rms.getEpsAttr(),
                                             f64(rewriter, offset));
      return success();
    }
    return failure();
  }
};

/// layer_norm(x, w) + b -> layer_norm(x, w, b).
struct ShiftedNorm : RewritePattern {
  ShiftedNorm(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<arith::AddFOp, BiasAddOp>(op))
      return failure();
    for (unsigned side : {0u, 1u}) {
      auto layer = op->getOperand(side).getDefiningOp<LayerNormOp>();
      if (!layer || !layer.getWeight() || layer.getBias() || cast<RankedTensorType>(layer.getType()).getRank() < 2)
        continue;
      Value bias = matchVector(op->getOperand(1 - side));
      if (!bias)
        continue;
      rewriter.replaceOpWithNewOp<LayerNormOp>(op, op->getResult(0).getType(), layer.getInput(), layer.getWeight(),
                                               bias, layer.getEpsAttr());
      return success();
    }
    return failure();
  }
};

/// A norm computes in f32 by itself: the casts around it go.
template <typename OpT> struct NarrowNorm : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    auto norm = op.getIn().template getDefiningOp<OpT>();
    auto wide = norm ? norm.getInput().template getDefiningOp<arith::ExtFOp>() : arith::ExtFOp();
    if (!wide || wide.getIn().getType() != op.getType() || norm.getWeight())
      return failure();
    rewriter.modifyOpInPlace(norm, [&] {
      norm.getInputMutable().assign(wide.getIn());
      norm.getResult().setType(cast<RankedTensorType>(op.getType()));
    });
    rewriter.replaceOp(op, norm.getResult());
    return success();
  }
};

/// An eps that an exporter rounded to f32, in norms of any origin.
template <typename OpT> struct ShortenEps : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const override {
    double eps = op.getEps().convertToDouble(), shorter = shortest(eps);
    if (!std::isfinite(eps) || eps == shorter)
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.setEps(APFloat(shorter)); });
    return success();
  }
};

struct RaiseNorms : impl::TfmRaiseNormsBase<RaiseNorms> {
  using TfmRaiseNormsBase::TfmRaiseNormsBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<NormalizedRows, ScaledNorm, ShiftedNorm, NarrowNorm<RmsNormOp>, NarrowNorm<LayerNormOp>,
                 ShortenEps<RmsNormOp>, ShortenEps<LayerNormOp>>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
} // namespace drover::tfm
