//===- BodyGradient.h - forward and backward of one body --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_BODYGRADIENT_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_BODYGRADIENT_H

#include "StashSelection.h"

namespace drover::tfm {

/// How a call uses a body; calls of equal use share one forward and one backward.
struct BodyUse {
  mlir::func::FuncOp body;
  llvm::SmallVector<OperandKind> kinds;
  llvm::SmallVector<bool> wanted;   ///< arguments whose gradient is asked for
  llvm::SmallVector<bool> arriving; ///< results whose gradient arrives; for the loss, the seed

  bool operator<(const BodyUse &other) const {
    if (body != other.body)
      return body.getAsOpaquePointer() < other.body.getAsOpaquePointer();
    return std::tie(kinds, wanted, arriving) < std::tie(other.kinds, other.wanted, other.arriving);
  }
};

/// The operations through which gradients flow in a body, and how many contributions each value gets.
class GradientPath {
public:
  GradientPath(mlir::Block &body, llvm::ArrayRef<bool> wanted, llvm::ArrayRef<bool> arriving);

  bool contains(mlir::Operation *op) const { return operations.contains(op); }
  /// True where `value` depends on a wanted argument and can have a gradient.
  bool isActive(mlir::Value value) const { return active.contains(value); }
  unsigned contributions(mlir::Value value) const { return counts.lookup(value); }
  /// The operations on the path that have no derivative.
  llvm::SmallVector<mlir::Operation *> undifferentiable() const;

private:
  llvm::SetVector<mlir::Operation *> operations;
  llvm::DenseSet<mlir::Value> active;
  llvm::DenseMap<mlir::Value, unsigned> counts;
};

/// The logits that a loss is of: it is the root of differentiation, as one rule over three operations.
/// Null where `loss` is not the cross_entropy of a logits_sum and a logits_max of one tensor.
mlir::Value logitsOf(CrossEntropyOp loss);

/// The two functions that take the place of a body.
struct BodyGradient {
  struct Operand {
    enum Kind { ForwardOperand, ForwardResult, ResultGradient, Seed, Accumulator } kind;
    unsigned index; ///< of the forward call's operand or result; for an accumulator, of the parameter's operand
  };
  struct Result {
    enum Kind { OperandGradient, Accumulator } kind;
    unsigned index; ///< of the forward call's operand
  };
  mlir::func::FuncOp forward, backward;
  llvm::SmallVector<Operand> operands; ///< of the backward
  llvm::SmallVector<Result> results;   ///< of the backward
  uint64_t stashBytes = 0;
};

/// Builds both; the functions are not in a module yet. Every operation on the path has a derivative.
llvm::FailureOr<BodyGradient> differentiateBody(const BodyUse &use, const RecomputePolicy &policy);

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_BODYGRADIENT_H
