//===- MathKernels.cpp - the math dialect -----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Elementwise.h"
#include <cmath>

using namespace mlir;
using namespace drover;
using namespace drover::interpreter;

static LogicalResult fusedMultiplyAdd(math::FmaOp, Call &call) {
  if (failed(allocateSame(call)))
    return failure();
  for (int64_t i = 0; i < call.results[0].size(); ++i)
    call.results[0].floats[i] =
        std::fma(call.operand(0).floats[i], call.operand(1).floats[i], call.operand(2).floats[i]);
  return success();
}

static LogicalResult clamp(math::ClampFOp, Call &call) {
  if (failed(allocateSame(call)))
    return failure();
  for (int64_t i = 0; i < call.results[0].size(); ++i) {
    double value = call.operand(0).floats[i];
    call.results[0].floats[i] =
        std::isnan(value) ? value : std::fmin(std::fmax(value, call.operand(1).floats[i]), call.operand(2).floats[i]);
  }
  return success();
}

static LogicalResult integerAbs(math::AbsIOp, Call &call) {
  if (failed(allocateSame(call)))
    return failure();
  for (int64_t i = 0; i < call.results[0].size(); ++i) {
    int64_t value = call.operand(0).ints[i];
    call.results[0].ints[i] = value < 0 ? static_cast<int64_t>(0 - static_cast<uint64_t>(value)) : value;
  }
  return success();
}

/// Repeated squaring, wrapping as multiplication does. A negative exponent rounds toward zero; zero has none.
static LogicalResult integerPower(math::IPowIOp, Call &call) {
  if (failed(allocateSame(call)))
    return failure();
  for (int64_t i = 0; i < call.results[0].size(); ++i) {
    int64_t base = call.operand(0).ints[i], exponent = call.operand(1).ints[i];
    if (exponent < 0) {
      if (base == 0)
        return call.fail("element " + Twine(i) + " is zero to a negative power");
      call.results[0].ints[i] = base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
      continue;
    }
    uint64_t result = 1, square = static_cast<uint64_t>(base);
    for (; exponent; exponent >>= 1, square *= square)
      if (exponent & 1)
        result *= square;
    call.results[0].ints[i] = static_cast<int64_t>(result);
  }
  return success();
}

static LogicalResult powerOfFloat(math::FPowIOp, Call &call) {
  if (failed(allocateSame(call)))
    return failure();
  for (int64_t i = 0; i < call.results[0].size(); ++i)
    call.results[0].floats[i] = std::pow(call.operand(0).floats[i], static_cast<double>(call.operand(1).ints[i]));
  return success();
}

/// A test of floats with an i1 result.
template <typename OpT> static void addTest(KernelTable &table, bool (*test)(double)) {
  table.add<OpT>([test](Call &call) {
    if (failed(allocateSame(call)))
      return failure();
    for (int64_t i = 0; i < call.results[0].size(); ++i)
      call.results[0].ints[i] = test(call.operand(0).floats[i]);
    return success();
  });
}

void interpreter::addMathKernels(KernelTable &table) {
  table.add<math::AbsFOp>(unary([](double x) { return std::fabs(x); }));
  table.add<math::AcosOp>(unary([](double x) { return std::acos(x); }));
  table.add<math::AcoshOp>(unary([](double x) { return std::acosh(x); }));
  table.add<math::AsinOp>(unary([](double x) { return std::asin(x); }));
  table.add<math::AsinhOp>(unary([](double x) { return std::asinh(x); }));
  table.add<math::AtanOp>(unary([](double x) { return std::atan(x); }));
  table.add<math::AtanhOp>(unary([](double x) { return std::atanh(x); }));
  table.add<math::CbrtOp>(unary([](double x) { return std::cbrt(x); }));
  table.add<math::CeilOp>(unary([](double x) { return std::ceil(x); }));
  table.add<math::CosOp>(unary([](double x) { return std::cos(x); }));
  table.add<math::CoshOp>(unary([](double x) { return std::cosh(x); }));
  table.add<math::ErfOp>(unary([](double x) { return std::erf(x); }));
  table.add<math::ErfcOp>(unary([](double x) { return std::erfc(x); }));
  table.add<math::ExpOp>(unary([](double x) { return std::exp(x); }));
  table.add<math::Exp2Op>(unary([](double x) { return std::exp2(x); }));
  table.add<math::ExpM1Op>(unary([](double x) { return std::expm1(x); }));
  table.add<math::FloorOp>(unary([](double x) { return std::floor(x); }));
  table.add<math::LogOp>(unary([](double x) { return std::log(x); }));
  table.add<math::Log10Op>(unary([](double x) { return std::log10(x); }));
  table.add<math::Log1pOp>(unary([](double x) { return std::log1p(x); }));
  table.add<math::Log2Op>(unary([](double x) { return std::log2(x); }));
  table.add<math::RoundOp>(unary([](double x) { return std::round(x); }));
  table.add<math::RoundEvenOp>(unary([](double x) { return std::nearbyint(x); }));
  table.add<math::RsqrtOp>(unary([](double x) { return 1 / std::sqrt(x); }));
  table.add<math::SinOp>(unary([](double x) { return std::sin(x); }));
  table.add<math::SinhOp>(unary([](double x) { return std::sinh(x); }));
  table.add<math::SqrtOp>(unary([](double x) { return std::sqrt(x); }));
  table.add<math::TanOp>(unary([](double x) { return std::tan(x); }));
  table.add<math::TanhOp>(unary([](double x) { return std::tanh(x); }));
  table.add<math::TruncOp>(unary([](double x) { return std::trunc(x); }));
  table.add<math::Atan2Op>(binary([](double a, double b) { return std::atan2(a, b); }));
  table.add<math::CopySignOp>(binary([](double a, double b) { return std::copysign(a, b); }));
  table.add<math::PowFOp>(binary([](double a, double b) { return std::pow(a, b); }));
  table.add<math::FmaOp>(fusedMultiplyAdd);
  table.add<math::ClampFOp>(clamp);
  table.add<math::AbsIOp>(integerAbs);
  table.add<math::IPowIOp>(integerPower);
  table.add<math::FPowIOp>(powerOfFloat);
  addTest<math::IsNaNOp>(table, [](double x) { return std::isnan(x); });
  addTest<math::IsInfOp>(table, [](double x) { return std::isinf(x); });
  addTest<math::IsFiniteOp>(table, [](double x) { return std::isfinite(x); });
}
