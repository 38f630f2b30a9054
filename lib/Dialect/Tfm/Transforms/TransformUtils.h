//===- TransformUtils.h - shared pieces of the passes -----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_TRANSFORMUTILS_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_TRANSFORMUTILS_H

#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace drover::tfm {

/// "'a', 'b'" for messages.
std::string quoted(llvm::ArrayRef<llvm::StringRef> names);

/// The function `name` with one block; an error on the module where there is none.
mlir::func::FuncOp lookupFunction(mlir::ModuleOp module, llvm::StringRef name);

/// The phase of a body, empty for what is none.
llvm::StringRef bodyPhase(mlir::func::FuncOp body);

/// The argument in whose memory a result of a body lives.
std::optional<int64_t> inplaceArgument(mlir::func::FuncOp body, unsigned result);

/// True for a tensor of floating-point numbers.
bool isFloatTensor(mlir::Type type);

/// The type of the same shape in which sums are taken: f64 for f64, f32 otherwise.
mlir::RankedTensorType wideType(mlir::Type type);

/// Bytes of a static tensor.
uint64_t bytesOf(mlir::Type type);

/// The name in a StringAttr argument attribute, empty where there is none.
llvm::StringRef argumentName(mlir::func::FuncOp function, unsigned index, llvm::StringRef attribute);

/// Erases operations without uses or effects, from the last to the first.
void eraseDeadOperations(mlir::Block &block);

/// Converts between floating-point element types; the value itself where they are equal.
mlir::Value castTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Type elementType);

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_TRANSFORMUTILS_H
