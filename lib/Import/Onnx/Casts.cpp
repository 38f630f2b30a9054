//===- Casts.cpp - conversions between element types ----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TensorBuilder.h"
#include <cmath>

using namespace llvm;
using namespace mlir;

namespace drover::onnx {

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

} // namespace drover::onnx
