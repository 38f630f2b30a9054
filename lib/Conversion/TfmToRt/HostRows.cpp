//===- HostRows.cpp - vectorized loops of fused kernels ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "RowEmitter.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

/// Elements of one index of a flat kernel: a few pages of every operand.
static constexpr int64_t kChunk = 4096;
/// Elements of work that make up for handing a block to a thread.
static constexpr int64_t kGrain = 16384;
/// A value that a later phase needs again is kept in a row buffer on the stack up to this size ..
static constexpr int64_t kRowBufferBytes = 65536;
/// .. where computing it again costs more than this many simple operations.
static constexpr unsigned kRecomputeCost = 8;
/// Columns of one index of the kernel that adds partial sums.
static constexpr int64_t kFinishColumns = 64;

namespace {
class HostRowEmitter final : RowEmitter {
public:
  HostRowEmitter(BodyEmitter &emitter, const RowProgram &program, KernelBuilder &kernel)
      : RowEmitter(emitter, program, kernel) {}

  void emit();

private:
  void planSpills();
  void visit(NodeId id, unsigned phase);
  bool isRecomputed(NodeId id) const;
  bool isKept(NodeId id) const override { return spilled.contains(id); }
  Value keptValue(NodeId id, const Step &step) override {
    return k.load(spills.lookup(id), step.j, nodes[id].type, step.width, 1);
  }

  void emitRow();
  void emitPhase(unsigned phase);
  void emitStep(Step &step, unsigned phase, ArrayRef<NodeId> reductions, MutableArrayRef<Value> accumulators);
  void clearRow(Value buffer, Value start, Type type);
  void finishColumnSums();

  Value length;                         // of a flat chunk
  llvm::DenseMap<NodeId, Value> spills; // row buffers
  llvm::SetVector<NodeId> spilled;
  llvm::DenseMap<const Sink *, std::pair<Value, Value>> partials; // buffer, offset of the current block
};
} // namespace

//===----------------------------------------------------------------------===//
// What later phases need again
//===----------------------------------------------------------------------===//

bool HostRowEmitter::isRecomputed(NodeId id) const {
  const Node &node = nodes[id];
  return node.cost <= kRecomputeCost || !isa<FloatType>(node.type) ||
         program.domain.cols * bytesOf(node.type) > kRowBufferBytes;
}

/// Finds the nodes that phase needs and an earlier phase should keep.
void HostRowEmitter::visit(NodeId id, unsigned phase) {
  const Node &node = nodes[id];
  if (node.perRow || node.kind == NodeKind::Load || node.kind == NodeKind::Index || storedEarlier(id, phase))
    return;
  if (node.phase < phase && !isRecomputed(id)) {
    spilled.insert(id);
    return;
  }
  for (NodeId operand : node.operands)
    visit(operand, phase);
}

void HostRowEmitter::planSpills() {
  for (unsigned phase = program.numPhases(); phase-- > 0;) {
    for (const Sink &sink : program.sinks)
      if (nodes[sink.node].phase == phase)
        visit(sink.node, phase);
    for (const Node &node : nodes)
      if (node.kind == NodeKind::RowReduce && node.phase == phase + 1)
        for (NodeId operand : node.operands)
          visit(operand, phase);
    for (size_t i = 0; i < spilled.size(); ++i)
      if (nodes[spilled[i]].phase == phase)
        for (NodeId operand : nodes[spilled[i]].operands)
          visit(operand, phase);
  }
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void HostRowEmitter::emitStep(Step &step, unsigned phase, ArrayRef<NodeId> reductions,
                              MutableArrayRef<Value> accumulators) {
  // All loads of a step come before its stores, so that a result may lie over an operand that dies here.
  for (const Sink &sink : program.sinks)
    if (nodes[sink.node].phase == phase && (sink.columnSum || sink.access.colStride != 0))
      vector(sink.node, step, phase);
  for (auto [id, accumulator] : llvm::zip(reductions, accumulators))
    accumulator = k.combine(accumulator, vector(nodes[id].operands[0], step, phase), nodes[id].reduction);
  for (NodeId id : spilled)
    if (nodes[id].phase == phase)
      k.store(vector(id, step, phase), spills.lookup(id), step.j, nodes[id].type, step.width, 1);
  for (const Sink &sink : program.sinks) {
    if (nodes[sink.node].phase != phase)
      continue;
    Value value = step.values.lookup(sink.node);
    if (sink.columnSum) {
      auto [buffer, start] = partials.lookup(&sink);
      Value at = k.add(start, step.j);
      Value sum = k.load(buffer, at, nodes[sink.node].type, step.width, 1);
      k.store(arith::AddFOp::create(k.b, sum, value), buffer, at, nodes[sink.node].type, step.width, 1);
    } else if (sink.access.colStride != 0) {
      storeStep(sink, step);
    }
  }
}

void HostRowEmitter::emitPhase(unsigned phase) {
  bool columns = false;
  SmallVector<NodeId> reductions = reductionsOf(phase);
  for (const Sink &sink : program.sinks) {
    if (nodes[sink.node].phase != phase)
      continue;
    prepare(sink.node, phase);
    if (!sink.columnSum)
      base(sink.access);
    if (sink.columnSum || sink.access.colStride != 0)
      columns = true;
    else
      storeRow(sink);
  }
  for (NodeId id : reductions)
    prepare(nodes[id].operands[0], phase);
  for (NodeId id : spilled)
    if (nodes[id].phase == phase)
      prepare(id, phase);
  bool spills = llvm::any_of(spilled, [&](NodeId id) { return nodes[id].phase == phase; });
  if (!columns && !spills && reductions.empty())
    return;

  auto neutral = [&](NodeId id, int64_t width) {
    return k.constant(VectorType::get({width}, nodes[id].type), KernelBuilder::neutral(nodes[id].reduction));
  };
  int64_t lanes = emitter.lanes, cols = program.domain.cols;
  SmallVector<Value> totals(reductions.size());
  auto finish = [&](ArrayRef<Value> accumulators) {
    for (auto [i, id] : llvm::enumerate(reductions)) {
      Value sum = k.horizontal(accumulators[i], nodes[id].reduction);
      totals[i] = totals[i] ? k.combine(totals[i], sum, nodes[id].reduction) : sum;
    }
  };
  auto run = [&](Value from, Value to, int64_t width) {
    SmallVector<Value> initial;
    for (NodeId id : reductions)
      initial.push_back(neutral(id, width));
    finish(k.loop(from, to, width, initial, [&](Value j, ValueRange carried) {
      Step step(j, width);
      SmallVector<Value> accumulators(carried.begin(), carried.end());
      emitStep(step, phase, reductions, accumulators);
      return accumulators;
    }));
  };
  Value zero = k.index(0);
  if (flat) {
    Value whole = arith::SubIOp::create(k.b, length, arith::RemUIOp::create(k.b, length, k.index(lanes)));
    run(zero, whole, lanes);
    run(whole, length, 1);
  } else {
    int64_t whole = cols / lanes * lanes, tail = cols - whole;
    if (whole > 0)
      run(zero, k.index(whole), lanes);
    if (tail > 0) {
      Step step(k.index(whole), tail);
      SmallVector<Value> accumulators;
      for (NodeId id : reductions)
        accumulators.push_back(neutral(id, tail));
      emitStep(step, phase, reductions, accumulators);
      finish(accumulators);
    }
  }
  for (auto [id, total] : llvm::zip(reductions, totals))
    scalars[id] = total;
}

void HostRowEmitter::emitRow() {
  startRow();
  for (unsigned phase = 0; phase < program.numPhases(); ++phase)
    emitPhase(phase);
}

/// Zeros over one row of partial sums.
void HostRowEmitter::clearRow(Value buffer, Value start, Type type) {
  int64_t lanes = emitter.lanes, whole = program.domain.cols / lanes * lanes, tail = program.domain.cols - whole;
  auto clear = [&](Value j, int64_t width) {
    k.store(k.constant(VectorType::get({width}, type), 0.0), buffer, k.add(start, j), type, width, 1);
  };
  if (whole > 0)
    k.loop(k.index(0), k.index(whole), lanes, {}, [&](Value j, ValueRange) {
      clear(j, lanes);
      return SmallVector<Value>();
    });
  if (tail > 0)
    clear(k.index(whole), tail);
}

void HostRowEmitter::emit() {
  Domain domain = program.domain;
  planSpills();
  for (NodeId id : spilled) {
    auto type = MemRefType::get({domain.cols}, nodes[id].type);
    spills[id] = memref::AllocaOp::create(k.b, type, k.b.getI64IntegerAttr(64));
  }
  if (flat) {
    bool dynamic = ShapedType::isDynamic(domain.cols);
    Value size, count;
    ImplicitLocOpBuilder &body = emitter.body;
    if (dynamic) {
      size = k.callSize();
      Value padded = arith::AddIOp::create(body, rt::CallSizeOp::create(body, body.getIndexType(), emitter.call),
                                           emitter.index(kChunk - 1));
      count = arith::DivUIOp::create(body, padded, emitter.index(kChunk));
    } else {
      size = k.index(domain.rows * domain.cols);
      count = emitter.index((domain.rows * domain.cols + kChunk - 1) / kChunk);
    }
    k.indices([&](Value i) {
      flatStart = k.scale(i, kChunk);
      Value left = arith::SubIOp::create(k.b, size, flatStart);
      length = arith::MinUIOp::create(k.b, left, k.index(kChunk));
      emitRow();
    });
    return k.launch(count, kGrain / kChunk);
  }
  if (!program.hasColumnSums()) {
    k.indices([&](Value i) {
      row = i;
      emitRow();
    });
    return k.launch(domain.rows, kGrain / std::max<int64_t>(domain.cols, 1));
  }
  int64_t rows = columnSumRows(domain, Target::Host);
  k.indices([&](Value block) {
    unsigned number = 0;
    for (const Sink &sink : program.sinks) {
      if (!sink.columnSum)
        continue;
      Value buffer = k.argument(emitter.scratch(number++)), start = k.scale(block, domain.cols);
      partials[&sink] = {buffer, start};
      clearRow(buffer, start, nodes[sink.node].type);
    }
    Value from = k.scale(block, rows);
    Value to = arith::MinUIOp::create(k.b, k.add(from, k.index(rows)), k.index(domain.rows));
    k.loop(from, to, 1, {}, [&](Value i, ValueRange) {
      row = i;
      emitRow();
      return SmallVector<Value>();
    });
  });
  k.launch(columnSumBlocks(domain, Target::Host),
           std::max<int64_t>(1, kGrain / std::max<int64_t>(1, domain.cols * rows)));
  finishColumnSums();
}

/// Adds the blocks' partial sums in order, into the results or the accumulators.
void HostRowEmitter::finishColumnSums() {
  std::unique_ptr<KernelBuilder> finisher = createHostKernel(emitter);
  KernelBuilder &f = *finisher;
  int64_t cols = program.domain.cols, blocks = columnSumBlocks(program.domain, Target::Host);
  f.indices([&](Value chunk) {
    unsigned number = 0;
    for (const Sink &sink : program.sinks) {
      if (!sink.columnSum)
        continue;
      Type type = nodes[sink.node].type;
      Value partial = f.argument(emitter.scratch(number++));
      tfm::AccumulateOp accumulate = sink.accumulate;
      Value target = f.buffer(accumulate ? accumulate.getAccumulator() : sink.value);
      Type targetType = elementTypeOf(sink.value);
      Value from = f.scale(chunk, kFinishColumns);
      Value to = arith::MinUIOp::create(f.b, f.add(from, f.index(kFinishColumns)), f.index(cols));
      auto run = [&](Value first, Value last, int64_t width) {
        f.loop(first, last, width, {}, [&](Value j, ValueRange) {
          Value zero = f.constant(VectorType::get({width}, type), 0.0);
          Value sum = f.loop(f.index(0), f.index(blocks), 1, zero, [&](Value block, ValueRange carried) {
            Value next = f.load(partial, f.add(f.scale(block, cols), j), type, width, 1);
            return SmallVector<Value>{arith::AddFOp::create(f.b, carried[0], next)};
          })[0];
          if (accumulate) {
            Value old = f.load(target, j, targetType, width, 1);
            Value flag = f.callAccumulates();
            sum = arith::SelectOp::create(f.b, flag, arith::AddFOp::create(f.b, old, sum), sum);
          }
          f.store(sum, target, j, targetType, width, 1);
          return SmallVector<Value>();
        });
      };
      Value length = arith::SubIOp::create(f.b, to, from);
      Value whole = arith::SubIOp::create(f.b, length, arith::RemUIOp::create(f.b, length, f.index(emitter.lanes)));
      Value middle = f.add(from, whole);
      run(from, middle, emitter.lanes);
      run(middle, to, 1);
    }
  });
  f.launch((cols + kFinishColumns - 1) / kFinishColumns, std::max<int64_t>(1, kGrain / (kFinishColumns * blocks)));
}

void lower::emitHostRows(BodyEmitter &emitter, const RowProgram &program) {
  std::unique_ptr<KernelBuilder> kernel = createHostKernel(emitter);
  HostRowEmitter(emitter, program, *kernel).emit();
}
