//===- Elementwise.cpp - element-wise primitives --------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TensorBuilder.h"
#include <cmath>

using namespace llvm;
using namespace mlir;

namespace drover::onnx {

/// All operands are known and the result is small, or uniform.
bool TensorBuilder::foldable(ArrayRef<Expr> shape, ArrayRef<const Value *> operands) const {
  bool uniform = true, isStatic = true;
  for (const Value *operand : operands) {
    if (!operand->known || operand->initializer)
      return false;
    uniform &= operand->known->uniform || operand->known->ints.size() + operand->known->floats.size() == 1;
  }
  std::optional<int64_t> elements = count(shape).constant();
  isStatic = elements.has_value();
  return uniform || (isStatic && *elements <= maxKnown);
}

/// Computes each element of the result by `element`, which gets the flat indices into the operands.
Value TensorBuilder::foldElements(ElemType type, ArrayRef<Expr> shape, ArrayRef<const Value *> operands,
                                  llvm::function_ref<bool(ArrayRef<size_t>, Known &)> element) {
  Known known;
  known.uniform = all_of(operands, [](const Value *operand) {
    return operand->known->uniform || operand->known->ints.size() + operand->known->floats.size() == 1;
  });
  bool computed = true;
  SmallVector<size_t> places(operands.size(), 0);
  if (known.uniform) {
    computed = element(places, known);
  } else {
    SmallVector<int64_t> dims;
    for (const Expr &size : shape)
      dims.push_back(*size.constant());
    forEachIndex(dims, [&](ArrayRef<int64_t> index) {
      if (!computed)
        return;
      for (auto [place, operand] : zip(places, operands))
        place = operand->known->uniform ? 0 : broadcastIndex(operand->dims(), index);
      computed = element(places, known);
    });
  }
  if (!computed)
    return {};
  for (const Expr &expr : known.ints)
    if (!expr.isValid()) {
      fail("a size is too large");
      return {};
    }
  return fromKnown(type, shape, std::move(known));
}

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

static mlir::Value emitCast(OpBuilder &b, Location loc, mlir::Value x, ElemType from, ElemType to, Type target) {
  Type result = cast<RankedTensorType>(x.getType()).clone(target);
  unsigned fromBits = cast<RankedTensorType>(x.getType()).getElementTypeBitWidth(),
           toBits = target.getIntOrFloatBitWidth();
  if (isFloat(from) && isFloat(to)) {
    if (fromBits < toBits)
      return arith::ExtFOp::create(b, loc, result, x);
    return arith::TruncFOp::create(b, loc, result, x);
  }
  if (isFloat(from))
    return isUnsigned(to) ? arith::FPToUIOp::create(b, loc, result, x).getResult()
                          : arith::FPToSIOp::create(b, loc, result, x).getResult();
  if (isFloat(to))
    return isUnsigned(from) ? arith::UIToFPOp::create(b, loc, result, x).getResult()
                            : arith::SIToFPOp::create(b, loc, result, x).getResult();
  if (fromBits == toBits)
    return x;
  if (fromBits > toBits)
    return arith::TruncIOp::create(b, loc, result, x);
  return isUnsigned(from) ? arith::ExtUIOp::create(b, loc, result, x).getResult()
                          : arith::ExtSIOp::create(b, loc, result, x).getResult();
}

Value TensorBuilder::cast(const Value &value, ElemType type) {
  if (failed() || value.type == type)
    return value;
  if (!byteSize(type) || !byteSize(value.type)) {
    fail("a cast from " + str(value.type) + " to " + str(type) + " is not supported");
    return {};
  }
  if (foldable(value.shape, {&value})) {
    Value folded = foldElements(type, value.shape, {&value}, [&](ArrayRef<size_t> at, Known &known) {
      if (isFloat(value.type)) {
        double x = value.floatAt(at[0]);
        if (isFloat(type))
          known.floats.push_back(roundTo(type, x));
        else if (type == ElemType::Bool)
          known.ints.push_back(x != 0);
        else if (std::fabs(x) < 9e18)
          known.ints.push_back(static_cast<int64_t>(x));
        else
          return false;
        return true;
      }
      const Expr &x = value.intAt(at[0]);
      if (isFloat(type)) {
        if (x.isConstant())
          known.floats.push_back(roundTo(type, static_cast<double>(*x.constant())));
        return x.isConstant();
      }
      if (type == ElemType::Bool) {
        std::optional<bool> zero = symbols.equal(x, 0);
        if (zero)
          known.ints.push_back(!*zero);
        return zero.has_value();
      }
      known.ints.push_back(x);
      return true;
    });
    if (folded.isValid() || failed())
      return folded;
  }
  if (type == ElemType::Bool)
    return unary(Unary::Not, compare(Compare::Equal, value, number(value, 0)));
  // bf16 and f16 have no cast between them.
  if (isFloat(type) && isFloat(value.type) && byteSize(type) == 2 && byteSize(value.type) == 2)
    return cast(cast(value, ElemType::Float), type);
  return wrap(emitCast(builder, location, materialize(value), value.type, type, elementType(type)), type, value.shape,
              {&value});
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

static double foldFloat(Binary kind, double x, double y) {
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
  default:
    return 0;
  }
}

std::optional<Expr> TensorBuilder::foldInt(Binary kind, const Expr &x, const Expr &y, ElemType type) {
  auto truth = [&](const Expr &expr) -> std::optional<bool> {
    return expr.isConstant() ? std::optional<bool>(!expr.is(0)) : std::nullopt;
  };
  auto isNegative = [&](const Expr &expr) {
    Sign sign = symbols.sign(expr);
    return sign == Sign::Negative || sign == Sign::NonPositive;
  };
  switch (kind) {
  case Binary::Add:
    return x + y;
  case Binary::Sub:
    return x - y;
  case Binary::Mul:
    return x * y;
  case Binary::Div: // truncates; sizes are not negative
    if (y.is(0))
      return std::nullopt;
    if (isNegative(x) != isNegative(y))
      return -symbols.floorDiv(isNegative(x) ? -x : x, isNegative(y) ? -y : y);
    return isNegative(x) ? symbols.floorDiv(-x, -y) : symbols.floorDiv(x, y);
  case Binary::Mod:
    return y.is(0) ? std::nullopt : std::optional<Expr>(symbols.mod(x, y));
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

Value TensorBuilder::binary(Binary kind, const Value &lhs, const Value &rhs) {
  if (failed())
    return {};
  if (lhs.type != rhs.type) {
    fail("operands have elements of " + str(lhs.type) + " and " + str(rhs.type) + ", expected equal types");
    return {};
  }
  Shape shape = broadcastShapes(lhs.shape, rhs.shape);
  if (failed())
    return {};
  bool isInt = !isFloat(lhs.type);
  if (foldable(shape, {&lhs, &rhs})) {
    Value folded = foldElements(lhs.type, shape, {&lhs, &rhs}, [&](ArrayRef<size_t> at, Known &known) {
      if (!isInt) {
        known.floats.push_back(roundTo(lhs.type, foldFloat(kind, lhs.floatAt(at[0]), rhs.floatAt(at[1]))));
        return true;
      }
      std::optional<Expr> result = foldInt(kind, lhs.intAt(at[0]), rhs.intAt(at[1]), lhs.type);
      if (result)
        known.ints.push_back(*result);
      return result.has_value();
    });
    if (folded.isValid() || failed())
      return folded;
  }
  // The remainder with the sign of the divisor.
  if (kind == Binary::Mod) {
    if (!isInt)
      return sub(lhs, mul(unary(Unary::Floor, div(lhs, rhs)), rhs));
    if (isUnsigned(lhs.type))
      return binary(Binary::Fmod, lhs, rhs);
    return binary(Binary::Fmod, add(binary(Binary::Fmod, lhs, rhs), rhs), rhs);
  }
  mlir::Value x = materialize(broadcast(lhs, shape)), y = materialize(broadcast(rhs, shape));
  if (failed())
    return {};
  mlir::Value result =
      isInt ? emitInt(builder, location, kind, isUnsigned(lhs.type), x, y) : emitFloat(builder, location, kind, x, y);
  if (!result) {
    fail("an operator does not apply to elements of " + str(lhs.type));
    return {};
  }
  return wrap(result, lhs.type, shape, {&lhs, &rhs});
}

Value TensorBuilder::compare(Compare kind, const Value &lhs, const Value &rhs) {
  if (failed())
    return {};
  if (lhs.type != rhs.type) {
    fail("operands have elements of " + str(lhs.type) + " and " + str(rhs.type) + ", expected equal types");
    return {};
  }
  Shape shape = broadcastShapes(lhs.shape, rhs.shape);
  if (failed())
    return {};
  bool isInt = !isFloat(lhs.type);
  if (foldable(shape, {&lhs, &rhs})) {
    Value folded = foldElements(ElemType::Bool, shape, {&lhs, &rhs}, [&](ArrayRef<size_t> at, Known &known) {
      std::optional<bool> result;
      if (!isInt) {
        double x = lhs.floatAt(at[0]), y = rhs.floatAt(at[1]);
        result = kind == Compare::Equal ? x == y : kind == Compare::Less ? x < y : x <= y;
      } else {
        const Expr &x = lhs.intAt(at[0]), &y = rhs.intAt(at[1]);
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
    });
    if (folded.isValid() || failed())
      return folded;
  }
  mlir::Value x = materialize(broadcast(lhs, shape)), y = materialize(broadcast(rhs, shape)), result;
  if (failed())
    return {};
  if (isInt) {
    bool isU = isUnsigned(lhs.type);
    arith::CmpIPredicate predicate = kind == Compare::Equal ? arith::CmpIPredicate::eq
                                     : kind == Compare::Less
                                         ? (isU ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt)
                                         : (isU ? arith::CmpIPredicate::ule : arith::CmpIPredicate::sle);
    result = arith::CmpIOp::create(builder, location, predicate, x, y);
  } else {
    arith::CmpFPredicate predicate = kind == Compare::Equal  ? arith::CmpFPredicate::OEQ
                                     : kind == Compare::Less ? arith::CmpFPredicate::OLT
                                                             : arith::CmpFPredicate::OLE;
    result = arith::CmpFOp::create(builder, location, predicate, x, y);
  }
  return wrap(result, ElemType::Bool, shape, {&lhs, &rhs});
}

Value TensorBuilder::select(const Value &condition, const Value &lhs, const Value &rhs) {
  if (failed())
    return {};
  if (condition.type != ElemType::Bool || lhs.type != rhs.type) {
    fail("a selection has operands of " + str(condition.type) + ", " + str(lhs.type) + " and " + str(rhs.type) +
         ", expected bool and two equal types");
    return {};
  }
  Shape shape = broadcastShapes(broadcastShapes(lhs.shape, rhs.shape), condition.shape);
  if (failed())
    return {};
  if (foldable(shape, {&condition, &lhs, &rhs})) {
    Value folded = foldElements(lhs.type, shape, {&condition, &lhs, &rhs}, [&](ArrayRef<size_t> at, Known &known) {
      const Expr &chosen = condition.intAt(at[0]);
      if (!chosen.isConstant())
        return false;
      const Value &from = chosen.is(0) ? rhs : lhs;
      size_t place = chosen.is(0) ? at[2] : at[1];
      if (isFloat(lhs.type))
        known.floats.push_back(from.floatAt(place));
      else
        known.ints.push_back(from.intAt(place));
      return true;
    });
    if (folded.isValid() || failed())
      return folded;
  }
  // A condition that is the same everywhere chooses now.
  if (std::optional<double> chosen = condition.splat())
    return broadcast(*chosen != 0 ? lhs : rhs, shape);
  mlir::Value c = materialize(broadcast(condition, shape)), x = materialize(broadcast(lhs, shape)),
              y = materialize(broadcast(rhs, shape));
  if (failed())
    return {};
  return wrap(arith::SelectOp::create(builder, location, c, x, y), lhs.type, shape, {&condition, &lhs, &rhs});
}

} // namespace drover::onnx
