//===- WeightCut.h - what of a backward can wait ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_WEIGHTCUT_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_WEIGHTCUT_H

#include "StashSelection.h"

namespace drover::tfm {

/// How a backward falls into its input part and its weight part (docs/body-abi.md, Split backwards).
struct WeightCut {
  /// Results of the whole, by index.
  llvm::SmallVector<unsigned> inputResults, weightResults;
  /// Operations of each, in the order of the whole; some are in both.
  llvm::SmallVector<mlir::Operation *> inputOps, weightOps;
  /// What the input part makes and the weight part reads.
  llvm::SetVector<mlir::Value> handedOver;
};

/// Cuts a backward such that what a microbatch must keep from one part to the other takes the fewest bytes. `isFree`
/// says of each argument whether it is there anyway: an input, a parameter, the seed, an accumulator. `policy` says
/// which memory-bound work may run in both parts.
WeightCut cutBackward(mlir::func::FuncOp body, llvm::ArrayRef<bool> isFree, const RecomputePolicy &policy);

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_WEIGHTCUT_H
