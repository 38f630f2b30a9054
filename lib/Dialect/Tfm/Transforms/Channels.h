//===- Channels.h - channels as linear forms --------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_CHANNELS_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_CHANNELS_H

#include "Matchers.h"

namespace drover::tfm {

/// scale * source[.., channel] * table[.., tableChannel], the table absent where null. Channels count
/// the trailing dimensions of a value in row-major order.
struct Term {
  mlir::Value source;
  int64_t channel;
  double scale = 1;
  mlir::Value table;
  int64_t tableChannel = 0;
};
using LinearForm = llvm::SmallVector<Term, 2>;

/// Every channel of `value`, in its last dimension, as a linear form of the channels of values above it:
/// through slices, concatenations, reshapes of the trailing dimensions, sums, signs and products with
/// tables (isTable). Nothing where the last size is dynamic.
std::optional<std::vector<LinearForm>> channelsOf(mlir::Value value);

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_CHANNELS_H
