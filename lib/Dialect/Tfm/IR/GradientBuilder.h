//===- GradientBuilder.h - what a reverse-mode rule builds with -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_IR_GRADIENTBUILDER_H
#define DROVER_LIB_DIALECT_TFM_IR_GRADIENTBUILDER_H

#include "OpUtils.h"

namespace drover::tfm {

/// One application of DifferentiableOpInterface::buildGradients. Rules compute in f32 (f64 for f64) and round once, to
/// the type that is wanted.
class GradientBuilder {
public:
  GradientBuilder(mlir::OpBuilder &builder, mlir::Operation *op, mlir::ValueRange resultGradients,
                  mlir::TypeRange operandTypes, llvm::SmallVectorImpl<mlir::Value> &operandGradients);

  mlir::OpBuilder &builder() { return opBuilder; }
  mlir::Location loc() const { return op->getLoc(); }

  /// A new op at the place of the gradients.
  template <typename OpT, typename... Args> OpT create(Args &&...args) {
    return OpT::create(opBuilder, loc(), std::forward<Args>(args)...);
  }

  /// True where the gradient of operand `i` is to be built.
  bool wanted(unsigned i) const { return resultGradients[0] && operandTypes[i]; }
  /// The type that it must have; that of the operand where it is not wanted.
  mlir::RankedTensorType type(unsigned i) const;

  /// The gradient of a result, in its own type and in that of the arithmetic; null where it is zero.
  mlir::Value gradient(unsigned result = 0) const { return resultGradients[result]; }
  mlir::Value wideGradient() { return wide(resultGradients[0]); }

  /// `shape` with the element type of the result's gradient.
  mlir::RankedTensorType gradientType(llvm::ArrayRef<int64_t> shape) const {
    return mlir::RankedTensorType::get(shape, mlir::getElementTypeOrSelf(gradient()));
  }

  /// Gives operand `i` its gradient, cast to the type that is wanted; nothing where it is not wanted.
  void set(unsigned i, mlir::Value value);

  /// `value` with the element type of `like`, a type or a value.
  mlir::Value cast(mlir::Value value, mlir::Type like);
  mlir::Value castLike(mlir::Value value, mlir::Value like) { return cast(value, like.getType()); }
  /// `value` in the type in which arithmetic and sums are done.
  mlir::Value wide(mlir::Value value);

  // Element-wise arithmetic on wide values.
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value div(mlir::Value a, mlir::Value b);
  mlir::Value neg(mlir::Value a);
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value a, mlir::Value b);
  /// A constant in the shape and element type of `like`.
  mlir::Value constant(double value, mlir::Value like);

  // Data movement.
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value broadcast(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  /// Sums of a wide value over `axes`, which are dropped.
  mlir::Value sum(mlir::Value value, llvm::ArrayRef<int64_t> axes);

private:
  mlir::OpBuilder &opBuilder;
  mlir::Operation *op;
  mlir::ValueRange resultGradients;
  mlir::TypeRange operandTypes;
  llvm::SmallVectorImpl<mlir::Value> &operandGradients;
};

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_IR_GRADIENTBUILDER_H
