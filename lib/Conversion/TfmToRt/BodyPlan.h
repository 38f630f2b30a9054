//===- BodyPlan.h - kernels, calls and buffers of a body --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Planning happens on the tensor program, before anything is emitted: which ops need no code of their own (views,
// accumulations that their producer does), which ops share a kernel, in which order the kernels and calls run, and
// where each value lives.
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_CONVERSION_TFMTORT_BODYPLAN_H
#define DROVER_LIB_CONVERSION_TFMTORT_BODYPLAN_H

#include "Emitter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"

namespace drover::lower {

enum class UnitKind { Rows, Library, Special, Collective };

/// A kernel or a call: the unit of order and of liveness.
struct Unit {
  explicit Unit(UnitKind kind) : kind(kind) {}

  UnitKind kind;
  llvm::SmallVector<mlir::Operation *> ops; // in program order; one but for Rows
  unsigned position = 0;                    // in program order, of the place where the unit runs
  unsigned number = 0;                      // in the order in which units were made
  Domain domain;                            // Rows
  RowProgram program;                       // Rows
  llvm::SmallVector<int64_t> scratch;       // workspace offsets
  size_t waitBefore = 0;                    // Collective: the unit before which it is waited for
  int32_t flight = 0;                       // Collective: its slot among those in flight
};

enum class Place { Argument, Result, Workspace, Global };
struct Slot {
  Place place = Place::Workspace;
  int64_t index = 0; // argument, result, or byte offset
};

/// A use of a value's memory or elements, looked up through views.
struct ReadBy {
  mlir::OpOperand *operand;
  mlir::Operation *user; // the op whose unit reads; null for the return
};

class BodyPlan {
public:
  /// `overlaps`: collectives of tensor parallelism are under way while a matmul runs; else they are waited for at once.
  BodyPlan(mlir::func::FuncOp func, Target target, bool overlaps) : func(func), target(target), overlaps(overlaps) {}

  /// Plans the body; it may insert copies before the return.
  llvm::LogicalResult run();

  mlir::func::FuncOp func;
  Views views;
  std::vector<Unit> units;
  int64_t workspaceBytes = 0;
  llvm::DenseMap<mlir::Value, Slot> slots;

  /// The accumulation that the producer of a value does.
  tfm::AccumulateOp sink(mlir::Value value) const { return sinks.lookup(value); }
  /// The matmul whose product an addition adds to its other operand in place.
  mlir::Operation *addedMatmul(mlir::Operation *addition) const { return added.lookup(addition); }
  /// The value in whose memory the result of such an addition is.
  mlir::Value storageRoot(mlir::Value value) const;

private:
  void insertCopies();
  void absorb();
  void placeConcats();
  llvm::LogicalResult materializeOperands();
  void schedule();
  void hoist();
  void advanceCollectives();
  void overlapMatmuls();
  bool isWaitedForAtOnce(const Unit &unit) const;
  size_t firstReader(const Unit &unit);
  llvm::BitVector unitsBehind(size_t index);
  void placeWaits();
  std::optional<llvm::SmallVector<std::pair<mlir::OpOperand *, size_t>>> computedOperands(size_t index);
  bool shareAnOperand(const Unit &a, const Unit &b);
  size_t earliestPlace(const Unit &unit, size_t index);
  void numberUnits();
  llvm::LogicalResult buildPrograms();
  llvm::LogicalResult assignSlots(bool &again);
  void reuseInPlace(llvm::DenseMap<mlir::Value, std::pair<int64_t, int64_t>> &lives);

  bool hasUnit(mlir::Operation *op) const;
  bool isPlacedConcat(mlir::Operation *op) const;
  void collectReads(mlir::Value value, llvm::SmallVectorImpl<ReadBy> &reads) const;
  llvm::SmallVector<ReadBy> readsOf(mlir::Value value) const;
  bool canFuse(mlir::OpOperand &operand, Domain domain) const;
  bool mayOverwrite(const Unit &unit, mlir::Value value, mlir::Value old) const;
  Unit *unitOf(mlir::Operation *op);

  Target target;
  bool overlaps;
  llvm::MapVector<mlir::Value, tfm::AccumulateOp> sinks;
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> added;    // addition -> matmul
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> absorbed; // op without a unit -> the op that stands for it
  llvm::DenseMap<mlir::Value, mlir::Value> aliases;              // value -> value in whose memory it is
  llvm::DenseMap<mlir::Operation *, unsigned> order;
  llvm::DenseMap<mlir::Operation *, size_t> unitIndex;
};

/// Sums of paddings that tile a tensor become concatenations.
void joinPads(mlir::func::FuncOp func);

} // namespace drover::lower

#endif // DROVER_LIB_CONVERSION_TFMTORT_BODYPLAN_H
