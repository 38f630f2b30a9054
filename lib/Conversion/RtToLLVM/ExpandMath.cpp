//===- ExpandMath.cpp - polynomials for the functions of kernels *- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Range reductions and polynomials of the single-precision Cephes library (S. Moshier, Methods and Programs for
// Mathematical Functions, 1989); the reduction of angles is in f64, so that large positions keep their accuracy.
//===----------------------------------------------------------------------===//
#include "drover/Conversion/RtToLLVM/RtToLLVM.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace drover {
#define GEN_PASS_DEF_RTEXPANDMATH
#include "drover/Conversion/RtToLLVM/Passes.h.inc"
} // namespace drover

namespace {
/// Arithmetic on scalars or vectors of one shape.
class Expression {
public:
  Expression(OpBuilder &builder, Operation *op) : b(op->getLoc(), builder), like(op->getResult(0).getType()) {}

  Type typeOf(Type element) {
    if (auto vector = dyn_cast<VectorType>(like))
      return vector.clone(element);
    return element;
  }
  Value number(Type element, double value) {
    TypedAttr attr = isa<FloatType>(element) ? TypedAttr(b.getFloatAttr(element, value))
                                             : TypedAttr(b.getIntegerAttr(element, static_cast<int64_t>(value)));
    if (auto vector = dyn_cast<VectorType>(like))
      attr = DenseElementsAttr::get(cast<ShapedType>(typeOf(element)), Attribute(attr));
    return arith::ConstantOp::create(b, attr);
  }
  Value f32(double value) { return number(b.getF32Type(), value); }
  Value f64(double value) { return number(b.getF64Type(), value); }
  Value i32(int64_t value) { return number(b.getI32Type(), value); }
  // Products may be contracted into the sums that they feed; nothing else is relaxed.
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y, arith::FastMathFlags::contract); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y, arith::FastMathFlags::contract); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y, arith::FastMathFlags::contract); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value less(Value x, Value y) { return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, y); }
  Value select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, condition, x, y); }
  Value bits(Value x, Type element) { return arith::BitcastOp::create(b, typeOf(element), x); }

  /// Horner's scheme, highest coefficient first.
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Type type = getElementTypeOrSelf(x.getType());
    Value sum = number(type, coefficients.front());
    for (double coefficient : coefficients.drop_front())
      sum = add(mul(sum, x), number(type, coefficient));
    return sum;
  }

  Value exp(Value x);
  Value tanh(Value x);
  Value sine(Value x, bool cosine);
  Value wideLog(Value x);

  ImplicitLocOpBuilder b;

private:
  Type like;
};
} // namespace

/// exp(x) = 2^n exp(r) with |r| <= ln(2)/2. Adding 1.5 * 2^23 rounds to an integer in the low bits, also for NaN.
Value Expression::exp(Value x) {
  constexpr double magic = 12582912.0, low = -87.336544, high = 88.722839;
  Value clamped = select(less(f32(high), x), f32(high), x);
  clamped = select(less(clamped, f32(low)), f32(low), clamped);
  Value shifted = add(mul(clamped, f32(1.44269504088896341)), f32(magic));
  // 2^128 is no float: the last interval takes a larger remainder.
  shifted = select(less(f32(magic + 127.0), shifted), f32(magic + 127.0), shifted);
  Value n = sub(shifted, f32(magic));
  Value r = sub(sub(clamped, mul(n, f32(0.693359375))), mul(n, f32(-2.12194440e-4)));
  Value tail = polynomial(
      r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
  Value value = add(add(mul(tail, mul(r, r)), r), f32(1.0));
  Value exponent = arith::AddIOp::create(b, bits(shifted, b.getI32Type()), i32(127));
  Value scale = bits(arith::ShLIOp::create(b, exponent, i32(23)), b.getF32Type());
  Value result = mul(value, scale);
  result = select(less(x, f32(low)), f32(0.0), result);
  return select(less(f32(high), x), f32(std::numeric_limits<double>::infinity()), result);
}

Value Expression::tanh(Value x) {
  Value magnitude = math::AbsFOp::create(b, x);
  Value z = mul(x, x);
  Value near = add(mul(mul(polynomial(z, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1,
                                          -3.33332819422e-1}),
                           z),
                       x),
                   x);
  Value e = exp(add(magnitude, magnitude));
  Value far = sub(f32(1.0), div(f32(2.0), add(e, f32(1.0))));
  far = math::CopySignOp::create(b, far, x);
  return select(less(magnitude, f32(0.625)), near, far);
}

/// x = k pi/2 + r in f64, with pi/2 in two parts (fdlibm's split after 33 bits); then by quadrant.
Value Expression::sine(Value x, bool cosine) {
  constexpr double magic = 6755399441055744.0; // 1.5 * 2^52
  Value wide = arith::ExtFOp::create(b, typeOf(b.getF64Type()), x);
  Value shifted = add(mul(wide, f64(0.63661977236758134308)), f64(magic));
  Value k = sub(shifted, f64(magic));
  Value rest = sub(sub(wide, mul(k, f64(1.57079632673412561417))), mul(k, f64(6.07710050650619224932e-11)));
  Value r = arith::TruncFOp::create(b, typeOf(b.getF32Type()), rest);
  Value quadrant = arith::TruncIOp::create(b, typeOf(b.getI32Type()), bits(shifted, b.getI64Type()));
  if (cosine)
    quadrant = arith::AddIOp::create(b, quadrant, i32(1));
  Value z = mul(r, r);
  Value s = add(mul(mul(polynomial(z, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1}), z), r), r);
  Value c = add(mul(mul(polynomial(z, {2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2}), z), z),
                sub(f32(1.0), mul(f32(0.5), z)));
  auto bit = [&](int64_t mask) -> Value {
    Value masked = arith::AndIOp::create(b, quadrant, i32(mask));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, masked, i32(0));
  };
  Value value = select(bit(1), c, s);
  return select(bit(2), arith::NegFOp::create(b, value), value);
}

/// log(2^e m) = e log(2) + 2 artanh((m - 1) / (m + 1)), m in [sqrt(1/2), sqrt(2)), by the series of artanh up to z^21,
/// whose next term is below 1e-17. In f64.
Value Expression::wideLog(Value x) {
  Type i64 = b.getI64Type(), f64Type = b.getF64Type();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  auto i64Number = [&](int64_t value) -> Value { return arith::ConstantOp::create(b, b.getI64IntegerAttr(value)); };
  Value isSmall = less(x, f64(0x1p-1022)); // no normal number
  Value scaled = select(isSmall, mul(x, f64(0x1p54)), x);
  Value raw = bits(scaled, i64);
  Value exponent = arith::ShRSIOp::create(b, raw, i64Number(52));
  exponent = arith::SubIOp::create(b, exponent, select(isSmall, i64Number(1023 + 54), i64Number(1023)));
  Value fraction = arith::AndIOp::create(b, raw, i64Number((int64_t(1) << 52) - 1));
  Value m = bits(arith::OrIOp::create(b, fraction, i64Number(int64_t(1023) << 52)), f64Type);
  Value isLarge = less(f64(1.4142135623730951), m);
  m = select(isLarge, mul(m, f64(0.5)), m);
  exponent = arith::AddIOp::create(b, exponent, select(isLarge, i64Number(1), i64Number(0)));
  Value e = arith::SIToFPOp::create(b, f64Type, exponent);
  Value s = div(sub(m, f64(1.0)), add(m, f64(1.0))), z = mul(s, s);
  Value series = polynomial(
      z, {2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2.0});
  Value result = add(mul(e, f64(0.69314718055994529)), mul(s, series));
  result = select(less(x, f64(infinity)), result, x); // infinity and NaN
  result = select(arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, x, f64(0.0)), f64(-infinity), result);
  return select(less(x, f64(0.0)), f64(std::numeric_limits<double>::quiet_NaN()), result);
}

namespace {
struct RtExpandMath : drover::impl::RtExpandMathBase<RtExpandMath> {
  using RtExpandMathBase::RtExpandMathBase;

  void runOnOperation() override {
    bool others = false;
    getOperation()->walk([&](Operation *op) {
      if (op->getNumResults() != 1)
        return;
      if (wide && isa<math::LogOp>(op) && op->getResult(0).getType().isF64()) {
        OpBuilder builder(op);
        op->getResult(0).replaceAllUsesWith(Expression(builder, op).wideLog(op->getOperand(0)));
        op->erase();
        return;
      }
      if (!getElementTypeOrSelf(op->getResult(0).getType()).isF32())
        return;
      others |= isa<math::ErfOp, math::LogOp>(op);
      OpBuilder builder(op);
      Expression expression(builder, op);
      Value result;
      if (isa<math::ExpOp>(op))
        result = expression.exp(op->getOperand(0));
      else if (isa<math::TanhOp>(op))
        result = expression.tanh(op->getOperand(0));
      else if (isa<math::SinOp, math::CosOp>(op))
        result = expression.sine(op->getOperand(0), isa<math::CosOp>(op));
      if (!result)
        return;
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
    });
    if (!others)
      return;
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return name == math::ErfOp::getOperationName() || name == math::LogOp::getOperationName();
    });
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
