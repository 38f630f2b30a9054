//===- Partition.h - transfer rules of distributions ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// An op says by factors, as in einsum, which dimensions of its operands and results belong together; one rule for all
// ops derives the results' distributions from the operands' (docs/distributions.md, Transfer rules).
//===----------------------------------------------------------------------===//
#ifndef DROVER_DIALECT_TFM_IR_PARTITION_H
#define DROVER_DIALECT_TFM_IR_PARTITION_H

#include "drover/Dialect/Tfm/IR/Distribution.h"

namespace mlir {
class DialectRegistry;
}

namespace drover::tfm {

/// The factors of one dimension, outermost first: several where it nests them (kv heads, then queries of a group).
struct DimFactors {
  llvm::SmallVector<unsigned, 2> factors;
  /// Elements of the dimension per element of its factors: a head's size where the factor counts heads.
  int64_t unit = 1;
  /// A dimension of size 1 that stands for every index of its factor where it is not sharded.
  bool broadcast = false;

  DimFactors(unsigned factor, int64_t unit = 1, bool broadcast = false)
      : factors{factor}, unit(unit), broadcast(broadcast) {}
  DimFactors(llvm::ArrayRef<unsigned> factors, int64_t unit, bool broadcast = false)
      : factors(factors), unit(unit), broadcast(broadcast) {}
};

/// What of an op its rule needs.
struct FactorSignature {
  using Value = llvm::SmallVector<DimFactors, 4>;
  /// One entry per operand and per result of the op.
  llvm::SmallVector<Value, 4> operands, results;
  unsigned numFactors = 0;

  /// How a result is reduced over an axis that shards a factor which it lacks.
  struct Pending {
    Reduction reduction = Reduction::Sum;
    /// Null where the result must not lack a sharded factor.
    std::optional<ReductionType> type;
  };
  llvm::SmallVector<Pending, 2> pending;

  /// Factors that the op must see whole, with the reason.
  llvm::SmallVector<std::pair<unsigned, llvm::StringRef>, 4> whole;
  /// Operands in which the op is linear: one of them may be partial, the others replicated on that axis.
  llvm::SmallVector<unsigned, 2> linear;
  /// The op adds its operands: all are partial alike, or none is.
  bool isAdditive = false;
  /// Rows or columns of a table that is sharded on `factor` are selected by an offset: the operand, -1 where absent.
  struct Offset {
    unsigned factor;
    int operand;
  };
  std::optional<Offset> offset;
  /// A factor that may be sharded only where the op has an operand of this name.
  struct Requirement {
    unsigned factor;
    bool isMet;
    llvm::StringRef operand;
  };
  llvm::SmallVector<Requirement, 1> requirements;
  /// Zeros in a padded dimension of the operands give zeros in the results'.
  bool preservesZero = true;
  /// Beside those in which the op is linear, operands whose zeros give zeros whatever the others are.
  llvm::SmallVector<unsigned, 2> absorbing;
  /// Where it does not: only padding within a group of heads is spoilt, groups of padding give zero.
  bool spoilsWithinGroups = false;
  /// Results whose padding nothing reads.
  llvm::SmallVector<unsigned, 1> unread;
  /// Partial results are reduced at once: they are read in another type than they must be reduced in.
  bool settles = false;

  // What the partition needs beside the rule.
  /// Operands in the order in which their distributions decide, all of them where empty.
  llvm::SmallVector<unsigned, 4> anchors;
  /// A product with a weight: its operand, and the factors of the outputs and of the contraction.
  struct Product {
    unsigned weight, output, contraction;
  };
  std::optional<Product> product;
  /// A table whose rows are looked up: its operand and the factor of its rows.
  struct Lookup {
    unsigned table, ids, rows;
  };
  std::optional<Lookup> lookup;

  unsigned newFactor() { return numFactors++; }
  llvm::SmallVector<unsigned> newFactors(unsigned count);
  bool isWhole(unsigned factor) const;
  /// Factors of all dimensions of a value.
  static Value dims(llvm::ArrayRef<unsigned> factors);
};

/// The signature of an op whose operands and results have equal shapes.
void elementwiseFactors(mlir::Operation *op, FactorSignature &signature);

/// The one rule. `operands` are the operands' distributions, `hints` those that the results have now: factors that an
/// op creates (an embedding's gradient, a broadcast) take theirs from there. Fails with a reason.
llvm::LogicalResult inferByFactors(mlir::Operation *op, const FactorSignature &signature,
                                   llvm::ArrayRef<Distribution> operands, llvm::ArrayRef<Distribution> hints,
                                   llvm::SmallVectorImpl<Distribution> &results, std::string &reason);

/// The distributions of an op's results, by its interface: of an op without one everything is replicated.
llvm::LogicalResult inferDistributions(mlir::Operation *op, llvm::ArrayRef<Distribution> operands,
                                       llvm::ArrayRef<Distribution> hints, llvm::SmallVectorImpl<Distribution> &results,
                                       std::string &reason);

/// Gives arith, math and the collectives of shard PartitionOpInterface.
void registerUpstreamPartitionRules(mlir::DialectRegistry &registry);

/// Builds what a local op needs beside its operands.
class LocalValues {
public:
  virtual ~LocalValues() = default;
  /// The first of the rank's elements of a dimension that is cut over `axes` in parts of `size`.
  virtual mlir::Value shardOffset(llvm::ArrayRef<Axis> axes, int64_t size) = 0;
  /// The global index of each element of dimension `dim` of a value of this distribution, local size `size`.
  virtual mlir::Value globalIndex(const Distribution &distribution, unsigned dim, int64_t size) = 0;
};

} // namespace drover::tfm

#endif // DROVER_DIALECT_TFM_IR_PARTITION_H
