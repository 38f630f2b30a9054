//===- CollectiveRules.h - what collectives do to a type --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The steps of which the rules of collectives, and of rings, are made: each changes `result` from what it is before to
// what it is after, or fails with the reason.
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_IR_COLLECTIVERULES_H
#define DROVER_LIB_DIALECT_TFM_IR_COLLECTIVERULES_H

#include "drover/Dialect/Tfm/IR/Partition.h"

namespace drover::tfm {

/// "tp, cp"; "no axis".
std::string axisList(llvm::ArrayRef<Axis> axes);

/// A dimension that is sharded over `axes` is put together.
llvm::LogicalResult gatherOver(llvm::ArrayRef<Axis> axes, unsigned dim, Distribution &result, std::string &reason);

/// What is partial over `axes` is reduced, from elements of type `from` to elements of type `to`, under the id of the
/// reduction that `op` carries.
llvm::LogicalResult reduceOver(mlir::Operation *op, llvm::ArrayRef<Axis> axes, Reduction reduction, mlir::Type from,
                               mlir::Type to, Distribution &result, std::string &reason);

/// What is replicated over `axes` is cut along a dimension, behind a reduction.
llvm::LogicalResult scatterOver(llvm::ArrayRef<Axis> axes, unsigned dim, bool twoChunk, Distribution &result,
                                std::string &reason);

/// Of `tfm.linear`, and of each that a ring is made of.
FactorSignature linearFactors(mlir::Value input, bool inOut);

/// The rule by factors, of one of the products that a ring is made of.
llvm::LogicalResult inferByFactors(mlir::TypeRange resultTypes, const FactorSignature &signature,
                                   llvm::ArrayRef<Distribution> operands, llvm::ArrayRef<Distribution> hints,
                                   llvm::SmallVectorImpl<Distribution> &results, std::string &reason);

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_IR_COLLECTIVERULES_H
