//===- GpuSpecialKernels.cpp - sums by blocks of threads --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GpuKernel.h"
#include "LibraryCalls.h"
#include "SpecialKernels.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

static constexpr int64_t kThreads = GpuKernel::kThreads;

/// A block: a logarithm a token and thread.
void lower::emitGpuCrossEntropy(BodyEmitter &emitter, const Views &views, tfm::CrossEntropyOp op) {
  constexpr int64_t threads = 512;
  GpuKernel k(emitter);
  Value zero = k.constant(k.b.getF64Type(), 0.0), end = k.index(product(shapeOf(op.getLabels())));
  Value loss = k.loop(k.thread(), end, threads, zero, [&](Value i, ValueRange carried) -> SmallVector<Value> {
    return {addTokenLoss(k, views, op, i, carried[0])};
  })[0];
  loss = k.reduce(loss, RowReduction::Sum, threads);
  k.when(k.isZero(k.thread()),
         [&] { k.store(loss, k.buffer(views.of(op.getLoss()).root), k.index(0), loss.getType()); });
  k.launchBlocks(1, threads);
}

/// Partial sums of a fixed number of blocks, then their sum by one block.
void lower::emitGpuSumOfSquares(BodyEmitter &emitter, const Views &views, tfm::SumOfSquaresOp op) {
  constexpr int64_t width = 4;
  View input = views.of(op.getInput());
  Type storage = elementTypeOf(op.getInput());
  int64_t blocks = specialScratch(op, Target::Cuda).front().second;
  Value partial = emitter.scratch(0);
  {
    GpuKernel k(emitter);
    Type f64 = k.b.getF64Type();
    bool dynamic = ShapedType::isDynamic(product(input.shape));
    Value size = dynamic ? k.callSize() : k.index(product(input.shape)), buffer = k.buffer(input.root);
    // A block has a run of whole steps of its threads.
    int64_t step = kThreads * width;
    Value padded = k.add(size, k.index(blocks * step - 1));
    Value length = k.scale(arith::DivUIOp::create(k.b, padded, k.index(blocks * step)), step);
    Value from = arith::MinUIOp::create(k.b, arith::MulIOp::create(k.b, k.block(), length), size);
    Value to = arith::MinUIOp::create(k.b, k.add(from, length), size);
    Value left = arith::SubIOp::create(k.b, to, from);
    Value whole = arith::SubIOp::create(k.b, to, arith::RemUIOp::create(k.b, left, k.index(width)));
    auto squares = [&](Value at, int64_t lanes) -> Value {
      Value x = toF64(k, k.load(buffer, at, storage, lanes, 1, lanes));
      return arith::MulFOp::create(k.b, x, x);
    };
    Value zero = k.constant(VectorType::get({width}, f64), 0.0);
    Value sum = k.loop(k.add(from, k.scale(k.thread(), width)), whole, step, zero,
                       [&](Value i, ValueRange carried) -> SmallVector<Value> {
                         return {arith::AddFOp::create(k.b, carried[0], squares(i, width))};
                       })[0];
    sum = k.horizontal(sum, RowReduction::Sum);
    // The last few elements, one a thread.
    sum = k.loop(k.add(whole, k.thread()), to, kThreads, sum, [&](Value i, ValueRange carried) -> SmallVector<Value> {
      return {arith::AddFOp::create(k.b, carried[0], k.horizontal(squares(i, 1), RowReduction::Sum))};
    })[0];
    sum = k.reduce(sum, RowReduction::Sum, kThreads);
    k.when(k.isZero(k.thread()), [&] { k.store(sum, k.argument(partial), k.block(), f64); });
    k.launchBlocks(blocks, kThreads);
  }
  GpuKernel k(emitter);
  Type f64 = k.b.getF64Type();
  Value sum = k.loop(k.thread(), k.index(blocks), kThreads, k.constant(f64, 0.0),
                     [&](Value i, ValueRange carried) -> SmallVector<Value> {
                       return {arith::AddFOp::create(k.b, carried[0], k.load(k.argument(partial), i, f64))};
                     })[0];
  sum = k.reduce(sum, RowReduction::Sum, kThreads);
  k.when(k.isZero(k.thread()), [&] { k.store(sum, k.buffer(views.of(op.getResult()).root), k.index(0), f64); });
  k.launchBlocks(1, kThreads);
}

//===----------------------------------------------------------------------===//
// Gradient of an embedding
//===----------------------------------------------------------------------===//

namespace {
/// The sum of the gradients of the positions that have one id, in their order, by the block of the first of them: no
/// atomics, and no list of positions by id.
class EmbeddingGradKernel {
public:
  EmbeddingGradKernel(BodyEmitter &emitter, const Views &views, tfm::EmbeddingGradOp op, const View &target)
      : k(emitter), op(op), ids(views.of(op.getIds())), gradient(views.of(op.getGradient())), target(target),
        offset(op.getOffset() ? std::optional(views.of(op.getOffset())) : std::nullopt), positions(product(ids.shape)),
        cols(target.shape[1]) {
    while (width < 8 && cols % (2 * width) == 0 && gradient.offset % (2 * width) == 0 &&
           target.offset % (2 * width) == 0)
      width *= 2;
  }

  void emit();

private:
  Value idAt(Value position) {
    return k.fromIndex(k.load(k.buffer(ids.root), k.add(k.index(ids.offset), position), elementTypeOf(op.getIds())),
                       k.b.getI64Type());
  }
  Value comesFirst(Value position, Value id);
  Value sumFrom(Value position, Value id, Value column, Value isColumn);

  GpuKernel k;
  tfm::EmbeddingGradOp op;
  View ids, gradient, target;
  std::optional<View> offset;
  int64_t positions, cols, width = 1;
};
} // namespace

/// True where no position before this one has its id: the block looks through them together.
Value EmbeddingGradKernel::comesFirst(Value position, Value id) {
  Type f32 = k.b.getF32Type();
  Value none = k.constant(f32, 0.0), one = k.constant(f32, 1.0);
  Value found = k.loop(k.thread(), position, kThreads, none, [&](Value i, ValueRange carried) -> SmallVector<Value> {
    Value equal = arith::CmpIOp::create(k.b, arith::CmpIPredicate::eq, idAt(i), id);
    return {arith::SelectOp::create(k.b, equal, one, carried[0])};
  })[0];
  found = k.reduce(found, RowReduction::Max, kThreads);
  return arith::CmpFOp::create(k.b, arith::CmpFPredicate::OEQ, found, none);
}

/// A warp looks at 32 positions at a time and adds the rows of those that have the id.
Value EmbeddingGradKernel::sumFrom(Value position, Value id, Value column, Value isColumn) {
  ImplicitLocOpBuilder &b = k.b;
  Type f32 = b.getF32Type(), storage = elementTypeOf(op.getGradient());
  auto sumType = VectorType::get({width}, f32);
  Value zero = k.constant(sumType, 0.0), lane = arith::RemUIOp::create(b, k.thread(), k.index(GpuKernel::kWarp));
  Value end = k.index(positions);
  auto look = [&](Value start, ValueRange carried) -> SmallVector<Value> {
    Value own = k.add(start, lane), isPosition = k.lessThan(own, end);
    Value safe = arith::SelectOp::create(b, isPosition, own, position);
    Value equal = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, idAt(safe), id);
    Value mask = k.ballot(arith::AndIOp::create(b, isPosition, equal));
    auto whileOp = scf::WhileOp::create(
        b, TypeRange{mask.getType(), sumType}, ValueRange{mask, carried[0]},
        [&](OpBuilder &builder, Location loc, ValueRange values) {
          Value none = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
          Value more = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, values[0], none);
          scf::ConditionOp::create(builder, loc, more, values);
        },
        [](OpBuilder &, Location, ValueRange) {});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(whileOp.getAfterBody());
    Value bits = whileOp.getAfterArguments()[0], sum = whileOp.getAfterArguments()[1];
    Value at = k.add(start, k.toIndex(math::CountTrailingZerosOp::create(b, bits)));
    Value element = k.add(k.add(k.index(gradient.offset), k.scale(at, cols)), column);
    auto branch = scf::IfOp::create(b, sumType, isColumn, /*withElseRegion=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b, k.load(k.buffer(gradient.root), element, storage, width, 1, width));
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, k.constant(sumType, 0.0));
    b.setInsertionPointAfter(branch);
    Value next = arith::AddFOp::create(b, sum, branch.getResult(0));
    Value lower = arith::SubIOp::create(b, bits, arith::ConstantOp::create(b, b.getI32IntegerAttr(1)));
    scf::YieldOp::create(b, ValueRange{arith::AndIOp::create(b, bits, lower), next});
    return {whileOp.getResult(1)};
  };
  return k.loop(position, end, GpuKernel::kWarp, zero, look)[0];
}

void EmbeddingGradKernel::emit() {
  int64_t chunks = (cols + kThreads * width - 1) / (kThreads * width);
  Value position = arith::DivUIOp::create(k.b, k.block(), k.index(chunks));
  Value chunk = arith::RemUIOp::create(k.b, k.block(), k.index(chunks));
  Value column = k.scale(k.add(k.scale(chunk, kThreads), k.thread()), width);
  Value isColumn = k.lessThan(column, k.index(cols));
  Value id = idAt(position), row = id;
  if (offset)
    row = arith::SubIOp::create(k.b, id, k.load(k.buffer(offset->root), k.index(offset->offset), k.b.getI64Type()));
  // What is no row of this part of the table belongs to another rank.
  Value isRow = k.lessThan(row, k.constant(k.b.getI64Type(), target.shape[0]));
  Value leads = arith::AndIOp::create(k.b, isRow, comesFirst(position, id));
  k.when(leads, [&] {
    Value sum = sumFrom(position, id, column, isColumn);
    k.when(isColumn, [&] {
      Type f32 = k.b.getF32Type();
      Value at = k.add(k.add(k.index(target.offset), k.scale(k.toIndex(row), cols)), column);
      Value old = k.load(k.buffer(target.root), at, f32, width, 1, width);
      k.store(arith::AddFOp::create(k.b, old, sum), k.buffer(target.root), at, f32, width, 1, false, width);
    });
  });
  k.launchBlocks(positions * chunks, kThreads);
}

/// Zeros over the table, but where it holds sums of earlier microbatches.
static void emitClear(BodyEmitter &emitter, const View &target, rt::Store store) {
  constexpr int64_t blocks = 1056; // eight for each of 132 multiprocessors
  int64_t elements = product(target.shape), width = 1;
  while (width < 4 && elements % (2 * width) == 0 && target.offset % (2 * width) == 0)
    width *= 2;
  GpuKernel k(emitter);
  Type f32 = k.b.getF32Type();
  Value first = k.add(k.scale(k.block(), kThreads), k.thread()), end = k.index(elements);
  if (store == rt::Store::Accumulate)
    end = arith::SelectOp::create(k.b, k.callAccumulates(), k.index(0), end);
  k.loop(k.scale(first, width), end, blocks * kThreads * width, {}, [&](Value j, ValueRange) {
    Value zero = k.constant(VectorType::get({width}, f32), 0.0);
    k.store(zero, k.buffer(target.root), k.add(k.index(target.offset), j), f32, width, 1, false, width);
    return SmallVector<Value>();
  });
  k.launchBlocks(blocks, kThreads);
}

void lower::emitGpuEmbeddingGrad(BodyEmitter &emitter, const Views &views, tfm::EmbeddingGradOp op, const View &target,
                                 rt::Store store) {
  if (store != rt::Store::Add)
    emitClear(emitter, target, store);
  EmbeddingGradKernel(emitter, views, op, target).emit();
}
