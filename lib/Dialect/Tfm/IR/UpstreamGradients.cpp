//===- UpstreamGradients.cpp - rules of arith and math ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GradientBuilder.h"
#include "drover/Dialect/Tfm/IR/Gradients.h"
#include <cmath>

using namespace mlir;
using namespace drover::tfm;

namespace {
/// Attaches `rule` to an op. The rule sees operands and results in the type of the arithmetic.
template <typename OpT, void (*rule)(OpT, GradientBuilder &)>
struct Model : DifferentiableOpInterface::ExternalModel<Model<OpT, rule>, OpT> {
  LogicalResult applyGradientRule(Operation *op, GradientBuilder &gradients) const {
    rule(cast<OpT>(op), gradients);
    return success();
  }
};

using Rule = GradientBuilder;
using Predicate = arith::CmpFPredicate;
} // namespace

static Value operand(Operation *op, Rule &rule, unsigned i = 0) { return rule.wide(op->getOperand(i)); }
static Value result(Operation *op, Rule &rule) { return rule.wide(op->getResult(0)); }

//===----------------------------------------------------------------------===//
// arith
//===----------------------------------------------------------------------===//

/// Casts, and everything else whose gradient is that of the result.
template <typename OpT> static void passOn(OpT, Rule &rule) { rule.set(0, rule.gradient()); }

/// Steps (floor, round, ..): the gradient is zero wherever it exists.
template <typename OpT> static void zero(OpT, Rule &) {}

static void addGradient(arith::AddFOp, Rule &rule) {
  rule.set(0, rule.gradient());
  rule.set(1, rule.gradient());
}
static void subGradient(arith::SubFOp, Rule &rule) {
  rule.set(0, rule.gradient());
  if (rule.wanted(1))
    rule.set(1, rule.neg(rule.wideGradient()));
}
static void negGradient(arith::NegFOp, Rule &rule) { rule.set(0, rule.neg(rule.wideGradient())); }
static void mulGradient(arith::MulFOp op, Rule &rule) {
  for (unsigned i : {0, 1})
    if (rule.wanted(i))
      rule.set(i, rule.mul(rule.wideGradient(), operand(op, rule, 1 - i)));
}
static void divGradient(arith::DivFOp op, Rule &rule) {
  Value share = rule.div(rule.wideGradient(), operand(op, rule, 1));
  rule.set(0, share);
  if (rule.wanted(1))
    rule.set(1, rule.neg(rule.div(rule.mul(share, operand(op, rule, 0)), operand(op, rule, 1))));
}
/// a - b * trunc(a / b)
static void remGradient(arith::RemFOp op, Rule &rule) {
  rule.set(0, rule.gradient());
  if (rule.wanted(1)) {
    Value quotient = rule.create<math::TruncOp>(rule.div(operand(op, rule, 0), operand(op, rule, 1)));
    rule.set(1, rule.neg(rule.mul(rule.wideGradient(), quotient)));
  }
}
/// Of equal operands the second gets the gradient, so that relu, max(x, 0), has none at 0.
template <typename OpT, Predicate predicate> static void extremum(OpT op, Rule &rule) {
  Value first = rule.compare(predicate, op.getLhs(), op.getRhs());
  Value gradient = rule.gradient(), none = rule.constant(0, gradient);
  if (rule.wanted(0))
    rule.set(0, rule.select(first, gradient, none));
  if (rule.wanted(1))
    rule.set(1, rule.select(first, none, gradient));
}
static void selectGradient(arith::SelectOp op, Rule &rule) {
  Value gradient = rule.gradient();
  if (!isa<FloatType>(getElementTypeOrSelf(gradient)))
    return;
  Value none = rule.constant(0, gradient);
  if (rule.wanted(1))
    rule.set(1, rule.select(op.getCondition(), gradient, none));
  if (rule.wanted(2))
    rule.set(2, rule.select(op.getCondition(), none, gradient));
}

//===----------------------------------------------------------------------===//
// math, as functions of x = operand and y = result
//===----------------------------------------------------------------------===//

/// Derivative of a function of one variable.
using Derivative = Value (*)(Rule &rule, Value x, Value y);

template <typename OpT, Derivative derivative> static void unaryGradient(OpT op, Rule &rule) {
  rule.set(0, rule.mul(rule.wideGradient(), derivative(rule, operand(op, rule), result(op, rule))));
}

static Value inverse(Rule &rule, Value x) { return rule.div(rule.constant(1, x), x); }
static Value square(Rule &rule, Value x) { return rule.mul(x, x); }
static Value scaled(Rule &rule, double factor, Value x) { return rule.mul(rule.constant(factor, x), x); }
static Value oneMinus(Rule &rule, Value x) { return rule.sub(rule.constant(1, x), x); }
static Value onePlus(Rule &rule, Value x) { return rule.add(rule.constant(1, x), x); }
/// 1 / sqrt(x)
static Value rsqrt(Rule &rule, Value x) { return rule.create<math::RsqrtOp>(x); }
/// exp(-x^2) * 2 / sqrt(pi)
static Value gaussian(Rule &rule, Value x) {
  return scaled(rule, M_2_SQRTPI, rule.create<math::ExpOp>(rule.neg(square(rule, x))));
}

static Value dAbs(Rule &rule, Value x, Value) { // 0 at 0, as PyTorch has it
  Value zero = rule.constant(0, x);
  Value sign = rule.create<math::CopySignOp>(rule.constant(1, x), x);
  return rule.select(rule.compare(Predicate::OEQ, x, zero), zero, sign);
}
static Value dAcos(Rule &rule, Value x, Value) { return rule.neg(rsqrt(rule, oneMinus(rule, square(rule, x)))); }
static Value dAcosh(Rule &rule, Value x, Value) { return rsqrt(rule, rule.sub(square(rule, x), rule.constant(1, x))); }
static Value dAsin(Rule &rule, Value x, Value) { return rsqrt(rule, oneMinus(rule, square(rule, x))); }
static Value dAsinh(Rule &rule, Value x, Value) { return rsqrt(rule, onePlus(rule, square(rule, x))); }
static Value dAtan(Rule &rule, Value x, Value) { return inverse(rule, onePlus(rule, square(rule, x))); }
static Value dAtanh(Rule &rule, Value x, Value) { return inverse(rule, oneMinus(rule, square(rule, x))); }
static Value dCbrt(Rule &rule, Value, Value y) { return inverse(rule, scaled(rule, 3, square(rule, y))); }
static Value dCos(Rule &rule, Value x, Value) { return rule.neg(rule.create<math::SinOp>(x)); }
static Value dCosh(Rule &rule, Value x, Value) { return rule.create<math::SinhOp>(x); }
static Value dErf(Rule &rule, Value x, Value) { return gaussian(rule, x); }
static Value dErfc(Rule &rule, Value x, Value) { return rule.neg(gaussian(rule, x)); }
static Value dExp(Rule &, Value, Value y) { return y; }
static Value dExp2(Rule &rule, Value, Value y) { return scaled(rule, M_LN2, y); }
static Value dExpM1(Rule &rule, Value, Value y) { return onePlus(rule, y); }
static Value dLog(Rule &rule, Value x, Value) { return inverse(rule, x); }
static Value dLog10(Rule &rule, Value x, Value) { return inverse(rule, scaled(rule, M_LN10, x)); }
static Value dLog1p(Rule &rule, Value x, Value) { return inverse(rule, onePlus(rule, x)); }
static Value dLog2(Rule &rule, Value x, Value) { return inverse(rule, scaled(rule, M_LN2, x)); }
static Value dRsqrt(Rule &rule, Value, Value y) { return scaled(rule, -0.5, rule.mul(y, square(rule, y))); }
static Value dSin(Rule &rule, Value x, Value) { return rule.create<math::CosOp>(x); }
static Value dSinh(Rule &rule, Value x, Value) { return rule.create<math::CoshOp>(x); }
static Value dSqrt(Rule &rule, Value, Value y) { return inverse(rule, scaled(rule, 2, y)); }
static Value dTan(Rule &rule, Value, Value y) { return onePlus(rule, square(rule, y)); }
static Value dTanh(Rule &rule, Value, Value y) { return oneMinus(rule, square(rule, y)); }

static void fmaGradient(math::FmaOp op, Rule &rule) {
  for (unsigned i : {0, 1})
    if (rule.wanted(i))
      rule.set(i, rule.mul(rule.wideGradient(), operand(op, rule, 1 - i)));
  rule.set(2, rule.gradient());
}

/// b a^(b-1), zero where b is zero; a^b log a, zero where a is zero and b is not negative (as PyTorch has them).
static void powGradient(math::PowFOp op, Rule &rule) {
  Value a = operand(op, rule, 0), b = operand(op, rule, 1), gradient = rule.wideGradient();
  Value none = rule.constant(0, a);
  if (rule.wanted(0)) {
    Value power = rule.create<math::PowFOp>(a, rule.sub(b, rule.constant(1, b)));
    Value slope = rule.select(rule.compare(Predicate::OEQ, b, none), none, rule.mul(b, power));
    rule.set(0, rule.mul(gradient, slope));
  }
  if (rule.wanted(1)) {
    Value flat =
        rule.create<arith::AndIOp>(rule.compare(Predicate::OEQ, a, none), rule.compare(Predicate::OGE, b, none));
    Value slope = rule.mul(result(op, rule), rule.create<math::LogOp>(a));
    rule.set(1, rule.mul(gradient, rule.select(flat, none, slope)));
  }
}

/// n a^(n-1), zero where n is zero.
static void powIntegerGradient(math::FPowIOp op, Rule &rule) {
  Value a = operand(op, rule, 0);
  Value n = rule.create<arith::SIToFPOp>(a.getType(), op.getRhs());
  Value none = rule.constant(0, a);
  Value power = rule.create<math::PowFOp>(a, rule.sub(n, rule.constant(1, n)));
  Value slope = rule.select(rule.compare(Predicate::OEQ, n, none), none, rule.mul(n, power));
  rule.set(0, rule.mul(rule.wideGradient(), slope));
}

/// atan2(a, b): (b da - a db) / (a^2 + b^2)
static void atan2Gradient(math::Atan2Op op, Rule &rule) {
  Value a = operand(op, rule, 0), b = operand(op, rule, 1);
  Value share = rule.div(rule.wideGradient(), rule.add(square(rule, a), square(rule, b)));
  if (rule.wanted(0))
    rule.set(0, rule.mul(share, b));
  if (rule.wanted(1))
    rule.set(1, rule.neg(rule.mul(share, a)));
}

/// |a| with the sign of b: the sign of a is undone by its own.
static void copySignGradient(math::CopySignOp op, Rule &rule) {
  if (!rule.wanted(0))
    return;
  Value a = operand(op, rule, 0), b = operand(op, rule, 1);
  Value slope = rule.mul(dAbs(rule, a, {}), rule.create<math::CopySignOp>(rule.constant(1, b), b));
  rule.set(0, rule.mul(rule.wideGradient(), slope));
}

/// The value gets the gradient between the bounds, a bound where it cuts.
static void clampGradient(math::ClampFOp op, Rule &rule) {
  Value gradient = rule.gradient(), none = rule.constant(0, gradient);
  Value below = rule.compare(Predicate::OLT, op.getValue(), op.getMin());
  Value above = rule.compare(Predicate::OGT, op.getValue(), op.getMax());
  if (rule.wanted(0))
    rule.set(0, rule.select(below, none, rule.select(above, none, gradient)));
  if (rule.wanted(1))
    rule.set(1, rule.select(below, gradient, none));
  if (rule.wanted(2))
    rule.set(2, rule.select(above, gradient, none));
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

template <typename OpT, void (*rule)(OpT, Rule &)> static void attach(MLIRContext *context) {
  OpT::template attachInterface<Model<OpT, rule>>(*context);
}
template <typename OpT, Derivative derivative> static void attachUnary(MLIRContext *context) {
  attach<OpT, unaryGradient<OpT, derivative>>(context);
}
template <typename... OpTs> static void attachZero(MLIRContext *context) { (attach<OpTs, zero<OpTs>>(context), ...); }

static void attachArith(MLIRContext *context, arith::ArithDialect *) {
  attach<arith::AddFOp, addGradient>(context);
  attach<arith::DivFOp, divGradient>(context);
  attach<arith::ExtFOp, passOn<arith::ExtFOp>>(context);
  attach<arith::MaxNumFOp, extremum<arith::MaxNumFOp, Predicate::OGT>>(context);
  attach<arith::MaximumFOp, extremum<arith::MaximumFOp, Predicate::OGT>>(context);
  attach<arith::MinNumFOp, extremum<arith::MinNumFOp, Predicate::OLT>>(context);
  attach<arith::MinimumFOp, extremum<arith::MinimumFOp, Predicate::OLT>>(context);
  attach<arith::MulFOp, mulGradient>(context);
  attach<arith::NegFOp, negGradient>(context);
  attach<arith::RemFOp, remGradient>(context);
  attach<arith::SelectOp, selectGradient>(context);
  attach<arith::SubFOp, subGradient>(context);
  attach<arith::TruncFOp, passOn<arith::TruncFOp>>(context);
}

static void attachMath(MLIRContext *context, math::MathDialect *) {
  attachUnary<math::AbsFOp, dAbs>(context);
  attachUnary<math::AcosOp, dAcos>(context);
  attachUnary<math::AcoshOp, dAcosh>(context);
  attachUnary<math::AsinOp, dAsin>(context);
  attachUnary<math::AsinhOp, dAsinh>(context);
  attachUnary<math::AtanOp, dAtan>(context);
  attachUnary<math::AtanhOp, dAtanh>(context);
  attachUnary<math::CbrtOp, dCbrt>(context);
  attachUnary<math::CosOp, dCos>(context);
  attachUnary<math::CoshOp, dCosh>(context);
  attachUnary<math::ErfOp, dErf>(context);
  attachUnary<math::ErfcOp, dErfc>(context);
  attachUnary<math::ExpOp, dExp>(context);
  attachUnary<math::Exp2Op, dExp2>(context);
  attachUnary<math::ExpM1Op, dExpM1>(context);
  attachUnary<math::LogOp, dLog>(context);
  attachUnary<math::Log10Op, dLog10>(context);
  attachUnary<math::Log1pOp, dLog1p>(context);
  attachUnary<math::Log2Op, dLog2>(context);
  attachUnary<math::RsqrtOp, dRsqrt>(context);
  attachUnary<math::SinOp, dSin>(context);
  attachUnary<math::SinhOp, dSinh>(context);
  attachUnary<math::SqrtOp, dSqrt>(context);
  attachUnary<math::TanOp, dTan>(context);
  attachUnary<math::TanhOp, dTanh>(context);
  attachZero<math::CeilOp, math::FloorOp, math::RoundEvenOp, math::RoundOp, math::TruncOp>(context);
  attach<math::Atan2Op, atan2Gradient>(context);
  attach<math::ClampFOp, clampGradient>(context);
  attach<math::CopySignOp, copySignGradient>(context);
  attach<math::FPowIOp, powIntegerGradient>(context);
  attach<math::FmaOp, fmaGradient>(context);
  attach<math::PowFOp, powGradient>(context);
}

void drover::tfm::registerUpstreamGradients(DialectRegistry &registry) {
  registry.addExtension(attachArith);
  registry.addExtension(attachMath);
}
