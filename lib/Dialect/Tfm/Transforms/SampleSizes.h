//===- SampleSizes.h - sizes at which a graph is evaluated ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_SAMPLESIZES_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_SAMPLESIZES_H

#include "drover/Dialect/Tfm/IR/Tfm.h"

namespace drover::tfm {

/// Values for the module's symbols at which to evaluate a table: small, unequal, each symbol in turn
/// the longest. One empty list where the module has no symbols.
llvm::SmallVector<llvm::SmallVector<int64_t>> sampleSizes(mlir::Operation *scope);

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_SAMPLESIZES_H
