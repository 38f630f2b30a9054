//===- RaiseLinear.cpp - linears, biases and embeddings -------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Matchers.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMRAISELINEAR
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {
/// A parameter of rank 2 under a matmul's right operand, and whether its rows are the contracted dimension.
struct Weight {
  Value parameter;
  bool inOut;
};

std::optional<Weight> matchWeight(Value rhs, bool transposed) {
  View view = View::trace(rhs, /*broadcasts=*/true);
  size_t rank = cast<RankedTensorType>(rhs.getType()).getRank();
  auto root = cast<RankedTensorType>(view.root.getType());
  if (!isParameter(view.root) || root.getRank() != 2 || view.dims.size() != rank)
    return std::nullopt;
  for (const auto &dim : ArrayRef(view.dims).drop_back(2))
    if (!llvm::all_of(dim, [](const Factor &factor) { return factor.isRepeated(); }))
      return std::nullopt;
  // A dimension of size 1 has no factors; the other one then says which it is.
  auto source = [&](size_t dim) -> std::optional<unsigned> {
    if (view.dims[dim].empty())
      return std::nullopt;
    return view.wholeRootDim(dim);
  };
  size_t contracted = transposed ? rank - 1 : rank - 2, kept = transposed ? rank - 2 : rank - 1;
  std::optional<unsigned> k = source(contracted), n = source(kept);
  if (!k && !view.dims[contracted].empty())
    return std::nullopt;
  if (!n && !view.dims[kept].empty())
    return std::nullopt;
  if (!k && !n) // 1 x 1
    return Weight{view.root, false};
  if (k && n && *k == *n)
    return std::nullopt;
  return Weight{view.root, k ? *k == 0 : *n == 1};
}

/// x matmul W -> linear.
struct MatmulToLinear : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter &rewriter) const override {
    std::optional<Weight> weight = matchWeight(op.getRhs(), op.getTransposeRhs());
    if (!weight)
      return failure();
    Value input = op.getLhs();
    int64_t rank = cast<RankedTensorType>(input.getType()).getRank();
    if (op.getTransposeLhs()) {
      SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
      std::swap(permutation[rank - 1], permutation[rank - 2]);
      input = buildTranspose(rewriter, op.getLoc(), input, permutation);
    }
    rewriter.replaceOpWithNewOp<LinearOp>(op, op.getType(), input, weight->parameter,
                                          weight->inOut ? rewriter.getUnitAttr() : UnitAttr());
    return success();
  }
};

/// x + broadcast(b) -> bias_add, with a parameter b over the last dimension.
struct AddToBias : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::AddFOp op, PatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!type || type.getRank() < 2)
      return failure();
    for (unsigned side : {1u, 0u}) {
      Value bias = matchVector(op->getOperand(side));
      Value input = op->getOperand(1 - side);
      if (!bias || !isParameter(bias) || matchVector(input))
        continue;
      rewriter.replaceOpWithNewOp<BiasAddOp>(op, type, input, bias);
      return success();
    }
    return failure();
  }
};

/// Rows of a parameter by id -> embedding.
struct GatherToEmbedding : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GatherOp op, PatternRewriter &rewriter) const override {
    if (op.getAxis() != 0 || !isParameter(op.getInput()) ||
        cast<RankedTensorType>(op.getInput().getType()).getRank() != 2)
      return failure();
    rewriter.replaceOpWithNewOp<EmbeddingOp>(op, op.getType(), op.getIndices(), op.getInput(), /*offset=*/Value());
    return success();
  }
};

struct RaiseLinear : impl::TfmRaiseLinearBase<RaiseLinear> {
  using TfmRaiseLinearBase::TfmRaiseLinearBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<MatmulToLinear, AddToBias, GatherToEmbedding>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
} // namespace drover::tfm
