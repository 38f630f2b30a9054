//===- MatrixOperators.cpp - products, reductions, softmax ----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Operators.h"

using namespace llvm;

namespace drover::onnx {
namespace {

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// x times a matrix of weights, as the parameter itself where it is one.
Value linear(NodeContext &n, const Value &x, const Value &matrix, bool inOut) {
  if (matrix.initializer && n.parameters.isParameter(matrix, Role::Linear)) {
    Value weight = n.parameters.get(n.node, matrix, Role::Linear, &inOut);
    return n.b.linear(x, weight, inOut);
  }
  return n.b.linear(x, n.plain(matrix), inOut);
}

void matmul(NodeContext &n) {
  Value x = n.in(0);
  const Value &y = n.in(1);
  if (n.b.failed())
    return;
  bool weights = y.initializer && y.rank() == 2 && (x.hidden || n.parameters.isParameter(y, Role::Other)) &&
                 n.parameters.isParameter(y, Role::Linear);
  x = n.plain(x);
  if (weights && x.rank() >= 1)
    return n.out(0, linear(n, x, y, /*inOut=*/true));
  Value rhs = n.plain(y);
  if (x.rank() == 0 || rhs.rank() == 0)
    return n.b.fail("a matrix product has a scalar operand");
  if (x.rank() > 2 && rhs.rank() == 2)
    return n.out(0, n.b.linear(x, rhs, /*inOut=*/true));
  // Vectors are matrices of one row or column for the time of the product.
  bool row = x.rank() == 1, column = rhs.rank() == 1;
  if (row)
    x = n.b.reshape(x, {Expr(1), x.shape[0]});
  if (column)
    rhs = n.b.reshape(rhs, {rhs.shape[0], Expr(1)});
  Value product = n.b.matmul(x, rhs);
  if (n.b.failed())
    return;
  Shape shape = product.shape;
  if (column)
    shape.pop_back();
  if (row)
    shape.erase(shape.end() - (column ? 1 : 2));
  n.out(0, n.b.reshape(product, shape));
}

Value scaled(NodeContext &n, const Value &x, double factor) {
  return factor == 1 ? x : n.b.mul(x, n.b.number(x, factor));
}

void gemm(NodeContext &n) {
  Value a = n.plain(0);
  const Value &b = n.in(1);
  if (n.b.failed())
    return;
  if (a.rank() != 2 || b.rank() != 2)
    return n.b.fail("expected matrices, not ranks " + Twine(a.rank()) + " and " + Twine(b.rank()));
  if (n.intAttr("transA", 0))
    a = n.b.transpose(a, {1, 0});
  Value product = scaled(n, linear(n, a, b, /*inOut=*/!n.intAttr("transB", 0)), n.floatAttr("alpha", 1));
  if (!n.has(2) || n.b.failed())
    return n.out(0, product);
  double beta = n.floatAttr("beta", 1);
  const Value &c = n.in(2);
  bool bias = c.initializer && c.rank() == 1 && c.shape[0] == product.shape[1] && beta == 1 &&
              n.parameters.isParameter(c, Role::Bias);
  if (bias)
    return n.out(0, n.b.biasAdd(product, n.parameters.get(n.node, c, Role::Bias)));
  n.out(0, n.b.add(product, scaled(n, n.plain(c), beta)));
}

/// com.microsoft: transposes of the last two dimensions and a factor.
void fusedMatMul(NodeContext &n) {
  if (n.intAttr("transBatchA", 0) || n.intAttr("transBatchB", 0))
    return n.unsupported("a product with transBatchA or transBatchB");
  bool transA = n.intAttr("transA", 0), transB = n.intAttr("transB", 0);
  Value x = n.plain(0);
  const Value &y = n.in(1);
  if (n.b.failed())
    return;
  Value product;
  if (y.initializer && y.rank() == 2 && !transA && n.parameters.isParameter(y, Role::Linear))
    product = linear(n, x, y, !transB);
  else
    product = n.b.matmul(x, n.plain(y), transA, transB);
  n.out(0, scaled(n, product, n.floatAttr("alpha", 1)));
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Axes are an attribute, an input from opset 13 (ReduceSum) or 18 (the others); both are read.
std::optional<std::vector<int64_t>> reducedAxes(NodeContext &n, const Value &x) {
  std::optional<std::vector<int64_t>> axes = n.axesFrom("axes", 1, x.rank());
  if (axes && axes->empty())
    axes.reset();
  if (!axes && !n.intAttr("noop_with_empty_axes", 0)) {
    axes.emplace();
    for (int64_t dim = 0; dim < x.rank(); ++dim)
      axes->push_back(dim);
  }
  return axes;
}

/// `before` is applied to the operand, `after` to the result.
template <tfm::ReduceKind kind, Value (*before)(NodeContext &, const Value &) = nullptr,
          Value (*after)(NodeContext &, const Value &) = nullptr>
void reduce(NodeContext &n) {
  Value x = n.plain(0);
  if (n.b.failed())
    return;
  std::optional<std::vector<int64_t>> axes = reducedAxes(n, x);
  if (n.b.failed() || !n.unsupportedWhy.empty())
    return;
  if constexpr (before != nullptr)
    x = before(n, x);
  if (axes)
    x = n.b.reduce(kind, x, *axes, n.intAttr("keepdims", 1));
  if constexpr (after != nullptr)
    x = after(n, x);
  n.out(0, x);
}

Value square(NodeContext &n, const Value &x) { return n.b.mul(x, x); }
Value absolute(NodeContext &n, const Value &x) { return n.b.unary(Unary::Abs, x); }
Value root(NodeContext &n, const Value &x) { return n.b.unary(Unary::Sqrt, x); }

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// Before opset 13 the dimensions from `axis` on are one.
template <bool isLog> void softmax(NodeContext &n) {
  Value x = n.plain(0);
  if (n.b.failed())
    return;
  if (x.rank() == 0)
    return n.b.fail("expected a tensor of rank 1 or more");
  bool flat = n.opset < 13;
  int64_t axis = n.axis(n.intAttr("axis", flat ? 1 : -1), x.rank());
  if (n.b.failed())
    return;
  Shape shape = x.shape;
  ArrayRef<Expr> sizes = shape;
  if (flat && axis + 1 != x.rank()) {
    x = n.b.reshape(x, {n.b.count(sizes.take_front(axis)), n.b.count(sizes.drop_front(axis))});
    axis = 1;
  }
  if (isLog) {
    // x - max - log(sum(exp(x - max))).
    Value shifted = n.b.sub(x, n.b.reduce(tfm::ReduceKind::Max, x, {axis}, true));
    Value sum = n.b.reduce(tfm::ReduceKind::Sum, n.b.unary(Unary::Exp, shifted), {axis}, true);
    x = n.b.sub(shifted, n.b.unary(Unary::Log, sum));
  } else {
    x = n.b.softmax(x, axis);
  }
  n.out(0, n.b.reshape(x, shape));
}

} // namespace

void addMatrixOperators(OperatorTable &table) {
  using tfm::ReduceKind;
  table.add("", "MatMul", matmul);
  table.add("", "Gemm", gemm);
  table.add(kMicrosoft, "FusedMatMul", fusedMatMul);
  table.add("", "ReduceSum", reduce<ReduceKind::Sum>);
  table.add("", "ReduceMean", reduce<ReduceKind::Mean>);
  table.add("", "ReduceMax", reduce<ReduceKind::Max>);
  table.add("", "ReduceMin", reduce<ReduceKind::Min>);
  table.add("", "ReduceProd", reduce<ReduceKind::Prod>);
  table.add("", "ReduceSumSquare", reduce<ReduceKind::Sum, square>);
  table.add("", "ReduceL1", reduce<ReduceKind::Sum, absolute>);
  table.add("", "ReduceL2", reduce<ReduceKind::Sum, square, root>);
  table.add("", "Softmax", softmax<false>);
  table.add("", "LogSoftmax", softmax<true>);
}

} // namespace drover::onnx
