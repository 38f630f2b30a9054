//===- Elementwise.h - kernels over equal shapes ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_INTERPRETER_ELEMENTWISE_H
#define DROVER_LIB_INTERPRETER_ELEMENTWISE_H

#include "Kernels.h"

namespace drover::interpreter {

/// Allocates result 0 in the operands' common shape.
inline mlir::LogicalResult allocateSame(Call &call) {
  for (const Tensor *operand : call.operands)
    if (operand->shape != call.operand(0).shape)
      return call.fail("operands of different shapes");
  return call.allocate(0, call.operand(0).shape);
}

/// result[i] = function(a[i]) on floats.
template <typename Function> Kernel unary(Function function) {
  return [function](Call &call) {
    if (failed(allocateSame(call)))
      return mlir::failure();
    const std::vector<double> &a = call.operand(0).floats;
    std::vector<double> &result = call.results[0].floats;
    if (a.size() != result.size())
      return call.fail("expected floats");
    for (size_t i = 0; i < result.size(); ++i)
      result[i] = function(a[i]);
    return mlir::success();
  };
}

/// result[i] = function(a[i], b[i]) on floats.
template <typename Function> Kernel binary(Function function) {
  return [function](Call &call) {
    if (failed(allocateSame(call)))
      return mlir::failure();
    const std::vector<double> &a = call.operand(0).floats, &b = call.operand(1).floats;
    std::vector<double> &result = call.results[0].floats;
    if (a.size() != result.size() || b.size() != result.size())
      return call.fail("expected floats");
    for (size_t i = 0; i < result.size(); ++i)
      result[i] = function(a[i], b[i]);
    return mlir::success();
  };
}

/// The bits of an integer read without and with a sign (i1: 1 or -1).
inline uint64_t zeroExtend(int64_t value, ElementKind kind) {
  unsigned width = bitWidth(kind);
  return width == 64 ? static_cast<uint64_t>(value) : static_cast<uint64_t>(value) & ((uint64_t{1} << width) - 1);
}
inline int64_t signExtend(int64_t value, ElementKind kind) { return kind == ElementKind::I1 ? -value : value; }

} // namespace drover::interpreter

#endif // DROVER_LIB_INTERPRETER_ELEMENTWISE_H
