//===- LibraryCalls.h - matmuls, attention, embedding -----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CONVERSION_TFMTORT_LIBRARYCALLS_H
#define DROVER_LIB_CONVERSION_TFMTORT_LIBRARYCALLS_H

#include "Emitter.h"

namespace drover::lower {

bool isMatmul(mlir::Operation *op);
/// True for ops that the runtime computes; matmuls of other types than f32 and bf16 are kernels.
bool isLibraryCall(mlir::Operation *op);
llvm::LogicalResult verifyLibraryCall(mlir::Operation *op, Target target);

/// The three matrices of a product, with their orientation.
struct MatmulViews {
  View lhs, rhs, result;
  bool transposeLhs = false, transposeRhs = false;
};
std::optional<MatmulViews> matmulViews(mlir::Operation *op, const View &lhs, const View &rhs, const View &result);

/// [B, S, C] as the runtime's attention reads it: one stride between rows. None where it is something else.
std::optional<View> attentionRows(View view);

/// True where the op can read operand number `index` through the view.
bool operandFits(mlir::Operation *op, unsigned index, const View &view);

/// A memref of the stored matrix; `transposed` becomes its orientation against [rows, cols] of the product.
mlir::Value matrixOperand(BodyEmitter &emitter, const View &view, bool &transposed, int64_t batch);

/// Of each part of a call's own workspace.
llvm::SmallVector<int64_t> libraryScratchBytes(mlir::Operation *op, Target target);
void emitLibraryCall(BodyEmitter &emitter, const Views &views, mlir::Operation *op, const View &target,
                     rt::Store store);

} // namespace drover::lower

#endif // DROVER_LIB_CONVERSION_TFMTORT_LIBRARYCALLS_H
