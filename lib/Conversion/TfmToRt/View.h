//===- View.h - strided views of buffers ------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Reshapes, transposes, slices and broadcasts move no data where their readers take strides: each value is a view
// of the value that has memory, its root.
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CONVERSION_TFMTORT_VIEW_H
#define DROVER_LIB_CONVERSION_TFMTORT_VIEW_H

#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <optional>

namespace drover::lower {

using Sizes = llvm::SmallVector<int64_t, 4>;

/// Elements of `root`'s buffer at offset + sum of index * stride.
struct View {
  mlir::Value root;
  int64_t offset = 0;
  Sizes shape, strides;
};

llvm::ArrayRef<int64_t> shapeOf(mlir::Value value);
mlir::Type elementTypeOf(mlir::Value value);
int64_t product(llvm::ArrayRef<int64_t> sizes);
Sizes contiguousStrides(llvm::ArrayRef<int64_t> shape);

/// Drops dimensions of size 1 and joins neighbours that one stride describes.
void collapse(Sizes &shape, Sizes &strides);

/// True where the view is the whole of a contiguous buffer in row-major order.
bool isWhole(const View &view);

/// The one stride at which the leading dimensions of a view can be walked as rows; none where they cannot.
std::optional<int64_t> rowStride(const View &view);

/// A view that the runtime's matmul reads: two dimensions of which one has a unit stride, and a batch.
struct MatrixView {
  bool transposed = false; // against the order of the view's last two dimensions
  int64_t leading = 0;     // distance of stored rows
  int64_t batch = 1, batchStride = 0;
};
std::optional<MatrixView> matrixView(const View &view);

/// Where a row kernel reads or writes: element (row, column) of a domain. Rows are decomposed over rowShape.
struct Access {
  mlir::Value root;
  int64_t offset = 0;
  Sizes rowShape, rowStrides; // collapsed; empty where every row is the same
  int64_t colStride = 0;

  bool isUniform() const { return rowStrides.empty() && colStride == 0; }
  /// True where element (row, column) is number row * cols + column (or number row, with perRow) of the root.
  bool isIdentity(int64_t rows, int64_t cols, bool perRow) const;
};

/// What an operand is to a row kernel.
enum class Role {
  Element, // [.., C]: one value an element
  Row,     // [..]: one value a row
  Column,  // [C]: one value a column
  Uniform, // one value in all, or a few of them (hyperparameters)
  Other    // read by an index that is computed
};
/// `cols` is the domain's; where it is not 1, trailing sizes of 1 belong to the rows.
Access accessOf(const View &view, Role role, int64_t cols);

/// All views of one body.
class Views {
public:
  /// The view of the buffer behind `value`, through ops that are views and placements.
  View of(mlir::Value value) const;
  /// The same up to the op that computes `value`, as if it had a contiguous buffer of its own.
  View withoutPlacement(mlir::Value value) const;
  /// `value` gets memory of its own although its op could be a view.
  void materialize(mlir::Value value) { materialized.insert(value); }
  bool isMaterialized(mlir::Value value) const { return materialized.contains(value); }
  /// `value` is computed into a part of another value's buffer.
  void place(mlir::Value value, View part) { placements[value] = std::move(part); }
  bool isPlaced(mlir::Value value) const { return placements.contains(value); }
  void unplace(mlir::Value value) { placements.erase(value); }
  /// True where the value has no memory of its own because its op is a view.
  bool isView(mlir::Value value) const;

private:
  View resolve(mlir::Value value, bool place) const;
  llvm::DenseSet<mlir::Value> materialized;
  llvm::DenseMap<mlir::Value, View> placements;
};

/// The view that a view op makes of its operand's; none where a reshape needs a copy.
std::optional<View> composeView(mlir::Operation *op, const View &input);

/// True for ops whose values row kernels compute where they need them: constants, fills, iotas, offsets of a rank.
bool isInline(mlir::Operation *op);

} // namespace drover::lower

#endif // DROVER_LIB_CONVERSION_TFMTORT_VIEW_H
