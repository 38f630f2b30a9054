//===- GpuAttentionDocuments.cpp - tiles of other documents -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The least and the greatest document of each tile of rows, found once a call. A block leaves out the tiles whose range
// its own rows' does not meet: exact where documents follow each other, as they do in a sequence, and never wrong.
//===----------------------------------------------------------------------===//
#include "GpuAttention.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

static int64_t numTiles(const AttentionProblem &p, int64_t length) {
  return (length + p.tileRows() - 1) / p.tileRows();
}

static Value minimum(KernelBuilder &k, Value a, Value x) { return arith::MinSIOp::create(k.b, a, x); }
static Value maximum(KernelBuilder &k, Value a, Value x) { return arith::MaxSIOp::create(k.b, a, x); }

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

/// Lower ends of all batches and tiles, then upper ends; `queryIndex`: of queries, where they say which keys they are.
static void emitRanges(BodyEmitter &emitter, const AttentionProblem &p, int64_t length, Value queryIndex, Value to) {
  GpuKernel k(emitter);
  View documents = p.views.of(p.documents);
  Type type = elementTypeOf(p.documents);
  int64_t tiles = numTiles(p, length), all = documents.shape[0] * tiles;
  k.indices([&](Value i) {
    Value batch = arith::DivUIOp::create(k.b, i, k.index(tiles));
    Value first = k.scale(arith::RemUIOp::create(k.b, i, k.index(tiles)), p.tileRows());
    auto documentAt = [&](Value row) {
      row = arith::MinUIOp::create(k.b, row, k.index(length - 1));
      if (queryIndex) {
        View view = p.views.of(queryIndex);
        Value place = k.load(k.buffer(view.root), k.add(k.index(view.offset), row), elementTypeOf(queryIndex));
        row = k.position(place, p.sizes.keys, /*fromEnd=*/false, "attention");
      }
      return k.load(k.buffer(documents.root), idPosition(k, documents, batch, row), type);
    };
    Value start = documentAt(first);
    SmallVector<Value> range = k.loop(k.index(1), k.index(p.tileRows()), 1, {start, start},
                                      [&](Value row, ValueRange carried) -> SmallVector<Value> {
                                        Value document = documentAt(k.add(first, row));
                                        return {minimum(k, carried[0], document), maximum(k, carried[1], document)};
                                      });
    k.store(range[0], k.argument(to), i, type);
    k.store(range[1], k.argument(to), k.add(i, k.index(all)), type);
  });
  k.launch(all, 1);
}

void lower::emitTileDocuments(BodyEmitter &emitter, AttentionProblem &p, unsigned scratch) {
  if (!p.documents)
    return;
  std::string name = std::exchange(emitter.unitName, "attention_documents");
  p.keyDocuments = p.queryDocuments = emitter.scratch(scratch);
  emitRanges(emitter, p, p.sizes.keys, {}, p.keyDocuments);
  if (p.queryIndex) {
    p.queryDocuments = emitter.scratch(scratch + 1);
    emitRanges(emitter, p, p.sizes.queries, p.queryIndex, p.queryDocuments);
  }
  emitter.unitName = name;
}

/// What emitTileDocuments needs.
template <typename Op> static void addRangeBytes(Op op, SmallVector<int64_t> &sizes) {
  if (!op.getDocuments())
    return;
  drover_attention desc = attentionSizes(op);
  int64_t rows =
      AttentionProblem::tileRows(std::max(desc.head_size, desc.value_head_size), elementTypeOf(op.getQuery()),
                                 op->hasAttr(kWarpgroupAttr), std::is_same_v<Op, tfm::AttentionGradOp>);
  int64_t element = bytesOf(elementTypeOf(op.getDocuments())), batches = shapeOf(op.getDocuments())[0];
  auto bytes = [&](int64_t length) { return 2 * batches * ((length + rows - 1) / rows) * element; };
  sizes.push_back(bytes(desc.keys));
  if (op.getQueryIndex())
    sizes.push_back(bytes(desc.queries));
}

SmallVector<int64_t> lower::gpuAttentionScratchBytes(tfm::AttentionOp op) {
  SmallVector<int64_t> sizes;
  addRangeBytes(op, sizes);
  return sizes;
}

SmallVector<int64_t> lower::gpuAttentionScratchBytes(tfm::AttentionGradOp op) {
  // A sum a row, from the first kernel to the second.
  SmallVector<int64_t> sizes = {product(shapeOf(op.getLogSumExp())) * bytesOf(elementTypeOf(op.getLogSumExp()))};
  addRangeBytes(op, sizes);
  return sizes;
}

//===----------------------------------------------------------------------===//
// Tiles that meet
//===----------------------------------------------------------------------===//

/// The range of a tile of the block's batch.
std::pair<Value, Value> AttentionKernel::documentsOf(Value tiles, int64_t length, Value tile) {
  View documents = p.views.of(p.documents);
  Type type = elementTypeOf(p.documents);
  int64_t count = numTiles(p, length);
  if (documents.shape[0] != 1)
    tile = k.add(tile, k.scale(batch, count));
  Value buffer = k.argument(tiles), upper = k.add(tile, k.index(documents.shape[0] * count));
  return {k.load(buffer, tile, type), k.load(buffer, upper, type)};
}

/// The first step from `step` on whose tile meets [low, high], or `count`: the lanes of a warp look at 32 at a time.
Value AttentionKernel::nextMeeting(Value step, Value count, const Meeting &meeting, Value low, Value high) {
  Value none = arith::ConstantOp::create(k.b, k.b.getI32IntegerAttr(0)), warp = k.index(GpuKernel::kWarp);
  auto notAbove = [&](Value a, Value x) { return arith::CmpIOp::create(k.b, arith::CmpIPredicate::sle, a, x); };
  auto isNone = [&](Value mask) { return arith::CmpIOp::create(k.b, arith::CmpIPredicate::eq, mask, none); };
  auto look = [&](OpBuilder &, Location, ValueRange values) {
    Value own = k.add(values[0], tiles.lane), isStep = k.lessThan(own, count);
    Value tile = arith::SelectOp::create(k.b, isStep, meeting.tileOf(own), k.index(0));
    auto [otherLow, otherHigh] = documentsOf(meeting.otherTiles, meeting.otherLength, tile);
    Value meets = arith::AndIOp::create(k.b, notAbove(otherLow, high), notAbove(low, otherHigh));
    Value mask = k.ballot(arith::AndIOp::create(k.b, isStep, meets));
    Value hasMore = k.lessThan(k.add(values[0], warp), count);
    scf::ConditionOp::create(k.b, arith::AndIOp::create(k.b, isNone(mask), hasMore), ValueRange{values[0], mask});
  };
  auto advance = [&](OpBuilder &, Location, ValueRange values) { scf::YieldOp::create(k.b, k.add(values[0], warp)); };
  auto found = scf::WhileOp::create(k.b, TypeRange{step.getType(), none.getType()}, ValueRange(step), look, advance);
  Value mask = found.getResult(1);
  Value first = k.add(found.getResult(0), k.toIndex(math::CountTrailingZerosOp::create(k.b, mask)));
  return arith::SelectOp::create(k.b, isNone(mask), count, first);
}

std::function<Value(Value)> AttentionKernel::stepsOf(Value count, const Meeting &meeting) {
  if (!p.documents)
    return [](Value step) { return step; };
  // What the block's rows have: one tile or several.
  Value tile = numberOfTile(first);
  auto [low, high] = documentsOf(meeting.ownTiles, meeting.ownLength, tile);
  for (int64_t i = 1; i < kRows / tileRows(); ++i) {
    Value next = arith::MinUIOp::create(k.b, k.add(tile, k.index(i)), k.index(numTiles(p, meeting.ownLength) - 1));
    auto [nextLow, nextHigh] = documentsOf(meeting.ownTiles, meeting.ownLength, next);
    low = minimum(k, low, nextLow);
    high = maximum(k, high, nextHigh);
  }
  return [this, count, &meeting, low = low, high = high](Value step) {
    return nextMeeting(step, count, meeting, low, high);
  };
}
