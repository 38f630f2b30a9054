//===- TfmCanonicalization.cpp - simpler spellings of one op --------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "OpUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace drover::tfm;

namespace {
/// True where every element of an integer tensor is known and not zero.
bool isAllOnes(Value value) {
  SmallPtrSet<Operation *, 4> seen; // ends where broadcasts use each other in a circle
  for (auto broadcast = value.getDefiningOp<BroadcastOp>(); broadcast && seen.insert(broadcast).second;
       broadcast = value.getDefiningOp<BroadcastOp>())
    value = broadcast.getInput();
  if (auto fill = value.getDefiningOp<FillOp>()) {
    auto number = dyn_cast<IntegerAttr>(fill.getValue());
    return number && !number.getValue().isZero();
  }
  DenseIntElementsAttr elements;
  return matchPattern(value, m_Constant(&elements)) &&
         llvm::none_of(elements.getValues<APInt>(), [](const APInt &element) { return element.isZero(); });
}

/// A key_mask that lets every key take part says nothing.
struct DropFullKeyMask : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    if (!op.getKeyMask() || !isAllOnes(op.getKeyMask()))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getKeyMaskMutable().clear(); });
    return success();
  }
};

/// With as many keys as queries both alignments are one: written top_left.
struct AlignTopLeft : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    int64_t queries = shapeOf(op.getQuery())[1];
    if (op.getCausal() != CausalKind::BottomRight || ShapedType::isDynamic(queries) ||
        queries != shapeOf(op.getKey())[1])
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.setCausal(CausalKind::TopLeft); });
    return success();
  }
};

/// A window as wide as all keys cuts nothing.
struct DropWideWindow : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    int64_t queries = shapeOf(op.getQuery())[1], keys = shapeOf(op.getKey())[1];
    if (!op.getWindow() || ShapedType::isDynamic(queries) || ShapedType::isDynamic(keys) ||
        static_cast<int64_t>(*op.getWindow()) < std::max(queries, keys))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.removeWindowAttr(); });
    return success();
  }
};
} // namespace

void AttentionOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<DropFullKeyMask, AlignTopLeft, DropWideWindow>(context);
}
