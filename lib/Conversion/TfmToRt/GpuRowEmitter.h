//===- GpuRowEmitter.h - rows of a program on blocks of threads -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A row belongs to a group of threads: one thread, a part of a warp, a warp, or a block. Thread t of a group has the
// columns (step * group + t) * width .. + width. Where what it reads fits its registers, every byte is read once and
// kept over the phases of the row; else each phase walks the columns again. Sums over rows are partial sums of fixed
// blocks of rows, in registers or in the workspace, which a second kernel adds in order.
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CONVERSION_TFMTORT_GPUROWEMITTER_H
#define DROVER_LIB_CONVERSION_TFMTORT_GPUROWEMITTER_H

#include "GpuKernel.h"
#include "RowEmitter.h"

namespace drover::lower {

/// How threads are laid over rows and columns.
struct GpuRowLayout {
  int64_t width = 1;                     // elements of a step
  int64_t group = 1;                     // threads of a row
  int64_t threads = GpuKernel::kThreads; // of a block
  int64_t steps = 1;                     // of a thread along a row
  bool held = true;                      // what a row reads stays in registers, and the steps are unrolled
  bool sumsHeld = false;                 // partial column sums too
};

class GpuRowEmitter final : RowEmitter {
public:
  GpuRowEmitter(BodyEmitter &emitter, const RowProgram &program, GpuKernel &kernel)
      : RowEmitter(emitter, program, kernel), gpu(kernel) {}

  void emit();

private:
  int64_t widthLimit() const;
  int64_t numKept() const;
  void chooseLayout();
  int64_t alignedElements(const Access &access, std::optional<int64_t> gatherStride, int64_t width) const override;

  void emitFlat();
  void emitRows();
  void emitBlocksOfRows();
  void finishColumnSums();
  void emitRow(mlir::Value isRow);
  void emitPhase(unsigned phase, mlir::Value isRow);
  void emitHeldPhase(unsigned phase, mlir::Value isRow);
  void emitLoopedPhase(unsigned phase, mlir::Value isRow);
  void collectLoads(NodeId id, unsigned phase, const Step &step, llvm::SetVector<NodeId> &loads) const;
  void loadColumns(unsigned phase, Step &step, mlir::Value isActive);
  void finishReductions(llvm::ArrayRef<NodeId> reductions, llvm::ArrayRef<mlir::Value> accumulators);
  void addToPartials(Step &step, unsigned phase);
  bool needs(const Sink &sink, unsigned phase) const { return nodes[sink.node].phase == phase; }
  bool isColumnSink(const Sink &sink) const { return sink.columnSum || sink.access.colStride != 0; }
  mlir::Value neutral(NodeId reduction, int64_t width);
  mlir::Value isActive(mlir::Value column, mlir::Value isRow);
  llvm::SmallVector<const Sink *> columnSums() const;

  GpuKernel &gpu;
  GpuRowLayout layout;
  mlir::Value lane;                                                // the thread's number in its group
  std::vector<Step> steps;                                         // of a held row
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> sums;          // of a held row: by column sum, by step
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> partials; // by column sum: buffer, offset of the block's
};

} // namespace drover::lower

#endif // DROVER_LIB_CONVERSION_TFMTORT_GPUROWEMITTER_H
