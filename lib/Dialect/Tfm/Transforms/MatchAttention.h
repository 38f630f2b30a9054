//===- MatchAttention.h - what lies around a softmax ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_MATCHATTENTION_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_MATCHATTENTION_H

#include "drover/Dialect/Tfm/IR/Tfm.h"

namespace drover::tfm {

/// Something added to the scores, or a condition under which a score is replaced by `fill`.
struct MaskTerm {
  mlir::Value value;
  double scale = 1;       // of an addend
  bool condition = false; // `value` is i1
  bool keepsWhere = true; // the value of the condition where the score stays
  double fill = 0;
};

/// softcap(scale * q k^T) + masks.
struct Scores {
  MatmulOp product;
  double scale = 1;
  std::optional<double> softcap;
  llvm::SmallVector<MaskTerm> masks;
};

/// True where some operand of what leads to `value` is a matrix product.
bool leadsToProduct(mlir::Value value, int depth = 16);

/// What a softmax is taken of.
std::optional<Scores> matchScores(mlir::Value value);

/// The one matmul that takes the probabilities as its left operand, behind guards that tfm.attention has built in.
MatmulOp matchOutput(mlir::Value probabilities, const Scores &scores);

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_MATCHATTENTION_H
