//===- SpecialKernels.h - ops that are not rows -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CONVERSION_TFMTORT_SPECIALKERNELS_H
#define DROVER_LIB_CONVERSION_TFMTORT_SPECIALKERNELS_H

#include "Emitter.h"

namespace drover::lower {

/// The position in the buffer of a view's element number `number`, in row-major order.
mlir::Value viewPosition(KernelBuilder &k, const View &view, mlir::Value number);

void emitRope(BodyEmitter &emitter, const Views &views, tfm::RopeOp op);

/// An op that is neither rows nor a library call: rope, scatters, reductions over other dimensions, ..
bool isSpecialKernel(mlir::Operation *op);
void emitSpecialKernel(BodyEmitter &emitter, const Views &views, mlir::Operation *op);
/// Element type and number of elements of the scratch buffers of a special kernel, by number.
llvm::SmallVector<std::pair<mlir::Type, int64_t>> specialScratch(mlir::Operation *op, Target target);

/// `sum` and the loss of token i where its label counts; to f64.
mlir::Value addTokenLoss(KernelBuilder &k, const Views &views, tfm::CrossEntropyOp op, mlir::Value i, mlir::Value sum);
mlir::Value toF64(KernelBuilder &k, mlir::Value value);

// Kernels whose threads work together.
void emitGpuCrossEntropy(BodyEmitter &emitter, const Views &views, tfm::CrossEntropyOp op);
void emitGpuSumOfSquares(BodyEmitter &emitter, const Views &views, tfm::SumOfSquaresOp op);
void emitGpuRope(BodyEmitter &emitter, const Views &views, tfm::RopeOp op);
/// Adds to `target` by `store`.
void emitGpuEmbeddingGrad(BodyEmitter &emitter, const Views &views, tfm::EmbeddingGradOp op, const View &target,
                          rt::Store store);

} // namespace drover::lower

#endif // DROVER_LIB_CONVERSION_TFMTORT_SPECIALKERNELS_H
