//===- IndexOperators.cpp - gathers, scatters, triangles, scans -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Operators.h"

using namespace llvm;
using namespace mlir;

namespace drover::onnx {
namespace {

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

/// Indices are integers, and those that are known here lie in [-size, size); false after an error. Others are checked
/// where they are read.
bool checkIndices(NodeContext &n, const Value &indices, const Expr &size) {
  if (indices.type != ElemType::Int32 && indices.type != ElemType::Int64) {
    n.b.fail("indices are " + str(indices.type) + ", expected int32 or int64");
    return false;
  }
  std::optional<int64_t> bound = size.constant();
  if (!indices.known || !bound)
    return true;
  for (size_t i = 0; i < indices.known->ints.size(); ++i) {
    std::optional<int64_t> index = indices.known->ints[i].constant();
    if (!index || (*index >= -*bound && *index < *bound))
      continue;
    n.b.fail("index " + Twine(*index) + " is not in [" + Twine(-*bound) + ", " + Twine(*bound) + ")");
    return false;
  }
  return true;
}

void gather(NodeContext &n) {
  const Value &table = n.in(0);
  Value indices = n.plain(1);
  if (n.b.failed())
    return;
  int64_t axis = n.axis(n.intAttr("axis", 0), table.rank());
  if (n.b.failed() || !checkIndices(n, indices, table.shape[axis]))
    return;
  bool isTable = table.initializer && table.rank() == 2 && axis == 0 && isFloat(table.type) && !indices.known;
  if (isTable && n.parameters.isParameter(table, Role::Embedding)) {
    Value weight = n.parameters.get(n.node, table, Role::Embedding);
    Value ids = n.b.cast(indices, indices.type == ElemType::Int32 ? ElemType::Int32 : ElemType::Int64);
    Shape shape = ids.shape;
    shape.push_back(weight.shape[1]);
    mlir::Value i = n.b.materialize(ids), w = n.b.materialize(weight);
    if (n.b.failed())
      return;
    return n.out(0, n.b.wrap(tfm::EmbeddingOp::create(n.b.builder, n.b.location, n.b.tensorType(weight.type, shape), i,
                                                      w, mlir::Value()),
                             weight.type, shape, {&weight}));
  }
  n.out(0, n.b.gather(n.plain(table), indices, axis));
}

/// Indices with those below zero counted from the end.
Value nonNegative(NodeContext &n, const Value &indices, const Expr &size) {
  Value wide = n.b.cast(indices, ElemType::Int64);
  return n.b.select(n.b.compare(Compare::Less, wide, n.b.scalarInt(0)), n.b.add(wide, n.b.scalarInt(size)), wide);
}

/// The elements of `x` at flat places of any shape.
Value gatherFlat(NodeContext &n, const Value &x, const Value &places) {
  return n.b.gather(n.b.reshape(x, {n.b.count(x.shape)}), places, 0);
}

/// result[i, j, k] = x[i, index[i, j, k], k] for axis 1: as places in the flat tensor.
void gatherElements(NodeContext &n) {
  Value x = n.plain(0), indices = n.plain(1);
  if (n.b.failed())
    return;
  int64_t axis = n.axis(n.intAttr("axis", 0), x.rank());
  if (x.rank() != indices.rank() || n.b.failed())
    return n.b.fail("expected indices of rank " + Twine(x.rank()) + ", not " + Twine(indices.rank()));
  if (!checkIndices(n, indices, x.shape[axis]))
    return;
  Value places = n.b.scalarInt(0);
  for (int64_t dim = 0; dim < x.rank(); ++dim) {
    Value at = dim == axis ? nonNegative(n, indices, x.shape[dim]) : n.b.iota(ElemType::Int64, indices.shape, dim);
    places = n.b.add(n.b.mul(places, n.b.scalarInt(x.shape[dim])), at);
  }
  n.out(0, gatherFlat(n, x, places));
}

/// Tuples of indices, as places in the tensor with the indexed dimensions made one.
void gatherNd(NodeContext &n) {
  Value x = n.plain(0), indices = n.plain(1);
  int64_t batchDims = n.intAttr("batch_dims", 0);
  if (n.b.failed())
    return;
  std::optional<int64_t> tuple = indices.rank() ? indices.shape.back().constant() : std::nullopt;
  if (!tuple || batchDims < 0 || batchDims >= indices.rank() || batchDims + *tuple > x.rank())
    return n.b.fail("indices do not fit a tensor of rank " + Twine(x.rank()));
  Shape places(indices.shape.begin(), indices.shape.end() - 1);
  Value flat = n.b.scalarInt(0);
  for (int64_t dim = 0; dim < batchDims + *tuple; ++dim) {
    Value at;
    if (dim < batchDims) {
      at = n.b.iota(ElemType::Int64, places, dim);
    } else {
      Value part = n.b.sliceAxis(indices, indices.rank() - 1, dim - batchDims, dim - batchDims + 1);
      if (!checkIndices(n, part, x.shape[dim]))
        return;
      at = nonNegative(n, n.b.reshape(part, places), x.shape[dim]);
    }
    flat = n.b.add(n.b.mul(flat, n.b.scalarInt(x.shape[dim])), at);
    if (n.b.failed())
      return;
  }
  ArrayRef<Expr> sizes = x.shape;
  Shape merged = {n.b.count(sizes.take_front(batchDims + *tuple))};
  merged.append(sizes.begin() + batchDims + *tuple, sizes.end());
  n.out(0, n.b.gather(n.b.reshape(x, merged), n.b.broadcast(flat, places), 0));
}

void scatterNd(NodeContext &n) {
  Value x = n.plain(0), indices = n.plain(1), updates = n.plain(2);
  if (n.b.failed())
    return;
  if (n.stringAttr("reduction", "none") != "none")
    return n.unsupported("a scatter with reduction '" + n.stringAttr("reduction", "") + "'");
  std::optional<int64_t> tuple = indices.rank() ? indices.shape.back().constant() : std::nullopt;
  if (!tuple || *tuple > x.rank() || updates.type != x.type)
    return n.b.fail("indices and updates do not fit a tensor of rank " + Twine(x.rank()));
  for (int64_t dim = 0; indices.known && dim < *tuple; ++dim)
    if (!checkIndices(n, n.b.sliceAxis(indices, indices.rank() - 1, dim, dim + 1), x.shape[dim]))
      return;
  // Every place in order is a copy: exporters write slice assignments so.
  Shape expected(indices.shape.begin(), indices.shape.end() - 1);
  expected.append(x.shape.begin() + *tuple, x.shape.end());
  if (expected.size() != updates.shape.size())
    return n.b.fail("expected updates of rank " + Twine(expected.size()) + ", not " + Twine(updates.rank()));
  for (auto [want, have] : zip(expected, updates.shape))
    n.b.unify(want, have);
  n.out(0, n.b.scatterNd(x, indices, updates));
}

//===----------------------------------------------------------------------===//
// Triangles, scans, maxima
//===----------------------------------------------------------------------===//

void trilu(NodeContext &n) {
  Value x = n.plain(0);
  if (n.b.failed())
    return;
  if (x.rank() < 2)
    return n.b.fail("expected a matrix, not rank " + Twine(x.rank()));
  Expr k = 0;
  if (n.has(1)) {
    std::vector<Expr> given = n.exprs(1, "the diagonal");
    if (given.size() != 1)
      return;
    k = given.front();
  }
  ArrayRef<Expr> sizes = ArrayRef<Expr>(x.shape).take_back(2);
  Value row = n.b.iota(ElemType::Int64, sizes, 0), column = n.b.iota(ElemType::Int64, sizes, 1);
  Value diagonal = n.b.add(row, n.b.scalarInt(k));
  // upper keeps column >= row + k, lower column <= row + k.
  Value keep = n.intAttr("upper", 1) ? n.b.compare(Compare::LessOrEqual, diagonal, column)
                                     : n.b.compare(Compare::LessOrEqual, column, diagonal);
  n.out(0, n.b.select(keep, x, n.b.number(x, 0)));
}

/// A prefix sum as a masked sum over pairs: it only occurs in mask and position arithmetic, which is
/// evaluated away later.
void cumSum(NodeContext &n) {
  Value x = n.plain(0);
  std::vector<int64_t> given = n.constants(1, "the axis");
  if (n.b.failed() || given.size() != 1 || x.rank() == 0)
    return;
  int64_t axis = n.axis(given.front(), x.rank());
  bool exclusive = n.intAttr("exclusive", 0), reverse = n.intAttr("reverse", 0);
  Expr size = x.shape[axis];
  // [.., S, ..] -> [.., S (result), S (summand), ..].
  Shape source = x.shape, pairs = x.shape;
  source.insert(source.begin() + axis, Expr(1));
  pairs.insert(pairs.begin() + axis, size);
  Value result = n.b.iota(ElemType::Int64, {size, size}, 0), summand = n.b.iota(ElemType::Int64, {size, size}, 1);
  Compare kind = exclusive ? Compare::Less : Compare::LessOrEqual;
  Value keep = reverse ? n.b.compare(kind, result, summand) : n.b.compare(kind, summand, result);
  Shape maskShape = {size, size};
  for (int64_t dim = axis + 1; dim < x.rank(); ++dim)
    maskShape.push_back(1);
  Value wide = n.b.broadcast(n.b.reshape(x, source), pairs);
  Value masked = n.b.select(n.b.reshape(keep, maskShape), wide, n.b.number(x, 0));
  n.out(0, n.b.reduce(tfm::ReduceKind::Sum, masked, {axis + 1}, false));
}

/// The first place of the largest element: the least index among those that equal the maximum.
template <bool isMax> void argExtreme(NodeContext &n) {
  Value x = n.plain(0);
  if (n.b.failed() || x.rank() == 0)
    return;
  int64_t axis = n.axis(n.intAttr("axis", 0), x.rank());
  if (n.intAttr("select_last_index", 0))
    return n.unsupported("select_last_index");
  Value best = n.b.reduce(isMax ? tfm::ReduceKind::Max : tfm::ReduceKind::Min, x, {axis}, true);
  Value index = n.b.iota(ElemType::Int64, x.shape, axis);
  Value candidate = n.b.select(n.b.compare(Compare::Equal, x, best), index, n.b.scalarInt(x.shape[axis]));
  n.out(0, n.b.reduce(tfm::ReduceKind::Min, candidate, {axis}, n.intAttr("keepdims", 1)));
}

} // namespace

void addIndexOperators(OperatorTable &table) {
  table.add("", "Gather", gather);
  table.add("", "GatherElements", gatherElements);
  table.add("", "GatherND", gatherNd);
  table.add("", "ScatterND", scatterNd);
  table.add("", "Trilu", trilu);
  table.add("", "CumSum", cumSum);
  table.add("", "ArgMax", argExtreme<true>);
  table.add("", "ArgMin", argExtreme<false>);
}

} // namespace drover::onnx
