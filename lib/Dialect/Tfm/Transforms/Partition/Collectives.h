//===- Collectives.h - from one distribution to another ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_PARTITION_COLLECTIVES_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_PARTITION_COLLECTIVES_H

#include "drover/Dialect/Tfm/IR/Distribution.h"
#include "mlir/IR/Builders.h"
#include <map>

namespace drover::tfm {

/// The symbol of the module's shard.grid.
inline constexpr llvm::StringLiteral kGridSymbol = "grid";

/// Builds the collectives that turn a local value into one of another distribution; each once a body.
class Collectives {
public:
  Collectives(mlir::OpBuilder &builder, const Grid &grid, int64_t &nextReduction)
      : builder(builder), grid(grid), nextReduction(nextReduction) {}

  /// `value` with the distribution `target`. Fails, with a reason, where no collective leads there.
  mlir::FailureOr<mlir::Value> resolve(mlir::Location loc, mlir::Value value, const Distribution &target,
                                       std::string &reason);

  /// The sum over dp of what its ranks hold side by side along a dimension, pending, in f32: a weight's gradient by
  /// way of ops that give it a batch.
  mlir::Value sumOverDp(mlir::Location loc, mlir::Value value);

private:
  enum class Kind { AllGather, AllReduce, ReduceScatter, AllSlice };
  using Axes = llvm::SmallVector<Axis, 4>;

  mlir::Value build(mlir::Location loc, Kind kind, llvm::ArrayRef<Axis> axes, unsigned dim, mlir::Value value);
  mlir::Value create(mlir::Location loc, Kind kind, llvm::ArrayRef<Axis> axes, unsigned dim, mlir::Value value);
  mlir::Value reduce(mlir::Location loc, llvm::ArrayRef<Axis> axes, const Distribution &target, mlir::Value value);
  /// What all dp ranks hold alike, side by side along `dim`.
  mlir::Value repeatOverDp(mlir::Location loc, unsigned dim, mlir::Value value);
  mlir::Value dropPadding(mlir::Location loc, unsigned dim, mlir::Value value);

  mlir::OpBuilder &builder;
  const Grid &grid;
  int64_t &nextReduction;
  /// Keyed by value, kind, axes and dimension.
  std::map<std::tuple<void *, int, std::vector<int>, unsigned>, mlir::Value> cache;
  std::map<std::pair<void *, void *>, mlir::Value> casts;
};

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_PARTITION_COLLECTIVES_H
