//===- FollowTypes.h - types behind a change --------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_DIALECT_TFM_PARTITION_FOLLOWTYPES_H
#define DROVER_UNITTESTS_DIALECT_TFM_PARTITION_FOLLOWTYPES_H

#include "mlir/IR/BuiltinOps.h"

/// Gives every value that the microbatch computes the type that its rule derives from its operands, in bodies too, and
/// functions those of what they return. Where no rule allows an op its results stay as they are. False where nothing
/// has another type then.
bool followTypes(mlir::ModuleOp module);

#endif // DROVER_UNITTESTS_DIALECT_TFM_PARTITION_FOLLOWTYPES_H
