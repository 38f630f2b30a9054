//===- GpuAttentionForward.cpp - attention, forward -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A running maximum and sum (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018), to the base 2.
//===----------------------------------------------------------------------===//
#include "GpuAttention.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

static constexpr double kLn2 = 0.6931471805599453;
static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {
class AttentionForward final : AttentionKernel {
public:
  AttentionForward(BodyEmitter &emitter, const AttentionProblem &problem, const AttentionRows &result)
      : AttentionKernel(emitter, problem), result(result) {}
  void emit();

private:
  /// What a thread carries from tile to tile: sums over the values, then maxima and its part of the totals by row.
  struct State {
    explicit State(ValueRange all)
        : sums(all.drop_back(4)), maxima(all.drop_back(2).take_back(2)), totals(all.take_back(2)) {}
    SmallVector<Value> all() const { return llvm::to_vector(llvm::concat<const Value>(sums, maxima, totals)); }
    Fragment sums;
    SmallVector<Value> maxima, totals;
  };
  void addTile(State &state, Fragment &scores);
  void finish(const State &state);

  const AttentionRows &result;
};
} // namespace

/// Scores become probabilities, relative to the new maxima.
void AttentionForward::addTile(State &state, Fragment &scores) {
  SmallVector<Value> maxima = state.maxima;
  for (auto [half, maximum] : llvm::enumerate(maxima)) {
    for (size_t i = 2 * half; i < scores.size(); i += 4)
      for (size_t j : {0, 1})
        maximum = k.combine(maximum, scores[i + j], RowReduction::Max);
    maximum = tiles.reduceRow(maximum, RowReduction::Max);
  }
  tiles.reduceOverParts(maxima, RowReduction::Max);
  for (auto [half, maximum] : llvm::enumerate(maxima)) {
    // Where nothing has taken part yet, all are exp2(-inf - 0).
    Value base = arith::SelectOp::create(k.b, isMinusInfinity(maximum), real(0.0), maximum);
    Value factor = k.exp2(minus(state.maxima[half], base)), total = times(state.totals[half], factor);
    for (size_t i = 2 * half; i < scores.size(); i += 4)
      for (size_t j : {0, 1}) {
        scores[i + j] = k.exp2(minus(scores[i + j], base));
        total = arith::AddFOp::create(k.b, total, scores[i + j]);
      }
    for (size_t i = 2 * half; i < state.sums.size(); i += 4)
      for (size_t j : {0, 1})
        state.sums[i + j] = times(state.sums[i + j], factor);
    state.totals[half] = total;
  }
  state.maxima = maxima;
}

void AttentionForward::finish(const State &state) {
  SmallVector<Value> factors;
  View statistics = p.views.of(p.logSumExp);
  SmallVector<Value> totals;
  for (Value total : state.totals)
    totals.push_back(tiles.reduceRow(total, RowReduction::Sum));
  tiles.reduceOverParts(totals, RowReduction::Sum);
  for (auto [half, row] : llvm::enumerate(ownRows())) {
    Value total = totals[half];
    Value isEmpty = arith::CmpFOp::create(k.b, arith::CmpFPredicate::OEQ, total, real(0.0));
    factors.push_back(arith::SelectOp::create(k.b, isEmpty, real(0.0), arith::DivFOp::create(k.b, real(1.0), total)));
    Value logarithm = math::LogOp::create(k.b, arith::SelectOp::create(k.b, isEmpty, real(1.0), total));
    Value sum = arith::AddFOp::create(k.b, times(state.maxima[half], real(kLn2)), logarithm);
    sum = arith::SelectOp::create(k.b, isEmpty, real(-kInfinity), sum);
    k.when(leadsQuery(row), [&, row = row] {
      Value at = k.add(k.index(statistics.offset), statistic(head, row));
      k.store(sum, k.buffer(statistics.root), at, k.b.getF32Type());
    });
  }
  storeRows(state.sums, factors, result, head);
}

void AttentionForward::emit() {
  placeBlock(p.sizes.queries, p.sizes.heads, p.causal != tfm::CausalKind::None);
  Value kvHead = arith::DivUIOp::create(k.b, head, k.index(p.group()));
  SharedTile queryTile = tileOf(p.query, kRows);
  SharedTile keyTile = tileOf(p.key, tileRows(), 2), valueTile = tileOf(p.value, tileRows(), 2);
  auto [from, count] = keysOf(first);
  auto keyOf = [&, from = from](Value step) { return k.add(from, k.scale(step, tileRows())); };
  SmallVector<Query> queries;
  for (Value row : ownRows())
    queries.push_back(queryAt(row));
  Value none = real(-kInfinity), zero = real(0.0);
  SmallVector<Value> initial = noSums(p.value);
  initial.append({none, none, zero, zero});
  startCopy(queryTile, p.query, head, first);
  auto start = [&](Value step, Value stage) {
    startCopy(tiles.stage(keyTile, stage), p.key, kvHead, keyOf(step));
    startCopy(tiles.stage(valueTile, stage), p.value, kvHead, keyOf(step));
  };
  auto compute = [&](Value step, Value stage, ValueRange carried) {
    State state(carried);
    Fragment scores = tiles.multiplyTransposed(queryTile, tiles.stage(keyTile, stage));
    SmallVector<Key> keys;
    for (Value column : ownColumns(keyOf(step)))
      keys.push_back(keyAt(column, head));
    score(scores, {queries, keys, first, keyOf(step), head});
    addTile(state, scores);
    tiles.addProducts({{state.sums, scores, tiles.stage(valueTile, stage)}});
    return state.all();
  };
  auto tileOf = [&, from = from](Value step) { return k.add(numberOfTile(from), step); };
  Meeting meeting = {p.queryDocuments, p.keyDocuments, p.sizes.queries, p.sizes.keys, tileOf};
  finish(State(walk(count, initial, meeting, start, compute)));
  launch(p.sizes.queries, p.sizes.heads);
}

void lower::emitGpuAttention(BodyEmitter &emitter, const Views &views, tfm::AttentionOp op) {
  AttentionProblem problem(views, op);
  emitTileDocuments(emitter, problem, 0);
  AttentionRows result = problem.rows(op.getResult(), problem.sizes.value_head_size);
  AttentionForward(emitter, problem, result).emit();
}
