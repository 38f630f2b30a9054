//===- TfmToSchedule.h - what the schedule knows of a model -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_CONVERSION_TFMTOSCHEDULE_TFMTOSCHEDULE_H
#define DROVER_CONVERSION_TFMTOSCHEDULE_TFMTOSCHEDULE_H

#include "drover/Schedule/MicrobatchProgram.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace drover {

/// How a parameter starts from random.
struct InitialValue {
  bool normal = false; // N(0, value), else the constant value
  double value = 0;
};

/// What must be read off `@model` before its layers become bodies.
struct ModelFacts {
  std::string tokens; // the input that holds token ids; empty where none is found
  /// Its dimensions' symbols (index into tfm.symbols) or sizes.
  struct Size {
    int64_t size = -1;   // where it is fixed
    int64_t symbol = -1; // where it is one symbol
  };
  Size batch, sequence;
  int64_t vocabulary = 0; // rows of the embedding table; 0 where unknown
  llvm::StringMap<InitialValue> initialValues;
};

/// Finds the input that feeds the embedding (of several the one with most rows, so that positions lose to tokens),
/// and the initial value of each parameter by its use: norms start as the identity, biases at 0, the rest normal.
mlir::FailureOr<ModelFacts> readModelFacts(mlir::ModuleOp module);

/// The microbatch program of docs/body-abi.md as plain structs. Expects what `tfm-verify-microbatch` accepts. An input
/// of a training program that nothing fills is an error.
mlir::FailureOr<schedule::MicrobatchProgram> extractMicrobatch(mlir::ModuleOp module, const ModelFacts &facts,
                                                               bool train);

} // namespace drover

#endif // DROVER_CONVERSION_TFMTOSCHEDULE_TFMTOSCHEDULE_H
