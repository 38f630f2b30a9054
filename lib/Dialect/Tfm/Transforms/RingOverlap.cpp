//===- RingOverlap.cpp - collectives beside matmuls as rings ----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Dialect/Tfm/IR/Distribution.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMRINGOVERLAP
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {

/// Names of the axes of a collective over all ranks of tensor parallelism; null over others.
template <typename OpT> ArrayAttr ringAxes(OpT op) {
  Grid grid = gridOf(op);
  SmallVector<Axis, 4> all = grid.axes();
  SmallVector<StringRef> names;
  SmallVector<Axis> axes;
  for (int16_t index : op.getGridAxes()) {
    if (index < 0 || static_cast<size_t>(index) >= all.size())
      return {}; // of another grid: what verifies distributions says so
    axes.push_back(all[index]);
  }
  if (op->hasAttr(TfmDialect::kTwoChunkAttr))
    return {};
  // An axis of one rank is left out of types and of collectives.
  if (axes.empty() || ArrayRef(axes) != ArrayRef<Axis>(grid.tensorAxes()))
    return {};
  for (Axis axis : axes)
    names.push_back(name(axis));
  return Builder(op.getContext()).getStrArrayAttr(names);
}

bool isMultiplied(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isF32() || element.isBF16();
}

/// A dimension of rows: the last one is contracted, or the outputs.
bool isRowDimension(Value value, int64_t dim) { return dim < cast<RankedTensorType>(value.getType()).getRank() - 1; }

/// The linears that read a gathered input and whose weights are there by then.
SmallVector<LinearOp> linearsOf(shard::AllGatherOp gather) {
  SmallVector<LinearOp> linears;
  DominanceInfo dominance;
  for (Operation *user : gather.getResult().getUsers()) {
    auto linear = dyn_cast<LinearOp>(user);
    if (linear && linear->getBlock() == gather->getBlock() && linear.getInput() == gather.getResult() &&
        linear.getWeight() != gather.getResult() && isMultiplied(linear.getType()) &&
        dominance.properlyDominates(linear.getWeight(), gather))
      linears.push_back(linear);
  }
  llvm::sort(linears, [](LinearOp a, LinearOp b) { return a->isBeforeInBlock(b); });
  return linears;
}

bool fuseGather(shard::AllGatherOp gather) {
  ArrayAttr axes = ringAxes(gather);
  int64_t dim = gather.getGatherAxis().getSExtValue();
  if (!axes || !isRowDimension(gather.getInput(), dim) || !isMultiplied(gather.getType()))
    return false;
  SmallVector<LinearOp> linears = linearsOf(gather);
  if (linears.empty())
    return false;
  SmallVector<Value> weights;
  SmallVector<Type> types;
  SmallVector<bool> inOut;
  for (LinearOp linear : linears) {
    weights.push_back(linear.getWeight());
    types.push_back(linear.getType());
    inOut.push_back(linear.getInOut());
  }
  unsigned uses = std::distance(gather.getResult().use_begin(), gather.getResult().use_end());
  bool isRead = uses > linears.size(); // by weight gradients
  if (isRead)
    types.push_back(gather.getType());
  OpBuilder builder(gather);
  auto ring = GatherLinearOp::create(builder, gather.getLoc(), types, gather.getInput(), weights, axes, dim, inOut);
  for (auto [linear, result] : llvm::zip(linears, ring.getResults())) {
    linear.getResult().replaceAllUsesWith(result);
    linear.erase();
  }
  if (isRead)
    gather.getResult().replaceAllUsesWith(ring.getGathered());
  gather.erase();
  return true;
}

/// The linears of which `value` is the sum, in the order of the additions; false where it is another sum, or one that
/// something else reads too.
bool collectLinears(Value value, SmallVectorImpl<LinearOp> &linears, SmallVectorImpl<Operation *> &sums) {
  Operation *op = value.getDefiningOp();
  if (!op || !value.hasOneUse())
    return false;
  if (auto linear = dyn_cast<LinearOp>(op)) {
    linears.push_back(linear);
    return isMultiplied(linear.getInput().getType());
  }
  auto addition = dyn_cast<arith::AddFOp>(op);
  if (!addition || !getElementTypeOrSelf(addition.getType()).isF32())
    return false;
  sums.push_back(addition);
  return collectLinears(addition.getLhs(), linears, sums) && collectLinears(addition.getRhs(), linears, sums);
}

bool fuseScatter(shard::ReduceScatterOp scatter) {
  ArrayAttr axes = ringAxes(scatter);
  int64_t dim = scatter.getScatterAxis().getSExtValue();
  if (!axes || scatter.getReduction() != shard::ReductionKind::Sum || !isRowDimension(scatter.getInput(), dim) ||
      !isMultiplied(scatter.getType()))
    return false;
  SmallVector<LinearOp> linears;
  SmallVector<Operation *> sums; // readers before what they read
  Value sum = scatter.getInput();
  if (auto round = sum.getDefiningOp<arith::TruncFOp>()) {
    if (!sum.hasOneUse() || !getElementTypeOrSelf(round.getIn().getType()).isF32())
      return false;
    sums.push_back(round);
    sum = round.getIn();
  }
  Type element = getElementTypeOrSelf(scatter.getType());
  if (!collectLinears(sum, linears, sums) || llvm::any_of(linears, [&](LinearOp linear) {
        return getElementTypeOrSelf(linear.getInput().getType()) != element;
      }))
    return false;
  SmallVector<Value> inputs, weights;
  SmallVector<bool> inOut;
  for (LinearOp linear : linears) {
    inputs.push_back(linear.getInput());
    weights.push_back(linear.getWeight());
    inOut.push_back(linear.getInOut());
  }
  OpBuilder builder(scatter);
  auto ring = LinearScatterOp::create(builder, scatter.getLoc(), scatter.getType(), inputs, weights, axes, dim, inOut);
  ring->setAttr(TfmDialect::kReductionAttr, scatter->getAttr(TfmDialect::kReductionAttr));
  scatter.getResult().replaceAllUsesWith(ring.getResult());
  scatter.erase();
  for (Operation *op : sums)
    op->erase();
  for (LinearOp linear : linears)
    linear.erase();
  return true;
}

struct RingOverlap : impl::TfmRingOverlapBase<RingOverlap> {
  void runOnOperation() override {
    for (auto gather : llvm::to_vector(getOperation().getOps<shard::AllGatherOp>()))
      numGathers += fuseGather(gather);
    for (auto scatter : llvm::to_vector(getOperation().getOps<shard::ReduceScatterOp>()))
      numScatters += fuseScatter(scatter);
  }
};

} // namespace
} // namespace drover::tfm
