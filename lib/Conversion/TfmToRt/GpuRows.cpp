//===- GpuRows.cpp - fused kernels on blocks of threads ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GpuRowEmitter.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

/// Threads walk all elements as one row, `width` of them each.
void GpuRowEmitter::emitFlat() {
  int64_t elements = program.domain.rows * program.domain.cols, width = widthLimit();
  bool dynamic = ShapedType::isDynamic(program.domain.cols);
  Value size = dynamic ? k.callSize() : k.index(elements);
  flatStart = k.index(0);
  Value thread = k.add(k.scale(gpu.block(), GpuKernel::kThreads), gpu.thread());
  Value start = k.scale(thread, width);
  auto element = [&](Value j, int64_t count) {
    startRow();
    Step step(j, count);
    for (const Sink &sink : program.sinks) {
      prepare(sink.node, 0);
      base(sink.access);
    }
    for (const Sink &sink : program.sinks)
      vector(sink.node, step, 0);
    for (const Sink &sink : program.sinks)
      storeStep(sink, step);
  };
  bool whole = !dynamic && elements % (width * GpuKernel::kThreads) == 0;
  Value isWhole = whole ? Value() : gpu.lessThan(k.add(start, k.index(width - 1)), size);
  gpu.when(isWhole, [&] { element(start, width); });
  if (dynamic || elements % width != 0) {
    // The last few, one by one.
    Value isLast =
        arith::AndIOp::create(k.b, gpu.lessThan(start, size), gpu.lessThan(size, k.add(start, k.index(width))));
    gpu.when(isLast, [&] {
      k.loop(start, size, 1, {}, [&](Value j, ValueRange) {
        element(j, 1);
        return SmallVector<Value>();
      });
    });
  }
  int64_t perBlock = width * GpuKernel::kThreads;
  if (!dynamic)
    return gpu.launchBlocks(llvm::divideCeilSigned(elements, perBlock), GpuKernel::kThreads);
  ImplicitLocOpBuilder &body = emitter.body;
  Value count = rt::CallSizeOp::create(body, body.getIndexType(), emitter.call);
  Value padded = arith::AddIOp::create(body, count, emitter.index(perBlock - 1));
  gpu.launchBlocks(arith::DivUIOp::create(body, padded, emitter.index(perBlock)), GpuKernel::kThreads);
}

void GpuRowEmitter::emitRows() {
  int64_t rows = program.domain.rows;
  if (layout.group == layout.threads) {
    row = gpu.block();
    lane = gpu.thread();
    emitRow({});
    return gpu.launchBlocks(rows, layout.threads);
  }
  Value thread = k.add(k.scale(gpu.block(), layout.threads), gpu.thread()), group = k.index(layout.group);
  Value number = arith::DivUIOp::create(k.b, thread, group);
  lane = arith::RemUIOp::create(k.b, thread, group);
  int64_t perBlock = layout.threads / layout.group;
  Value isRow = rows % perBlock == 0 ? Value() : gpu.lessThan(number, k.index(rows));
  if (layout.group == 1) {
    row = number;
    gpu.when(isRow, [&] { emitRow({}); });
  } else {
    // All lanes take part in reductions: those past the last row work on it and store nothing.
    row = isRow ? arith::SelectOp::create(k.b, isRow, number, k.index(rows - 1)).getResult() : number;
    emitRow(isRow);
  }
  gpu.launchBlocks(llvm::divideCeilSigned(rows, perBlock), layout.threads);
}

/// A block walks its rows, and then stores its partial sums over them.
void GpuRowEmitter::emitBlocksOfRows() {
  Domain domain = program.domain;
  int64_t rows = columnSumRows(domain, Target::Cuda), blocks = columnSumBlocks(domain, Target::Cuda);
  lane = gpu.thread();
  SmallVector<const Sink *> all = columnSums();
  for (auto [number, sink] : llvm::enumerate(all))
    partials.push_back({k.argument(emitter.scratch(number)), k.scale(gpu.block(), domain.cols)});
  // Stores what `value` gives for each sum and step.
  auto storePartials = [&](function_ref<Value(size_t sum, size_t step)> value) {
    for (int64_t i = 0; i < layout.steps; ++i) {
      Value j = k.scale(k.add(lane, k.index(i * layout.group)), layout.width);
      gpu.when(isActive(j, {}), [&] {
        for (auto [number, sink] : llvm::enumerate(all))
          k.store(value(number, i), partials[number].first, k.add(partials[number].second, j), nodes[sink->node].type,
                  layout.width, 1, false, layout.width);
      });
    }
  };
  auto zero = [&](size_t sum, size_t) {
    return k.constant(VectorType::get({layout.width}, nodes[all[sum]->node].type), 0.0);
  };
  if (!layout.sumsHeld)
    storePartials(zero);
  SmallVector<Value> initial;
  if (layout.sumsHeld)
    for (size_t sum = 0; sum < all.size(); ++sum)
      for (int64_t i = 0; i < layout.steps; ++i)
        initial.push_back(zero(sum, i));
  Value from = k.scale(gpu.block(), rows), to = k.add(from, k.index(rows));
  if (rows * blocks != domain.rows)
    to = arith::MinUIOp::create(k.b, to, k.index(domain.rows));
  SmallVector<Value> totals = k.loop(from, to, 1, initial, [&](Value i, ValueRange carried) {
    row = i;
    sums.assign(all.size(), SmallVector<Value>(layout.steps));
    for (auto [number, value] : llvm::enumerate(carried))
      sums[number / layout.steps][number % layout.steps] = value;
    emitRow({});
    if (program.numPhases() > 1)
      gpu.barrier(); // the next row's reductions use the same shared memory
    SmallVector<Value> next;
    if (layout.sumsHeld)
      for (ArrayRef<Value> sum : sums)
        llvm::append_range(next, sum);
    return next;
  });
  if (layout.sumsHeld)
    storePartials([&](size_t sum, size_t step) { return totals[sum * layout.steps + step]; });
  gpu.launchBlocks(blocks, layout.threads);
  finishColumnSums();
}

/// Adds the blocks' partial sums in order, into the results or the accumulators: a thread a column.
void GpuRowEmitter::finishColumnSums() {
  GpuKernel f(emitter);
  int64_t cols = program.domain.cols, blocks = columnSumBlocks(program.domain, Target::Cuda);
  f.indices([&](Value column) {
    for (auto [number, sink] : llvm::enumerate(columnSums())) {
      Type type = nodes[sink->node].type, targetType = elementTypeOf(sink->value);
      Value partial = f.argument(emitter.scratch(number));
      tfm::AccumulateOp accumulate = sink->accumulate;
      Value target = f.buffer(accumulate ? accumulate.getAccumulator() : sink->value);
      Value sum = f.loop(f.index(0), f.index(blocks), 1, f.constant(type, 0.0), [&](Value block, ValueRange carried) {
        Value next = f.load(partial, f.add(f.scale(block, cols), column), type);
        return SmallVector<Value>{arith::AddFOp::create(f.b, carried[0], next)};
      })[0];
      if (accumulate) // an accumulator has no contents before its first sum
        sum = f.either(f.callAccumulates(), sum,
                       [&](Value sum) { return arith::AddFOp::create(f.b, f.load(target, column, targetType), sum); });
      f.store(sum, target, column, targetType);
    }
  });
  f.launch(cols, 1);
}

void GpuRowEmitter::emit() {
  if (flat)
    return emitFlat();
  chooseLayout();
  if (layout.held)
    gpu.setResidentBlocks(1); // rather than spill for one more
  if (program.hasColumnSums())
    emitBlocksOfRows();
  else
    emitRows();
}

void lower::emitGpuRows(BodyEmitter &emitter, const RowProgram &program) {
  GpuKernel kernel(emitter);
  GpuRowEmitter(emitter, program, kernel).emit();
}
