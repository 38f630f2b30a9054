//===- PartitionRulesStructural.cpp - factors of data movement --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "OpUtils.h"
#include "drover/Dialect/Tfm/IR/Partition.h"
#include <numeric>

using namespace mlir;
using namespace drover::tfm;

static FactorSignature::Pending sumIn(Value value) {
  return {Reduction::Sum, reductionTypeOf(getElementTypeOrSelf(value.getType()))};
}

/// A value each of whose dimensions is a factor of its own that must be whole.
static FactorSignature::Value wholeDims(Value value, StringRef why, FactorSignature &signature) {
  SmallVector<unsigned> factors = signature.newFactors(shapeOf(value).size());
  for (unsigned factor : factors)
    signature.whole.emplace_back(factor, why);
  return FactorSignature::dims(factors);
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// The dimension of a run that carries the factor of the one it is split from: the one that its type says is cut,
/// behind dimensions of size 1; else the first, where channels are split in heads, or the first that is not 1.
static unsigned outerOf(Value value, unsigned first, ArrayRef<int64_t> run, bool isChannels) {
  Distribution distribution = Distribution::of(value);
  for (unsigned i = 0; i < run.size(); ++i) {
    if (!distribution.axesOf(first + i).empty() || distribution.layoutOf(first + i))
      return i;
    if (run[i] != 1)
      break;
  }
  if (isChannels)
    return 0;
  const auto *found = llvm::find_if(run, [](int64_t size) { return size != 1; });
  return found == run.end() ? 0 : found - run.begin();
}

/// Runs of dimensions with equal products correspond; a dimension that is split, or merged, is sharded by its outermost
/// part, and the others are whole.
void ReshapeOp::getFactors(FactorSignature &signature) {
  ArrayRef<int64_t> from = shapeOf(getInput()), to = shapeOf(getResult());
  signature.operands.resize(1);
  signature.results.resize(1);
  signature.pending.resize(1);
  signature.linear = {0};
  // Appends a run's dimensions, of which one counts `factor`; returns how many elements of the run it stands for.
  auto addRun = [&](FactorSignature::Value &dims, Value value, ArrayRef<int64_t> run, std::optional<unsigned> factor,
                    bool isChannels) {
    unsigned outer = outerOf(value, dims.size(), run, isChannels);
    for (unsigned i = 0; i < run.size(); ++i) {
      bool counts = factor && i == outer;
      unsigned own = counts ? *factor : signature.newFactor();
      if (!counts)
        signature.whole.emplace_back(own, "the inner part of a reshaped dimension");
      dims.emplace_back(own);
    }
    return run.empty() ? 1 : llvm::product_of(run.drop_front(outer + 1));
  };
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    size_t firstFrom = i, firstTo = j;
    int64_t left = i < from.size() ? from[i++] : 1, right = j < to.size() ? to[j++] : 1;
    while (left != right && (i < from.size() || j < to.size())) {
      if ((left < right && i < from.size()) || j == to.size())
        left *= from[i++];
      else
        right *= to[j++];
    }
    ArrayRef<int64_t> fromRun = from.slice(firstFrom, i - firstFrom), toRun = to.slice(firstTo, j - firstTo);
    std::optional<unsigned> factor;
    if (fromRun.size() == 1 || toRun.size() == 1)
      factor = signature.newFactor();
    int64_t innerFrom = addRun(signature.operands[0], getInput(), fromRun, factor, j == to.size());
    int64_t innerTo = addRun(signature.results[0], getResult(), toRun, factor, i == from.size());
    // The factor counts the outer part: in the merged dimension, one element stands for all inner parts.
    if (factor && fromRun.size() == 1)
      signature.operands[0][firstFrom].unit = innerTo;
    if (factor && toRun.size() == 1)
      signature.results[0][firstTo].unit = innerFrom;
  }
}

void TransposeOp::getFactors(FactorSignature &signature) {
  SmallVector<unsigned> factors = signature.newFactors(shapeOf(getInput()).size());
  signature.operands = {FactorSignature::dims(factors)};
  FactorSignature::Value result;
  for (int64_t dim : getPermutation())
    result.emplace_back(factors[dim]);
  signature.results = {result};
  signature.pending.resize(1);
  signature.linear = {0};
}

void BroadcastOp::getFactors(FactorSignature &signature) {
  ArrayRef<int64_t> from = shapeOf(getInput());
  SmallVector<unsigned> factors = signature.newFactors(shapeOf(getResult()).size());
  ArrayRef<unsigned> last = ArrayRef(factors).take_back(from.size());
  FactorSignature::Value operand;
  for (auto [factor, size] : llvm::zip(last, from))
    operand.emplace_back(factor, 1, size == 1);
  signature.operands = {operand};
  signature.results = {FactorSignature::dims(factors)};
  signature.pending.resize(1);
  signature.linear = {0};
}

//===----------------------------------------------------------------------===//
// Slice and pad: parts of a dimension that is sharded segment by segment
//===----------------------------------------------------------------------===//

namespace {
/// A run of segments.
struct Run {
  ArrayRef<PaddedSegment> segments;
  /// Where it begins in the dimension, and its size.
  int64_t offset, size;
};
} // namespace

/// The run of segments that begins at `offset` and has `size` elements, where `sizeOf` counts a segment's.
static std::optional<Run> findRun(ArrayRef<PaddedSegment> segments, int64_t offset, int64_t size,
                                  llvm::function_ref<int64_t(const PaddedSegment &)> sizeOf) {
  int64_t start = 0;
  size_t first = 0;
  while (first < segments.size() && start < offset)
    start += sizeOf(segments[first++]);
  int64_t length = 0;
  size_t last = first;
  while (last < segments.size() && length < size)
    length += sizeOf(segments[last++]);
  if (start != offset || length != size)
    return std::nullopt;
  return Run{segments.slice(first, last - first), offset, size};
}

/// A run as a layout of its own: null where it is one segment without padding.
static SegmentsAttr layoutOf(MLIRContext *context, ArrayRef<PaddedSegment> segments) {
  if (segments.size() == 1 && segments[0].validSize() == segments[0].paddedSize())
    return {};
  return SegmentsAttr::get(context, segments);
}

/// Dimensions that `box` takes a part of.
template <typename OpT> static bool isPart(OpT op, unsigned dim) {
  return shapeOf(op.getInput())[dim] != shapeOf(op.getResult())[dim] || op.getOffsets()[dim] != 0 ||
         op.getStrides()[dim] != 1;
}

template <typename OpT> static void boxFactors(OpT op, FactorSignature &signature) {
  SmallVector<unsigned> factors = signature.newFactors(shapeOf(op.getInput()).size());
  signature.operands = {FactorSignature::dims(factors)};
  signature.results = {FactorSignature::dims(factors)};
  signature.pending.resize(1);
  signature.linear = {0};
  for (auto [dim, factor] : llvm::enumerate(factors))
    if (isPart(op, dim) && op.getStrides()[dim] != 1)
      signature.whole.emplace_back(factor, "a dimension that is taken with a stride");
}

void SliceOp::getFactors(FactorSignature &signature) { boxFactors(*this, signature); }
void PadOp::getFactors(FactorSignature &signature) { boxFactors(*this, signature); }

/// The rule on the whole tensor `full`, whose layouts say where parts begin, and the part `part` of it.
template <typename OpT>
static LogicalResult checkBox(OpT op, const Distribution &full, ArrayRef<int64_t> fullShape, Distribution &part,
                              ArrayRef<int64_t> partShape, std::string &reason) {
  for (unsigned dim = 0; dim < fullShape.size(); ++dim) {
    if (!isPart(op, dim))
      continue;
    SmallVector<Axis, 4> axes = full.axesOf(dim);
    SegmentsAttr layout = full.layoutOf(dim);
    if (axes.empty() && !layout)
      continue;
    if (!layout) {
      reason = ("takes a part of dimension " + Twine(dim) + ", which is sharded over " + name(axes.front()) +
                " in one segment")
                   .str();
      return failure();
    }
    if (fullShape[dim] <= 0 || layout.paddedSize() % fullShape[dim]) {
      reason = ("has dimension " + Twine(dim) + " of " + Twine(fullShape[dim]) + " elements, of which " +
                str(layout.getSegments()) + " is no multiple")
                   .str();
      return failure();
    }
    int64_t ranks = layout.paddedSize() / fullShape[dim];
    std::optional<Run> run = findRun(layout.getSegments(), op.getOffsets()[dim], partShape[dim],
                                     [&](const PaddedSegment &segment) { return segment.paddedSize() / ranks; });
    if (!run) {
      reason =
          ("takes elements " + Twine(op.getOffsets()[dim]) + " to " + Twine(op.getOffsets()[dim] + partShape[dim]) +
           " of dimension " + Twine(dim) + ", which are no whole segments of " + str(layout.getSegments()))
              .str();
      return failure();
    }
    part.setLayout(dim, layoutOf(op.getContext(), run->segments));
  }
  return success();
}

LogicalResult SliceOp::inferDistributions(ArrayRef<Distribution> operands, ArrayRef<Distribution> hints,
                                          SmallVectorImpl<Distribution> &results, std::string &reason) {
  if (failed(detail::inferByFactors(*this, operands, hints, results, reason)))
    return failure();
  return checkBox(*this, operands[0], shapeOf(getInput()), results[0], shapeOf(getResult()), reason);
}

LogicalResult PadOp::inferDistributions(ArrayRef<Distribution> operands, ArrayRef<Distribution> hints,
                                        SmallVectorImpl<Distribution> &results, std::string &reason) {
  if (failed(detail::inferByFactors(*this, operands, hints, results, reason)))
    return failure();
  // Where the part goes is the result's own choice: its layout stays, and must have the part's.
  for (unsigned dim = 0; dim < shapeOf(getResult()).size(); ++dim)
    if (isPart(*this, dim))
      results[0].setLayout(dim, hints[0].layoutOf(dim));
  Distribution part = operands[0];
  if (failed(checkBox(*this, results[0], shapeOf(getResult()), part, shapeOf(getInput()), reason)))
    return failure();
  if (part != operands[0]) {
    reason = "puts " + operands[0].str() + " where the result has " + part.str();
    return failure();
  }
  return success();
}

/// Moves a box from the model's dimension to the rank's: the sizes of `fullType` along parts that are sharded.
template <typename OpT>
static void localizeBox(OpT op, OpT global, const Distribution &full, ArrayRef<int64_t> globalPart,
                        SmallVectorImpl<int64_t> &fullShape, SmallVectorImpl<int64_t> &partShape, const Grid &grid) {
  SmallVector<int64_t> offsets(op.getOffsets());
  for (unsigned dim = 0; dim < offsets.size(); ++dim) {
    SegmentsAttr layout = full.layoutOf(dim);
    if (!isPart(global, dim) || !layout)
      continue;
    SmallVector<Axis, 4> axes = full.axesOf(dim);
    int64_t ranks = grid.product(axes), local = 0;
    std::optional<Run> run = findRun(layout.getSegments(), global.getOffsets()[dim], globalPart[dim],
                                     [](const PaddedSegment &segment) { return segment.validSize(); });
    if (!run)
      continue; // the rule says so
    for (const PaddedSegment &segment :
         layout.getSegments().take_front(run->segments.data() - layout.getSegments().data()))
      local += segment.paddedSize() / ranks;
    offsets[dim] = local;
    partShape[dim] = 0;
    for (const PaddedSegment &segment : run->segments)
      partShape[dim] += segment.paddedSize() / ranks;
    fullShape[dim] = layout.paddedSize() / ranks;
  }
  op.setOffsets(offsets);
}

void SliceOp::localize(Operation *global, LocalValues &) {
  SmallVector<int64_t> full(shapeOf(getInput())), part(shapeOf(getResult()));
  localizeBox(*this, cast<SliceOp>(global), Distribution::of(getInput()), shapeOf(cast<SliceOp>(global).getResult()),
              full, part, gridOf(*this));
  getResult().setType(getType().clone(part));
}

void PadOp::localize(Operation *global, LocalValues &) {
  SmallVector<int64_t> full(shapeOf(getResult())), part(shapeOf(getInput()));
  localizeBox(*this, cast<PadOp>(global), Distribution::of(getResult()), shapeOf(cast<PadOp>(global).getInput()), full,
              part, gridOf(*this));
  getResult().setType(getType().clone(full));
}

void ConcatOp::getFactors(FactorSignature &signature) {
  SmallVector<unsigned> factors = signature.newFactors(shapeOf(getResult()).size());
  // The joined dimension has another size in each value.
  auto dimsOf = [&] {
    factors[getAxis()] = signature.newFactor();
    signature.whole.emplace_back(factors[getAxis()], "the joined dimension");
    return FactorSignature::dims(factors);
  };
  signature.results = {dimsOf()};
  for (unsigned i = 0; i < getInputs().size(); ++i)
    signature.operands.push_back(dimsOf());
  signature.pending.resize(1);
  signature.isAdditive = true;
}

//===----------------------------------------------------------------------===//
// Contractions, indexing
//===----------------------------------------------------------------------===//

void ReduceOp::getFactors(FactorSignature &signature) {
  SmallVector<unsigned> factors = signature.newFactors(shapeOf(getInput()).size());
  FactorSignature::Value result;
  bool isSum = getKind() == ReduceKind::Sum, isMax = getKind() == ReduceKind::Max;
  for (auto [dim, factor] : llvm::enumerate(factors)) {
    if (!llvm::is_contained(getAxes(), static_cast<int64_t>(dim))) {
      result.emplace_back(factor);
      continue;
    }
    if (!isSum && !isMax)
      signature.whole.emplace_back(factor, "the reduced dimension");
    if (getKeep()) {
      result.emplace_back(signature.newFactor());
      signature.whole.emplace_back(signature.numFactors - 1, "a dimension of size 1");
    }
  }
  signature.operands = {FactorSignature::dims(factors)};
  signature.results = {result};
  signature.pending = {sumIn(getResult())};
  if (isMax)
    signature.pending[0].reduction = Reduction::Max;
  if (isSum)
    signature.linear = {0};
}

void MatmulOp::getFactors(FactorSignature &signature) {
  SmallVector<unsigned> batch = signature.newFactors(shapeOf(getLhs()).size() - 2);
  unsigned m = signature.newFactor(), n = signature.newFactor(), k = signature.newFactor();
  auto matrix = [&](unsigned rows, unsigned columns, bool isTransposed) {
    FactorSignature::Value value = FactorSignature::dims(batch);
    value.emplace_back(isTransposed ? columns : rows);
    value.emplace_back(isTransposed ? rows : columns);
    return value;
  };
  signature.operands = {matrix(m, k, getTransposeLhs()), matrix(k, n, getTransposeRhs())};
  signature.results = {matrix(m, n, false)};
  signature.pending = {sumIn(getLhs())};
  signature.linear = {0, 1};
}

void SoftmaxOp::getFactors(FactorSignature &signature) {
  elementwiseFactors(*this, signature);
  signature.whole.emplace_back(getAxis(), "the dimension of a softmax");
  signature.preservesZero = false;
}

/// Dimensions of a tensor in which those of `indices` have taken the place of `axis`.
static FactorSignature::Value selected(ArrayRef<unsigned> dims, ArrayRef<unsigned> indices, unsigned axis) {
  SmallVector<unsigned> result(dims.take_front(axis));
  llvm::append_range(result, indices);
  llvm::append_range(result, dims.drop_front(axis + 1));
  return FactorSignature::dims(result);
}

void GatherOp::getFactors(FactorSignature &signature) {
  SmallVector<unsigned> dims = signature.newFactors(shapeOf(getInput()).size());
  SmallVector<unsigned> indices = signature.newFactors(shapeOf(getIndices()).size());
  signature.operands = {FactorSignature::dims(dims), FactorSignature::dims(indices)};
  signature.results = {selected(dims, indices, getAxis())};
  signature.pending.resize(1);
  signature.linear = {0};
  signature.whole.emplace_back(dims[getAxis()], "the dimension that is indexed");
}

void ScatterAddOp::getFactors(FactorSignature &signature) {
  SmallVector<unsigned> dims = signature.newFactors(shapeOf(getResult()).size());
  SmallVector<unsigned> indices = signature.newFactors(shapeOf(getIndices()).size());
  signature.operands = {selected(dims, indices, getAxis()), FactorSignature::dims(indices)};
  signature.results = {FactorSignature::dims(dims)};
  signature.pending = {sumIn(getResult())};
  signature.linear = {0};
  signature.whole.emplace_back(dims[getAxis()], "the dimension that is indexed");
}

void ScatterNdOp::getFactors(FactorSignature &signature) {
  for (Value operand : getOperands())
    signature.operands.push_back(wholeDims(operand, "a tensor that is indexed by tuples", signature));
  signature.results = {signature.operands[0]};
  signature.pending.resize(1);
}

//===----------------------------------------------------------------------===//
// Values without operands: any rank can make any part of them
//===----------------------------------------------------------------------===//

void IotaOp::getFactors(FactorSignature &signature) {
  elementwiseFactors(*this, signature);
  signature.whole.emplace_back(getAxis(), "the dimension along which iota counts");
}

void SizeOp::getFactors(FactorSignature &signature) { elementwiseFactors(*this, signature); }
void FillOp::getFactors(FactorSignature &signature) { elementwiseFactors(*this, signature); }

/// The axes of an attribute that have more than one rank.
static SmallVector<Axis, 4> liveAxes(ArrayAttr names, const Grid &grid) {
  SmallVector<Axis, 4> axes;
  for (StringAttr name : names.getAsRange<StringAttr>())
    if (std::optional<Axis> axis = parseAxis(name); axis && grid.size(*axis) > 1)
      axes.push_back(*axis);
  return axes;
}

void GlobalIndexOp::getFactors(FactorSignature &signature) { elementwiseFactors(*this, signature); }

LogicalResult GlobalIndexOp::inferDistributions(ArrayRef<Distribution>, ArrayRef<Distribution>,
                                                SmallVectorImpl<Distribution> &results, std::string &reason) {
  Distribution &result = results.emplace_back();
  SmallVector<Axis, 4> axes = liveAxes(getAxes(), gridOf(*this));
  if (!axes.empty() && !result.append(0, axes, getTwoChunk())) {
    reason = "names axes in another order than they nest";
    return failure();
  }
  // It is the first axis that the chunks are of, be it of one rank.
  if (getTwoChunk() && cast<StringAttr>(getAxes()[0]) != name(Axis::Cp)) {
    reason = ("is in two chunks of " + cast<StringAttr>(getAxes()[0]).getValue() + ", expected cp first").str();
    return failure();
  }
  SmallVector<PaddedSegment> segments = segmentList();
  if (!segments.empty())
    result.setLayout(0, layoutOf(getContext(), segments));
  return success();
}

void GlobalIndexOp::localize(Operation *, LocalValues &) {}

void ShardOffsetOp::getFactors(FactorSignature &signature) { elementwiseFactors(*this, signature); }

LogicalResult ShardOffsetOp::inferDistributions(ArrayRef<Distribution>, ArrayRef<Distribution>,
                                                SmallVectorImpl<Distribution> &results, std::string &reason) {
  Distribution &result = results.emplace_back();
  SmallVector<Axis, 4> axes = liveAxes(getAxes(), gridOf(*this));
  if (Distribution rows; !axes.empty() && !rows.append(0, axes, /*twoChunk=*/false)) {
    reason = "names axes in another order than they nest";
    return failure();
  }
  for (Axis axis : axes)
    result[axis] = AxisState::varying();
  return success();
}

void ShardOffsetOp::localize(Operation *, LocalValues &) {}
