//===- RankInterpreter.h - all ranks of a grid in lock-step -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The executable semantics of a partitioned program: every rank of the grid executes each operation before any executes
// the next, and a collective combines what the ranks hold. Transformations are proven with it.
//===----------------------------------------------------------------------===//
#ifndef DROVER_INTERPRETER_RANKINTERPRETER_H
#define DROVER_INTERPRETER_RANKINTERPRETER_H

#include "drover/Dialect/Tfm/IR/Distribution.h"
#include "drover/Interpreter/Interpreter.h"

namespace drover {

/// Runs a function on all ranks. `arguments` and `results` have one list per rank, in the order of
/// `Grid::coordinates`.
mlir::LogicalResult interpretRanks(mlir::func::FuncOp function, const tfm::Grid &grid,
                                   llvm::ArrayRef<std::vector<Tensor>> arguments,
                                   std::vector<std::vector<Tensor>> &results, const InterpreterOptions &options = {},
                                   std::string *reason = nullptr);

/// A rank's part of a tensor, zero where it is padding. `type` is the encoded local type.
Tensor takePart(const Tensor &global, mlir::RankedTensorType type, const tfm::Grid &grid, int64_t rank);

/// The tensor of which every rank has a part: partial sums are added, replicas compared, padding left out. Fails where
/// replicas differ, or padding is not zero.
mlir::FailureOr<Tensor> putTogether(llvm::ArrayRef<Tensor> parts, mlir::RankedTensorType type, const tfm::Grid &grid,
                                    std::string &reason);

} // namespace drover

#endif // DROVER_INTERPRETER_RANKINTERPRETER_H
