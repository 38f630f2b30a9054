//===- ElementwiseUnary.cpp - functions of one operand --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TensorBuilder.h"
#include <cmath>

using namespace llvm;
using namespace mlir;

namespace drover::onnx {

static std::optional<double> foldUnary(Unary kind, double x) {
  switch (kind) {
  case Unary::Neg:
    return -x;
  case Unary::Abs:
    return std::fabs(x);
  case Unary::Sqrt:
    return std::sqrt(x);
  case Unary::Exp:
    return std::exp(x);
  case Unary::Log:
    return std::log(x);
  case Unary::Erf:
    return std::erf(x);
  case Unary::Tanh:
    return std::tanh(x);
  case Unary::Sin:
    return std::sin(x);
  case Unary::Cos:
    return std::cos(x);
  case Unary::Floor:
    return std::floor(x);
  case Unary::Ceil:
    return std::ceil(x);
  case Unary::Round:
    return std::nearbyint(x);
  case Unary::Sign:
    return x > 0 ? 1 : x < 0 ? -1 : 0;
  case Unary::Not:
    return std::nullopt;
  }
  return std::nullopt;
}

static std::optional<Expr> foldUnaryInt(const SymbolTable &symbols, Unary kind, const Expr &x) {
  Sign sign = symbols.sign(x);
  switch (kind) {
  case Unary::Neg:
    return -x;
  case Unary::Not:
    if (x.isConstant())
      return x.is(0) ? 1 : 0;
    return std::nullopt;
  case Unary::Abs:
    if (sign == Sign::Positive || sign == Sign::NonNegative || sign == Sign::Zero)
      return x;
    if (sign == Sign::Negative || sign == Sign::NonPositive)
      return -x;
    return std::nullopt;
  case Unary::Sign:
    if (sign == Sign::Positive || sign == Sign::Negative || sign == Sign::Zero)
      return sign == Sign::Positive ? 1 : sign == Sign::Negative ? -1 : 0;
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

static mlir::Value emitUnaryFloat(OpBuilder &b, Location loc, Unary kind, mlir::Value x) {
  switch (kind) {
  case Unary::Neg:
    return arith::NegFOp::create(b, loc, x);
  case Unary::Abs:
    return math::AbsFOp::create(b, loc, x);
  case Unary::Sqrt:
    return math::SqrtOp::create(b, loc, x);
  case Unary::Exp:
    return math::ExpOp::create(b, loc, x);
  case Unary::Log:
    return math::LogOp::create(b, loc, x);
  case Unary::Erf:
    return math::ErfOp::create(b, loc, x);
  case Unary::Tanh:
    return math::TanhOp::create(b, loc, x);
  case Unary::Sin:
    return math::SinOp::create(b, loc, x);
  case Unary::Cos:
    return math::CosOp::create(b, loc, x);
  case Unary::Floor:
    return math::FloorOp::create(b, loc, x);
  case Unary::Ceil:
    return math::CeilOp::create(b, loc, x);
  case Unary::Round:
    return math::RoundEvenOp::create(b, loc, x);
  case Unary::Not:
  case Unary::Sign:
    return {};
  }
  return {};
}

Value TensorBuilder::unary(Unary kind, const Value &value) {
  if (failed())
    return {};
  bool isInt = !isFloat(value.type);
  if (foldable(value.shape, {&value})) {
    Value folded = foldElements(value.type, value.shape, {&value}, [&](ArrayRef<size_t> at, Known &known) {
      if (isInt) {
        std::optional<Expr> result = foldUnaryInt(symbols, kind, value.intAt(at[0]));
        if (result)
          known.ints.push_back(*result);
        return result.has_value();
      }
      std::optional<double> result = foldUnary(kind, value.floatAt(at[0]));
      if (result)
        known.floats.push_back(roundTo(value.type, *result));
      return result.has_value();
    });
    if (folded.isValid() || failed())
      return folded;
  }
  if (kind == Unary::Sign) {
    Value zero = number(value, 0);
    return sub(cast(compare(Compare::Less, zero, value), value.type),
               cast(compare(Compare::Less, value, zero), value.type));
  }
  if (isInt && kind == Unary::Not)
    return binary(Binary::Xor, value, number(value, value.type == ElemType::Bool ? 1 : -1));
  if (isInt && kind == Unary::Neg)
    return sub(number(value, 0), value);
  mlir::Value operand = materialize(value), result;
  if (!isInt)
    result = emitUnaryFloat(builder, location, kind, operand);
  else if (kind == Unary::Abs)
    result = math::AbsIOp::create(builder, location, operand);
  if (!result) {
    fail("an operator does not apply to elements of " + str(value.type));
    return {};
  }
  return wrap(result, value.type, value.shape, {&value});
}

Value TensorBuilder::sigmoid(const Value &value) {
  Value one = number(value, 1);
  return div(one, add(unary(Unary::Exp, unary(Unary::Neg, value)), one));
}

Value TensorBuilder::isNaN(const Value &value) {
  if (failed())
    return {};
  if (std::optional<double> splat = value.splat())
    return uniform(ElemType::Bool, value.shape, std::isnan(*splat));
  mlir::Value operand = materialize(value);
  return wrap(arith::CmpFOp::create(builder, location, arith::CmpFPredicate::UNO, operand, operand), ElemType::Bool,
              value.shape, {&value});
}

} // namespace drover::onnx
