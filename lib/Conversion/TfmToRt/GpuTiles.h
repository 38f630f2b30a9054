//===- GpuTiles.h - products of tiles by warps ------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Tiles of bf16 or f32 in shared memory, and products that a warp makes of them: of bf16 on tensor cores (mma.sync
// m16n8k16), of f32 by fused multiply-adds. Sums are f32. Both lay their sums over the threads alike, as that
// instruction does, so that what is done with them is written once.
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
  int64_t bytes() const { return rows * rowBytes; }
};

/// 16 rows of sums of f32, of which a thread of the warp has four of each 8 columns: of rows `group` and `group` + 8
/// columns 2 * `member` and the next, in the order of rows.
using Fragment = llvm::SmallVector<mlir::Value>;

class GpuTiles {
public:
  static constexpr int64_t kRows = 16; // of a warp

  GpuTiles(GpuKernel &k, mlir::Type element, int64_t warps);

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

  static Fragment zeros(GpuKernel &k, int64_t columns);
  /// The warp's rows of `a` times the transpose of `x`: 16 by x.rows.
  Fragment multiplyTransposed(const SharedTile &a, const SharedTile &x);
  /// sums (16 by x.columns) += p (16 by x.rows) * x.
  void addProduct(Fragment &sums, const Fragment &p, const SharedTile &x);

  /// Over the four threads that have a row.
  mlir::Value reduceRow(mlir::Value value, RowReduction kind);

  /// The warp's first row in a tile of the block; which rows and columns the thread has.
  mlir::Value firstRow, group, member;
  mlir::Value lane;

private:
  bool isNarrow() const { return element.isBF16(); }
  mlir::Value address(const SharedTile &tile, mlir::Value row, mlir::Value column);
  llvm::SmallVector<mlir::Value> loadMatrices(const SharedTile &tile, mlir::Value row, mlir::Value column,
                                              bool transposed);
  void multiply(Fragment &sums, size_t tile, mlir::ValueRange a, mlir::Value low, mlir::Value high);
  mlir::Value pack(mlir::Value low, mlir::Value high);
  mlir::Value fma(mlir::Value a, mlir::Value x, mlir::Value sum);
  llvm::SmallVector<mlir::Value> loadFloats(const SharedTile &tile, mlir::Value row, mlir::Value column, int64_t width);

  GpuKernel &k;
  mlir::Type element;
  int64_t threads;
  bool copiesAsync = false;
  SharedTile floats; // of f32: where a warp turns a fragment into rows
  SharedTile &fragmentRows(int64_t columns);
};

} // namespace drover::lower

#endif // DROVER_LIB_CONVERSION_TFMTORT_GPUTILES_H
