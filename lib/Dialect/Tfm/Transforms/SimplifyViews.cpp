//===- SimplifyViews.cpp - fewest reshapes and transposes -----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Matchers.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMSIMPLIFYVIEWS
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {
/// Rebuilds a chain of reshapes and transposes where that takes fewer ops.
struct ShortenChain : RewritePattern {
  ShortenChain(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<ReshapeOp, TransposeOp>(op))
      return failure();
    View view = View::trace(op->getResult(0), /*broadcasts=*/false);
    if (view.numOps == 0 || view.dims.empty())
      return failure();
    bool identity = view.isIdentity() && view.root.getType() == op->getResult(0).getType();
    if (!identity && view.cost() >= view.numOps)
      return failure();
    Value value = identity ? view.root : view.build(rewriter, op->getLoc());
    if (value.getType() != op->getResult(0).getType())
      return failure();
    rewriter.replaceOp(op, value);
    return success();
  }
};

/// A broadcast to its operand's own sizes is its operand; of a broadcast or of a reshape that only adds
/// leading ones, it reads the inner operand.
struct FoldBroadcast : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    if (op.getInput().getType() == op.getType() && sameSizes(op.getInput(), op.getResult())) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    if (auto inner = op.getInput().getDefiningOp<BroadcastOp>()) {
      rewriter.modifyOpInPlace(op, [&] { op.getInputMutable().assign(inner.getInput()); });
      return success();
    }
    auto reshape = op.getInput().getDefiningOp<ReshapeOp>();
    if (!reshape)
      return failure();
    std::optional<Sizes> outer = symbolicSizes(reshape), inner = symbolicSizes(reshape.getInput());
    if (!outer || !inner || outer->size() <= inner->size())
      return failure();
    size_t added = outer->size() - inner->size();
    if (!llvm::all_of(ArrayRef(*outer).take_front(added), [](const Size &size) { return size.isOne(); }) ||
        ArrayRef(*outer).drop_front(added) != ArrayRef(*inner))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getInputMutable().assign(reshape.getInput()); });
    return success();
  }
};

/// slice(transpose(x)) -> transpose(slice(x)) where further views follow, with which the transpose can meet.
struct HoistSlice : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter &rewriter) const override {
    auto transpose = op.getInput().getDefiningOp<TransposeOp>();
    std::optional<Sizes> sizes = symbolicSizes(op.getResult());
    if (!transpose || op.getOffsetMap() || !sizes ||
        !llvm::all_of(op->getUsers(), [](Operation *user) { return isa<ReshapeOp, TransposeOp>(user); }))
      return failure();
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    unsigned rank = permutation.size();
    SmallVector<int64_t> offsets(rank), strides(rank);
    Sizes inner(rank, Size(1));
    for (unsigned dim = 0; dim < rank; ++dim) {
      offsets[permutation[dim]] = op.getOffsets()[dim];
      strides[permutation[dim]] = op.getStrides()[dim];
      inner[permutation[dim]] = (*sizes)[dim];
    }
    Value slice = SliceOp::create(rewriter, op.getLoc(), tensorType(inner, op.getType().getElementType()),
                                  transpose.getInput(), offsets, strides, AffineMapAttr(), shapeMap(inner, op));
    rewriter.replaceOp(op, buildTranspose(rewriter, op.getLoc(), slice, permutation));
    return success();
  }
};

/// A gather of neighbouring constant places, in order, is a slice.
struct GatherToSlice : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GatherOp op, PatternRewriter &rewriter) const override {
    DenseIntElementsAttr places;
    auto type = cast<RankedTensorType>(op.getInput().getType());
    int64_t axis = op.getAxis(), size = type.getDimSize(axis);
    std::optional<Sizes> sizes = symbolicSizes(op.getResult());
    if (!matchPattern(op.getIndices(), m_Constant(&places)) || ShapedType::isDynamic(size) || !sizes ||
        places.getType().getRank() > 1 || places.getNumElements() == 0 || isParameter(op.getInput()))
      return failure();
    SmallVector<int64_t> indices;
    for (const APInt &place : places.getValues<APInt>())
      indices.push_back(place.getSExtValue() < 0 ? place.getSExtValue() + size : place.getSExtValue());
    for (auto [i, place] : llvm::enumerate(indices))
      if (place != indices.front() + static_cast<int64_t>(i) || place < 0 || place >= size)
        return failure();
    SmallVector<int64_t> offsets(type.getRank(), 0), strides(type.getRank(), 1);
    offsets[axis] = indices.front();
    Sizes sliced = *sizes;
    if (places.getType().getRank() == 0)
      sliced.insert(sliced.begin() + axis, Size(1));
    Value slice = SliceOp::create(rewriter, op.getLoc(), tensorType(sliced, type.getElementType()), op.getInput(),
                                  offsets, strides, AffineMapAttr(), shapeMap(sliced, op));
    rewriter.replaceOp(op, buildReshape(rewriter, op.getLoc(), slice, *sizes));
    return success();
  }
};

/// reshape(slice(reshape(x))) -> slice(x), where the inner reshape splits the last dimension, the slice
/// cuts the outer part of the split, and the outer reshape merges it again: heads of a packed projection.
struct MergeSplitSlice : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto slice = op.getInput().getDefiningOp<SliceOp>();
    auto split = slice ? slice.getInput().getDefiningOp<ReshapeOp>() : ReshapeOp();
    if (!split || slice.getOffsetMap())
      return failure();
    std::optional<Sizes> whole = symbolicSizes(split.getInput()), parts = symbolicSizes(split),
                         cut = symbolicSizes(slice), merged = symbolicSizes(op);
    if (!whole || !parts || !cut || !merged || whole->empty() || whole->size() != merged->size() ||
        parts->size() <= whole->size())
      return failure();
    size_t last = whole->size() - 1;
    if (ArrayRef(*parts).take_front(last) != ArrayRef(*whole).take_front(last) ||
        ArrayRef(*merged).take_front(last) != ArrayRef(*whole).take_front(last))
      return failure();
    int64_t inner = 1;
    for (size_t dim = 0; dim < parts->size(); ++dim) {
      if (slice.getStrides()[dim] != 1)
        return failure();
      if (dim == last)
        continue;
      if (slice.getOffsets()[dim] != 0 || (*cut)[dim] != (*parts)[dim])
        return failure();
      if (dim > last) {
        std::optional<int64_t> size = (*parts)[dim].constant();
        if (!size)
          return failure();
        inner *= *size;
      }
    }
    SmallVector<int64_t> offsets(whole->size(), 0), strides(whole->size(), 1);
    offsets[last] = slice.getOffsets()[last] * inner;
    rewriter.replaceOpWithNewOp<SliceOp>(op, op.getType(), split.getInput(), offsets, strides, AffineMapAttr(),
                                         shapeMap(*merged, op));
    return success();
  }
};

/// A fill of static sizes is a constant, as element-wise operands are written.
struct FillToConstant : OpRewritePattern<FillOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(FillOp op, PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (!type.hasStaticShape())
      return failure();
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, DenseElementsAttr::get(type, op.getValue()));
    return success();
  }
};

/// Counting along one dimension of any number is one row [.., 1, S, 1, ..] of the wanted shape, broadcast.
struct CountOneRow : RewritePattern {
  CountOneRow(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    auto iota = dyn_cast<IotaOp>(op);
    auto reshape = dyn_cast<ReshapeOp>(op);
    if (reshape)
      iota = reshape.getInput().getDefiningOp<IotaOp>();
    std::optional<Sizes> sizes = iota ? symbolicSizes(op->getResult(0)) : std::nullopt;
    std::optional<Sizes> counted = iota ? symbolicSizes(iota) : std::nullopt;
    if (!sizes || !counted)
      return failure();
    Size length = (*counted)[iota.getAxis()];
    unsigned axis = iota.getAxis();
    if (reshape) {
      // The one dimension that is not 1, on either side of the reshape.
      auto isUnit = [](const Size &size) { return size.isOne(); };
      if (counted->size() - llvm::count_if(*counted, isUnit) > 1 ||
          sizes->size() - llvm::count_if(*sizes, isUnit) > 1 || length.isOne())
        return failure();
      axis = llvm::find_if_not(*sizes, isUnit) - sizes->begin();
    }
    Sizes row(sizes->size(), Size(1));
    row[axis] = length;
    if (!reshape && row == *counted)
      return failure();
    Value value = IotaOp::create(rewriter, op->getLoc(), tensorType(row, getElementTypeOrSelf(iota.getType())), axis,
                                 iota.getStart(), iota.getStep(), shapeMap(row, op));
    rewriter.replaceOp(op, row == *sizes ? value : buildBroadcast(rewriter, op->getLoc(), value, *sizes));
    return success();
  }
};

/// Positions of tfm.rope that are the same in every sequence are one row.
struct RopeOfOneRow : OpRewritePattern<RopeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RopeOp op, PatternRewriter &rewriter) const override {
    auto broadcast = op.getPositions().getDefiningOp<BroadcastOp>();
    if (!broadcast || cast<RankedTensorType>(broadcast.getInput().getType()).getRank() != 2)
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getPositionsMutable().assign(broadcast.getInput()); });
    return success();
  }
};

/// embedding(broadcast(ids)) -> broadcast(embedding(ids)).
struct EmbedOneRow : OpRewritePattern<EmbeddingOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(EmbeddingOp op, PatternRewriter &rewriter) const override {
    auto broadcast = op.getIds().getDefiningOp<BroadcastOp>();
    std::optional<Sizes> sizes = symbolicSizes(op), inner = broadcast ? symbolicSizes(broadcast.getInput()) : sizes;
    if (!broadcast || !sizes || !inner ||
        cast<RankedTensorType>(broadcast.getInput().getType()).getRank() !=
            cast<RankedTensorType>(broadcast.getType()).getRank())
      return failure();
    inner->push_back(sizes->back());
    Value row = EmbeddingOp::create(rewriter, op.getLoc(), tensorType(*inner, op.getType().getElementType()),
                                    broadcast.getInput(), op.getTable(), op.getOffset());
    rewriter.replaceOp(op, buildBroadcast(rewriter, op.getLoc(), row, *sizes));
    return success();
  }
};

/// True for ops that treat the rows of their first operand alike (and element-wise ones).
bool isRowWise(Operation *op) {
  return isa<LinearOp, BiasAddOp, RmsNormOp, LayerNormOp, GeluOp, SiluOp, SwigluOp>(op) ||
         (op->getNumResults() == 1 && op->hasTrait<OpTrait::Elementwise>());
}

/// The reshape that flattens leading dimensions of a tensor of rank 3 and more and keeps the last.
ReshapeOp flatteningReshape(Value value) {
  auto reshape = value.getDefiningOp<ReshapeOp>();
  if (!reshape)
    return {};
  auto from = cast<RankedTensorType>(reshape.getInput().getType()), to = cast<RankedTensorType>(reshape.getType());
  if (to.getRank() != 2 || from.getRank() < 3 || from.getShape().back() != to.getShape().back() ||
      ShapedType::isDynamic(to.getShape().back()) || !symbolicSizes(reshape.getInput()))
    return {};
  return reshape;
}

/// The value on the leading dimensions of `like`: through its own reshape, a vector or splat broadcast
/// anew, anything else reshaped.
Value unflatten(PatternRewriter &rewriter, Location loc, Value value, ArrayRef<Size> leading) {
  Sizes sizes(leading);
  sizes.push_back(Size(cast<RankedTensorType>(value.getType()).getShape().back()));
  DenseElementsAttr constant;
  RankedTensorType type = tensorType(sizes, getElementTypeOrSelf(value));
  if (matchPattern(value, m_Constant(&constant)) && constant.isSplat() && type.hasStaticShape())
    return arith::ConstantOp::create(rewriter, loc, constant.resizeSplat(type));
  if (Value vector = matchVector(value))
    return buildBroadcast(rewriter, loc, vector, sizes);
  return buildReshape(rewriter, loc, value, sizes);
}

/// op(reshape(x), y) -> reshape(op(x, unflatten(y))): rows stay [B, S, H] where an exporter flattened them.
struct SinkFlattening : RewritePattern {
  SinkFlattening(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isRowWise(op))
      return failure();
    auto result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!result || result.getRank() != 2 || ShapedType::isDynamic(result.getShape().back()))
      return failure();
    // Operands with rows: all of an element-wise op and of swiglu, the first of the others.
    unsigned rows = isa<SwigluOp>(op) || op->hasTrait<OpTrait::Elementwise>() ? op->getNumOperands() : 1;
    ReshapeOp flattening;
    for (Value operand : op->getOperands().take_front(rows)) {
      auto type = dyn_cast<RankedTensorType>(operand.getType());
      if (!type || type.getRank() != 2)
        return failure();
      if (!flattening)
        flattening = flatteningReshape(operand);
    }
    if (!flattening)
      return failure();
    Sizes leading = *symbolicSizes(flattening.getInput());
    leading.pop_back();
    SmallVector<Value> operands(op->getOperands());
    for (Value &operand : MutableArrayRef(operands).take_front(rows))
      operand = operand == flattening.getResult() ? flattening.getInput()
                                                  : unflatten(rewriter, op->getLoc(), operand, leading);
    Sizes sizes(leading);
    sizes.push_back(Size(result.getShape().back()));
    OperationState state(op->getLoc(), op->getName(), operands, tensorType(sizes, result.getElementType()),
                         op->getAttrs());
    Operation *sunk = rewriter.create(state);
    std::optional<Sizes> flat = symbolicSizes(flattening);
    Sizes flatSizes{flat->front(), Size(result.getShape().back())};
    rewriter.replaceOp(op, buildReshape(rewriter, op->getLoc(), sunk->getResult(0), flatSizes));
    return success();
  }
};

struct SimplifyViews : impl::TfmSimplifyViewsBase<SimplifyViews> {
  using TfmSimplifyViewsBase::TfmSimplifyViewsBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ShortenChain, FillToConstant, FoldBroadcast, HoistSlice, GatherToSlice, MergeSplitSlice, CountOneRow,
                 RopeOfOneRow, EmbedOneRow, SinkFlattening>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
} // namespace drover::tfm
