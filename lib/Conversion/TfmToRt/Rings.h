//===- Rings.h - matmuls in steps around a ring of ranks --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CONVERSION_TFMTORT_RINGS_H
#define DROVER_LIB_CONVERSION_TFMTORT_RINGS_H

#include "Emitter.h"
#include "drover/rt/abi.h"

namespace drover::lower {

/// The slot of the shift that is under way; a ring is waited for to its end, so that one is enough.
inline constexpr int32_t kRingSlot = DROVER_MAX_IN_FLIGHT - 1;

/// gather_linear and linear_scatter.
bool isRing(mlir::Operation *op);
/// Holds a ring against what the runtime can do.
llvm::LogicalResult verifyRing(mlir::Operation *op);
/// Whether an operand can be read where it lies.
bool ringOperandFits(mlir::Operation *op, unsigned index, const View &view);
/// The parts under way, and the product of a step.
llvm::SmallVector<std::pair<mlir::Type, int64_t>> ringScratch(mlir::Operation *op);
void emitRing(BodyEmitter &emitter, const Views &views, mlir::Operation *op);

} // namespace drover::lower

#endif // DROVER_LIB_CONVERSION_TFMTORT_RINGS_H
