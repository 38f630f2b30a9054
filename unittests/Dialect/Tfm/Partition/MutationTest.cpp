//===- MutationTest.cpp - a wrong collective is reported --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Every collective of partitioned steps is dropped, doubled, put on another axis and done in another type, one at a
// time: tfm-verify-distributions has to report each.
//===----------------------------------------------------------------------===//
#include "PartitionedModel.h"
#include "drover/Dialect/Tfm/IR/Distribution.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Diagnostics.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace drover;
using drover::tfm::TfmDialect;

namespace {

bool isRing(Operation *op) { return isa<tfm::GatherLinearOp, tfm::LinearScatterOp>(op); }

SmallVector<Operation *> collectivesOf(ModuleOp module) {
  SmallVector<Operation *> result;
  module.walk([&](Operation *op) {
    if (isRing(op) || isa<shard::AllGatherOp, shard::AllReduceOp, shard::AllSliceOp, shard::ReduceScatterOp>(op))
      result.push_back(op);
  });
  return result;
}

bool isReported(ModuleOp module) {
  std::string text;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &) { return success(); });
  return failed(tfm::verifyDistributions(module));
}

struct Counts {
  int64_t tried = 0, missed = 0;
};

/// Applies `mutate` to each collective of a fresh copy; a null return says that it does not apply.
void mutateEach(ModuleOp module, StringRef what, Counts &counts, llvm::function_ref<bool(Operation *)> mutate) {
  for (size_t i = 0; i < collectivesOf(module).size(); ++i) {
    OwningOpRef<ModuleOp> copy(cast<ModuleOp>(module->clone()));
    Operation *op = collectivesOf(*copy)[i];
    std::string text;
    llvm::raw_string_ostream(text) << *op;
    if (!mutate(op))
      continue;
    ++counts.tried;
    if (isReported(*copy))
      continue;
    ++counts.missed;
    ADD_FAILURE() << what.str() << " is not reported: " << text;
  }
}

// A ring is a collective and linears in one: what leaves out or repeats the one alone does not apply to it.

bool drop(Operation *op) {
  if (isRing(op))
    return false;
  op->getResult(0).replaceAllUsesWith(op->getOperand(0));
  return true;
}

bool doubleIt(Operation *op) {
  if (isRing(op))
    return false;
  OpBuilder builder(op->getBlock(), std::next(op->getIterator()));
  Operation *again = builder.clone(*op);
  op->getResult(0).replaceAllUsesWith(again->getResult(0));
  again->setOperand(0, op->getResult(0));
  // With an id and a shape of its own, so that nothing but the states can tell.
  if (again->hasAttr(TfmDialect::kReductionAttr))
    again->setAttr(TfmDialect::kReductionAttr, builder.getI64IntegerAttr(1 << 20));
  return true;
}

/// Another axis of the grid with more than one rank.
bool moveAxis(Operation *op) {
  if (isRing(op)) {
    bool applies = tfm::gridOf(op).size(tfm::Axis::Cp) > 1;
    if (applies)
      op->setAttr("axes", Builder(op->getContext()).getStrArrayAttr({"cp"}));
    return applies;
  }
  auto axes = op->getAttrOfType<DenseI16ArrayAttr>("grid_axes");
  tfm::Grid grid = tfm::gridOf(op);
  for (auto [index, axis] : llvm::enumerate(grid.axes()))
    if (grid.size(axis) > 1 && !llvm::is_contained(axes.asArrayRef(), static_cast<int16_t>(index))) {
      op->setAttr("grid_axes", DenseI16ArrayAttr::get(op->getContext(), {static_cast<int16_t>(index)}));
      return true;
    }
  return false;
}

bool moveDimension(Operation *op) {
  auto dim = op->getAttrOfType<IntegerAttr>("dim");
  if (!dim || !isRing(op))
    return false;
  op->setAttr("dim", IntegerAttr::get(dim.getType(), dim.getInt() == 0 ? 1 : 0));
  return true;
}

/// A reduction takes the id of the one before it.
bool takesAnId(Operation *op) {
  auto own = op->getAttrOfType<IntegerAttr>(TfmDialect::kReductionAttr);
  for (Operation *other = op->getPrevNode(); own && other; other = other->getPrevNode())
    if (Attribute id = other->getAttr(TfmDialect::kReductionAttr)) {
      op->setAttr(TfmDialect::kReductionAttr, id);
      return true;
    }
  return false;
}

bool changeType(Operation *op) {
  if (isRing(op) || !op->hasAttr(TfmDialect::kReductionAttr))
    return false;
  auto in = cast<RankedTensorType>(op->getOperand(0).getType()),
       out = cast<RankedTensorType>(op->getResult(0).getType());
  if (!in.getElementType().isF32())
    return false;
  OpBuilder builder(op);
  Type narrow = builder.getBF16Type();
  op->setOperand(0, arith::TruncFOp::create(builder, op->getLoc(), in.clone(narrow), op->getOperand(0)));
  op->getResult(0).setType(out.clone(narrow));
  builder.setInsertionPointAfter(op);
  auto wide = arith::ExtFOp::create(builder, op->getLoc(), out, op->getResult(0));
  op->getResult(0).replaceAllUsesExcept(wide, wide);
  return true;
}

/// A wider type would be legal arithmetic, but is not what the type of the sum says.
bool keepsPattern(Operation *op) {
  if (op->removeAttr(TfmDialect::kTwoChunkAttr))
    return true;
  return false;
}

bool forgetsId(Operation *op) { return bool(op->removeAttr(TfmDialect::kReductionAttr)); }

bool swapsSumAndMax(Operation *op) {
  if (!op->hasAttr(TfmDialect::kReductionAttr))
    return false;
  if (isRing(op))
    return false;
  auto kind = op->getAttrOfType<shard::ReductionKindAttr>("reduction");
  bool isMax = kind && kind.getValue() == shard::ReductionKind::Max;
  op->setAttr("reduction", shard::ReductionKindAttr::get(op->getContext(), isMax ? shard::ReductionKind::Sum
                                                                                 : shard::ReductionKind::Max));
  return true;
}

TEST(PartitionMutations, AreAllReported) {
  Counts counts;
  SmallVector<ModelShape> shapes(4);
  shapes[0].layers = 1;
  shapes[1].layers = 1;
  shapes[1].kvHeads = 4;
  shapes[1].layerNorm = shapes[1].bias = shapes[1].tied = shapes[1].fusedQkv = shapes[1].positionTable = true;
  shapes[1].activation = ModelShape::Activation::Gelu;
  shapes[2].layers = 1;
  shapes[2].heads = 6;
  shapes[2].kvHeads = 1;
  shapes[2].qkNorm = true;
  shapes[2].vocabulary = 17;
  shapes[3].layers = 1;
  shapes[3].heads = 6;
  shapes[3].kvHeads = 3;
  shapes[3].parallel = true;
  for (const ModelShape &shape : shapes)
    for (const Layout &layout : {Layout{2, 1}, Layout{4, 1}, Layout{1, 2}, Layout{4, 2}, Layout{2, 2, 2},
                                 Layout{2, 2, 1, true}, Layout{4, 2, 1, true}}) {
      OwningOpRef<ModuleOp> module = trainingStep(shape, {});
      ASSERT_TRUE(succeeded(partitionStep(*module, layout)));
      ASSERT_FALSE(isReported(*module));
      mutateEach(*module, "dropped", counts, drop);
      mutateEach(*module, "doubled", counts, doubleIt);
      mutateEach(*module, "on another axis", counts, moveAxis);
      mutateEach(*module, "on another dimension", counts, moveDimension);
      mutateEach(*module, "with another's id", counts, takesAnId);
      mutateEach(*module, "in another type", counts, changeType);
      mutateEach(*module, "in another pattern", counts, keepsPattern);
      mutateEach(*module, "without an id", counts, forgetsId);
      mutateEach(*module, "by another operation", counts, swapsSumAndMax);
    }
  EXPECT_GT(counts.tried, 500);
  RecordProperty("mutants", static_cast<int>(counts.tried));
  RecordProperty("missed", static_cast<int>(counts.missed));
}

} // namespace
