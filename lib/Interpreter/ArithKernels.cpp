//===- ArithKernels.cpp - the arith dialect ---------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Elementwise.h"
#include <cmath>

using namespace mlir;
using namespace drover;
using namespace drover::interpreter;

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

namespace {
/// An integer operation; nothing where the operands have no result (division by zero, shift beyond the width).
using IntFunction = std::optional<int64_t> (*)(int64_t, int64_t, ElementKind);
} // namespace

/// Operands are sign-extended; the caller wraps the result.
static Kernel integers(IntFunction function) {
  return [function](Call &call) {
    if (failed(allocateSame(call)))
      return failure();
    const Tensor &a = call.operand(0), &b = call.operand(1);
    std::vector<int64_t> &result = call.results[0].ints;
    if (a.ints.size() != result.size() || b.ints.size() != result.size())
      return call.fail("expected integers");
    for (size_t i = 0; i < result.size(); ++i) {
      std::optional<int64_t> value = function(signExtend(a.ints[i], a.kind), signExtend(b.ints[i], b.kind), a.kind);
      if (!value)
        return call.fail("element " + Twine(i) + " has no result: division by zero, overflow or shift too far");
      result[i] = *value;
    }
    return success();
  };
}

static std::optional<int64_t> divide(int64_t a, int64_t b) {
  if (b == 0 || (a == INT64_MIN && b == -1))
    return std::nullopt;
  return a / b;
}

static void addIntegerKernels(KernelTable &table) {
  using Result = std::optional<int64_t>;
  table.add<arith::AddIOp>(integers([](int64_t a, int64_t b, ElementKind) -> Result {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }));
  table.add<arith::SubIOp>(integers([](int64_t a, int64_t b, ElementKind) -> Result {
    return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }));
  table.add<arith::MulIOp>(integers([](int64_t a, int64_t b, ElementKind) -> Result {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }));
  table.add<arith::DivSIOp>(integers([](int64_t a, int64_t b, ElementKind) -> Result { return divide(a, b); }));
  table.add<arith::FloorDivSIOp>(integers([](int64_t a, int64_t b, ElementKind) -> Result {
    Result quotient = divide(a, b);
    return quotient && a % b != 0 && (a < 0) != (b < 0) ? *quotient - 1 : quotient;
  }));
  table.add<arith::CeilDivSIOp>(integers([](int64_t a, int64_t b, ElementKind) -> Result {
    Result quotient = divide(a, b);
    return quotient && a % b != 0 && (a < 0) == (b < 0) ? *quotient + 1 : quotient;
  }));
  table.add<arith::RemSIOp>(integers(
      [](int64_t a, int64_t b, ElementKind) -> Result { return divide(a, b) ? Result(a % b) : std::nullopt; }));
  table.add<arith::DivUIOp>(integers([](int64_t a, int64_t b, ElementKind kind) -> Result {
    uint64_t divisor = zeroExtend(b, kind);
    return divisor ? Result(static_cast<int64_t>(zeroExtend(a, kind) / divisor)) : std::nullopt;
  }));
  table.add<arith::RemUIOp>(integers([](int64_t a, int64_t b, ElementKind kind) -> Result {
    uint64_t divisor = zeroExtend(b, kind);
    return divisor ? Result(static_cast<int64_t>(zeroExtend(a, kind) % divisor)) : std::nullopt;
  }));
  table.add<arith::AndIOp>(integers([](int64_t a, int64_t b, ElementKind) -> Result { return a & b; }));
  table.add<arith::OrIOp>(integers([](int64_t a, int64_t b, ElementKind) -> Result { return a | b; }));
  table.add<arith::XOrIOp>(integers([](int64_t a, int64_t b, ElementKind) -> Result { return a ^ b; }));
  table.add<arith::MaxSIOp>(integers([](int64_t a, int64_t b, ElementKind) -> Result { return std::max(a, b); }));
  table.add<arith::MinSIOp>(integers([](int64_t a, int64_t b, ElementKind) -> Result { return std::min(a, b); }));
  table.add<arith::MaxUIOp>(integers([](int64_t a, int64_t b, ElementKind kind) -> Result {
    return zeroExtend(a, kind) < zeroExtend(b, kind) ? b : a;
  }));
  table.add<arith::MinUIOp>(integers([](int64_t a, int64_t b, ElementKind kind) -> Result {
    return zeroExtend(b, kind) < zeroExtend(a, kind) ? b : a;
  }));
  table.add<arith::ShLIOp>(integers([](int64_t a, int64_t b, ElementKind kind) -> Result {
    uint64_t bits = zeroExtend(b, kind);
    return bits < bitWidth(kind) ? Result(static_cast<int64_t>(static_cast<uint64_t>(a) << bits)) : std::nullopt;
  }));
  table.add<arith::ShRSIOp>(integers([](int64_t a, int64_t b, ElementKind kind) -> Result {
    uint64_t bits = zeroExtend(b, kind);
    return bits < bitWidth(kind) ? Result(a >> bits) : std::nullopt;
  }));
  table.add<arith::ShRUIOp>(integers([](int64_t a, int64_t b, ElementKind kind) -> Result {
    uint64_t bits = zeroExtend(b, kind);
    return bits < bitWidth(kind) ? Result(static_cast<int64_t>(zeroExtend(a, kind) >> bits)) : std::nullopt;
  }));
}

//===----------------------------------------------------------------------===//
// Comparison and selection
//===----------------------------------------------------------------------===//

static bool holds(arith::CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case arith::CmpFPredicate::AlwaysFalse:
    return false;
  case arith::CmpFPredicate::AlwaysTrue:
    return true;
  case arith::CmpFPredicate::ORD:
    return !unordered;
  case arith::CmpFPredicate::UNO:
    return unordered;
  case arith::CmpFPredicate::OEQ:
    return a == b;
  case arith::CmpFPredicate::OGT:
    return a > b;
  case arith::CmpFPredicate::OGE:
    return a >= b;
  case arith::CmpFPredicate::OLT:
    return a < b;
  case arith::CmpFPredicate::OLE:
    return a <= b;
  case arith::CmpFPredicate::ONE:
    return !unordered && a != b;
  case arith::CmpFPredicate::UEQ:
    return unordered || a == b;
  case arith::CmpFPredicate::UGT:
    return !(a <= b);
  case arith::CmpFPredicate::UGE:
    return !(a < b);
  case arith::CmpFPredicate::ULT:
    return !(a >= b);
  case arith::CmpFPredicate::ULE:
    return !(a > b);
  case arith::CmpFPredicate::UNE:
    return a != b;
  }
  llvm_unreachable("every predicate is handled");
}

static bool holds(arith::CmpIPredicate predicate, int64_t a, int64_t b, ElementKind kind) {
  int64_t sa = signExtend(a, kind), sb = signExtend(b, kind);
  uint64_t ua = zeroExtend(a, kind), ub = zeroExtend(b, kind);
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return ua == ub;
  case arith::CmpIPredicate::ne:
    return ua != ub;
  case arith::CmpIPredicate::slt:
    return sa < sb;
  case arith::CmpIPredicate::sle:
    return sa <= sb;
  case arith::CmpIPredicate::sgt:
    return sa > sb;
  case arith::CmpIPredicate::sge:
    return sa >= sb;
  case arith::CmpIPredicate::ult:
    return ua < ub;
  case arith::CmpIPredicate::ule:
    return ua <= ub;
  case arith::CmpIPredicate::ugt:
    return ua > ub;
  case arith::CmpIPredicate::uge:
    return ua >= ub;
  }
  llvm_unreachable("every predicate is handled");
}

static LogicalResult compareFloats(arith::CmpFOp op, Call &call) {
  if (failed(allocateSame(call)))
    return failure();
  for (int64_t i = 0; i < call.results[0].size(); ++i)
    call.results[0].ints[i] = holds(op.getPredicate(), call.operand(0).floats[i], call.operand(1).floats[i]);
  return success();
}

static LogicalResult compareIntegers(arith::CmpIOp op, Call &call) {
  if (failed(allocateSame(call)))
    return failure();
  for (int64_t i = 0; i < call.results[0].size(); ++i)
    call.results[0].ints[i] =
        holds(op.getPredicate(), call.operand(0).ints[i], call.operand(1).ints[i], call.operand(0).kind);
  return success();
}

static LogicalResult select(arith::SelectOp, Call &call) {
  const Tensor &condition = call.operand(0), &yes = call.operand(1), &no = call.operand(2);
  bool scalar = condition.shape.empty();
  if (yes.shape != no.shape || (!scalar && condition.shape != yes.shape))
    return call.fail("operands of different shapes");
  call.results[0] = no;
  for (int64_t i = 0; i < no.size(); ++i) {
    if (!condition.ints[scalar ? 0 : i])
      continue;
    if (isFloat(no.kind))
      call.results[0].floats[i] = yes.floats[i];
    else
      call.results[0].ints[i] = yes.ints[i];
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

namespace {
enum class Cast { Keep, Signed, Unsigned };
} // namespace

/// Conversions between kinds; the caller rounds and wraps. `sign` says how the integer side is read.
static Kernel cast(Cast sign) {
  return [sign](Call &call) {
    if (failed(allocateSame(call)))
      return failure();
    const Tensor &from = call.operand(0);
    Tensor &to = call.results[0];
    for (int64_t i = 0; i < from.size(); ++i) {
      if (isFloat(from.kind) && isFloat(to.kind)) {
        to.floats[i] = from.floats[i];
      } else if (isFloat(from.kind)) {
        double value = std::trunc(from.floats[i]), limit = std::ldexp(1.0, bitWidth(to.kind) - (sign == Cast::Signed));
        double lowest = sign == Cast::Signed ? -limit : 0;
        if (!(value >= lowest && value < limit))
          return call.fail("element " + Twine(i) + " does not fit in " + name(to.kind));
        to.ints[i] = value < 0x1p63 ? static_cast<int64_t>(value) : static_cast<int64_t>(static_cast<uint64_t>(value));
      } else {
        int64_t value = sign == Cast::Unsigned ? static_cast<int64_t>(zeroExtend(from.ints[i], from.kind))
                                               : signExtend(from.ints[i], from.kind);
        if (!isFloat(to.kind))
          to.ints[i] = value;
        else
          to.floats[i] =
              sign == Cast::Unsigned ? static_cast<double>(static_cast<uint64_t>(value)) : static_cast<double>(value);
      }
    }
    return success();
  };
}

/// The same bits under another kind of the same width.
static LogicalResult bitcast(arith::BitcastOp, Call &call) {
  if (failed(allocateSame(call)))
    return failure();
  if (byteWidth(call.operand(0).kind) != byteWidth(call.results[0].kind))
    return call.fail("kinds of different widths");
  decode(encode(call.operand(0)), call.results[0]);
  return success();
}

static LogicalResult constant(arith::ConstantOp op, Call &call) {
  FailureOr<Tensor> tensor = readConstant(op.getValue(), call.reason);
  if (failed(tensor))
    return failure();
  call.results[0] = std::move(*tensor);
  return success();
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

/// IEEE 754-2019 maximum and minimum: NaN spreads, -0 is below +0.
static double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  return a > b || (a == b && std::signbit(b)) ? a : b;
}
static double minimum(double a, double b) { return -maximum(-a, -b); }

void interpreter::addArithKernels(KernelTable &table) {
  addIntegerKernels(table);
  table.add<arith::AddFOp>(binary([](double a, double b) { return a + b; }));
  table.add<arith::SubFOp>(binary([](double a, double b) { return a - b; }));
  table.add<arith::MulFOp>(binary([](double a, double b) { return a * b; }));
  table.add<arith::DivFOp>(binary([](double a, double b) { return a / b; }));
  table.add<arith::RemFOp>(binary([](double a, double b) { return std::fmod(a, b); }));
  table.add<arith::NegFOp>(unary([](double a) { return -a; }));
  table.add<arith::MaximumFOp>(binary(maximum));
  table.add<arith::MinimumFOp>(binary(minimum));
  table.add<arith::MaxNumFOp>(binary([](double a, double b) { return std::fmax(a, b); }));
  table.add<arith::MinNumFOp>(binary([](double a, double b) { return std::fmin(a, b); }));
  table.add<arith::CmpFOp>(compareFloats);
  table.add<arith::CmpIOp>(compareIntegers);
  table.add<arith::SelectOp>(select);
  table.add<arith::ExtFOp>(cast(Cast::Keep));
  table.add<arith::TruncFOp>(cast(Cast::Keep));
  table.add<arith::SIToFPOp>(cast(Cast::Signed));
  table.add<arith::UIToFPOp>(cast(Cast::Unsigned));
  table.add<arith::FPToSIOp>(cast(Cast::Signed));
  table.add<arith::FPToUIOp>(cast(Cast::Unsigned));
  table.add<arith::ExtSIOp>(cast(Cast::Signed));
  table.add<arith::ExtUIOp>(cast(Cast::Unsigned));
  table.add<arith::TruncIOp>(cast(Cast::Signed));
  table.add<arith::IndexCastOp>(cast(Cast::Signed));
  table.add<arith::IndexCastUIOp>(cast(Cast::Unsigned));
  table.add<arith::BitcastOp>(bitcast);
  table.add<arith::ConstantOp>(constant);
}
