//===- Matchers.h - spellings of small formulas -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_MATCHERS_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_MATCHERS_H

#include "Views.h"

namespace drover::tfm {

/// The one value that every element has: of a constant, a fill, or a view or cast of one.
std::optional<double> splatValue(mlir::Value value);

/// True where `value` is splat `expected` to within the rounding of f32.
bool isSplat(mlir::Value value, double expected);

/// Below casts between floating-point types and identities.
mlir::Value stripCasts(mlir::Value value);

/// Where `value` is `other` combined by a binary OpT with a splat: that splat. `other` is set to the
/// remaining operand. OpT commutes unless `commutes` is false (then the splat is on the right).
template <typename OpT>
std::optional<double> matchWithSplat(mlir::Value value, mlir::Value &other, bool commutes = true) {
  auto op = value.getDefiningOp<OpT>();
  if (!op)
    return std::nullopt;
  for (unsigned side : {1u, 0u}) {
    if (side == 0 && !commutes)
      break;
    if (std::optional<double> splat = splatValue(op->getOperand(side))) {
      other = op->getOperand(1 - side);
      return splat;
    }
  }
  return std::nullopt;
}

/// Where `value` is `input` times a number (multiplication or division by a splat): the number.
std::optional<double> matchScaled(mlir::Value value, mlir::Value &input);

/// Where `value` repeats a rank-1 tensor along all but its last dimension: that tensor.
mlir::Value matchVector(mlir::Value value);

/// Where `value` repeats something of one element a row along its last dimension, or has last size 1:
/// that something, whose leading sizes are those of `value`.
mlir::Value matchRow(mlir::Value value);

/// True where `value` is the mean over the last dimension of `input` (set), by mean or sum.
bool matchRowMean(mlir::Value value, mlir::Value &input);

/// True where `value` is `input` (set) squared.
bool matchSquare(mlir::Value value, mlir::Value &input);

/// True where `value` is 1 / (1 + exp(-input)).
bool matchSigmoid(mlir::Value value, mlir::Value &input);

/// True for an argument that holds a parameter.
bool isParameter(mlir::Value value);

/// Visits `value` and all it is computed from, each once, until a visit interrupts.
mlir::WalkResult walkSources(mlir::Value value, llvm::function_ref<mlir::WalkResult(mlir::Value)> visit);

/// True where reading `value` needs no more than constants, sizes and integer inputs.
bool isTable(mlir::Value value);

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_MATCHERS_H
