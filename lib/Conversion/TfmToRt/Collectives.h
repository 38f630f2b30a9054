//===- Collectives.h - shard ops as the runtime's collectives ---*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CONVERSION_TFMTORT_COLLECTIVES_H
#define DROVER_LIB_CONVERSION_TFMTORT_COLLECTIVES_H

#include "Emitter.h"

namespace drover::lower {

/// The axes that an op names; failure, without a diagnostic, where the grid lacks one.
llvm::FailureOr<Axes> axesOf(mlir::Operation *op, mlir::ArrayAttr names);
/// The axes of a shard op; a diagnostic where `tfm.grid` and the grid do not agree.
llvm::FailureOr<Axes> shardAxes(mlir::Operation *op);
/// The group that differs in these axes alone.
std::optional<rt::Communicator> communicatorOf(const Axes &axes);
int64_t countRanks(const Axes &axes);
/// The rank's index over axes.
mlir::Value linearIndex(mlir::ImplicitLocOpBuilder &b, mlir::Value call, const Axes &axes);

/// True for the shard ops that communicate: all_gather, reduce_scatter, all_reduce.
bool isCollective(mlir::Operation *op);
/// The op says which reduction it discharges.
llvm::LogicalResult verifyReductionId(mlir::Operation *op);
mlir::IntegerAttr reductionId(mlir::Operation *op);
/// Holds a shard op, a slice too, against what the runtime can do.
llvm::LogicalResult verifyShardOp(mlir::Operation *op);
void emitCollectiveStart(BodyEmitter &emitter, const Views &views, mlir::Operation *op, int32_t slot);

/// Special kernels: the copy of a rank's part, and the indices of its elements.
bool isRankKernel(mlir::Operation *op);
void emitRankKernel(BodyEmitter &emitter, const Views &views, mlir::Operation *op);

} // namespace drover::lower

#endif // DROVER_LIB_CONVERSION_TFMTORT_COLLECTIVES_H
