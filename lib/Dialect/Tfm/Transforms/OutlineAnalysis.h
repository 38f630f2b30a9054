//===- OutlineAnalysis.h - where a model repeats ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_OUTLINEANALYSIS_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_OUTLINEANALYSIS_H

#include "TransformUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace drover::tfm {

/// A run of operations that becomes one body.
struct Segment {
  /// The operations on the stream, in the order of execution.
  llvm::SmallVector<mlir::Operation *> stream;
};

/// What a body computes and what it needs, as read off a segment.
struct BodyShape {
  /// All operations, those included that are computed again in each body, producers first.
  llvm::SmallVector<mlir::Operation *> operations;
  /// Values from earlier bodies, then inputs, then parameters; each group in the order of first use.
  llvm::SmallVector<mlir::Value> operands;
  /// Values that other bodies or the function's results use.
  llvm::SmallVector<mlir::Value> results;
  /// Equal for bodies that are equal: operations, attributes, types and wiring.
  std::vector<uintptr_t> key;
};

/// The segments of `model` and the group of them that repeats.
class OutlineAnalysis {
public:
  OutlineAnalysis(mlir::func::FuncOp model, bool findRepetitions);

  /// The bodies' segments in order of execution: prologue, layers, epilogue. Empty parts are left out.
  struct Part {
    enum Kind { Prologue, Layer, Epilogue } kind;
    Segment segment;
  };
  llvm::SmallVector<Part> takeParts();

  /// Reads off what the body of `segment` is.
  BodyShape shapeOf(const Segment &segment);

private:
  void classify();
  void orderStream();
  void cut();
  void placeRemainingResults();
  void findLayers();
  void findSingleLayer();
  bool isResidual(const Segment &segment);
  /// The group of `BodyShape::operands` that a value belongs to.
  unsigned groupOf(mlir::Value operand);
  bool onStream(mlir::Operation *op) const { return streamOps.contains(op); }
  std::vector<uintptr_t> keyOf(const BodyShape &shape, bool withAttributes);

  mlir::func::FuncOp model;
  mlir::Block &block;
  llvm::DenseSet<mlir::Operation *> streamOps;
  llvm::SetVector<mlir::Operation *> ordered;
  llvm::DenseMap<mlir::Operation *, unsigned> segmentOf;
  llvm::SmallVector<Segment> segments;
  unsigned firstLayer = 0, period = 0, numLayers = 0;
};

/// A chain of groups of `period` segments that resemble each other.
struct Repetition {
  unsigned first = 0, period = 0, count = 0;
};

/// The best chain in a sequence of segments with the given keys and weights: groups of equal length, each
/// sharing a key at one position with its predecessor. The score is the weight of the segments whose key
/// occurs twice at their position, less that of the others; then the shorter period, then the earlier.
Repetition findRepetition(llvm::ArrayRef<unsigned> keys, llvm::ArrayRef<unsigned> weights);

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_OUTLINEANALYSIS_H
