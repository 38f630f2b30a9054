//===- LayerKernels.cpp - embedding, linear, activations --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Elementwise.h"
#include <cmath>

using namespace mlir;
using namespace drover;
using namespace drover::interpreter;

//===----------------------------------------------------------------------===//
// Matrix product
//===----------------------------------------------------------------------===//

static std::vector<double> transposed(const double *data, int64_t rows, int64_t columns) {
  std::vector<double> result(rows * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      result[j * rows + i] = data[i * columns + j];
  return result;
}

void interpreter::multiply(int64_t m, int64_t n, int64_t k, const double *a, bool transposeA, const double *b,
                           bool transposeB, double *c) {
  std::vector<double> ownA, ownB;
  if (transposeA)
    a = (ownA = transposed(a, k, m)).data();
  if (transposeB)
    b = (ownB = transposed(b, n, k)).data();
  // Rows of b are added to rows of c, four at a time: contiguous, and nothing to reorder.
  for (int64_t i = 0; i < m; ++i) {
    const double *row = a + i * k;
    double *out = c + i * n;
    int64_t l = 0;
    for (; l + 4 <= k; l += 4) {
      double a0 = row[l], a1 = row[l + 1], a2 = row[l + 2], a3 = row[l + 3];
      const double *b0 = b + l * n, *b1 = b0 + n, *b2 = b1 + n, *b3 = b2 + n;
      for (int64_t j = 0; j < n; ++j)
        out[j] += (a0 * b0[j] + a1 * b1[j]) + (a2 * b2[j] + a3 * b3[j]);
    }
    for (; l < k; ++l)
      for (int64_t j = 0; j < n; ++j)
        out[j] += row[l] * b[l * n + j];
  }
}

static int64_t rows(const Tensor &tensor) {
  return tensor.shape.empty() ? 1 : countElements(ArrayRef(tensor.shape).drop_back());
}

static void multiplyRows(const Tensor &input, const Tensor &weight, bool inOut, Tensor &result) {
  multiply(rows(input), result.shape.back(), input.shape.back(), input.floats.data(), false, weight.floats.data(),
           !inOut, result.floats.data());
}

Tensor interpreter::multiplyRows(const Tensor &input, const Tensor &weight, bool inOut, ElementKind kind) {
  SmallVector<int64_t> shape(input.shape);
  shape.back() = weight.shape[inOut ? 1 : 0];
  Tensor result(kind, shape);
  ::multiplyRows(input, weight, inOut, result);
  return result;
}

static LogicalResult linear(tfm::LinearOp op, Call &call) {
  const Tensor &input = call.operand(0), &weight = call.operand(1);
  if (input.shape.back() != weight.shape[op.getInOut() ? 0 : 1])
    return call.fail("input and weight of different sizes");
  SmallVector<int64_t> shape(input.shape);
  shape.back() = weight.shape[op.getInOut() ? 1 : 0];
  if (failed(call.allocate(0, shape)))
    return failure();
  multiplyRows(input, weight, op.getInOut(), call.results[0]);
  return success();
}

static LogicalResult linearWeightGrad(tfm::LinearWeightGradOp op, Call &call) {
  const Tensor &input = call.operand(0), &gradient = call.operand(1);
  int64_t k = input.shape.back(), n = gradient.shape.back();
  if (rows(input) != rows(gradient))
    return call.fail("input and gradient of different sizes");
  const double *x = input.floats.data(), *dy = gradient.floats.data();
  if (failed(op.getInOut() ? call.allocate(0, {k, n}) : call.allocate(0, {n, k})))
    return failure();
  if (op.getInOut())
    multiply(k, n, rows(input), x, true, dy, false, call.results[0].floats.data());
  else
    multiply(n, k, rows(input), dy, true, x, false, call.results[0].floats.data());
  return success();
}

static LogicalResult matmul(tfm::MatmulOp op, Call &call) {
  const Tensor &lhs = call.operand(0), &rhs = call.operand(1);
  size_t rank = lhs.shape.size();
  int64_t m = lhs.shape[rank - 2], k = lhs.shape[rank - 1], l = rhs.shape[rank - 2], n = rhs.shape[rank - 1];
  if (op.getTransposeLhs())
    std::swap(m, k);
  if (op.getTransposeRhs())
    std::swap(l, n);
  ArrayRef<int64_t> batch = ArrayRef(lhs.shape).drop_back(2);
  if (k != l || batch != ArrayRef(rhs.shape).drop_back(2))
    return call.fail("operands of different sizes");
  SmallVector<int64_t> shape(batch);
  shape.append({m, n});
  if (failed(call.allocate(0, shape)))
    return failure();
  for (int64_t i = 0; i < countElements(batch); ++i)
    multiply(m, n, k, lhs.floats.data() + i * m * k, op.getTransposeLhs(), rhs.floats.data() + i * k * n,
             op.getTransposeRhs(), call.results[0].floats.data() + i * m * n);
  return success();
}

//===----------------------------------------------------------------------===//
// Embedding, bias
//===----------------------------------------------------------------------===//

static LogicalResult embedding(tfm::EmbeddingOp, Call &call) {
  const Tensor &ids = call.operand(0), &table = call.operand(1);
  const Tensor *offset = call.optionalOperand(2);
  int64_t vocabulary = table.shape[0], width = table.shape[1];
  SmallVector<int64_t> shape(ids.shape);
  shape.push_back(width);
  if (failed(call.allocate(0, shape)))
    return failure();
  for (auto [p, id] : llvm::enumerate(ids.ints)) {
    int64_t row = id - (offset ? offset->ints[0] : 0);
    if (row < 0 || row >= vocabulary) {
      if (offset)
        continue; // another rank's
      return call.fail("id " + Twine(id) + " is not in [0, " + Twine(vocabulary) + ")");
    }
    std::copy_n(table.floats.begin() + row * width, width, call.results[0].floats.begin() + p * width);
  }
  return success();
}

static LogicalResult embeddingGrad(tfm::EmbeddingGradOp op, Call &call) {
  const Tensor &ids = call.operand(0), &gradient = call.operand(1);
  const Tensor *offset = call.optionalOperand(2);
  int64_t vocabulary = op.getType().getDimSize(0), width = gradient.shape.back();
  if (ShapedType::isDynamic(vocabulary))
    return call.fail("the size of the table is not known");
  if (gradient.size() != ids.size() * width)
    return call.fail("ids and gradient of different sizes");
  if (failed(call.allocate(0, {vocabulary, width})))
    return failure();
  for (auto [p, id] : llvm::enumerate(ids.ints)) {
    int64_t row = id - (offset ? offset->ints[0] : 0);
    if (row < 0 || row >= vocabulary) {
      if (offset)
        continue;
      return call.fail("id " + Twine(id) + " is not in [0, " + Twine(vocabulary) + ")");
    }
    for (int64_t c = 0; c < width; ++c)
      call.results[0].floats[row * width + c] += gradient.floats[p * width + c];
  }
  return success();
}

static LogicalResult biasAdd(tfm::BiasAddOp, Call &call) {
  const Tensor &input = call.operand(0), &bias = call.operand(1);
  if (input.shape.back() != bias.size())
    return call.fail("input and bias of different sizes");
  if (failed(call.allocate(0, input.shape)))
    return failure();
  for (int64_t i = 0; i < input.size(); ++i)
    call.results[0].floats[i] = input.floats[i] + bias.floats[i % bias.size()];
  return success();
}

static LogicalResult columnSum(tfm::ColumnSumOp, Call &call) {
  const Tensor &input = call.operand(0);
  int64_t width = input.shape.back();
  if (failed(call.allocate(0, {width})))
    return failure();
  for (int64_t i = 0; i < input.size(); ++i)
    call.results[0].floats[i % width] += input.floats[i];
  return success();
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

double interpreter::sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }

static double silu(double x) { return x * sigmoid(x); }
static double siluDerivative(double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }

/// tanh's argument in the approximation of Hendrycks and Gimpel (arXiv 1606.08415), and its derivative.
static double geluInner(double x) { return M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x); }
static double geluInnerDerivative(double x) { return M_2_SQRTPI * M_SQRT1_2 * (1 + 3 * 0.044715 * x * x); }

static double gelu(tfm::GeluKind kind, double x) {
  if (kind == tfm::GeluKind::Erf)
    return 0.5 * x * (1 + std::erf(x * M_SQRT1_2));
  return 0.5 * x * (1 + std::tanh(geluInner(x)));
}

static double geluDerivative(tfm::GeluKind kind, double x) {
  if (kind == tfm::GeluKind::Erf) // Phi(x) + x phi(x)
    return 0.5 * (1 + std::erf(x * M_SQRT1_2)) + x * std::exp(-0.5 * x * x) * 0.5 * M_2_SQRTPI * M_SQRT1_2;
  double t = std::tanh(geluInner(x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * geluInnerDerivative(x);
}

static LogicalResult geluForward(tfm::GeluOp op, Call &call) {
  return unary([kind = op.getKind()](double x) { return gelu(kind, x); })(call);
}
static LogicalResult geluBackward(tfm::GeluGradOp op, Call &call) {
  return binary([kind = op.getKind()](double x, double dy) { return dy * geluDerivative(kind, x); })(call);
}

static LogicalResult swigluBackward(tfm::SwigluGradOp, Call &call) {
  const Tensor &gate = call.operand(0), &up = call.operand(1), &gradient = call.operand(2);
  if (failed(allocateSame(call)) || failed(call.allocate(1, gate.shape)))
    return failure();
  for (int64_t i = 0; i < gate.size(); ++i) {
    call.results[0].floats[i] = gradient.floats[i] * up.floats[i] * siluDerivative(gate.floats[i]);
    call.results[1].floats[i] = gradient.floats[i] * silu(gate.floats[i]);
  }
  return success();
}

void interpreter::addLayerKernels(KernelTable &table) {
  table.add<tfm::LinearOp>(linear);
  table.add<tfm::LinearWeightGradOp>(linearWeightGrad);
  table.add<tfm::MatmulOp>(matmul);
  table.add<tfm::EmbeddingOp>(embedding);
  table.add<tfm::EmbeddingGradOp>(embeddingGrad);
  table.add<tfm::BiasAddOp>(biasAdd);
  table.add<tfm::ColumnSumOp>(columnSum);
  table.add<tfm::GeluOp>(geluForward);
  table.add<tfm::GeluGradOp>(geluBackward);
  table.add<tfm::SiluOp>(unary(silu));
  table.add<tfm::SiluGradOp>(binary([](double x, double dy) { return dy * siluDerivative(x); }));
  table.add<tfm::SwigluOp>(binary([](double gate, double up) { return silu(gate) * up; }));
  table.add<tfm::SwigluGradOp>(swigluBackward);
}
