//===- Heads.h - the grid and how heads lie on it ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_PARTITION_HEADS_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_PARTITION_HEADS_H

#include "drover/Dialect/Tfm/IR/Distribution.h"
#include "mlir/IR/BuiltinOps.h"

namespace drover::tfm {

/// How many kv heads there are once padded: the next number of which one divides the other with `tp`.
int64_t paddedKvHeads(int64_t kvHeads, int64_t tp);

/// The grid of tp x cp x dp ranks, with tp split into kv and replica where a module's attentions have fewer kv heads.
/// An error where two attentions would need different splits.
mlir::FailureOr<Grid> chooseGrid(mlir::ModuleOp module, int64_t tp, int64_t cp, int64_t dp);

/// What the outputs of a projection are: the axes that shard them, and their segments (null: one, even).
struct OutputLayout {
  llvm::SmallVector<Axis, 4> axes;
  SegmentsAttr segments;
};

/// The layout of the last dimension of `value`, the outputs of a column-parallel linear, by what is made of them:
/// query, key or value heads, several of these side by side, or a width.
OutputLayout layoutOfOutputs(mlir::Value value, const Grid &grid);

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_PARTITION_HEADS_H
