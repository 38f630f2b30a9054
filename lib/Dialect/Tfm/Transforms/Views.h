//===- Views.h - chains of reshape, transpose and broadcast -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_VIEWS_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_VIEWS_H

#include "SymbolicSizes.h"

namespace drover::tfm {

/// A part of a dimension. Index i of it stands at i * `stride` within dimension `dim` of the root;
/// a repeated factor (dim -1) reads the same element at every index.
struct Factor {
  int dim;
  Size stride;
  Size size;

  bool isRepeated() const { return dim < 0; }
  /// True where `inner` follows this factor within one dimension of the root, so that both are one.
  bool continuesInto(const Factor &inner) const {
    return dim == inner.dim && !isRepeated() && stride == inner.stride * inner.size;
  }
};

/// How a value reads its root through a chain of reshapes, transposes and broadcasts: each of its
/// dimensions is the row-major product of factors (none where the size is 1).
struct View {
  mlir::Value root;
  llvm::SmallVector<llvm::SmallVector<Factor, 2>> dims;
  unsigned numOps = 0; // of the chain
  double scale = 1;    // splats that were looked through multiply to this

  /// The longest chain above `value` that can be expressed. `broadcasts`: look through them too;
  /// `scales`: through products with splats too.
  static View trace(mlir::Value value, bool broadcasts, bool scales = false);

  bool hasRepeated() const;
  /// True where every dimension is that of the root, in order.
  bool isIdentity() const;
  /// Where dimension `dim` is one whole dimension of the root: that dimension.
  std::optional<unsigned> wholeRootDim(unsigned dim) const;
  Sizes sizes() const;

  /// Merges neighbouring factors that are one, within each dimension.
  void simplify();
  bool reshape(llvm::ArrayRef<Size> sizes);
  void transpose(llvm::ArrayRef<int64_t> permutation);
  bool broadcast(llvm::ArrayRef<Size> sizes);

  /// Number of ops that build() needs, and the ops: at most reshape, transpose, reshape. Without repeated factors only.
  unsigned cost() const;
  mlir::Value build(mlir::OpBuilder &builder, mlir::Location loc) const;
};

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_VIEWS_H
