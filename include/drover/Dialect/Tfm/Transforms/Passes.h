//===- Passes.h - passes of the model dialect -------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_DIALECT_TFM_TRANSFORMS_PASSES_H
#define DROVER_DIALECT_TFM_TRANSFORMS_PASSES_H

#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace drover::tfm {

#define GEN_PASS_DECL
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

/// The raising passes in order, on every function: from an importer's structural form to the form that a
/// person would write. Also `--tfm-raise`.
void buildRaisePipeline(mlir::OpPassManager &manager);

/// Holds every op of a partitioned module against its transfer rule (`tfm-verify-distributions`): one located error
/// where one does not follow it.
llvm::LogicalResult verifyDistributions(mlir::ModuleOp module);

/// Registers the pipelines of this dialect.
void registerTfmPipelines();

} // namespace drover::tfm

#endif // DROVER_DIALECT_TFM_TRANSFORMS_PASSES_H
