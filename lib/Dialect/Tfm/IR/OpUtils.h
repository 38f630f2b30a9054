//===- OpUtils.h - shared pieces of the verifiers ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_IR_OPUTILS_H
#define DROVER_LIB_DIALECT_TFM_IR_OPUTILS_H

#include "drover/Dialect/Tfm/IR/Tfm.h"

namespace drover::tfm {

using Shape = llvm::SmallVector<int64_t>;
using Shapes = llvm::SmallVectorImpl<llvm::SmallVector<int64_t>>;

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

/// True where two sizes can be equal: one is dynamic, or both are the same.
inline bool compatible(int64_t a, int64_t b) {
  return mlir::ShapedType::isDynamic(a) || mlir::ShapedType::isDynamic(b) || a == b;
}
bool compatible(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

/// The static one of two compatible sizes, where there is one.
inline int64_t refine(int64_t a, int64_t b) { return mlir::ShapedType::isDynamic(a) ? b : a; }

/// The element-wise refinement of compatible shapes of one rank.
Shape refine(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

/// "2x?x64" for messages.
std::string str(llvm::ArrayRef<int64_t> shape);

/// Appends `results` times the common refinement of the operands' shapes; an error where they differ.
llvm::LogicalResult inferSame(mlir::Operation *op, mlir::ValueRange operands, unsigned results, Shapes &shapes);

/// Holds the result types against inferResultShapes: the tail of every verifier of the dialect.
llvm::LogicalResult verifyShapes(mlir::Operation *op);

/// Number of elements of a static shape, 0 for a dynamic one. Ends at the largest 64-bit number.
uint64_t elements(mlir::Value value);

/// Products of counts that end at the largest 64-bit number; of sizes, 0 where one is dynamic.
uint64_t countProduct(llvm::ArrayRef<uint64_t> counts);
uint64_t sizeProduct(llvm::ArrayRef<int64_t> sizes);

/// The product of two sizes; dynamic where one is, or where it exceeds 63 bits.
int64_t product(int64_t a, int64_t b);

/// Constant indices lie in [0, size), or in [-size, size) with `fromEnd`; index i is of sizes[i % count], as the last
/// dimension has one of each. Others are checked where they are read (rt.check_index).
llvm::LogicalResult verifyConstantIndices(mlir::Operation *op, mlir::Value indices, llvm::ArrayRef<int64_t> sizes,
                                          bool fromEnd);

/// Operands and results have one element type.
llvm::LogicalResult verifySameElementType(mlir::Operation *op, mlir::ValueRange values);

/// `value` has the type of sums over `of`: f32, or f64 for f64.
llvm::LogicalResult verifyAccumulator(mlir::Operation *op, mlir::Value value, mlir::Value of, llvm::StringRef name);

/// The number of ranks of `axes`, each of which an enclosing `tfm.grid` has, once.
mlir::FailureOr<int64_t> verifyAxes(mlir::Operation *op, mlir::ArrayAttr axes);

/// The type in which sums over `type` are taken: f64 for f64, f32 otherwise.
mlir::Type accumulatorType(mlir::Type type);

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_IR_OPUTILS_H
