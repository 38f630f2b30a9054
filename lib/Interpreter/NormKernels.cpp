//===- NormKernels.cpp - norms and softmax ----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Kernels.h"
#include <cmath>

using namespace mlir;
using namespace drover;
using namespace drover::interpreter;

/// The vector operand as factors of a row: its values plus an offset, or ones where it is absent.
static std::vector<double> factors(const Tensor *weight, int64_t width, double offset) {
  if (!weight)
    return std::vector<double>(width, 1.0);
  std::vector<double> result(weight->floats);
  for (double &value : result)
    value += offset;
  return result;
}

static LogicalResult rmsNorm(tfm::RmsNormOp op, Call &call) {
  const Tensor &input = call.operand(0);
  int64_t width = input.shape.back();
  std::vector<double> weight =
      factors(op.getWeight() ? &call.operand(1) : nullptr, width, op.getWeightOffset().convertToDouble());
  double eps = op.getEps().convertToDouble();
  if (static_cast<int64_t>(weight.size()) != width)
    return call.fail("input and weight of different sizes");
  if (failed(call.allocate(0, input.shape)))
    return failure();
  for (int64_t row = 0; row < input.size(); row += width) {
    const double *x = input.floats.data() + row;
    double squares = 0;
    for (int64_t c = 0; c < width; ++c)
      squares += x[c] * x[c];
    double r = 1 / std::sqrt(squares / width + eps);
    for (int64_t c = 0; c < width; ++c)
      call.results[0].floats[row + c] = x[c] * r * weight[c];
  }
  return success();
}

static LogicalResult rmsNormGrad(tfm::RmsNormGradOp op, Call &call) {
  const Tensor &input = call.operand(0), &gradient = call.operand(1);
  int64_t width = input.shape.back();
  std::vector<double> weight =
      factors(op.getWeight() ? &call.operand(2) : nullptr, width, op.getWeightOffset().convertToDouble());
  double eps = op.getEps().convertToDouble();
  if (static_cast<int64_t>(weight.size()) != width || gradient.shape != input.shape)
    return call.fail("operands of different sizes");
  if (failed(call.allocate(0, input.shape)) || (op.getWeight() && failed(call.allocate(1, {width}))))
    return failure();
  for (int64_t row = 0; row < input.size(); row += width) {
    const double *x = input.floats.data() + row, *dy = gradient.floats.data() + row;
    double squares = 0, product = 0;
    for (int64_t c = 0; c < width; ++c) {
      squares += x[c] * x[c];
      product += dy[c] * weight[c] * x[c];
    }
    double r = 1 / std::sqrt(squares / width + eps), mean = product / width;
    for (int64_t c = 0; c < width; ++c) {
      call.results[0].floats[row + c] = r * (dy[c] * weight[c] - x[c] * r * r * mean);
      if (op.getWeight())
        call.results[1].floats[c] += dy[c] * x[c] * r;
    }
  }
  return success();
}

namespace {
/// (x - mean) / sqrt(variance + eps) of a row.
struct Normalized {
  std::vector<double> values;
  double r;

  Normalized(const double *x, int64_t width, double eps) : values(x, x + width) {
    double sum = 0, squares = 0;
    for (double value : values)
      sum += value;
    for (double &value : values) {
      value -= sum / width;
      squares += value * value;
    }
    r = 1 / std::sqrt(squares / width + eps);
    for (double &value : values)
      value *= r;
  }
};
} // namespace

static LogicalResult layerNorm(tfm::LayerNormOp op, Call &call) {
  const Tensor &input = call.operand(0);
  int64_t width = input.shape.back();
  std::vector<double> weight = factors(op.getWeight() ? &call.operand(1) : nullptr, width, 0);
  std::vector<double> bias = op.getBias() ? call.operand(2).floats : std::vector<double>(width);
  if (static_cast<int64_t>(weight.size()) != width || static_cast<int64_t>(bias.size()) != width)
    return call.fail("operands of different sizes");
  if (failed(call.allocate(0, input.shape)))
    return failure();
  for (int64_t row = 0; row < input.size(); row += width) {
    Normalized normalized(input.floats.data() + row, width, op.getEps().convertToDouble());
    for (int64_t c = 0; c < width; ++c)
      call.results[0].floats[row + c] = normalized.values[c] * weight[c] + bias[c];
  }
  return success();
}

static LogicalResult layerNormGrad(tfm::LayerNormGradOp op, Call &call) {
  const Tensor &input = call.operand(0), &gradient = call.operand(1);
  int64_t width = input.shape.back();
  std::vector<double> weight = factors(op.getWeight() ? &call.operand(2) : nullptr, width, 0);
  if (static_cast<int64_t>(weight.size()) != width || gradient.shape != input.shape)
    return call.fail("operands of different sizes");
  for (unsigned i = 0; i < call.results.size(); ++i)
    if (failed(i ? call.allocate(i, {width}) : call.allocate(0, input.shape)))
      return failure();
  std::vector<double> dw(width), db(width);
  for (int64_t row = 0; row < input.size(); row += width) {
    Normalized normalized(input.floats.data() + row, width, op.getEps().convertToDouble());
    const double *dy = gradient.floats.data() + row;
    double sum = 0, product = 0;
    for (int64_t c = 0; c < width; ++c) {
      sum += dy[c] * weight[c];
      product += dy[c] * weight[c] * normalized.values[c];
      dw[c] += dy[c] * normalized.values[c];
      db[c] += dy[c];
    }
    for (int64_t c = 0; c < width; ++c)
      call.results[0].floats[row + c] =
          normalized.r * (dy[c] * weight[c] - sum / width - normalized.values[c] * product / width);
  }
  if (op.getWeightGrad())
    call.results[1].floats = dw;
  if (op.getBiasGrad())
    call.results.back().floats = db;
  return success();
}

static LogicalResult softmax(tfm::SoftmaxOp op, Call &call) {
  const Tensor &input = call.operand(0);
  int64_t axis = op.getAxis(), length = input.shape[axis], stride = stridesOf(input.shape)[axis];
  if (failed(call.allocate(0, input.shape)))
    return failure();
  for (int64_t start = 0; start < input.size(); ++start) {
    if (start / stride % length != 0)
      continue; // not the first of its row
    double maximum = -INFINITY, sum = 0;
    for (int64_t i = 0; i < length; ++i)
      maximum = std::fmax(maximum, input.floats[start + i * stride]);
    for (int64_t i = 0; i < length; ++i)
      sum += call.results[0].floats[start + i * stride] = std::exp(input.floats[start + i * stride] - maximum);
    for (int64_t i = 0; i < length; ++i)
      call.results[0].floats[start + i * stride] /= sum;
  }
  return success();
}

void interpreter::addNormKernels(KernelTable &table) {
  table.add<tfm::RmsNormOp>(rmsNorm);
  table.add<tfm::RmsNormGradOp>(rmsNormGrad);
  table.add<tfm::LayerNormOp>(layerNorm);
  table.add<tfm::LayerNormGradOp>(layerNormGrad);
  table.add<tfm::SoftmaxOp>(softmax);
}
