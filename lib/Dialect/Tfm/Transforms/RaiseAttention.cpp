//===- RaiseAttention.cpp - softmax(q k^T) v ------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "MatchAttention.h"
#include "Matchers.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include <cmath>

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMRAISEATTENTION
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {
//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// [B, heads, S, T] of the scores.
struct Extent {
  Size batch, heads, queries, keys;
};

std::optional<Extent> extentOf(Scores &scores, SoftmaxOp softmax) {
  // Any of the values between the product and the softmax may be the one that tells batch from heads.
  Value value = softmax.getInput();
  while (true) {
    if (cast<RankedTensorType>(value.getType()).getRank() == 4) {
      std::optional<Sizes> sizes = symbolicSizes(value);
      if (!sizes)
        return std::nullopt;
      return Extent{(*sizes)[0], (*sizes)[1], (*sizes)[2], (*sizes)[3]};
    }
    Operation *op = value.getDefiningOp();
    if (op == scores.product.getOperation())
      break;
    Value next;
    for (Value operand : op->getOperands())
      if (!next && isa<FloatType>(getElementTypeOrSelf(operand)) && leadsToProduct(operand))
        next = operand;
    if (!next)
      return std::nullopt;
    value = next;
  }
  // [B * heads, S, D]: the batch is what comes from the query's first dimension.
  std::optional<Sizes> sizes = symbolicSizes(value);
  View query = View::trace(scores.product.getLhs(), /*broadcasts=*/false, /*scales=*/true);
  if (!sizes || sizes->size() != 3 || query.dims.size() != 3 ||
      cast<RankedTensorType>(query.root.getType()).getRank() < 3)
    return std::nullopt;
  Size batch;
  for (const Factor &factor : query.dims[0])
    if (factor.dim == 0)
      batch = batch * factor.size;
  std::optional<Size> heads = (*sizes)[0].dividedBy(batch);
  if (!heads)
    return std::nullopt;
  return Extent{batch, *heads, (*sizes)[1], (*sizes)[2]};
}

/// An operand [B, heads, S, D] (or with B and heads merged) as [B, S, heads * D]. `swapped`: it is [.., D, S].
Value toHidden(OpBuilder &builder, Location loc, Value operand, bool swapped, const Size &batch, const Size &heads,
               const Size &length, const Size &width) {
  Value value = buildReshape(builder, loc, operand,
                             swapped ? Sizes{batch, heads, width, length} : Sizes{batch, heads, length, width});
  value = buildTranspose(builder, loc, value, swapped ? ArrayRef<int64_t>{0, 3, 1, 2} : ArrayRef<int64_t>{0, 2, 1, 3});
  return buildReshape(builder, loc, value, {batch, length, heads * width});
}

/// A mask as [B or 1, heads or 1, S or 1, T]: without the repetitions that only fill the scores' shape.
Value toMaskShape(OpBuilder &builder, Location loc, Value mask, const Extent &extent) {
  Sizes full{extent.batch, extent.heads, extent.queries, extent.keys};
  View view = View::trace(mask, /*broadcasts=*/true);
  if (view.dims.size() == static_cast<size_t>(cast<RankedTensorType>(mask.getType()).getRank()) && view.reshape(full)) {
    View reduced = view;
    bool clean = true;
    for (auto &dim : reduced.dims) {
      if (llvm::all_of(dim, [](const Factor &factor) { return factor.isRepeated(); }))
        dim.clear();
      else
        clean &= llvm::none_of(dim, [](const Factor &factor) { return factor.isRepeated(); });
    }
    if (clean) {
      Value value = reduced.build(builder, loc);
      if (!reduced.dims.back().empty() || extent.keys.isOne())
        return value;
      Sizes sizes = reduced.sizes();
      sizes.back() = extent.keys;
      return buildBroadcast(builder, loc, value, sizes);
    }
  }
  return buildReshape(builder, loc, mask, full);
}

Value splat(OpBuilder &builder, Location loc, Type element, double value, ArrayRef<Size> sizes) {
  RankedTensorType type = tensorType(sizes, element);
  Operation *scope = builder.getInsertionBlock()->getParentOp();
  FloatAttr attribute = builder.getFloatAttr(element, value);
  if (type.hasStaticShape())
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, attribute));
  return FillOp::create(builder, loc, type, attribute, shapeMap(sizes, scope));
}

/// One term as a mask operand: i1 where -inf replaces scores, else added numbers. A finite fill is added
/// rather than put in place: the same wherever a row has an unmasked key (docs/tfm.md, masks).
Value buildTerm(OpBuilder &builder, Location loc, const MaskTerm &term, const Extent &extent, bool alone) {
  Value value = toMaskShape(builder, loc, term.value, extent);
  Sizes sizes = *symbolicSizes(value);
  if (term.condition) {
    Type element = builder.getF32Type();
    if (alone && std::isinf(term.fill)) {
      if (term.keepsWhere)
        return value;
      auto type = cast<RankedTensorType>(value.getType());
      Value ones = type.hasStaticShape()
                       ? Value(arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, true)))
                       : Value(FillOp::create(builder, loc, type, builder.getBoolAttr(true),
                                              shapeMap(sizes, builder.getInsertionBlock()->getParentOp())));
      return arith::XOrIOp::create(builder, loc, value, ones);
    }
    Value kept = splat(builder, loc, element, 0.0, sizes), fill = splat(builder, loc, element, term.fill, sizes);
    return arith::SelectOp::create(builder, loc, value, term.keepsWhere ? kept : fill, term.keepsWhere ? fill : kept);
  }
  if (term.scale == 1)
    return value;
  return arith::MulFOp::create(builder, loc, value,
                               splat(builder, loc, getElementTypeOrSelf(value), term.scale, sizes));
}

Value buildMask(OpBuilder &builder, Location loc, const Scores &scores, const Extent &extent) {
  Value mask;
  for (const MaskTerm &term : scores.masks) {
    Value next = buildTerm(builder, loc, term, extent, scores.masks.size() == 1);
    if (!mask) {
      mask = next;
      continue;
    }
    Sizes sizes;
    for (auto [a, b] : llvm::zip(*symbolicSizes(mask), *symbolicSizes(next)))
      sizes.push_back(a.isOne() ? b : a);
    if (getElementTypeOrSelf(mask) != getElementTypeOrSelf(next))
      return {};
    auto widen = [&](Value value) {
      return *symbolicSizes(value) == sizes ? value : buildBroadcast(builder, loc, value, sizes);
    };
    mask = arith::AddFOp::create(builder, loc, widen(mask), widen(next));
  }
  return mask;
}

bool raise(OpBuilder &builder, SoftmaxOp softmax) {
  auto type = cast<RankedTensorType>(softmax.getType());
  if (softmax.getAxis() + 1 != static_cast<uint64_t>(type.getRank()) || type.getRank() < 3)
    return false;
  std::optional<Scores> scores = matchScores(softmax.getInput());
  MatmulOp output = scores ? matchOutput(softmax.getResult(), *scores) : MatmulOp();
  std::optional<Extent> extent = output ? extentOf(*scores, softmax) : std::nullopt;
  if (!extent || !extent->heads.constant())
    return false;
  MatmulOp product = scores->product;
  Type element = getElementTypeOrSelf(product.getLhs());
  std::optional<Sizes> query = symbolicSizes(product.getLhs()), key = symbolicSizes(product.getRhs()),
                       value = symbolicSizes(output.getRhs());
  if (!query || !key || !value || getElementTypeOrSelf(output.getRhs()) != element || output.getType().getRank() < 3)
    return false;
  Size width = query->rbegin()[product.getTransposeLhs() ? 1 : 0],
       valueWidth = value->rbegin()[output.getTransposeRhs() ? 1 : 0];
  if (!width.constant() || !valueWidth.constant())
    return false;

  Location loc = softmax.getLoc();
  builder.setInsertionPoint(output);
  Value mask;
  if (!scores->masks.empty() && !(mask = buildMask(builder, loc, *scores, *extent)))
    return false;
  Value q = toHidden(builder, loc, product.getLhs(), product.getTransposeLhs(), extent->batch, extent->heads,
                     extent->queries, width);
  Value k = toHidden(builder, loc, product.getRhs(), !product.getTransposeRhs(), extent->batch, extent->heads,
                     extent->keys, width);
  Value v = toHidden(builder, loc, output.getRhs(), output.getTransposeRhs(), extent->batch, extent->heads,
                     extent->keys, valueWidth);
  RankedTensorType resultType = tensorType({extent->batch, extent->queries, extent->heads * valueWidth}, element);
  Type sumType = element.isF64() ? element : builder.getF32Type();
  RankedTensorType lseType = tensorType({extent->batch, extent->heads, extent->queries}, sumType);
  int64_t heads = *extent->heads.constant();
  auto attention = AttentionOp::create(
      builder, loc, resultType, lseType, q, k, v, mask, Value(), Value(), Value(), builder.getI64IntegerAttr(heads),
      builder.getI64IntegerAttr(heads), builder.getF64FloatAttr(scores->scale),
      CausalKindAttr::get(builder.getContext(), CausalKind::None), IntegerAttr(),
      scores->softcap ? builder.getF64FloatAttr(*scores->softcap) : FloatAttr(), DenseF32ArrayAttr());
  Value result =
      buildReshape(builder, loc, attention.getResult(), {extent->batch, extent->queries, extent->heads, valueWidth});
  result = buildTranspose(builder, loc, result, {0, 2, 1, 3});
  result = buildReshape(builder, loc, result, *symbolicSizes(output.getResult()));
  if (result.getType() != output.getType())
    return false;
  output.replaceAllUsesWith(result);
  return true;
}

//===----------------------------------------------------------------------===//
// Operands of tfm.attention
//===----------------------------------------------------------------------===//

/// Splats that multiply query or key, anywhere in their views, become part of the scale.
struct FoldScale : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    return success(fold(op, op.getQueryMutable(), rewriter) || fold(op, op.getKeyMutable(), rewriter));
  }

  static bool fold(AttentionOp op, OpOperand &operand, PatternRewriter &rewriter) {
    SmallVector<Operation *> chain;
    Value value = operand.get(), input;
    std::optional<double> factor;
    while (Operation *definition = value.getDefiningOp()) {
      if ((factor = matchScaled(value, input)))
        break;
      if (!isa<ReshapeOp, TransposeOp, BroadcastOp>(definition))
        return false;
      chain.push_back(definition);
      value = definition->getOperand(0);
    }
    if (!factor)
      return false;
    for (Operation *step : llvm::reverse(chain)) {
      IRMapping mapping;
      mapping.map(step->getOperand(0), input);
      input = rewriter.clone(*step, mapping)->getResult(0);
    }
    rewriter.modifyOpInPlace(op, [&] {
      operand.set(input);
      op.setScale(APFloat(op.getScale().convertToDouble() * *factor));
    });
    return true;
  }
};

/// Keys and values whose heads are repeated, each n times in a row, are those of fewer kv heads. A tile
/// (all heads, n times over) is something else and stays.
struct GroupHeads : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  /// The value without its repetition, and how often each head is repeated.
  static std::optional<std::pair<View, int64_t>> ungroup(Value value, int64_t heads) {
    View view = View::trace(value, /*broadcasts=*/true);
    Sizes sizes = view.sizes();
    if (view.dims.size() != 3)
      return std::nullopt;
    std::optional<Size> width = sizes[2].dividedBy(Size(heads));
    if (!width || !view.reshape({sizes[0], sizes[1], Size(heads), *width}) || view.dims[2].empty() ||
        !view.dims[2].back().isRepeated())
      return std::nullopt;
    std::optional<int64_t> times = view.dims[2].back().size.constant();
    view.dims[2].pop_back();
    if (!times || view.hasRepeated())
      return std::nullopt;
    return std::pair(view, *times);
  }

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    int64_t heads = op.getNumKvHeads();
    auto key = ungroup(op.getKey(), heads), value = ungroup(op.getValue(), heads);
    if (!key || !value || key->second != value->second)
      return failure();
    auto build = [&](View view) {
      Sizes sizes = view.sizes();
      view.reshape({sizes[0], sizes[1], sizes[2] * sizes[3]});
      return view.build(rewriter, op.getLoc());
    };
    Value newKey = build(key->first), newValue = build(value->first);
    rewriter.modifyOpInPlace(op, [&] {
      op.getKeyMutable().assign(newKey);
      op.getValueMutable().assign(newValue);
      op.setNumKvHeads(heads / key->second);
    });
    return success();
  }
};

/// A scale that exporters computed in f32, often as the square of a root: 1/sqrt(n) where it is close to that.
struct RoundScale : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    double scale = op.getScale().convertToDouble(), n = std::round(1 / (scale * scale));
    if (!(scale > 0) || !(n >= 1) || n > 1e6)
      return failure();
    double exact = 1.0 / std::sqrt(n);
    if (exact == scale || std::abs(scale / exact - 1) > 1e-6)
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.setScale(APFloat(exact)); });
    return success();
  }
};

struct RaiseAttention : impl::TfmRaiseAttentionBase<RaiseAttention> {
  using TfmRaiseAttentionBase::TfmRaiseAttentionBase;

  void runOnOperation() override {
    SmallVector<SoftmaxOp> candidates;
    getOperation().walk([&](SoftmaxOp op) { candidates.push_back(op); });
    OpBuilder builder(&getContext());
    for (SoftmaxOp op : candidates)
      raise(builder, op);
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldScale, GroupHeads, RoundScale>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
} // namespace drover::tfm
