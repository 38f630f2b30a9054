//===- PartitionRulesLayers.cpp - factors of a layer's ops ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "CollectiveRules.h"
#include "OpUtils.h"

using namespace mlir;
using namespace drover::tfm;

/// Sums of activations are reduced in the type of what is summed.
static FactorSignature::Pending sumIn(Type type) {
  return {Reduction::Sum, reductionTypeOf(getElementTypeOrSelf(type))};
}

/// Gradients of parameters are reduced in f32 (f64 for f64).
static FactorSignature::Pending sumWide(Type type) { return sumIn(accumulatorType(getElementTypeOrSelf(type))); }

static SmallVector<unsigned> concat(ArrayRef<unsigned> rows, unsigned last) {
  SmallVector<unsigned> result(rows);
  result.push_back(last);
  return result;
}

//===----------------------------------------------------------------------===//
// Embedding
//===----------------------------------------------------------------------===//

void EmbeddingOp::getFactors(FactorSignature &signature) {
  SmallVector<unsigned> rows = signature.newFactors(shapeOf(getIds()).size());
  unsigned v = signature.newFactor(), h = signature.newFactor();
  signature.operands = {FactorSignature::dims(rows), FactorSignature::dims({v, h})};
  if (getOffset())
    signature.operands.emplace_back();
  signature.results = {FactorSignature::dims(concat(rows, h))};
  signature.pending = {sumIn(getTable().getType())};
  signature.linear = {1};
  signature.offset = {v, getOffset() ? 2 : -1};
  signature.lookup = {/*table=*/1, /*ids=*/0, v};
  signature.anchors = {1, 0};
}

void EmbeddingOp::localize(Operation *, LocalValues &values) {
  if (SmallVector<Axis, 4> axes = Distribution::of(getTable()).axesOf(0); !axes.empty())
    getOffsetMutable().assign(values.shardOffset(axes, shapeOf(getTable())[0]));
}

void EmbeddingGradOp::getFactors(FactorSignature &signature) {
  SmallVector<unsigned> rows = signature.newFactors(shapeOf(getIds()).size());
  unsigned v = signature.newFactor(), h = signature.newFactor();
  signature.operands = {FactorSignature::dims(rows), FactorSignature::dims(concat(rows, h))};
  if (getOffset())
    signature.operands.emplace_back();
  signature.results = {FactorSignature::dims({v, h})};
  signature.pending = {sumWide(getGradient().getType())};
  signature.linear = {1};
  signature.offset = {v, getOffset() ? 2 : -1};
  signature.anchors = {1, 0};
}

void EmbeddingGradOp::localize(Operation *, LocalValues &values) {
  if (SmallVector<Axis, 4> axes = Distribution::of(getResult()).axesOf(0); !axes.empty())
    getOffsetMutable().assign(values.shardOffset(axes, shapeOf(getResult())[0]));
}

//===----------------------------------------------------------------------===//
// Linear
//===----------------------------------------------------------------------===//

FactorSignature drover::tfm::linearFactors(Value input, bool inOut) {
  FactorSignature signature;
  SmallVector<unsigned> rows = signature.newFactors(shapeOf(input).size() - 1);
  unsigned n = signature.newFactor(), k = signature.newFactor();
  signature.operands = {FactorSignature::dims(concat(rows, k)),
                        inOut ? FactorSignature::dims({k, n}) : FactorSignature::dims({n, k})};
  signature.results = {FactorSignature::dims(concat(rows, n))};
  signature.pending = {sumIn(input.getType())};
  signature.linear = {0, 1};
  signature.anchors = {1, 0};
  signature.product = {/*weight=*/1, /*output=*/n, /*contraction=*/k};
  return signature;
}

void LinearOp::getFactors(FactorSignature &signature) { signature = linearFactors(getInput(), getInOut()); }

void LinearWeightGradOp::getFactors(FactorSignature &signature) {
  SmallVector<unsigned> rows = signature.newFactors(shapeOf(getInput()).size() - 1);
  unsigned n = signature.newFactor(), k = signature.newFactor();
  signature.operands = {FactorSignature::dims(concat(rows, k)), FactorSignature::dims(concat(rows, n))};
  signature.results = {getInOut() ? FactorSignature::dims({k, n}) : FactorSignature::dims({n, k})};
  signature.pending = {sumWide(getInput().getType())};
  signature.linear = {0, 1};
}

void BiasAddOp::getFactors(FactorSignature &signature) {
  SmallVector<unsigned> dims = signature.newFactors(shapeOf(getInput()).size());
  signature.operands = {FactorSignature::dims(dims), FactorSignature::dims(dims.back())};
  signature.results = {FactorSignature::dims(dims)};
  signature.pending.resize(1);
}

void ColumnSumOp::getFactors(FactorSignature &signature) {
  SmallVector<unsigned> dims = signature.newFactors(shapeOf(getInput()).size());
  signature.operands = {FactorSignature::dims(dims)};
  signature.results = {FactorSignature::dims(dims.back())};
  signature.pending = {sumWide(getInput().getType())};
  signature.linear = {0};
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// `rows` operands and results of full shape, then vectors along the last dimension, which a norm has to see whole.
static void normFactors(Operation *op, unsigned fullOperands, FactorSignature &signature) {
  SmallVector<unsigned> dims = signature.newFactors(shapeOf(op->getOperand(0)).size());
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    signature.operands.push_back(FactorSignature::dims(i < fullOperands ? ArrayRef(dims) : ArrayRef(dims.back())));
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    signature.results.push_back(FactorSignature::dims(i == 0 ? ArrayRef(dims) : ArrayRef(dims.back())));
  signature.pending.resize(1);
  signature.pending.resize(op->getNumResults(), sumWide(op->getOperand(0).getType()));
  signature.whole.emplace_back(dims.back(), "the normalized dimension");
}

void RmsNormOp::getFactors(FactorSignature &signature) { normFactors(*this, 1, signature); }
void RmsNormGradOp::getFactors(FactorSignature &signature) { normFactors(*this, 2, signature); }
void LayerNormOp::getFactors(FactorSignature &signature) {
  normFactors(*this, 1, signature);
  signature.preservesZero = !getBias();
}
void LayerNormGradOp::getFactors(FactorSignature &signature) { normFactors(*this, 2, signature); }

//===----------------------------------------------------------------------===//
// Activations: zero at zero, as are their gradients
//===----------------------------------------------------------------------===//

void GeluOp::getFactors(FactorSignature &signature) { elementwiseFactors(*this, signature); }
void GeluGradOp::getFactors(FactorSignature &signature) { elementwiseFactors(*this, signature); }
void SiluOp::getFactors(FactorSignature &signature) { elementwiseFactors(*this, signature); }
void SiluGradOp::getFactors(FactorSignature &signature) { elementwiseFactors(*this, signature); }
void SwigluOp::getFactors(FactorSignature &signature) { elementwiseFactors(*this, signature); }
void SwigluGradOp::getFactors(FactorSignature &signature) { elementwiseFactors(*this, signature); }

//===----------------------------------------------------------------------===//
// Accumulation and the optimizer, which is flat and never partitioned
//===----------------------------------------------------------------------===//

void AccumulateOp::getFactors(FactorSignature &signature) {
  elementwiseFactors(*this, signature);
  signature.isAdditive = true;
}

/// Nothing but the size, which no axis may cut: a flat body sees a range of a bucket.
static void flatFactors(Operation *op, FactorSignature &signature) {
  auto dims = [&](Value value) {
    FactorSignature::Value result;
    for (size_t i = 0; i < shapeOf(value).size(); ++i) {
      signature.whole.emplace_back(signature.newFactor(), "a flat tensor");
      result.emplace_back(signature.numFactors - 1);
    }
    return result;
  };
  for (Value operand : op->getOperands())
    signature.operands.push_back(dims(operand));
  for (Value result : op->getResults())
    signature.results.push_back(dims(result));
  signature.pending.resize(op->getNumResults());
}

void SumOfSquaresOp::getFactors(FactorSignature &signature) { flatFactors(*this, signature); }
void AdamWOp::getFactors(FactorSignature &signature) { flatFactors(*this, signature); }
void SgdOp::getFactors(FactorSignature &signature) { flatFactors(*this, signature); }
