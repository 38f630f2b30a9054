//===- Distribution.h - how a grid of ranks holds a tensor ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The value class behind #tfm.dist, and the sizes of the grid's axes (docs/distributions.md).
//===----------------------------------------------------------------------===//
#ifndef DROVER_DIALECT_TFM_IR_DISTRIBUTION_H
#define DROVER_DIALECT_TFM_IR_DISTRIBUTION_H

#include "drover/Dialect/Tfm/IR/Tfm.h"
#include <array>

namespace drover::tfm {

/// Sizes of the axes. An axis of size 1 never appears in a type.
class Grid {
public:
  Grid() { sizes.fill(1); }
  /// From a module's `tfm.grid`; a grid of one rank where there is none.
  explicit Grid(mlir::DictionaryAttr attr);

  int64_t size(Axis axis) const { return sizes[static_cast<unsigned>(axis)]; }
  void setSize(Axis axis, int64_t size) { sizes[static_cast<unsigned>(axis)] = size; }
  int64_t product(llvm::ArrayRef<Axis> axes) const;
  /// True where tp is split into kv and replica.
  bool isSplit() const { return split; }
  void setSplit(bool value) { split = value; }
  /// The axes of tensor parallelism with more than one rank, outermost first.
  llvm::SmallVector<Axis, 2> tensorAxes() const;
  /// The axes of the grid in the order of `shard.grid`: tp or kv, replica; cp; dp.
  llvm::SmallVector<Axis, 4> axes() const;
  mlir::DictionaryAttr getAttr(mlir::MLIRContext *context) const;
  int64_t numRanks() const { return product(axes()); }
  /// A rank's coordinates: the first of `axes` varies fastest.
  std::array<int64_t, kNumAxes> coordinates(int64_t rank) const;

private:
  std::array<int64_t, kNumAxes> sizes;
  bool split = false;
};

/// The grid of the nearest module with `tfm.grid` around an op; one rank where there is none.
Grid gridOf(mlir::Operation *op);

class Distribution {
public:
  Distribution() = default;
  explicit Distribution(DistAttr attr);
  /// The encoding of a ranked tensor type; replicated where there is none.
  static Distribution of(mlir::Type type);
  static Distribution of(mlir::Value value) { return of(value.getType()); }

  const AxisState &operator[](Axis axis) const { return states[static_cast<unsigned>(axis)]; }
  AxisState &operator[](Axis axis) { return states[static_cast<unsigned>(axis)]; }

  /// The axes that shard a dimension, outermost first.
  llvm::SmallVector<Axis, 4> axesOf(unsigned dim) const;
  llvm::SmallVector<Axis, 4> partialAxes() const;
  bool isReplicated() const;

  /// Removes `axes` from the inner end of a dimension; false where they are not that end.
  bool removeSuffix(unsigned dim, llvm::ArrayRef<Axis> axes);
  /// Shards a dimension over `axes` too, inside those that it has; false where an axis is in use or would nest outside
  /// one that the dimension has.
  bool append(unsigned dim, llvm::ArrayRef<Axis> axes, bool twoChunk);

  /// The segments of a dimension that is padded or made of several parts; null otherwise.
  SegmentsAttr layoutOf(unsigned dim) const;
  void setLayout(unsigned dim, SegmentsAttr segments);

  /// The encoding; null where the tensor is replicated.
  DistAttr getAttr(mlir::MLIRContext *context) const;
  /// `type` with this encoding and the shape it has.
  mlir::RankedTensorType encode(mlir::RankedTensorType type) const;
  /// The rank's share of a dimension whose model size is `size`. DP does not divide: a microbatch is one DP rank's.
  int64_t localSize(unsigned dim, int64_t size, const Grid &grid) const;
  /// The size over all ranks, DP's too, of a dimension of local size `size`, without padding.
  int64_t globalSize(unsigned dim, int64_t size, const Grid &grid) const;

  /// "tp=S1, cp=P sum f32" for messages; "R" where replicated.
  std::string str() const;
  std::string str(Axis axis) const;

  bool operator==(const Distribution &other) const { return states == other.states && sameLayouts(other); }
  bool operator!=(const Distribution &other) const { return !(*this == other); }

private:
  bool sameLayouts(const Distribution &other) const;
  std::array<AxisState, kNumAxes> states;
  llvm::SmallVector<DimLayout, 1> layouts; // ascending by dimension
};

/// For each element of a rank's share of a dimension its index in the model's dimension, -1 where it is padding.
/// `size` is the local size; DP's share counts as one of all microbatches.
llvm::SmallVector<int64_t> globalIndices(const Distribution &distribution, unsigned dim, int64_t size, const Grid &grid,
                                         const std::array<int64_t, kNumAxes> &coordinates);

/// "[[257, 1, 1, 260]]" as in the attribute.
std::string str(llvm::ArrayRef<PaddedSegment> segments);

} // namespace drover::tfm

#endif // DROVER_DIALECT_TFM_IR_DISTRIBUTION_H
