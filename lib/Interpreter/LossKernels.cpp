//===- LossKernels.cpp - cross-entropy and the optimizer --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Elementwise.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace drover;
using namespace drover::interpreter;

namespace {
/// The columns that a rank has of the vocabulary: `width` of them, the first `valid` of which are no padding.
struct Columns {
  template <typename OpT>
  Columns(OpT op, const Tensor &logits, const Tensor *offset) : width(logits.shape.back()), valid(width) {
    if (offset)
      first = offset->ints[0];
    partial = offset != nullptr;
    if (std::optional<uint64_t> size = op.getVocabulary())
      valid = std::clamp<int64_t>(static_cast<int64_t>(*size) - first, 0, width);
  }

  /// Labels beyond the vocabulary are errors where the columns are all there are; negative ones do not count.
  LogicalResult check(Call &call, const Tensor &labels, const Tensor &logits) const {
    if (labels.size() * width != logits.size())
      return call.fail("logits and labels of different sizes");
    for (int64_t label : labels.ints)
      if (!partial && label >= valid)
        return call.fail("label " + Twine(label) + " is not below " + Twine(valid));
    return success();
  }
  /// The label's column; -1 where it does not count or is another rank's.
  int64_t of(int64_t label) const { return label >= first && label >= 0 && label < first + valid ? label - first : -1; }

  int64_t width, valid, first = 0;
  bool partial;
};
} // namespace

static LogicalResult logitsMax(tfm::LogitsMaxOp op, Call &call) {
  const Tensor &logits = call.operand(0);
  Columns columns(op, logits, call.optionalOperand(1));
  if (failed(call.allocate(0, ArrayRef(logits.shape).drop_back())))
    return failure();
  for (int64_t row = 0; row < call.results[0].size(); ++row) {
    double maximum = -INFINITY;
    for (int64_t v = 0; v < columns.valid; ++v)
      maximum = std::fmax(maximum, logits.floats[row * columns.width + v]);
    call.results[0].floats[row] = maximum;
  }
  return success();
}

static LogicalResult logitsSum(tfm::LogitsSumOp op, Call &call) {
  const Tensor &logits = call.operand(0), &labels = call.operand(1), &maximum = call.operand(2);
  Columns columns(op, logits, call.optionalOperand(3));
  if (failed(columns.check(call, labels, logits)) || failed(call.allocate(0, labels.shape)) ||
      failed(call.allocate(1, labels.shape)))
    return failure();
  for (int64_t row = 0; row < labels.size(); ++row) {
    const double *rowLogits = logits.floats.data() + row * columns.width;
    for (int64_t v = 0; v < columns.valid; ++v)
      call.results[0].floats[row] += std::exp(rowLogits[v] - maximum.floats[row]);
    if (int64_t column = columns.of(labels.ints[row]); column >= 0)
      call.results[1].floats[row] = rowLogits[column];
  }
  return success();
}

static LogicalResult crossEntropy(tfm::CrossEntropyOp, Call &call) {
  const Tensor &labels = call.operand(0), &maximum = call.operand(1), &sum = call.operand(2), &target = call.operand(3);
  if (failed(call.allocate(0, {})))
    return failure();
  for (int64_t row = 0; row < labels.size(); ++row)
    if (labels.ints[row] >= 0)
      call.results[0].floats[0] += std::log(sum.floats[row]) + maximum.floats[row] - target.floats[row];
  return success();
}

static LogicalResult crossEntropyGrad(tfm::CrossEntropyGradOp op, Call &call) {
  const Tensor &logits = call.operand(0), &labels = call.operand(1), &maximum = call.operand(2), &sum = call.operand(3);
  double seed = call.operand(4).floats[0];
  Columns columns(op, logits, call.optionalOperand(5));
  if (failed(columns.check(call, labels, logits)) || failed(call.allocate(0, logits.shape)))
    return failure();
  for (int64_t row = 0; row < labels.size(); ++row) {
    if (labels.ints[row] < 0)
      continue;
    int64_t column = columns.of(labels.ints[row]);
    for (int64_t v = 0; v < columns.valid; ++v) {
      int64_t at = row * columns.width + v;
      double probability = std::exp(logits.floats[at] - maximum.floats[row]) / sum.floats[row];
      call.results[0].floats[at] = seed * (probability - (v == column));
    }
  }
  return success();
}

static LogicalResult sumOfSquares(tfm::SumOfSquaresOp, Call &call) {
  if (failed(call.allocate(0, {})))
    return failure();
  for (double value : call.operand(0).floats)
    call.results[0].floats[0] += value * value;
  return success();
}

namespace {
/// The `hyper` operand of the optimizers.
struct Hyper {
  double lr, weightDecay, beta1, beta2, eps, bias1, bias2, clip;
  explicit Hyper(const Tensor &tensor)
      : lr(tensor.floats[0]), weightDecay(tensor.floats[1]), beta1(tensor.floats[2]), beta2(tensor.floats[3]),
        eps(tensor.floats[4]), bias1(tensor.floats[5]), bias2(tensor.floats[6]), clip(tensor.floats[7]) {}
};
} // namespace

static LogicalResult adamw(tfm::AdamWOp, Call &call) {
  const Tensor &parameter = call.operand(0), &moment1 = call.operand(1), &moment2 = call.operand(2),
               &gradient = call.operand(3);
  Hyper hyper(call.operand(4));
  for (unsigned i = 0; i < 3; ++i)
    if (call.operand(i + 1).shape != parameter.shape || failed(call.allocate(i, parameter.shape)))
      return call.fail("operands of different shapes");
  for (int64_t i = 0; i < parameter.size(); ++i) {
    double g = hyper.clip * gradient.floats[i];
    double m = hyper.beta1 * moment1.floats[i] + (1 - hyper.beta1) * g;
    double v = hyper.beta2 * moment2.floats[i] + (1 - hyper.beta2) * g * g;
    double p = parameter.floats[i] * (1 - hyper.lr * hyper.weightDecay);
    call.results[0].floats[i] = p - hyper.lr / hyper.bias1 * m / (std::sqrt(v) / std::sqrt(hyper.bias2) + hyper.eps);
    call.results[1].floats[i] = m;
    call.results[2].floats[i] = v;
  }
  return success();
}

static LogicalResult sgd(tfm::SgdOp, Call &call) {
  const Tensor &parameter = call.operand(0), &gradient = call.operand(1);
  Hyper hyper(call.operand(2));
  if (gradient.shape != parameter.shape)
    return call.fail("operands of different shapes");
  if (failed(call.allocate(0, parameter.shape)))
    return failure();
  for (int64_t i = 0; i < parameter.size(); ++i)
    call.results[0].floats[i] =
        parameter.floats[i] * (1 - hyper.lr * hyper.weightDecay) - hyper.lr * hyper.clip * gradient.floats[i];
  return success();
}

void interpreter::addLossKernels(KernelTable &table) {
  table.add<tfm::LogitsMaxOp>(logitsMax);
  table.add<tfm::LogitsSumOp>(logitsSum);
  table.add<tfm::CrossEntropyOp>(crossEntropy);
  table.add<tfm::CrossEntropyGradOp>(crossEntropyGrad);
  table.add<tfm::AccumulateOp>(binary([](double accumulator, double value) { return accumulator + value; }));
  table.add<tfm::SumOfSquaresOp>(sumOfSquares);
  table.add<tfm::AdamWOp>(adamw);
  table.add<tfm::SgdOp>(sgd);
}
