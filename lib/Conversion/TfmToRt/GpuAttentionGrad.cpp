//===- GpuAttentionGrad.cpp - attention, backward ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Probabilities are rebuilt from the log-sum-exp (Dao et al., "FlashAttention", 2022, algorithm 4):
//   P = exp(S - lse), dV = P^T dO, dS = P * (dO V^T - delta), dQ = dS K, dK = dS^T Q, delta = rowsum(dO * O).
// One kernel walks the keys of a tile of queries, and makes delta and dQ; a second one walks the queries of a tile of
// keys, of all heads that share them, and makes dK and dV: 7/5 of the products of one pass, and no sum by atomics.
//===----------------------------------------------------------------------===//
#include "GpuAttention.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

static constexpr double kLog2E = 1.4426950408889634;
static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {
/// Operands that only the backward has.
struct GradientOperands {
  AttentionRows result, gradient, queryGrad, keyGrad, valueGrad;
  Value delta; // the workspace's
};

class AttentionBackward : protected AttentionKernel {
public:
  AttentionBackward(BodyEmitter &emitter, const AttentionProblem &problem, const GradientOperands &operands)
      : AttentionKernel(emitter, problem), o(operands), deltas(k.argument(operands.delta)) {}

protected:
  /// The log-sum-exp of a query times log2(e), +inf where it saw no key or is none.
  Value baseOf(Value head, Value query);
  /// Scores to probabilities, and gradients of probabilities to those of <q, k> over the scale.
  void differentiate(Fragment &scores, Fragment &gradients, const Pairs &pairs, ArrayRef<Value> bases,
                     ArrayRef<Value> rowDeltas);

  const GradientOperands &o;
  Value deltas;
};

class QueryGradient final : AttentionBackward {
public:
  using AttentionBackward::AttentionBackward;
  void emit();

private:
  Value deltaOf(Value row);
};

class KeyGradient final : AttentionBackward {
public:
  using AttentionBackward::AttentionBackward;
  void emit();
};
} // namespace

Value AttentionBackward::baseOf(Value head, Value query) {
  View view = p.views.of(p.logSumExp);
  Value there = clamped(query, p.sizes.queries, std::max(kRows, tileRows()));
  Value at = k.add(k.index(view.offset), statistic(head, there));
  Value sum = k.load(k.buffer(view.root), at, k.b.getF32Type());
  Value isNone = isMinusInfinity(sum);
  if (p.sizes.queries % std::max(kRows, tileRows()) != 0)
    isNone = arith::OrIOp::create(
        k.b, isNone, arith::CmpIOp::create(k.b, arith::CmpIPredicate::uge, query, k.index(p.sizes.queries)));
  return arith::SelectOp::create(k.b, isNone, real(kInfinity), times(sum, real(kLog2E)));
}

void AttentionBackward::differentiate(Fragment &scores, Fragment &gradients, const Pairs &pairs, ArrayRef<Value> bases,
                                      ArrayRef<Value> rowDeltas) {
  Fragment caps;
  score(scores, pairs, &caps);
  for (size_t i = 0; i < scores.size(); ++i) {
    size_t query = pairs.rowsAreKeys ? i / 4 * 2 + i % 2 : i / 2 % 2;
    scores[i] = k.exp2(minus(scores[i], bases[query]));
    gradients[i] = times(scores[i], minus(gradients[i], rowDeltas[query]));
    if (!caps.empty())
      gradients[i] = times(gradients[i], minus(real(1.0), times(caps[i], caps[i])));
  }
}

//===----------------------------------------------------------------------===//
// Of queries
//===----------------------------------------------------------------------===//

/// The sum of gradient * result of a row, by the four threads that have it; the first of them keeps it for the keys.
Value QueryGradient::deltaOf(Value row) {
  int64_t width = std::min(o.result.aligned(), o.gradient.aligned());
  Value there = clamped(row, p.sizes.queries, kRows);
  auto startOf = [&](const AttentionRows &rows) {
    Value at = k.add(k.index(rows.view.offset), k.scale(head, rows.headSize));
    at = k.add(at, k.scale(batch, rows.length() * rows.stride()));
    return k.add(at, k.scale(there, rows.stride()));
  };
  Value left = startOf(o.result), right = startOf(o.gradient);
  auto load = [&](const AttentionRows &rows, Value at) {
    return k.load(k.buffer(rows.view.root), at, rows.element, width, 1, width);
  };
  Value sum = k.loop(k.scale(tiles.member, width), k.index(o.result.headSize), 4 * width, real(0.0),
                     [&](Value column, ValueRange carried) -> SmallVector<Value> {
                       Value x = load(o.result, k.add(left, column)), y = load(o.gradient, k.add(right, column));
                       Value part = k.horizontal(arith::MulFOp::create(k.b, x, y), RowReduction::Sum);
                       return {arith::AddFOp::create(k.b, carried[0], part)};
                     })[0];
  sum = tiles.reduceRow(sum, RowReduction::Sum);
  k.when(leadsQuery(row), [&] { k.store(sum, deltas, statistic(head, row), k.b.getF32Type()); });
  return sum;
}

void QueryGradient::emit() {
  placeBlock(p.sizes.queries, p.sizes.heads, p.causal != tfm::CausalKind::None);
  Value kvHead = arith::DivUIOp::create(k.b, head, k.index(p.group()));
  SharedTile queryTile = tileOf(p.query, kRows), gradientTile = tileOf(o.gradient, kRows);
  SharedTile keyTile = tileOf(p.key, tileRows(), 2), valueTile = tileOf(p.value, tileRows(), 2);
  startCopy(queryTile, p.query, head, first);
  startCopy(gradientTile, o.gradient, head, first);
  auto [from, count] = keysOf(first);
  auto keyOf = [&, from = from](Value step) { return k.add(from, k.scale(step, tileRows())); };
  SmallVector<Query> queries;
  SmallVector<Value> bases, rowDeltas;
  for (Value row : ownRows()) {
    queries.push_back(queryAt(row));
    bases.push_back(baseOf(head, row));
    rowDeltas.push_back(deltaOf(row));
  }
  auto start = [&](Value step, Value stage) {
    startCopy(tiles.stage(keyTile, stage), p.key, kvHead, keyOf(step));
    startCopy(tiles.stage(valueTile, stage), p.value, kvHead, keyOf(step));
  };
  auto compute = [&](Value step, Value stage, ValueRange carried) {
    Fragment sums = llvm::to_vector(carried);
    SharedTile ownKeys = tiles.stage(keyTile, stage);
    Fragment scores = tiles.multiplyTransposed(queryTile, ownKeys);
    Fragment gradients = tiles.multiplyTransposed(gradientTile, tiles.stage(valueTile, stage));
    SmallVector<Key> keys;
    for (Value column : ownColumns(keyOf(step)))
      keys.push_back(keyAt(column, head));
    differentiate(scores, gradients, {queries, keys, first, keyOf(step), head}, bases, rowDeltas);
    tiles.addProducts({{sums, gradients, ownKeys}});
    return sums;
  };
  auto tileOf = [&, from = from](Value step) { return k.add(numberOfTile(from), step); };
  Meeting meeting = {p.queryDocuments, p.keyDocuments, p.sizes.queries, p.sizes.keys, tileOf};
  Fragment sums = walk(count, noSums(p.query), meeting, start, compute);
  storeRows(sums, {real(p.scale), real(p.scale)}, o.queryGrad, head);
  launch(p.sizes.queries, p.sizes.heads);
}

//===----------------------------------------------------------------------===//
// Of keys and values
//===----------------------------------------------------------------------===//

void KeyGradient::emit() {
  placeBlock(p.sizes.keys, p.sizes.kv_heads, /*lastFirst=*/false);
  SharedTile keyTile = tileOf(p.key, kRows), valueTile = tileOf(p.value, kRows);
  SharedTile queryTile = tileOf(p.query, tileRows(), 2), gradientTile = tileOf(o.gradient, tileRows(), 2);
  startCopy(keyTile, p.key, head, first);
  startCopy(valueTile, p.value, head, first);
  // All tiles of one head, then of the next.
  auto [from, perHead] = queriesOf(first);
  Value firstHead = k.scale(head, p.group());
  auto headOf = [&, perHead = perHead](Value step) {
    return k.add(firstHead, arith::DivUIOp::create(k.b, step, perHead));
  };
  auto queryOf = [&, from = from, perHead = perHead](Value step) {
    return k.add(from, k.scale(arith::RemUIOp::create(k.b, step, perHead), tileRows()));
  };
  auto start = [&](Value step, Value stage) {
    startCopy(tiles.stage(queryTile, stage), p.query, headOf(step), queryOf(step));
    startCopy(tiles.stage(gradientTile, stage), o.gradient, headOf(step), queryOf(step));
  };
  SmallVector<Key> keys;
  for (Value row : ownRows())
    keys.push_back(keyAt(row, firstHead));
  SmallVector<Value> initial = noSums(p.key);
  size_t numKeySums = initial.size();
  initial.append(noSums(p.value));
  auto compute = [&](Value step, Value stage, ValueRange carried) {
    Fragment keySums = llvm::to_vector(carried.take_front(numKeySums));
    Fragment valueSums = llvm::to_vector(carried.drop_front(numKeySums));
    SharedTile ownQueries = tiles.stage(queryTile, stage), ownGradients = tiles.stage(gradientTile, stage);
    Fragment scores = tiles.multiplyTransposed(keyTile, ownQueries);
    Fragment gradients = tiles.multiplyTransposed(valueTile, ownGradients);
    Value queryHead = headOf(step), firstQuery = queryOf(step);
    for (Key &key : keys)
      key.bias = biasOf(key.number, queryHead);
    SmallVector<Query> queries;
    SmallVector<Value> bases, rowDeltas;
    for (Value column : ownColumns(firstQuery)) {
      queries.push_back(queryAt(column));
      bases.push_back(baseOf(queryHead, column));
      Value there = clamped(column, p.sizes.queries, std::max(kRows, tileRows()));
      rowDeltas.push_back(k.load(deltas, statistic(queryHead, there), k.b.getF32Type()));
    }
    differentiate(scores, gradients, {queries, keys, firstQuery, first, queryHead, true}, bases, rowDeltas);
    tiles.addProducts({{valueSums, scores, ownGradients}, {keySums, gradients, ownQueries}});
    return llvm::to_vector(llvm::concat<const Value>(keySums, valueSums));
  };
  auto tileOf = [&, from = from, perHead = perHead](Value step) {
    Value divisor = arith::MaxUIOp::create(k.b, perHead, k.index(1)); // asked for a step where there may be none
    return k.add(numberOfTile(from), arith::RemUIOp::create(k.b, step, divisor));
  };
  Meeting meeting = {p.keyDocuments, p.queryDocuments, p.sizes.keys, p.sizes.queries, tileOf};
  SmallVector<Value> sums = walk(k.scale(perHead, p.group()), initial, meeting, start, compute);
  Fragment keySums(ArrayRef(sums).take_front(numKeySums)), valueSums(ArrayRef(sums).drop_front(numKeySums));
  storeRows(keySums, {real(p.scale), real(p.scale)}, o.keyGrad, head);
  storeRows(valueSums, {real(1.0), real(1.0)}, o.valueGrad, head);
  launch(p.sizes.keys, p.sizes.kv_heads);
}

void lower::emitGpuAttentionGrad(BodyEmitter &emitter, const Views &views, tfm::AttentionGradOp op) {
  AttentionProblem problem(views, op);
  emitTileDocuments(emitter, problem, 1);
  int64_t headSize = problem.sizes.head_size, valueHeadSize = problem.sizes.value_head_size;
  GradientOperands operands = {
      problem.rows(op.getResult(), valueHeadSize),    problem.rows(op.getGradient(), valueHeadSize),
      problem.rows(op.getQueryGrad(), headSize),      problem.rows(op.getKeyGrad(), headSize),
      problem.rows(op.getValueGrad(), valueHeadSize), emitter.scratch(0)};
  emitter.unitName = "attention_query_grad";
  QueryGradient(emitter, problem, operands).emit();
  emitter.unitName = "attention_key_grad";
  KeyGradient(emitter, problem, operands).emit();
}
