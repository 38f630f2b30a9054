//===- SimplifyCollectives.cpp - no collective undoes another ---*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TransformUtils.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMSIMPLIFYCOLLECTIVES
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {

/// The discardable attributes of a collective that takes the place of `op`.
void keepAttributes(Operation *op, Operation *replacement, bool isReduction) {
  if (isReduction)
    replacement->setAttr(TfmDialect::kReductionAttr, op->getAttr(TfmDialect::kReductionAttr));
}

template <typename A, typename B> bool onSameAxes(A a, B b) {
  return a.getGridAxes() == b.getGridAxes() && a.getGrid() == b.getGrid() &&
         a->hasAttr(TfmDialect::kTwoChunkAttr) == b->hasAttr(TfmDialect::kTwoChunkAttr);
}

APInt dimOf(shard::AllGatherOp op) { return op.getGatherAxis(); }
APInt dimOf(shard::AllSliceOp op) { return op.getSliceAxis(); }

/// A gather of a slice, or a slice of a gather, that gives back the same type: what it was made of.
template <typename OpT, typename InverseT> struct UndoInverse : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const override {
    auto inverse = op.getInput().template getDefiningOp<InverseT>();
    if (!inverse || !onSameAxes(op, inverse) || dimOf(op) != dimOf(inverse) ||
        inverse.getInput().getType() != op.getType())
      return failure();
    rewriter.replaceOp(op, inverse.getInput());
    return success();
  }
};

/// The slice whose part `op` takes a part of, along the same dimension and for `op` alone; null where there is none.
/// Two chunks are a pattern of cp by itself.
shard::AllSliceOp outerSlice(shard::AllSliceOp op) {
  auto outer = op.getInput().getDefiningOp<shard::AllSliceOp>();
  if (!outer || !outer->hasOneUse() || outer.getGrid() != op.getGrid() || dimOf(outer) != dimOf(op) ||
      outer->hasAttr(TfmDialect::kTwoChunkAttr) || op->hasAttr(TfmDialect::kTwoChunkAttr))
    return {};
  return outer;
}

/// A rank needs its part of a sum only, which it may take axis by axis.
struct SliceOfReduce : OpRewritePattern<shard::AllSliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(shard::AllSliceOp op, PatternRewriter &rewriter) const override {
    SmallVector<shard::AllSliceOp> slices = {op}; // inner before outer
    while (shard::AllSliceOp outer = outerSlice(slices.back()))
      slices.push_back(outer);
    SmallVector<int16_t> axes;
    for (shard::AllSliceOp slice : llvm::reverse(slices))
      llvm::append_range(axes, slice.getGridAxes());
    auto reduce = slices.back().getInput().getDefiningOp<shard::AllReduceOp>();
    if (!reduce || !reduce->hasOneUse() || reduce.getGrid() != op.getGrid() ||
        reduce.getGridAxes() != ArrayRef<int16_t>(axes) || reduce.getReduction() != shard::ReductionKind::Sum)
      return failure();
    auto scatter =
        shard::ReduceScatterOp::create(rewriter, op.getLoc(), op.getType(), op.getGridAttr(), reduce.getGridAxesAttr(),
                                       reduce.getInput(), reduce.getReductionAttr(), op.getSliceAxisAttr());
    keepAttributes(reduce, scatter, /*isReduction=*/true);
    if (op->hasAttr(TfmDialect::kTwoChunkAttr))
      scatter->setAttr(TfmDialect::kTwoChunkAttr, rewriter.getUnitAttr());
    rewriter.replaceOp(op, scatter);
    for (shard::AllSliceOp slice : ArrayRef(slices).drop_front())
      rewriter.eraseOp(slice);
    rewriter.eraseOp(reduce);
    return success();
  }
};

/// A sum that is scattered and gathered at once.
struct GatherOfScatter : OpRewritePattern<shard::AllGatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(shard::AllGatherOp op, PatternRewriter &rewriter) const override {
    auto scatter = op.getInput().getDefiningOp<shard::ReduceScatterOp>();
    if (!scatter || !scatter->hasOneUse() || !onSameAxes(op, scatter) || op.getGatherAxis() != scatter.getScatterAxis())
      return failure();
    auto reduce = shard::AllReduceOp::create(rewriter, op.getLoc(), op.getType(), op.getGridAttr(),
                                             op.getGridAxesAttr(), scatter.getInput(), scatter.getReductionAttr());
    keepAttributes(scatter, reduce, /*isReduction=*/true);
    rewriter.replaceOp(op, reduce);
    rewriter.eraseOp(scatter);
    return success();
  }
};

/// The same collective on the same value a second time.
template <typename OpT> struct Duplicate : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const override {
    for (Operation *user : op.getInput().getUsers()) {
      auto first = dyn_cast<OpT>(user);
      if (!first || first == op || first->getBlock() != op->getBlock() || !first->isBeforeInBlock(op) ||
          first.getType() != op.getType() || first.getProperties() != op.getProperties() ||
          first->hasAttr(TfmDialect::kTwoChunkAttr) != op->hasAttr(TfmDialect::kTwoChunkAttr))
        continue;
      rewriter.replaceOp(op, first);
      return success();
    }
    return failure();
  }
};

struct SimplifyCollectives : impl::TfmSimplifyCollectivesBase<SimplifyCollectives> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<GatherOfScatter, UndoInverse<shard::AllGatherOp, shard::AllSliceOp>,
                 UndoInverse<shard::AllSliceOp, shard::AllGatherOp>, SliceOfReduce, Duplicate<shard::AllGatherOp>,
                 Duplicate<shard::AllReduceOp>, Duplicate<shard::AllSliceOp>, Duplicate<shard::ReduceScatterOp>>(
        &getContext());
    GreedyRewriteConfig config;
    config.enableFolding(false).enableConstantCSE(false);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace
} // namespace drover::tfm
