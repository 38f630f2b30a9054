//===- RaiseActivations.cpp - gelu, silu and swiglu -----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Matchers.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include <array>
#include <cmath>

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMRAISEACTIVATIONS
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {
/// Coefficients of x^0 to x^3.
using Cubic = std::array<double, 4>;

std::optional<Cubic> multiply(const Cubic &a, const Cubic &b) {
  Cubic product{};
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      double term = a[i] * b[j];
      if (i + j < 4)
        product[i + j] += term;
      else if (term != 0)
        return std::nullopt;
    }
  return product;
}

/// `value` as a polynomial in `x` of degree 3 at most.
std::optional<Cubic> polynomial(Value value, Value x, int depth = 12) {
  if (value == x)
    return Cubic{0, 1, 0, 0};
  if (std::optional<double> splat = splatValue(value))
    return Cubic{*splat, 0, 0, 0};
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return std::nullopt;
  if (isa<math::PowFOp, math::FPowIOp>(op)) {
    std::optional<Cubic> base = polynomial(op->getOperand(0), x, depth - 1);
    std::optional<double> exponent = splatValue(op->getOperand(1));
    if (!base || !exponent || (*exponent != 2.0 && *exponent != 3.0))
      return std::nullopt;
    std::optional<Cubic> power = multiply(*base, *base);
    return power && *exponent == 3.0 ? multiply(*power, *base) : power;
  }
  if (isa<arith::NegFOp>(op)) {
    std::optional<Cubic> inner = polynomial(op->getOperand(0), x, depth - 1);
    return inner ? multiply(*inner, Cubic{-1, 0, 0, 0}) : std::nullopt;
  }
  if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp>(op))
    return std::nullopt;
  std::optional<Cubic> lhs = polynomial(op->getOperand(0), x, depth - 1);
  std::optional<Cubic> rhs = lhs ? polynomial(op->getOperand(1), x, depth - 1) : std::nullopt;
  if (!rhs)
    return std::nullopt;
  if (isa<arith::MulFOp>(op))
    return multiply(*lhs, *rhs);
  if (isa<arith::DivFOp>(op)) {
    if ((*rhs)[1] != 0 || (*rhs)[2] != 0 || (*rhs)[3] != 0 || (*rhs)[0] == 0)
      return std::nullopt;
    return multiply(*lhs, Cubic{1 / (*rhs)[0], 0, 0, 0});
  }
  for (int i = 0; i < 4; ++i)
    (*lhs)[i] += isa<arith::AddFOp>(op) ? (*rhs)[i] : -(*rhs)[i];
  return lhs;
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-5 * std::abs(b); }

/// Factors of a product: nested multiplications and divisions by splats, opened.
struct Product {
  double constant = 1;
  SmallVector<Value> factors;

  void add(Value value, int depth = 6) {
    if (std::optional<double> splat = splatValue(value)) {
      constant *= *splat;
    } else if (auto divide = value.getDefiningOp<arith::DivFOp>(); divide && splatValue(divide.getRhs())) {
      constant /= *splatValue(divide.getRhs());
      add(divide.getLhs(), depth);
    } else if (auto mul = value.getDefiningOp<arith::MulFOp>(); mul && depth > 0) {
      add(mul.getLhs(), depth - 1);
      add(mul.getRhs(), depth - 1);
    } else {
      factors.push_back(value);
    }
  }
};

/// `value` is 1 + erf(x / sqrt 2) or 1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)), times `factor` (set).
std::optional<GeluKind> matchBell(Value value, Value x, double &factor) {
  Value inner;
  std::optional<double> one = matchWithSplat<arith::AddFOp>(value, inner);
  if (!one || *one == 0)
    return std::nullopt;
  // 0.5 + 0.5 * tanh(..) is as good as 0.5 * (1 + tanh(..)).
  factor = *one;
  Value function = inner;
  std::optional<double> scale = matchScaled(inner, function);
  if (!close(scale.value_or(1.0), *one))
    return std::nullopt;
  if (auto erf = function.getDefiningOp<math::ErfOp>()) {
    std::optional<Cubic> argument = polynomial(erf.getOperand(), x);
    if (argument && (*argument)[0] == 0 && close((*argument)[1], M_SQRT1_2) && (*argument)[2] == 0 &&
        (*argument)[3] == 0)
      return GeluKind::Erf;
  } else if (auto tanh = function.getDefiningOp<math::TanhOp>()) {
    std::optional<Cubic> argument = polynomial(tanh.getOperand(), x);
    double slope = std::sqrt(2 / M_PI);
    if (argument && (*argument)[0] == 0 && close((*argument)[1], slope) && (*argument)[2] == 0 &&
        close((*argument)[3], slope * 0.044715))
      return GeluKind::Tanh;
  }
  return std::nullopt;
}

/// x * 0.5 * (1 + erf or tanh) in any order -> gelu.
struct ProductToGelu : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::MulFOp op, PatternRewriter &rewriter) const override {
    Product product;
    product.add(op.getResult());
    // x itself may be a product: try one factor as the bell and the others, in turn, as x.
    for (Value bell : product.factors)
      for (Value x : product.factors) {
        double factor = 1;
        std::optional<GeluKind> kind = bell == x ? std::nullopt : matchBell(bell, x, factor);
        if (!kind || product.factors.size() != 2 || !close(product.constant * factor, 0.5))
          continue;
        rewriter.replaceOpWithNewOp<GeluOp>(op, op.getType(), x, *kind);
        return success();
      }
    // x is a product itself: x * (0.5 * bell) or (x * 0.5) * bell.
    for (unsigned side : {0u, 1u}) {
      Value x = op->getOperand(1 - side), bell = op->getOperand(side);
      double constant = 1, factor = 1;
      for (Value *operand : {&x, &bell}) {
        Value inner;
        if (std::optional<double> scale = matchScaled(*operand, inner); scale && close(*scale, 0.5)) {
          constant *= *scale;
          *operand = inner;
        }
      }
      std::optional<GeluKind> kind = matchBell(bell, x, factor);
      if (!kind || !close(constant * factor, 0.5))
        continue;
      rewriter.replaceOpWithNewOp<GeluOp>(op, op.getType(), x, *kind);
      return success();
    }
    return failure();
  }
};

/// x * sigmoid(x) -> silu.
struct ProductToSilu : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::MulFOp op, PatternRewriter &rewriter) const override {
    for (unsigned side : {0u, 1u}) {
      Value x;
      if (!matchSigmoid(op->getOperand(side), x) || x != op->getOperand(1 - side))
        continue;
      rewriter.replaceOpWithNewOp<SiluOp>(op, op.getType(), x);
      return success();
    }
    return failure();
  }
};

/// x / (1 + exp(-x)) -> silu.
struct QuotientToSilu : OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::DivFOp op, PatternRewriter &rewriter) const override {
    Value exponential;
    std::optional<double> one = matchWithSplat<arith::AddFOp>(op.getRhs(), exponential);
    auto exp = exponential ? exponential.getDefiningOp<math::ExpOp>() : math::ExpOp();
    if (!one || *one != 1.0 || !exp)
      return failure();
    auto negate = exp.getOperand().getDefiningOp<arith::NegFOp>();
    if (!negate || negate.getOperand() != op.getLhs())
      return failure();
    rewriter.replaceOpWithNewOp<SiluOp>(op, op.getType(), op.getLhs());
    return success();
  }
};

/// silu(gate) * up -> swiglu. With both factors silus the first is the gate.
struct ProductToSwiglu : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::MulFOp op, PatternRewriter &rewriter) const override {
    for (unsigned side : {0u, 1u}) {
      auto silu = op->getOperand(side).getDefiningOp<SiluOp>();
      if (!silu || !silu->hasOneUse())
        continue;
      rewriter.replaceOpWithNewOp<SwigluOp>(op, op.getType(), silu.getInput(), op->getOperand(1 - side));
      return success();
    }
    return failure();
  }
};

struct RaiseActivations : impl::TfmRaiseActivationsBase<RaiseActivations> {
  using TfmRaiseActivationsBase::TfmRaiseActivationsBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ProductToGelu, ProductToSilu, QuotientToSilu, ProductToSwiglu>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
} // namespace drover::tfm
