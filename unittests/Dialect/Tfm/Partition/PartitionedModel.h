//===- PartitionedModel.h - a training step, whole and cut ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_DIALECT_TFM_PARTITION_PARTITIONEDMODEL_H
#define DROVER_UNITTESTS_DIALECT_TFM_PARTITION_PARTITIONEDMODEL_H

#include "ModelText.h"
#include "drover/Interpreter/Interpreter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <map>

struct Layout {
  int64_t tp = 1, cp = 1, dp = 1;
  bool rings = false; ///< collectives beside matmuls in steps
};

struct StepOptions {
  std::string recompute = "none", computeType = "f32";
  bool documents = false, ignoredLabels = false;
  bool split = false;   ///< backwards in input and weight parts
  bool forward = false; ///< logits instead of a training step
};

mlir::MLIRContext &testContext();

/// The microbatch program of a model, whole.
mlir::OwningOpRef<mlir::ModuleOp> trainingStep(const ModelShape &shape, const StepOptions &options);

/// Cuts it; null where the partition fails. Verifies it unless told otherwise.
mlir::LogicalResult partitionStep(mlir::ModuleOp module, const Layout &layout);

/// Loss and gradients by name.
using StepResults = std::map<std::string, drover::Tensor>;

/// Runs the whole step on `dp` batches in one, in exact arithmetic.
StepResults runWhole(mlir::ModuleOp module, const StepOptions &options);
/// Runs the partitioned step on all ranks; `reason` says why it failed.
mlir::FailureOr<StepResults> runRanks(mlir::ModuleOp module, const StepOptions &options, std::string &reason);

/// The worst relative difference of all results, with its name.
std::pair<double, std::string> worstDifference(const StepResults &expected, const StepResults &actual);

#endif // DROVER_UNITTESTS_DIALECT_TFM_PARTITION_PARTITIONEDMODEL_H
