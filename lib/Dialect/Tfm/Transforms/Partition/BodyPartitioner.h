//===- BodyPartitioner.h - a body on one rank's part ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_DIALECT_TFM_TRANSFORMS_PARTITION_BODYPARTITIONER_H
#define DROVER_LIB_DIALECT_TFM_TRANSFORMS_PARTITION_BODYPARTITIONER_H

#include "Collectives.h"
#include "drover/Dialect/Tfm/IR/Partition.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace drover::tfm {

/// What is known of an argument of a body.
struct ArgumentState {
  enum class Role { Value, Parameter, Accumulator };
  Role role = Role::Value;
  /// Of a parameter or accumulator: its first use decides.
  bool isDecided = true;
  Distribution distribution;
  /// Of a parameter: the dimension that tensor parallelism cuts, even where it is over no axis (kv heads that every
  /// replica holds); -1 where there is none.
  int64_t parallelDim = -1;
  /// Of an accumulator: the argument's parameter, which may be none of the body's.
  const ArgumentState *parameter = nullptr;
  /// Of a value: it counts places in the sequence, so that a table it looks up is none of tokens.
  bool isPosition = false;
};

/// Builds one body on local tensors: one pass over its ops, each of which asks for the distributions of its operands.
class BodyPartitioner : LocalValues {
public:
  BodyPartitioner(mlir::func::FuncOp body, llvm::MutableArrayRef<ArgumentState> arguments, const Grid &grid,
                  int64_t &nextReduction)
      : body(body), arguments(arguments), grid(grid), tensorAxes(grid.tensorAxes()), builder(body.getContext()),
        collectives(builder, grid, nextReduction) {}

  /// The local body, before `body` in the module and without a name of its own yet. Decides the arguments that are
  /// open.
  mlir::FailureOr<mlir::func::FuncOp> run();

private:
  using Axes = llvm::SmallVector<Axis, 4>;

  /// Which axes shard which factor of an op, and in which segments.
  struct Assignment {
    llvm::SmallVector<Axes> axes;
    /// Keyed by the factors of a dimension, in their units.
    std::map<std::vector<unsigned>, SegmentsAttr> layouts;

    bool uses(Axis axis) const;
    /// True where an axis of `group` is assigned.
    bool usesAny(llvm::ArrayRef<Axis> group) const;
    void assign(unsigned factor, Axis axis);
  };

  // Assignment.cpp
  Assignment chooseAssignment(mlir::Operation *op, FactorSignature &signature);
  void keepPartsWhole(mlir::Operation *op, FactorSignature &signature) const;
  bool assignDemanded(mlir::Operation *op, const FactorSignature &signature, Assignment &assignment);
  bool assignProduct(mlir::Operation *op, const FactorSignature &signature, Assignment &assignment);
  bool assignLookup(mlir::Operation *op, const FactorSignature &signature, Assignment &assignment);
  bool assignPad(mlir::Operation *op, const FactorSignature &signature, Assignment &assignment);
  bool assignAnchors(mlir::Operation *op, const FactorSignature &signature, llvm::ArrayRef<Axis> group,
                     Assignment &assignment);
  void assignInner(const FactorSignature &signature, mlir::Operation *op, Assignment &assignment);
  void assignSequence(mlir::Operation *op, const FactorSignature &signature, Assignment &assignment);
  void collectLayouts(mlir::Operation *op, const FactorSignature &signature, bool keepsLayout, Assignment &assignment);
  /// The distribution of a dimension list under an assignment.
  Distribution distributionOf(const FactorSignature::Value &dims, const Assignment &assignment) const;
  /// States in which an operand may stay partial.
  void keepPartial(mlir::Operation *op, const FactorSignature &signature, const Assignment &assignment,
                   llvm::MutableArrayRef<Distribution> targets);
  /// The parameter whose gradient, accumulated, a result is.
  const ArgumentState *accumulatedParameter(mlir::Value result) const;
  /// The parameter dimension that a value's last dimension meets, and the parameter's distribution.
  std::optional<std::pair<const ArgumentState *, unsigned>> parameterMetBy(mlir::Value value) const;
  bool countsPlaces(mlir::Value ids) const;

  // BodyPartitioner.cpp
  mlir::LogicalResult partition(mlir::Operation *op);
  mlir::LogicalResult partitionByRule(mlir::Operation *op, FactorSignature &signature);
  bool dropsBatch(mlir::Operation *op) const;
  bool isPendingOverDp(mlir::Value global) const;
  std::optional<unsigned> pendingFactor(mlir::Operation *op) const;
  mlir::LogicalResult partitionScaling(mlir::Operation *op, unsigned pending);
  mlir::LogicalResult partitionWithoutRule(mlir::Operation *op);
  mlir::LogicalResult partitionAccumulate(AccumulateOp op);
  mlir::LogicalResult partitionReturn(mlir::func::ReturnOp op);
  mlir::FailureOr<mlir::Operation *> buildLocal(mlir::Operation *op, const FactorSignature &signature,
                                                const Assignment &assignment);
  void decideParameters(mlir::Operation *op, const FactorSignature &signature, const Assignment &assignment);
  mlir::LogicalResult finishResult(mlir::Operation *op, const FactorSignature &signature, mlir::Value global,
                                   mlir::Value local);
  /// Ops on a weight's gradient whose result may have the type that the gradient is on its way in.
  static bool keepsType(mlir::Operation *op);
  mlir::Value maskPadding(mlir::Location loc, mlir::Value value);
  mlir::Value onFirstRank(mlir::Location loc, mlir::Value value, Axis axis);
  mlir::Value product(mlir::Location loc, mlir::Value pending, mlir::Value factor);
  mlir::FailureOr<mlir::Value> resolve(mlir::Operation *user, mlir::Value global, const Distribution &target);
  mlir::FailureOr<mlir::Value> resolveLocal(mlir::Operation *user, mlir::Value local, const Distribution &target);
  mlir::FailureOr<mlir::Value> materialize(mlir::Operation *user, mlir::Value global, const Distribution &target);
  mlir::Value materializeIota(IotaOp op, const Distribution &target);
  bool isRemade(mlir::Operation *op, const FactorSignature &signature) const;
  /// The target in which a partial value that nobody scatters leaves the body or a gradient of keys its op.
  Distribution settled(mlir::Value local, bool scatterTensor) const;
  Distribution distributionOf(mlir::Value global) const;
  ArgumentState *parameterOf(mlir::Value global) const;
  mlir::RankedTensorType localType(mlir::Value global, const Distribution &distribution) const;

  // LocalValues
  mlir::Value shardOffset(llvm::ArrayRef<Axis> axes, int64_t size) override;
  mlir::Value globalIndex(const Distribution &distribution, unsigned dim, int64_t size) override;

  mlir::func::FuncOp body, local;
  llvm::MutableArrayRef<ArgumentState> arguments;
  const Grid &grid;
  llvm::SmallVector<Axis, 2> tensorAxes;
  mlir::OpBuilder builder;
  Collectives collectives;
  /// Local values by the model's; those that are remade for each distribution are in `remade`.
  llvm::DenseMap<mlir::Value, mlir::Value> locals;
  llvm::DenseSet<mlir::Value> remade;
  std::map<std::pair<void *, void *>, mlir::Value> materialized, masks;
};

} // namespace drover::tfm

#endif // DROVER_LIB_DIALECT_TFM_TRANSFORMS_PARTITION_BODYPARTITIONER_H
