//===- TypeMutations.h - wrong distributions made of right ones -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_DIALECT_TFM_PARTITION_TYPEMUTATIONS_H
#define DROVER_UNITTESTS_DIALECT_TFM_PARTITION_TYPEMUTATIONS_H

#include "mlir/IR/BuiltinOps.h"
#include <string>

/// A partitioned program with one change.
struct TypeMutant {
  llvm::StringRef mutation, target;
  llvm::function_ref<std::string()> where; ///< the value or op before the change, as text
  mlir::ModuleOp module;
};

/// Calls `visit` with every `stride`-th mutant of a partitioned program, from the `first`:
/// - each collective left out (for all that read it, and for one of several), there twice, behind what reads it, before
///   what makes its operand, over other axes or in another order of them, along another dimension, by another sum, in
///   another type, in another pattern, under another id or none;
/// - each op that looks at the rank with other axes, sizes, segments or pattern;
/// - each value's state on an axis another one, its layout another one;
/// - each attribute of the microbatch and of the grids that says how a tensor is held another one or none.
/// With `follow` what is computed behind the change gets the types that its rules derive, through calls too, so that
/// only what the rest of the program expects can tell; changes that nothing can follow are left out.
void forEachTypeMutant(mlir::ModuleOp module, bool follow, int64_t stride, int64_t first,
                       llvm::function_ref<void(const TypeMutant &)> visit);

#endif // DROVER_UNITTESTS_DIALECT_TFM_PARTITION_TYPEMUTATIONS_H
