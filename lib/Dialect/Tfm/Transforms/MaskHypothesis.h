//===- MaskHypothesis.h - what a mask computes ------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_MASKHYPOTHESIS_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_MASKHYPOTHESIS_H

#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "drover/Support/Tensor.h"

namespace drover::tfm {

/// One evaluation of a mask [B, heads, S, T] (any but T may be 1, then repeated), with the integer
/// inputs that it was given.
struct MaskSample {
  Tensor mask;
  int64_t batch, heads, queries, keys;
  llvm::SmallVector<Tensor> keyMasks; // [B or 1, T], one per candidate

  double at(int64_t b, int64_t h, int64_t i, int64_t j) const;
};

/// The attributes and operands of tfm.attention that stand for a mask.
struct MaskHypothesis {
  CausalKind causal = CausalKind::None;
  std::optional<int64_t> window;
  std::optional<unsigned> keyMask; // index of the candidate
  llvm::SmallVector<float> alibiSlopes;

  bool isTrivial() const { return causal == CausalKind::None && !window && !keyMask && alibiSlopes.empty(); }
};

/// Fills of masked scores are at most this; what is added to scores that count is above.
constexpr double kMaskedBelow = -1e3;

/// The hypothesis that explains all samples, the simplest first, or nothing. A row that it masks
/// wholly must be masked wholly in the sample; a row with any key left must agree in every key, and in
/// what is added up to a constant of the row.
std::optional<MaskHypothesis> explainMask(llvm::ArrayRef<MaskSample> samples, unsigned keyMaskCandidates);

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_MASKHYPOTHESIS_H
