//===- CollectiveMutations.h - wrong collectives of right ones --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_DIALECT_TFM_PARTITION_COLLECTIVEMUTATIONS_H
#define DROVER_UNITTESTS_DIALECT_TFM_PARTITION_COLLECTIVEMUTATIONS_H

#include "mlir/IR/Operation.h"

using ChangeVisitor = llvm::function_ref<void(llvm::StringRef mutation, llvm::function_ref<bool(mlir::Operation *)>)>;

/// Calls `visit` with every change of an op that is a collective, a ring, or makes a value that differs by rank: a
/// function that changes such an op of another copy of the program, and says whether it applies. The op itself stays.
void forEachCollectiveChange(mlir::Operation *op, ChangeVisitor visit);

#endif // DROVER_UNITTESTS_DIALECT_TFM_PARTITION_COLLECTIVEMUTATIONS_H
