//===- RowEmitter.h - values of a fused kernel ------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CONVERSION_TFMTORT_ROWEMITTER_H
#define DROVER_LIB_CONVERSION_TFMTORT_ROWEMITTER_H

#include "Emitter.h"

namespace drover::lower {

/// Builds the values of a row program in one kernel. How rows and columns are walked is the target's.
class RowEmitter {
protected:
  RowEmitter(BodyEmitter &emitter, const RowProgram &program, KernelBuilder &kernel)
      : emitter(emitter), program(program), nodes(program.nodes), k(kernel), flat(program.isFlat()) {}
  ~RowEmitter() = default;

  /// One step along the columns: `width` elements from column `j` on.
  struct Step {
    Step(mlir::Value j, int64_t width) : j(j), width(width) {}
    mlir::Value j;
    int64_t width;
    llvm::DenseMap<NodeId, mlir::Value> values;
  };

  /// The sink that an earlier phase stored the node to.
  const Sink *storedEarlier(NodeId id, unsigned phase) const;
  /// The reductions that the phase makes.
  llvm::SmallVector<NodeId> reductionsOf(unsigned phase) const;

  /// The buffer position of column 0 of the current row.
  mlir::Value base(const Access &access);
  mlir::Value scalar(NodeId id);
  /// Emits before a loop over columns what does not depend on the column.
  void prepare(NodeId id, unsigned phase);
  mlir::Value vector(NodeId id, Step &step, unsigned phase);
  mlir::Value position(const Step &step, const Access &access);
  mlir::Value loadStep(const Access &access, mlir::Type type, const Step &step);
  void storeStep(const Sink &sink, Step &step);
  void storeRow(const Sink &sink);
  /// Elements of which every position in the columns of an access is a multiple, at most `width`.
  virtual int64_t alignedElements(const Access &access, std::optional<int64_t> gatherStride, int64_t width) const {
    return 1;
  }
  /// A value of an earlier phase that the target kept; null where it is computed again.
  virtual mlir::Value keptValue(NodeId id, const Step &step) { return {}; }
  virtual bool isKept(NodeId id) const { return false; }
  void startRow() {
    scalars.clear();
    bases.clear();
  }

  BodyEmitter &emitter;
  const RowProgram &program;
  llvm::ArrayRef<Node> nodes;
  KernelBuilder &k;
  bool flat;
  mlir::Value row;                                   // the current row
  mlir::Value flatStart;                             // of a flat kernel: the position of column 0
  llvm::DenseMap<NodeId, mlir::Value> scalars;       // of the current row
  llvm::DenseMap<const Access *, mlir::Value> bases; // of the current row

private:
  void gatherBase(const Node &node);
};

} // namespace drover::lower

#endif // DROVER_LIB_CONVERSION_TFMTORT_ROWEMITTER_H
