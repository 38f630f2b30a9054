//===- SymbolicSizes.h - sizes as products of symbols -----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_SYMBOLICSIZES_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_SYMBOLICSIZES_H

#include "drover/Dialect/Tfm/IR/Tfm.h"
#include <optional>

namespace drover::tfm {

/// A size as an integer times a product of atoms: symbols, or sums and quotients of them that are not
/// looked into. Two sizes that compare equal are equal for every binding of the symbols.
class Size {
public:
  Size(int64_t constant = 1) : coefficient(constant) {}
  /// Null where `expr` is null.
  static std::optional<Size> get(mlir::AffineExpr expr);

  bool isOne() const { return coefficient == 1 && atoms.empty(); }
  std::optional<int64_t> constant() const { return atoms.empty() ? std::optional(coefficient) : std::nullopt; }
  bool operator==(const Size &other) const { return coefficient == other.coefficient && atoms == other.atoms; }
  bool operator!=(const Size &other) const { return !(*this == other); }
  Size operator*(const Size &other) const;
  /// The exact quotient, where `divisor` is a factor of this size.
  std::optional<Size> dividedBy(const Size &divisor) const;

  mlir::AffineExpr expr(mlir::MLIRContext *context) const;
  /// The size at given values of the symbols, which must be all that it has.
  int64_t evaluate(llvm::ArrayRef<int64_t> symbols) const;
  /// The size in a type: the constant, or kDynamic.
  int64_t dim() const { return constant().value_or(mlir::ShapedType::kDynamic); }

private:
  int64_t coefficient;
  llvm::SmallVector<mlir::AffineExpr, 2> atoms; // sorted by address: expressions are unique in a context
};

using Sizes = llvm::SmallVector<Size>;

/// The sizes of a value's dimensions over the symbols of its module: static sizes, `tfm.shape` of
/// arguments, `shape` of ops that carry it, otherwise what follows from the operands. Nothing where a
/// dynamic size is not known.
std::optional<Sizes> symbolicSizes(mlir::Value value);

/// True where both have the same sizes for every binding of the symbols.
bool sameSizes(mlir::Value a, mlir::Value b);

/// Number of symbols that the module of `op` declares.
unsigned numSymbols(mlir::Operation *op);

/// The type and, where it is dynamic, the `shape` map of a tensor of these sizes.
mlir::RankedTensorType tensorType(llvm::ArrayRef<Size> sizes, mlir::Type element);
mlir::AffineMapAttr shapeMap(llvm::ArrayRef<Size> sizes, mlir::Operation *scope);

/// Builders of structural ops that give them their `shape`; a reshape to the operand's own type is the operand.
mlir::Value buildReshape(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value input, llvm::ArrayRef<Size> sizes);
mlir::Value buildTranspose(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value input,
                           llvm::ArrayRef<int64_t> permutation);
mlir::Value buildBroadcast(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value input, llvm::ArrayRef<Size> sizes);

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_SYMBOLICSIZES_H
