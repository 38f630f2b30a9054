//===- Elementwise.cpp - what element-wise primitives share ---------------===//
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
