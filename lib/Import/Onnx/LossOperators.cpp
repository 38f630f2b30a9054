//===- LossOperators.cpp - cross-entropy inside an exported graph ---------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Operators.h"

using namespace llvm;

namespace drover::onnx {
namespace {

/// The negative log likelihood of [N, C, d..] at targets [N, d..], class weights, ignored targets.
void emitLoss(NodeContext &n, const Value &logProbabilities) {
  TensorBuilder &b = n.b;
  Value target = b.cast(n.plain(1), ElemType::Int64);
  const Value &x = logProbabilities;
  if (b.failed())
    return;
  if (x.rank() < 2 || target.rank() != x.rank() - 1)
    return b.fail("expected scores [N, C, ..] and targets [N, ..], not ranks " + Twine(x.rank()) + " and " +
                  Twine(target.rank()));
  // The score of the target: a sum over classes of the one that matches.
  Shape column = target.shape;
  column.insert(column.begin() + 1, Expr(1));
  Value classes = b.iota(ElemType::Int64, x.shape, 1);
  Value matches = b.compare(Compare::Equal, classes, b.reshape(target, column));
  Value picked = b.reduce(tfm::ReduceKind::Sum, b.select(matches, x, b.number(x, 0)), {1}, false);
  std::optional<Value> counts;
  if (n.has(2)) {
    Value weights = n.plain(2);
    Shape shape(x.rank(), Expr(1));
    shape[1] = x.shape[1];
    counts = b.reduce(tfm::ReduceKind::Sum, b.select(matches, b.reshape(weights, shape), b.number(x, 0)), {1}, false);
  }
  if (n.node.attribute("ignore_index")) {
    Value ignored = b.compare(Compare::Equal, target, b.scalarInt(n.intAttr("ignore_index", 0)));
    counts = b.select(ignored, b.number(x, 0), counts ? *counts : b.number(x, 1));
  }
  if (b.failed())
    return;
  Value loss = b.unary(Unary::Neg, counts ? b.mul(picked, *counts) : picked);
  StringRef reduction = n.stringAttr("reduction", "mean");
  std::vector<int64_t> all;
  for (int64_t dim = 0; dim < target.rank(); ++dim)
    all.push_back(dim);
  if (reduction != "none") {
    loss = b.reduce(tfm::ReduceKind::Sum, loss, all, false);
    if (reduction == "mean") {
      Value number = b.cast(b.scalarInt(b.count(target.shape)), x.type);
      if (counts)
        number = b.reduce(tfm::ReduceKind::Sum, b.broadcast(*counts, target.shape), all, false);
      loss = b.div(loss, number);
    }
  }
  n.out(0, loss);
}

void negativeLogLikelihood(NodeContext &n) { emitLoss(n, n.plain(0)); }

void softmaxCrossEntropy(NodeContext &n) {
  Value x = n.plain(0);
  if (n.b.failed())
    return;
  if (x.rank() < 2)
    return n.b.fail("expected scores [N, C, ..], not rank " + Twine(x.rank()));
  Value shifted = n.b.sub(x, n.b.reduce(tfm::ReduceKind::Max, x, {1}, true));
  Value sum = n.b.reduce(tfm::ReduceKind::Sum, n.b.unary(Unary::Exp, shifted), {1}, true);
  Value logProbabilities = n.b.sub(shifted, n.b.unary(Unary::Log, sum));
  emitLoss(n, logProbabilities);
  n.out(1, logProbabilities);
}

} // namespace

void addLossOperators(OperatorTable &table) {
  table.add("", "NegativeLogLikelihoodLoss", negativeLogLikelihood);
  table.add("", "SoftmaxCrossEntropyLoss", softmaxCrossEntropy);
}

} // namespace drover::onnx
