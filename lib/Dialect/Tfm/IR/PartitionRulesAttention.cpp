//===- PartitionRulesAttention.cpp - factors of rope, attention, loss -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "OpUtils.h"
#include "drover/Dialect/Tfm/IR/Partition.h"

using namespace mlir;
using namespace drover::tfm;

//===----------------------------------------------------------------------===//
// Rope
//===----------------------------------------------------------------------===//

void RopeOp::getFactors(FactorSignature &signature) {
  unsigned b = signature.newFactor(), s = signature.newFactor(), h = signature.newFactor();
  FactorSignature::Value rows{DimFactors(b), DimFactors(s), DimFactors(h)};
  bool oneRow = shapeOf(getPositions())[0] == 1;
  signature.operands = {rows, {DimFactors(b, 1, oneRow), DimFactors(s)}};
  signature.results = {rows};
  signature.pending.resize(1);
  signature.linear = {0};
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
/// The factors of attention and its gradient. Channels nest kv heads and the queries of a group; `headSize` elements of
/// a query are one query head. A factor counts heads.
struct AttentionFactors {
  unsigned b, q, k, kvHead, group;
  int64_t headSize, valueHeadSize;

  template <typename OpT>
  AttentionFactors(OpT op, FactorSignature &signature)
      : b(signature.newFactor()), q(signature.newFactor()), k(signature.newFactor()), kvHead(signature.newFactor()),
        group(signature.newFactor()), headSize(shapeOf(op.getQuery())[2] / static_cast<int64_t>(op.getNumHeads())),
        valueHeadSize(shapeOf(op.getValue())[2] / static_cast<int64_t>(op.getNumKvHeads())) {}

  FactorSignature::Value query(int64_t size) const {
    return {DimFactors(b), DimFactors(q), DimFactors({kvHead, group}, size)};
  }
  FactorSignature::Value key(int64_t size) const { return {DimFactors(b), DimFactors(k), DimFactors(kvHead, size)}; }
  FactorSignature::Value logSumExp() const { return {DimFactors(b), DimFactors({kvHead, group}, 1), DimFactors(q)}; }
};

/// The optional operands and what both ops demand.
template <typename OpT> void addMasks(OpT op, const AttentionFactors &factors, FactorSignature &signature) {
  if (Value mask = op.getMask()) {
    ArrayRef<int64_t> shape = shapeOf(mask);
    signature.operands.push_back({DimFactors(factors.b, 1, shape[0] == 1),
                                  DimFactors({factors.kvHead, factors.group}, 1, shape[1] == 1),
                                  DimFactors(factors.q, 1, shape[2] == 1), DimFactors(factors.k)});
  }
  if (Value mask = op.getKeyMask())
    signature.operands.push_back({DimFactors(factors.b, 1, shapeOf(mask)[0] == 1), DimFactors(factors.k)});
  if (op.getDocuments())
    signature.operands.push_back({DimFactors(factors.b), DimFactors(factors.k)});
  if (op.getQueryIndex())
    signature.operands.push_back({DimFactors(factors.q)});
  signature.whole.emplace_back(factors.k, "the keys' sequence");
  if (op.getAlibiSlopes()) {
    signature.whole.emplace_back(factors.kvHead, "heads with alibi_slopes");
    signature.whole.emplace_back(factors.group, "heads with alibi_slopes");
  }
  bool knowsPlaces = op.getCausal() != CausalKind::None || op.getWindow() || op.getDocuments();
  if (knowsPlaces)
    signature.requirements.push_back({factors.q, bool(op.getQueryIndex()), "query_index"});
}

template <typename OpT> void localizeAttention(OpT op, OpT global, LocalValues &values) {
  int64_t headSize = shapeOf(global.getQuery())[2] / static_cast<int64_t>(global.getNumHeads());
  int64_t valueHeadSize = shapeOf(global.getValue())[2] / static_cast<int64_t>(global.getNumKvHeads());
  op.setNumHeads(shapeOf(op.getQuery())[2] / headSize);
  op.setNumKvHeads(shapeOf(op.getValue())[2] / valueHeadSize);
  Distribution query = Distribution::of(op.getQuery());
  bool knowsPlaces = op.getCausal() != CausalKind::None || op.getWindow() || op.getDocuments();
  if (knowsPlaces && !query.axesOf(1).empty())
    op.getQueryIndexMutable().assign(values.globalIndex(query, 1, shapeOf(op.getQuery())[1]));
}
} // namespace

void AttentionOp::getFactors(FactorSignature &signature) {
  AttentionFactors factors(*this, signature);
  signature.operands = {factors.query(factors.headSize), factors.key(factors.headSize),
                        factors.key(factors.valueHeadSize)};
  addMasks(*this, factors, signature);
  signature.results = {factors.query(factors.valueHeadSize), factors.logSumExp()};
  signature.pending.resize(2);
  // A padded query head of a real kv head has equal scores and so the mean of the values.
  signature.preservesZero = false;
  signature.spoilsWithinGroups = true;
  signature.unread = {1};
  signature.anchors = {1, 0};
}

void AttentionOp::localize(Operation *global, LocalValues &values) {
  localizeAttention(*this, cast<AttentionOp>(global), values);
}

void AttentionGradOp::getFactors(FactorSignature &signature) {
  AttentionFactors factors(*this, signature);
  signature.operands = {
      factors.query(factors.headSize),      factors.key(factors.headSize), factors.key(factors.valueHeadSize),
      factors.query(factors.valueHeadSize), factors.logSumExp(),           factors.query(factors.valueHeadSize)};
  addMasks(*this, factors, signature);
  signature.results = {factors.query(factors.headSize), factors.key(factors.headSize),
                       factors.key(factors.valueHeadSize)};
  FactorSignature::Pending wide{Reduction::Sum,
                                reductionTypeOf(accumulatorType(getElementTypeOrSelf(getQuery().getType())))};
  signature.pending = {{}, wide, wide};
  signature.settles = true;
  signature.anchors = {1, 0, 5, 3};
}

void AttentionGradOp::localize(Operation *global, LocalValues &values) {
  localizeAttention(*this, cast<AttentionGradOp>(global), values);
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

namespace {
/// Rows, and the vocabulary.
struct LossFactors {
  SmallVector<unsigned> rows;
  unsigned v;

  LossFactors(Value logits, FactorSignature &signature)
      : rows(signature.newFactors(shapeOf(logits).size() - 1)), v(signature.newFactor()) {}
  FactorSignature::Value logits() const {
    FactorSignature::Value value = FactorSignature::dims(rows);
    value.emplace_back(v);
    return value;
  }
  FactorSignature::Value row() const { return FactorSignature::dims(rows); }
};

template <typename OpT> void addOffset(OpT op, unsigned v, FactorSignature &signature) {
  if (op.getOffset())
    signature.operands.emplace_back();
  signature.offset = {v, op.getOffset() ? static_cast<int>(signature.operands.size()) - 1 : -1};
}

FactorSignature::Pending reduceIn(Reduction reduction, Value value) {
  return {reduction, reductionTypeOf(getElementTypeOrSelf(value.getType()))};
}

/// Columns from the model's vocabulary on are padding.
template <typename OpT> void localizeLoss(OpT op, Value globalLogits, LocalValues &values) {
  Distribution logits = Distribution::of(op.getLogits());
  ArrayRef<int64_t> shape = shapeOf(op.getLogits());
  SmallVector<Axis, 4> axes = logits.axesOf(shape.size() - 1);
  if (axes.empty())
    return;
  op.getOffsetMutable().assign(values.shardOffset(axes, shape.back()));
  if (logits.layoutOf(shape.size() - 1))
    op.setVocabulary(shapeOf(globalLogits).back());
}
} // namespace

void LogitsMaxOp::getFactors(FactorSignature &signature) {
  LossFactors factors(getLogits(), signature);
  signature.operands = {factors.logits()};
  addOffset(*this, factors.v, signature);
  signature.results = {factors.row()};
  signature.pending = {reduceIn(Reduction::Max, getMaximum())};
}
void LogitsMaxOp::localize(Operation *global, LocalValues &values) {
  localizeLoss(*this, cast<LogitsMaxOp>(global).getLogits(), values);
}

void LogitsSumOp::getFactors(FactorSignature &signature) {
  LossFactors factors(getLogits(), signature);
  signature.operands = {factors.logits(), factors.row(), factors.row()};
  addOffset(*this, factors.v, signature);
  signature.results = {factors.row(), factors.row()};
  signature.pending = {reduceIn(Reduction::Sum, getSum()), reduceIn(Reduction::Sum, getTarget())};
}
void LogitsSumOp::localize(Operation *global, LocalValues &values) {
  localizeLoss(*this, cast<LogitsSumOp>(global).getLogits(), values);
}

void CrossEntropyOp::getFactors(FactorSignature &signature) {
  SmallVector<unsigned> rows = signature.newFactors(shapeOf(getLabels()).size());
  signature.operands.assign(4, FactorSignature::dims(rows));
  signature.results.emplace_back();
  signature.pending = {reduceIn(Reduction::Sum, getLoss())};
}

void CrossEntropyGradOp::getFactors(FactorSignature &signature) {
  LossFactors factors(getLogits(), signature);
  signature.operands = {factors.logits(), factors.row(), factors.row(), factors.row(), {}};
  addOffset(*this, factors.v, signature);
  signature.results = {factors.logits()};
  signature.pending.resize(1);
}
void CrossEntropyGradOp::localize(Operation *global, LocalValues &values) {
  localizeLoss(*this, cast<CrossEntropyGradOp>(global).getLogits(), values);
}
