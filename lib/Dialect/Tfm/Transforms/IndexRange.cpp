//===- IndexRange.cpp - what indices can be ---------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "IndexRange.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace drover::tfm {

using Range = std::optional<std::pair<int64_t, int64_t>>;

/// start + step * i for i in [0, size).
static Range rangeOf(IotaOp iota) {
  int64_t size = iota.getType().getDimSize(iota.getAxis()), start = iota.getStart(), span, last;
  if (ShapedType::isDynamic(size) || size == 0 || llvm::MulOverflow<int64_t>(iota.getStep(), size - 1, span) ||
      llvm::AddOverflow(start, span, last))
    return std::nullopt;
  return std::minmax(start, last);
}

static Range constantRange(DenseIntElementsAttr constant) {
  if (constant.empty() || constant.getElementType().getIntOrFloatBitWidth() > 64)
    return std::nullopt;
  if (constant.isSplat()) {
    int64_t value = constant.getSplatValue<APInt>().getSExtValue();
    return std::pair(value, value);
  }
  int64_t least = std::numeric_limits<int64_t>::max(), largest = std::numeric_limits<int64_t>::min();
  for (const APInt &value : constant.getValues<APInt>()) {
    least = std::min(least, value.getSExtValue());
    largest = std::max(largest, value.getSExtValue());
  }
  return std::pair(least, largest);
}

Range indexRange(Value value) {
  if (DenseIntElementsAttr constant; matchPattern(value, m_Constant(&constant)))
    return constantRange(constant);
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  return llvm::TypeSwitch<Operation *, Range>(op)
      .Case([](IotaOp iota) { return rangeOf(iota); })
      .Case([](FillOp fill) -> Range {
        auto number = dyn_cast<IntegerAttr>(fill.getValue());
        return number ? Range(std::pair(number.getInt(), number.getInt())) : std::nullopt;
      })
      .Case<ReshapeOp, TransposeOp, BroadcastOp, arith::ExtSIOp>(
          [](auto view) { return indexRange(view->getOperand(0)); })
      .Case([](arith::AddIOp add) -> Range {
        Range a = indexRange(add.getLhs()), b = indexRange(add.getRhs());
        int64_t least, largest;
        if (!a || !b || llvm::AddOverflow(a->first, b->first, least) ||
            llvm::AddOverflow(a->second, b->second, largest))
          return std::nullopt;
        return std::pair(least, largest);
      })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace drover::tfm
