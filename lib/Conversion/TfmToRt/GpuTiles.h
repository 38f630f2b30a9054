//===- GpuTiles.h - products of tiles by warps ------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Tiles of bf16 or f32 in shared memory, and products that a warp makes of them: of bf16 on tensor cores (mma.sync
// m16n8k16, or wgmma m64nNk16 by four warps), of f32 by fused multiply-adds. Sums are f32. All lay their sums over the
// threads alike, as the first one does, so that what is done with them is written once.
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CONVERSION_TFMTORT_GPUTILES_H
#define DROVER_LIB_CONVERSION_TFMTORT_GPUTILES_H

#include "GpuKernel.h"

namespace drover::lower {

/// A matrix in shared memory, row-major; columns are a multiple of 16.
struct SharedTile {
  mlir::Value start; // its first byte in shared memory
  int64_t rows = 0, columns = 0;
  int64_t rowBytes = 0; // an odd number of 16 bytes, so that eight rows at one column lie in different banks
  /// As wgmma reads it: 64 columns of bf16 after the other, of which a row has 128 bytes, swizzled in themselves.
  bool swizzled = false;
  int64_t bytes() const { return rows * rowBytes; } // of all columns
};

/// 16 rows of sums of f32, of which a thread of the warp has four of each 8 columns: of rows `group` and `group` + 8
/// columns 2 * `member` and the next, in the order of rows.
using Fragment = llvm::SmallVector<mlir::Value>;

class GpuTiles {
public:
  static constexpr int64_t kRows = 16; // of a warp

  /// `warps` have rows of their own, `parts` times: the warps of one part have every row, and of what is summed over
  /// the columns of a product theirs only.
  /// `warpgroup`: by wgmma, for bf16, four warps and one part.
  GpuTiles(GpuKernel &k, mlir::Type element, int64_t warps, int64_t parts, bool warpgroup);

  /// Room for a tile, `stages` times; which one is `stage`'s.
  SharedTile allocate(int64_t rows, int64_t columns, int64_t stages = 1);
  SharedTile stage(const SharedTile &first, mlir::Value number);

  /// A matrix in global memory.
  struct Source {
    mlir::Value buffer;
    int64_t columns;
    int64_t aligned; // elements of which every row starts at a multiple
  };
  /// Starts to copy rows from `row` on, whose position in the buffer `position` gives; zeros stand past `end` rows and
  /// past the columns. All threads of the block take part; the copies are there behind finishCopies and a barrier.
  void startCopy(const SharedTile &tile, const Source &source, mlir::Value row, mlir::Value end,
                 llvm::function_ref<mlir::Value(mlir::Value row)> position);
  /// What was started is one group; waits for all groups.
  void commitCopies();
  void finishCopies();

  /// Sums of 16 rows and of the part's share of `columns`.
  Fragment zeros(int64_t columns);
  /// The warp's rows of `a` times the transpose of the part's rows of `x`: 16 by x.rows / parts.
  Fragment multiplyTransposed(const SharedTile &a, const SharedTile &x);
  /// sums (16 by the part's columns of x) += p (16 by x.rows, of which each part has its own) * x. With several parts
  /// all threads of the block take part, and meet a barrier between two calls.
  struct Product {
    Fragment &sums;
    const Fragment &p;
    const SharedTile &x;
  };
  void addProducts(llvm::ArrayRef<Product> products);

  /// Over the four threads of a part that have a row.
  mlir::Value reduceRow(mlir::Value value, RowReduction kind);
  /// Values of the thread's two rows, alike in the four threads that have one, over the parts; all threads of the block
  /// take part.
  void reduceOverParts(llvm::SmallVectorImpl<mlir::Value> &values, RowReduction kind);

  /// The warp's first row in a tile of the block; which rows and columns the thread has.
  mlir::Value firstRow, group, member;
  mlir::Value lane, part;

private:
  bool isNarrow() const { return element.isBF16(); }
  mlir::Value address(const SharedTile &tile, mlir::Value row, mlir::Value column);
  llvm::SmallVector<mlir::Value> loadMatrices(const SharedTile &tile, mlir::Value row, mlir::Value column,
                                              bool transposed);
  void multiply(Fragment &sums, size_t tile, mlir::ValueRange a, mlir::Value low, mlir::Value high);
  using LeftOperand = llvm::function_ref<llvm::SmallVector<mlir::Value>(int64_t depth)>;
  void addNarrowProduct(Fragment &sums, LeftOperand left, const SharedTile &x);
  void addWideProduct(Fragment &sums, const SharedTile &p, const SharedTile &x);
  mlir::Value pack(mlir::Value low, mlir::Value high);
  mlir::Value fma(mlir::Value a, mlir::Value x, mlir::Value sum);
  llvm::SmallVector<mlir::Value> loadFloats(const SharedTile &tile, mlir::Value row, mlir::Value column, int64_t width);

  mlir::Value descriptor(const SharedTile &tile);
  mlir::Value multiplyAsync(mlir::Value sums, mlir::Value a, mlir::Value x, int64_t offsetOfA, int64_t offsetOfX,
                            bool adds, bool columnsOfX);
  void settle(mlir::Value sums, Fragment &to);
  Fragment multiplyTransposedAsync(const SharedTile &a, const SharedTile &x);
  void addProductsAsync(llvm::ArrayRef<Product> products);
  SharedTile rowsOfPart(SharedTile tile);
  SharedTile columnsOfPart(SharedTile tile);
  const SharedTile &fragmentRows(size_t number, int64_t columns);
  void layOut(const Fragment &p, const SharedTile &rows);

  GpuKernel &k;
  mlir::Type element;
  int64_t warps, parts;
  bool warpgroup, copiesAsync = false;
  llvm::SmallVector<SharedTile> fragments; // where fragments become rows, for all products of the kernel
};

} // namespace drover::lower

#endif // DROVER_LIB_CONVERSION_TFMTORT_GPUTILES_H
