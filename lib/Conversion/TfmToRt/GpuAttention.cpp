//===- GpuAttention.cpp - what attention's kernels share --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GpuAttention.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace drover;
using namespace drover::lower;

static constexpr double kLog2E = 1.4426950408889634;
static constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t AttentionRows::aligned() const {
  int64_t common = std::gcd(std::gcd(headSize, stride()), view.offset), width = 1;
  while (2 * width * bytesOf(element) <= 16 && common % (2 * width) == 0)
    width *= 2;
  return width;
}

AttentionRows AttentionProblem::rows(Value value, int64_t headSize) const {
  return {*attentionRows(views.of(value)), elementTypeOf(value), headSize};
}

template <typename Op> static void markWarpgroup(Op op) {
  // Below a tile of either side most of a product is padding.
  constexpr int64_t leastRows = 64;
  drover_attention sizes = attentionSizes(op);
  auto isSize = [](int64_t size) { return size == 64 || size == 128; };
  if (elementTypeOf(op.getQuery()).isBF16() && isSize(sizes.head_size) && isSize(sizes.value_head_size) &&
      sizes.queries >= leastRows && sizes.keys >= leastRows)
    op->setAttr(kWarpgroupAttr, UnitAttr::get(op.getContext()));
}

void lower::markWarpgroupAttention(Operation *body) {
  body->walk([](tfm::AttentionOp op) { markWarpgroup(op); });
  body->walk([](tfm::AttentionGradOp op) { markWarpgroup(op); });
}

AttentionKernel::AttentionKernel(BodyEmitter &emitter, const AttentionProblem &problem)
    : p(problem), k(emitter), tiles(k, problem.query.element, kWarps, problem.parts(), problem.warpgroup) {
  if (p.warpgroup)
    k.setOnlyForHopper();
  k.setResidentBlocks(2 / p.parts()); // with all registers that a thread may have
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

static int64_t ceilDiv(int64_t a, int64_t x) { return (a + x - 1) / x; }

void AttentionKernel::launch(int64_t length, int64_t heads) {
  k.launchBlocks(ceilDiv(length, kRows) * p.sizes.batch * heads, kWarps * p.parts() * GpuKernel::kWarp);
}

void AttentionKernel::placeBlock(int64_t length, int64_t heads, bool lastFirst) {
  int64_t slices = p.sizes.batch * heads, numTiles = ceilDiv(length, kRows);
  Value tile = arith::DivUIOp::create(k.b, k.block(), k.index(slices));
  Value slice = arith::RemUIOp::create(k.b, k.block(), k.index(slices));
  if (lastFirst)
    tile = arith::SubIOp::create(k.b, k.index(numTiles - 1), tile);
  first = k.scale(tile, kRows);
  batch = arith::DivUIOp::create(k.b, slice, k.index(heads));
  head = arith::RemUIOp::create(k.b, slice, k.index(heads));
}

/// `number`, or the last below `size` in its place where steps of `step` may go beyond.
Value AttentionKernel::clamped(Value number, int64_t size, int64_t step) {
  return size % step == 0 ? number : arith::MinUIOp::create(k.b, number, k.index(size - 1)).getResult();
}

void AttentionKernel::startCopy(const SharedTile &tile, const AttentionRows &rows, Value head, Value row) {
  GpuTiles::Source source = {k.buffer(rows.view.root), rows.headSize, rows.aligned()};
  Value start = k.add(k.index(rows.view.offset), k.scale(head, rows.headSize));
  start = k.add(start, k.scale(batch, rows.length() * rows.stride()));
  tiles.startCopy(tile, source, row, k.index(rows.length()),
                  [&](Value from) { return k.add(start, k.scale(from, rows.stride())); });
}

SmallVector<Value> AttentionKernel::walk(Value count, ValueRange carried, const Meeting &meeting, Start start,
                                         Compute compute) {
  auto nextFrom = stepsOf(count, meeting);
  auto startAt = [&](Value step, Value stage) { k.when(k.lessThan(step, count), [&] { start(step, stage); }); };
  Value zero = k.index(0), one = k.index(1);
  SmallVector<Value> initial = {nextFrom(zero), zero};
  startAt(initial[0], zero);
  tiles.commitCopies();
  llvm::append_range(initial, carried);
  auto goesOn = [&](OpBuilder &, Location, ValueRange values) {
    scf::ConditionOp::create(k.b, k.lessThan(values[0], count), values);
  };
  auto turn = [&](OpBuilder &, Location, ValueRange values) {
    tiles.finishCopies();
    k.barrier(); // what was copied is there for all, and all are done with the tile before it
    Value step = values[0], stage = values[1], other = arith::SubIOp::create(k.b, one, stage);
    SmallVector<Value> next = {nextFrom(k.add(step, one)), other};
    startAt(next[0], other);
    tiles.commitCopies();
    llvm::append_range(next, compute(step, stage, values.drop_front(2)));
    scf::YieldOp::create(k.b, next);
  };
  auto loop = scf::WhileOp::create(k.b, ValueRange(initial).getTypes(), initial, goesOn, turn);
  tiles.finishCopies();
  return SmallVector<Value>(loop.getResults().drop_front(2));
}

//===----------------------------------------------------------------------===//
// Which tiles meet
//===----------------------------------------------------------------------===//

/// A signed number as one from 0 to `high`.
Value AttentionKernel::limit(Value value, int64_t high) {
  value = arith::MaxSIOp::create(k.b, value, k.index(0));
  return arith::MinSIOp::create(k.b, value, k.index(high));
}

/// Tiles that cover [begin, end).
std::pair<Value, Value> AttentionKernel::tilesOf(Value begin, Value end) {
  Value size = k.index(tileRows());
  Value from = arith::MulIOp::create(k.b, arith::DivUIOp::create(k.b, begin, size), size);
  Value length = arith::SubIOp::create(k.b, arith::MaxSIOp::create(k.b, from, end), from);
  return {from, arith::DivUIOp::create(k.b, k.add(length, k.index(tileRows() - 1)), size)};
}

std::pair<Value, Value> AttentionKernel::keysOf(Value firstQuery) {
  int64_t keys = p.sizes.keys;
  Value begin = k.index(0), end = k.index(keys);
  if (p.queryIndex)
    return tilesOf(begin, end);
  Value position = k.add(firstQuery, k.index(p.shift())), last = k.add(position, k.index(kRows - 1));
  if (p.causal != tfm::CausalKind::None)
    end = limit(k.add(last, k.index(1)), keys);
  if (p.window > 0) {
    begin = limit(k.add(position, k.index(1 - p.window)), keys);
    end = arith::MinSIOp::create(k.b, end, limit(k.add(last, k.index(p.window)), keys));
  }
  return tilesOf(begin, end);
}

std::pair<Value, Value> AttentionKernel::queriesOf(Value firstKey) {
  int64_t queries = p.sizes.queries;
  Value begin = k.index(0), end = k.index(queries);
  if (p.queryIndex)
    return tilesOf(begin, end);
  // The query whose place is that of the first key, of the last one.
  Value query = k.add(firstKey, k.index(-p.shift())), last = k.add(query, k.index(kRows - 1));
  if (p.causal != tfm::CausalKind::None)
    begin = limit(query, queries);
  if (p.window > 0) {
    begin = arith::MaxSIOp::create(k.b, begin, limit(k.add(query, k.index(1 - p.window)), queries));
    end = limit(k.add(last, k.index(p.window)), queries);
  }
  return tilesOf(begin, end);
}

//===----------------------------------------------------------------------===//
// Which pairs take part
//===----------------------------------------------------------------------===//

SmallVector<Value> AttentionKernel::ownRows() {
  Value row = k.add(first, k.add(tiles.firstRow, tiles.group));
  return {row, k.add(row, k.index(8))};
}

SmallVector<Value> AttentionKernel::ownColumns(Value start) {
  SmallVector<Value> columns;
  int64_t count = tileRows() / p.parts();
  Value own = k.add(start, k.add(k.scale(tiles.part, count), k.scale(tiles.member, 2)));
  for (int64_t i = 0; i < count; i += 8)
    for (int64_t j : {0, 1})
      columns.push_back(k.add(own, k.index(i + j)));
  return columns;
}

Value lower::idPosition(KernelBuilder &k, const View &view, Value batch, Value i) {
  Value at = k.add(k.index(view.offset), i);
  return view.shape[0] == 1 ? at : k.add(at, k.scale(batch, view.strides[0]));
}

AttentionKernel::Query AttentionKernel::queryAt(Value number) {
  Query query;
  query.number = number;
  Value there = clamped(number, p.sizes.queries, std::max(kRows, tileRows()));
  if (p.queryIndex) {
    View view = p.views.of(p.queryIndex);
    Value place = k.load(k.buffer(view.root), k.add(k.index(view.offset), there), elementTypeOf(p.queryIndex));
    query.position = k.position(place, p.sizes.keys, /*fromEnd=*/false, "attention");
  } else {
    query.position = k.add(number, k.index(p.shift()));
  }
  if (p.documents) {
    View view = p.views.of(p.documents);
    Value at = idPosition(k, view, batch, p.queryIndex ? query.position : there);
    query.document = k.load(k.buffer(view.root), at, elementTypeOf(p.documents));
  }
  return query;
}

AttentionKernel::Key AttentionKernel::keyAt(Value number, Value head) {
  Key key;
  key.number = number;
  Value there = clamped(number, p.sizes.keys, std::max(kRows, tileRows()));
  if (p.documents) {
    View view = p.views.of(p.documents);
    key.document = k.load(k.buffer(view.root), idPosition(k, view, batch, there), elementTypeOf(p.documents));
  }
  if (p.keyMask) {
    View view = p.views.of(p.keyMask);
    Type type = elementTypeOf(p.keyMask);
    Value at = k.add(k.index(view.offset), k.scale(there, view.strides[1]));
    if (view.shape[0] != 1)
      at = k.add(at, k.scale(batch, view.strides[0]));
    Value value = k.load(k.buffer(view.root), at, type);
    Value zero = k.constant(value.getType(), 0);
    if (type.isInteger(1))
      key.takesPart = value;
    else if (isa<FloatType>(type))
      key.takesPart = arith::CmpFOp::create(k.b, arith::CmpFPredicate::UNE, value, zero);
    else
      key.takesPart = arith::CmpIOp::create(k.b, arith::CmpIPredicate::ne, value, zero);
  }
  key.bias = biasOf(number, head);
  return key;
}

/// What a head adds to all scores of a key, null where that is nothing.
Value AttentionKernel::biasOf(Value key, Value head) {
  if (p.slopes.empty())
    return {};
  Type f32 = k.b.getF32Type();
  Value slope = times(k.load(k.table(p.slopes), head, f32), real(kLog2E));
  return times(slope, arith::UIToFPOp::create(k.b, f32, key));
}

/// Whether the pair takes part as far as positions, documents and masks say, null where they say nothing; a mask of
/// floats is added to the score.
Value AttentionKernel::takesPart(const Query &query, const Key &key, Value head, bool checksEnd, Value &score) {
  Value all;
  auto also = [&](Value condition) { all = all ? arith::AndIOp::create(k.b, all, condition).getResult() : condition; };
  auto less = [&](Value a, Value x) { also(arith::CmpIOp::create(k.b, arith::CmpIPredicate::slt, a, x)); };
  if (checksEnd)
    less(key.number, k.index(p.sizes.keys));
  if (p.causal != tfm::CausalKind::None)
    less(key.number, k.add(query.position, k.index(1)));
  if (p.window > 0) {
    less(k.add(query.position, k.index(-p.window)), key.number);
    less(key.number, k.add(query.position, k.index(p.window)));
  }
  if (p.documents)
    also(arith::CmpIOp::create(k.b, arith::CmpIPredicate::eq, query.document, key.document));
  if (p.keyMask)
    also(key.takesPart);
  if (p.mask) {
    View view = p.views.of(p.mask);
    Value at = k.index(view.offset);
    Value places[] = {batch, head, clamped(query.number, p.sizes.queries, std::max(kRows, tileRows())),
                      clamped(key.number, p.sizes.keys, std::max(kRows, tileRows()))};
    for (auto [place, size, stride] : llvm::zip(places, view.shape, view.strides))
      if (size != 1 && stride != 0)
        at = k.add(at, k.scale(place, stride));
    Type type = elementTypeOf(p.mask);
    Value value = k.load(k.buffer(view.root), at, type);
    if (type.isInteger(1)) {
      also(value);
    } else {
      if (type.isF64())
        value = arith::TruncFOp::create(k.b, k.b.getF32Type(), value);
      score = arith::AddFOp::create(k.b, score, times(value, real(kLog2E)));
    }
  }
  return all;
}

/// Whether a tile has a pair that does not take part, null where that is certain.
Value AttentionKernel::restricts(const Pairs &pairs) {
  if (p.mask || p.keyMask || p.documents || p.queryIndex)
    return {};
  int64_t numQueries = pairs.rowsAreKeys ? tileRows() : kRows, numKeys = pairs.rowsAreKeys ? kRows : tileRows();
  Value any;
  auto also = [&](Value a, Value x) {
    Value less = arith::CmpIOp::create(k.b, arith::CmpIPredicate::slt, a, x);
    any = any ? arith::OrIOp::create(k.b, any, less).getResult() : less;
  };
  Value position = k.add(pairs.firstQuery, k.index(p.shift())), lastKey = k.add(pairs.firstKey, k.index(numKeys - 1));
  if (!pairs.rowsAreKeys && p.sizes.keys % numKeys != 0)
    also(k.index(p.sizes.keys - 1), lastKey);
  if (p.causal != tfm::CausalKind::None)
    also(position, lastKey);
  if (p.window > 0) {
    also(k.add(pairs.firstKey, k.index(p.window - 1)), k.add(position, k.index(numQueries - 1)));
    also(k.add(position, k.index(p.window - 1)), lastKey);
  }
  return any ? any : arith::ConstantOp::create(k.b, k.b.getBoolAttr(false)).getResult();
}

void AttentionKernel::score(Fragment &scores, const Pairs &pairs, Fragment *caps) {
  auto row = [](size_t i) { return i / 2 % 2; };
  auto column = [](size_t i) { return i / 4 * 2 + i % 2; };
  auto queryOf = [&](size_t i) -> const Query & { return pairs.queries[pairs.rowsAreKeys ? column(i) : row(i)]; };
  auto keyOf = [&](size_t i) -> const Key & { return pairs.keys[pairs.rowsAreKeys ? row(i) : column(i)]; };
  for (auto [i, score] : llvm::enumerate(scores)) {
    if (p.softcap > 0.0) {
      Value cap = math::TanhOp::create(k.b, times(score, real(p.scale / p.softcap)));
      if (caps)
        caps->push_back(cap);
      score = times(cap, real(p.softcap * kLog2E));
    } else {
      score = times(score, real(p.scale * kLog2E));
    }
    if (!p.slopes.empty())
      score = arith::AddFOp::create(k.b, score, keyOf(i).bias);
  }
  Value never = real(-kInfinity), condition = restricts(pairs);
  auto restricted = [&] {
    Fragment next = scores;
    for (auto [i, score] : llvm::enumerate(next)) {
      // Rows past the end of the keys are nobody's; past the end of the queries the log-sum-exp is infinite.
      bool checksEnd = !pairs.rowsAreKeys && p.sizes.keys % tileRows() != 0;
      if (Value part = takesPart(queryOf(i), keyOf(i), pairs.head, checksEnd, score))
        score = arith::SelectOp::create(k.b, part, score, never);
    }
    return next;
  };
  if (!condition) {
    scores = restricted();
    return;
  }
  if (matchPattern(condition, m_Zero()))
    return;
  SmallVector<Type> types(scores.size(), k.b.getF32Type());
  auto branch = scf::IfOp::create(k.b, types, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(k.b, restricted());
  k.b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(k.b, scores);
  scores.assign(branch.result_begin(), branch.result_end());
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

Value AttentionKernel::isMinusInfinity(Value value) {
  return arith::CmpFOp::create(k.b, arith::CmpFPredicate::OEQ, value, real(-kInfinity));
}

/// Where a query's log-sum-exp lies, and the sum that its backward needs.
Value AttentionKernel::statistic(Value head, Value query) {
  Value row = k.add(k.scale(batch, p.sizes.heads), head);
  return k.add(k.scale(row, p.sizes.queries), query);
}

Value AttentionKernel::leadsQuery(Value query) {
  Value leads = k.isZero(tiles.member);
  if (p.parts() > 1)
    leads = arith::AndIOp::create(k.b, leads, k.isZero(tiles.part));
  if (p.sizes.queries % kRows != 0)
    leads = arith::AndIOp::create(k.b, leads, k.lessThan(query, k.index(p.sizes.queries)));
  return leads;
}

void AttentionKernel::storeRows(const Fragment &sums, ArrayRef<Value> factors, const AttentionRows &rows, Value head) {
  int64_t width = std::min<int64_t>(rows.aligned(), 2), columns = sums.size() * 2;
  Value start = k.add(k.index(rows.view.offset), k.scale(head, rows.headSize));
  start = k.add(start, k.scale(batch, rows.length() * rows.stride()));
  Value buffer = k.buffer(rows.view.root), pair = k.add(k.scale(tiles.part, columns), k.scale(tiles.member, 2));
  for (auto [half, row] : llvm::enumerate(ownRows())) {
    Value isRow = rows.length() % kRows == 0 ? Value() : k.lessThan(row, k.index(rows.length()));
    k.when(isRow, [&, half = half, row = row] {
      Value at = k.add(start, k.scale(row, rows.stride()));
      for (size_t i = 2 * half; i < sums.size(); i += 4)
        for (int64_t j = 0; j < 2; j += width) {
          int64_t tile = i / 4 * 8;
          Value column = k.add(pair, k.index(tile + j));
          bool isInside = (p.parts() - 1) * columns + tile + 8 <= rows.headSize;
          Value isColumn = isInside ? Value() : k.lessThan(column, k.index(rows.headSize));
          k.when(isColumn, [&] {
            SmallVector<Value> values;
            for (int64_t lane = 0; lane < width; ++lane)
              values.push_back(times(sums[i + j + lane], factors[half]));
            Value all = vector::FromElementsOp::create(k.b, VectorType::get({width}, k.b.getF32Type()), values);
            k.store(all, buffer, k.add(at, column), rows.element, width, 1, false, width);
          });
        }
    });
  }
}
