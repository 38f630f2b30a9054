//===- ElementwiseBinary.cpp - functions of two operands ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TensorBuilder.h"
#include <cmath>

using namespace llvm;
using namespace mlir;

namespace drover::onnx {

static std::optional<double> foldFloat(Binary kind, double x, double y) {
  switch (kind) {
  case Binary::Add:
    return x + y;
  case Binary::Sub:
    return x - y;
  case Binary::Mul:
    return x * y;
  case Binary::Div:
    return x / y;
  case Binary::Pow:
    return std::pow(x, y);
  case Binary::Mod:
    return x - std::floor(x / y) * y;
  case Binary::Fmod:
    return std::fmod(x, y);
  case Binary::Min:
    return std::isnan(x) || std::isnan(y) ? NAN : std::min(x, y);
  case Binary::Max:
    return std::isnan(x) || std::isnan(y) ? NAN : std::max(x, y);
  case Binary::And:
  case Binary::Or:
  case Binary::Xor:
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Expr> TensorBuilder::foldInt(Binary kind, const Expr &x, const Expr &y, ElemType type) {
  auto truth = [&](const Expr &expr) -> std::optional<bool> {
    return expr.isConstant() ? std::optional<bool>(!expr.is(0)) : std::nullopt;
  };
  auto isNegative = [&](const Expr &expr) {
    Sign sign = symbols.sign(expr);
    return sign == Sign::Negative || sign == Sign::NonPositive;
  };
  if ((kind == Binary::Div || kind == Binary::Mod) && y.is(0)) {
    fail("an integer is divided by 0");
    return std::nullopt;
  }
  switch (kind) {
  case Binary::Add:
    return x + y;
  case Binary::Sub:
    return x - y;
  case Binary::Mul:
    return x * y;
  case Binary::Div: // truncates; sizes are not negative
    if (isNegative(x) != isNegative(y))
      return -symbols.floorDiv(isNegative(x) ? -x : x, isNegative(y) ? -y : y);
    return isNegative(x) ? symbols.floorDiv(-x, -y) : symbols.floorDiv(x, y);
  case Binary::Mod:
    return symbols.mod(x, y);
  case Binary::Fmod:
    if (y.is(0) || isNegative(x) || isNegative(y))
      return std::nullopt;
    return symbols.mod(x, y);
  case Binary::Pow: {
    std::optional<int64_t> exponent = y.constant();
    if (!exponent || *exponent < 0 || *exponent > 8)
      return std::nullopt;
    Expr result = 1;
    for (int64_t i = 0; i < *exponent; ++i)
      result = result * x;
    return result;
  }
  case Binary::Min:
  case Binary::Max: {
    if (x == y)
      return x;
    std::optional<bool> less = symbols.less(x, y);
    if (!less && symbols.sign(y - x) == Sign::NonNegative)
      less = true;
    if (!less)
      return std::nullopt;
    return *less == (kind == Binary::Min) ? x : y;
  }
  case Binary::And:
  case Binary::Or:
  case Binary::Xor: {
    std::optional<bool> a = truth(x), b = truth(y);
    if (!a || !b || type != ElemType::Bool)
      return std::nullopt;
    return kind == Binary::And ? *a && *b : kind == Binary::Or ? *a || *b : *a != *b;
  }
  }
  return std::nullopt;
}

static mlir::Value emitFloat(OpBuilder &b, Location loc, Binary kind, mlir::Value x, mlir::Value y) {
  switch (kind) {
  case Binary::Add:
    return arith::AddFOp::create(b, loc, x, y);
  case Binary::Sub:
    return arith::SubFOp::create(b, loc, x, y);
  case Binary::Mul:
    return arith::MulFOp::create(b, loc, x, y);
  case Binary::Div:
    return arith::DivFOp::create(b, loc, x, y);
  case Binary::Pow:
    return math::PowFOp::create(b, loc, x, y);
  case Binary::Mod: { // the remainder with the sign of the divisor
    mlir::Value quotient = math::FloorOp::create(b, loc, arith::DivFOp::create(b, loc, x, y));
    return arith::SubFOp::create(b, loc, x, arith::MulFOp::create(b, loc, quotient, y));
  }
  case Binary::Fmod:
    return arith::RemFOp::create(b, loc, x, y);
  case Binary::Min:
    return arith::MinimumFOp::create(b, loc, x, y);
  case Binary::Max:
    return arith::MaximumFOp::create(b, loc, x, y);
  default:
    return {};
  }
}

static mlir::Value emitInt(OpBuilder &b, Location loc, Binary kind, bool isUnsigned, mlir::Value x, mlir::Value y) {
  switch (kind) {
  case Binary::Add:
    return arith::AddIOp::create(b, loc, x, y);
  case Binary::Sub:
    return arith::SubIOp::create(b, loc, x, y);
  case Binary::Mul:
    return arith::MulIOp::create(b, loc, x, y);
  case Binary::Div:
    return isUnsigned ? arith::DivUIOp::create(b, loc, x, y).getResult()
                      : arith::DivSIOp::create(b, loc, x, y).getResult();
  case Binary::Mod: { // the remainder with the sign of the divisor
    if (isUnsigned)
      return arith::RemUIOp::create(b, loc, x, y);
    mlir::Value shifted = arith::AddIOp::create(b, loc, arith::RemSIOp::create(b, loc, x, y), y);
    return arith::RemSIOp::create(b, loc, shifted, y);
  }
  case Binary::Fmod:
    return isUnsigned ? arith::RemUIOp::create(b, loc, x, y).getResult()
                      : arith::RemSIOp::create(b, loc, x, y).getResult();
  case Binary::Min:
    return isUnsigned ? arith::MinUIOp::create(b, loc, x, y).getResult()
                      : arith::MinSIOp::create(b, loc, x, y).getResult();
  case Binary::Max:
    return isUnsigned ? arith::MaxUIOp::create(b, loc, x, y).getResult()
                      : arith::MaxSIOp::create(b, loc, x, y).getResult();
  case Binary::And:
    return arith::AndIOp::create(b, loc, x, y);
  case Binary::Or:
    return arith::OrIOp::create(b, loc, x, y);
  case Binary::Xor:
    return arith::XOrIOp::create(b, loc, x, y);
  default:
    return {};
  }
}

Value TensorBuilder::combine(ElemType type, const Value &lhs, const Value &rhs,
                             llvm::function_ref<bool(size_t, size_t, Known &)> fold,
                             llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> emit) {
  if (failed())
    return {};
  if (lhs.type != rhs.type) {
    fail("operands have elements of " + str(lhs.type) + " and " + str(rhs.type) + ", expected equal types");
    return {};
  }
  Shape shape = broadcastShapes(lhs.shape, rhs.shape);
  if (failed())
    return {};
  if (foldable(shape, {&lhs, &rhs})) {
    Value folded = foldElements(type, shape, {&lhs, &rhs},
                                [&](ArrayRef<size_t> at, Known &known) { return fold(at[0], at[1], known); });
    if (folded.isValid() || failed())
      return folded;
  }
  mlir::Value x = materialize(broadcast(lhs, shape)), y = materialize(broadcast(rhs, shape));
  if (failed())
    return {};
  mlir::Value result = emit(x, y);
  if (!result) {
    fail("an operator does not apply to elements of " + str(lhs.type));
    return {};
  }
  return wrap(result, type, shape, {&lhs, &rhs});
}

Value TensorBuilder::binary(Binary kind, const Value &lhs, const Value &rhs) {
  bool isInt = !isFloat(lhs.type);
  auto fold = [&](size_t i, size_t j, Known &known) {
    if (!isInt) {
      std::optional<double> result = foldFloat(kind, lhs.floatAt(i), rhs.floatAt(j));
      if (result)
        known.floats.push_back(roundTo(lhs.type, *result));
      return result.has_value();
    }
    std::optional<Expr> result = foldInt(kind, lhs.intAt(i), rhs.intAt(j), lhs.type);
    if (result)
      known.ints.push_back(*result);
    return result.has_value();
  };
  return combine(lhs.type, lhs, rhs, fold, [&](mlir::Value x, mlir::Value y) {
    return isInt ? emitInt(builder, location, kind, isUnsigned(lhs.type), x, y)
                 : emitFloat(builder, location, kind, x, y);
  });
}

static mlir::Value emitCompare(OpBuilder &b, Location loc, Compare kind, ElemType type, mlir::Value x, mlir::Value y) {
  bool isU = isUnsigned(type);
  switch (kind) {
  case Compare::Equal:
    return isFloat(type) ? arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x, y).getResult()
                         : arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, y).getResult();
  case Compare::Less:
    return isFloat(type)
               ? arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, y).getResult()
               : arith::CmpIOp::create(b, loc, isU ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt, x, y)
                     .getResult();
  case Compare::LessOrEqual:
    return isFloat(type)
               ? arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLE, x, y).getResult()
               : arith::CmpIOp::create(b, loc, isU ? arith::CmpIPredicate::ule : arith::CmpIPredicate::sle, x, y)
                     .getResult();
  }
  return {};
}

Value TensorBuilder::compare(Compare kind, const Value &lhs, const Value &rhs) {
  auto fold = [&](size_t i, size_t j, Known &known) {
    std::optional<bool> result;
    if (isFloat(lhs.type)) {
      double x = lhs.floatAt(i), y = rhs.floatAt(j);
      result = kind == Compare::Equal ? x == y : kind == Compare::Less ? x < y : x <= y;
    } else {
      const Expr &x = lhs.intAt(i), &y = rhs.intAt(j);
      if (kind == Compare::Equal)
        result = symbols.equal(x, y);
      else if (kind == Compare::Less)
        result = symbols.less(x, y);
      else if (std::optional<bool> greater = symbols.less(y, x))
        result = !*greater;
    }
    if (result)
      known.ints.push_back(*result);
    return result.has_value();
  };
  return combine(ElemType::Bool, lhs, rhs, fold,
                 [&](mlir::Value x, mlir::Value y) { return emitCompare(builder, location, kind, lhs.type, x, y); });
}

} // namespace drover::onnx
