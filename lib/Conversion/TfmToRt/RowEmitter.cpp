//===- RowEmitter.cpp - vectorized loops of fused kernels -------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Collectives.h"
#include "Emitter.h"
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

int64_t lower::columnSumRows(Domain domain) {
  // A fixed number of blocks, at most 64, of at least 16 rows: the order of summation depends on the shape alone.
  int64_t blocks = std::clamp<int64_t>(domain.rows / 16, 1, 64);
  return (domain.rows + blocks - 1) / blocks;
}

static int64_t columnSumBlocks(Domain domain) {
  int64_t rows = columnSumRows(domain);
  return (domain.rows + rows - 1) / rows;
}

int64_t lower::columnSumBytes(const RowProgram &program, const Sink &sink) {
  return columnSumBlocks(program.domain) * program.domain.cols * bytesOf(program.nodes[sink.node].type);
}

namespace {
class RowEmitter {
public:
  RowEmitter(BodyEmitter &emitter, const RowProgram &program)
      : emitter(emitter), program(program), nodes(program.nodes), k(emitter), flat(program.isFlat()) {}

  void emit();

private:
  /// One step along the columns: `width` elements from column `j` on.
  struct Step {
    Step(Value j, int64_t width) : j(j), width(width) {}
    Value j;
    int64_t width;
    llvm::DenseMap<NodeId, Value> values;
  };

  void planSpills();
  void visit(NodeId id, unsigned phase);
  const Sink *storedEarlier(NodeId id, unsigned phase) const;
  bool isRecomputed(NodeId id) const;

  void emitRow();
  void emitPhase(unsigned phase);
  void prepare(NodeId id, unsigned phase);
  Value base(const Access &access);
  void gatherBase(const Node &node);
  Value scalar(NodeId id);
  Value vector(NodeId id, Step &step, unsigned phase);
  void emitStep(Step &step, unsigned phase, ArrayRef<NodeId> reductions, MutableArrayRef<Value> accumulators);
  void clearRow(Value buffer, Value start, Type type);
  void finishColumnSums();
  Value position(const Step &step, Value base, int64_t stride);

  BodyEmitter &emitter;
  const RowProgram &program;
  ArrayRef<Node> nodes;
  KernelBuilder k;
  bool flat;
  Value row, length;                    // the current row; of a flat chunk its number and length
  llvm::DenseMap<NodeId, Value> spills; // row buffers
  llvm::SetVector<NodeId> spilled;
  llvm::DenseMap<NodeId, Value> scalars;                          // of the current row
  llvm::DenseMap<const Access *, Value> bases;                    // of the current row
  llvm::DenseMap<const Sink *, std::pair<Value, Value>> partials; // buffer, offset of the current block
};
} // namespace

//===----------------------------------------------------------------------===//
// What later phases need again
//===----------------------------------------------------------------------===//

const Sink *RowEmitter::storedEarlier(NodeId id, unsigned phase) const {
  if (nodes[id].phase >= phase || nodes[id].kind == NodeKind::Load)
    return nullptr;
  for (const Sink &sink : program.sinks)
    if (sink.node == id && !sink.columnSum && sink.access.colStride != 0)
      return &sink;
  return nullptr;
}

bool RowEmitter::isRecomputed(NodeId id) const {
  const Node &node = nodes[id];
  return node.cost <= kRecomputeCost || !isa<FloatType>(node.type) ||
         program.domain.cols * bytesOf(node.type) > kRowBufferBytes;
}

/// Finds the nodes that phase needs and an earlier phase should keep.
void RowEmitter::visit(NodeId id, unsigned phase) {
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

void RowEmitter::planSpills() {
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
// Values
//===----------------------------------------------------------------------===//

/// The buffer position of column 0 of the current row.
Value RowEmitter::base(const Access &access) {
  Value &base = bases[&access];
  if (base)
    return base;
  base = k.index(access.offset);
  if (flat && !access.isUniform())
    return base = k.add(base, k.scale(row, kChunk));
  Value rest = row;
  for (size_t i = access.rowShape.size(); i-- > 0;) {
    Value coordinate = rest;
    if (i > 0) {
      Value size = k.index(access.rowShape[i]);
      coordinate = arith::RemUIOp::create(k.b, rest, size);
      rest = arith::DivUIOp::create(k.b, rest, size);
    } else if (product(access.rowShape) != program.domain.rows) {
      llvm_unreachable("an access covers the rows of its domain");
    }
    if (access.rowStrides[i] != 0)
      base = k.add(base, k.scale(coordinate, access.rowStrides[i]));
  }
  return base;
}

Value RowEmitter::scalar(NodeId id) {
  if (auto it = scalars.find(id); it != scalars.end())
    return it->second;
  const Node &node = nodes[id];
  assert(node.perRow && "expects a row value");
  Value value;
  switch (node.kind) {
  case NodeKind::Constant:
    value = arith::ConstantOp::create(k.b, node.constant);
    break;
  case NodeKind::CallAccumulates:
    value = rt::CallAccumulatesOp::create(k.b, k.b.getI1Type(), k.argument(emitter.call));
    break;
  case NodeKind::RankIndex: {
    auto offset = cast<tfm::ShardOffsetOp>(node.definition);
    value = linearIndex(k.b, k.argument(emitter.call), *axesOf(offset, offset.getAxes()));
    break;
  }
  case NodeKind::Index:
    value = arith::IndexCastOp::create(k.b, node.type, base(node.access));
    break;
  case NodeKind::Load:
    if (node.gatherStride)
      gatherBase(node);
    value = k.load(k.buffer(node.access.root), base(node.access), node.storage);
    break;
  case NodeKind::Compute: {
    SmallVector<Value> operands;
    for (NodeId operand : node.operands)
      operands.push_back(scalar(operand));
    value = node.build(k.b, operands);
    break;
  }
  case NodeKind::Round:
    value = k.round(scalar(node.operands[0]), node.storage);
    break;
  case NodeKind::RowReduce:
    llvm_unreachable("a reduction is known before the phase that needs it");
  }
  scalars[id] = value;
  return value;
}

/// Moves the base of a load to where its index points.
void RowEmitter::gatherBase(const Node &node) {
  if (bases.contains(&node.access))
    return;
  Value at = k.position(scalar(node.operands[0]), node.gatherSize, node.gatherFromEnd, node.gatherName);
  Value start = base(node.access);
  bases[&node.access] = k.add(start, k.scale(at, *node.gatherStride));
}

/// Emits before the loop over columns what does not depend on the column.
void RowEmitter::prepare(NodeId id, unsigned phase) {
  const Node &node = nodes[id];
  if (node.perRow) {
    scalar(id);
    return;
  }
  if (node.kind == NodeKind::Load && node.gatherStride)
    return gatherBase(node);
  if (const Sink *sink = storedEarlier(id, phase)) {
    base(sink->access);
    return;
  }
  if (node.kind == NodeKind::Load || node.kind == NodeKind::Index) {
    base(node.access);
    return;
  }
  if (node.phase < phase && spilled.contains(id))
    return;
  for (NodeId operand : node.operands)
    prepare(operand, phase);
}

Value RowEmitter::position(const Step &step, Value start, int64_t stride) {
  return k.add(start, k.scale(step.j, stride));
}

Value RowEmitter::vector(NodeId id, Step &step, unsigned phase) {
  if (auto it = step.values.find(id); it != step.values.end())
    return it->second;
  const Node &node = nodes[id];
  Value value;
  if (node.perRow) {
    value = k.splat(scalars.lookup(id), step.width);
  } else if (const Sink *sink = storedEarlier(id, phase)) {
    value = k.load(k.buffer(sink->access.root), position(step, bases.lookup(&sink->access), sink->access.colStride),
                   elementTypeOf(sink->value), step.width, sink->access.colStride);
  } else if (node.phase < phase && spilled.contains(id)) {
    value = k.load(spills.lookup(id), step.j, node.type, step.width, 1);
  } else if (node.kind == NodeKind::Load) {
    value = k.load(k.buffer(node.access.root), position(step, bases.lookup(&node.access), node.access.colStride),
                   node.storage, step.width, node.access.colStride);
  } else if (node.kind == NodeKind::Index) {
    auto type = VectorType::get({step.width}, node.type);
    SmallVector<int64_t> lanes;
    for (int64_t i = 0; i < step.width; ++i)
      lanes.push_back(i * node.access.colStride);
    Value start = position(step, bases.lookup(&node.access), node.access.colStride);
    Value first = k.splat(arith::IndexCastOp::create(k.b, node.type, start), step.width);
    Value offsets = arith::ConstantOp::create(k.b, DenseElementsAttr::get(type, ArrayRef<int64_t>(lanes)));
    value = arith::AddIOp::create(k.b, first, offsets);
  } else {
    SmallVector<Value> operands;
    for (NodeId operand : node.operands)
      operands.push_back(vector(operand, step, phase));
    value = node.kind == NodeKind::Round ? k.round(operands[0], node.storage) : node.build(k.b, operands);
  }
  step.values[id] = value;
  return value;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void RowEmitter::emitStep(Step &step, unsigned phase, ArrayRef<NodeId> reductions,
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
      Value at = position(step, start, 1);
      Value sum = k.load(buffer, at, nodes[sink.node].type, step.width, 1);
      k.store(arith::AddFOp::create(k.b, sum, value), buffer, at, nodes[sink.node].type, step.width, 1);
    } else if (sink.access.colStride != 0) {
      Type type = elementTypeOf(sink.value);
      k.store(value, k.buffer(sink.access.root), position(step, bases.lookup(&sink.access), sink.access.colStride),
              type, step.width, sink.access.colStride, nodes[sink.node].kind == NodeKind::Round);
    }
  }
}

void RowEmitter::emitPhase(unsigned phase) {
  bool columns = false;
  SmallVector<NodeId> reductions;
  for (auto [id, node] : llvm::enumerate(nodes))
    if (node.kind == NodeKind::RowReduce && node.phase == phase + 1)
      reductions.push_back(id);
  for (const Sink &sink : program.sinks) {
    if (nodes[sink.node].phase != phase)
      continue;
    prepare(sink.node, phase);
    if (!sink.columnSum)
      base(sink.access);
    if (sink.columnSum || sink.access.colStride != 0)
      columns = true;
    else
      k.store(scalar(sink.node), k.buffer(sink.access.root), base(sink.access), elementTypeOf(sink.value),
              nodes[sink.node].kind == NodeKind::Round);
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

void RowEmitter::emitRow() {
  scalars.clear();
  bases.clear();
  for (unsigned phase = 0; phase < program.numPhases(); ++phase)
    emitPhase(phase);
}

/// Zeros over one row of partial sums.
void RowEmitter::clearRow(Value buffer, Value start, Type type) {
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

void RowEmitter::emit() {
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
      size = rt::CallSizeOp::create(k.b, k.b.getIndexType(), k.argument(emitter.call));
      Value padded = arith::AddIOp::create(body, rt::CallSizeOp::create(body, body.getIndexType(), emitter.call),
                                           emitter.index(kChunk - 1));
      count = arith::DivUIOp::create(body, padded, emitter.index(kChunk));
    } else {
      size = k.index(domain.rows * domain.cols);
      count = emitter.index((domain.rows * domain.cols + kChunk - 1) / kChunk);
    }
    k.indices([&](Value i) {
      row = i;
      Value left = arith::SubIOp::create(k.b, size, k.scale(i, kChunk));
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
  int64_t rows = columnSumRows(domain);
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
  k.launch(columnSumBlocks(domain), std::max<int64_t>(1, kGrain / std::max<int64_t>(1, domain.cols * rows)));
  finishColumnSums();
}

/// Adds the blocks' partial sums in order, into the results or the accumulators.
void RowEmitter::finishColumnSums() {
  KernelBuilder f(emitter);
  int64_t cols = program.domain.cols, blocks = columnSumBlocks(program.domain);
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
            Value flag = rt::CallAccumulatesOp::create(f.b, f.b.getI1Type(), f.argument(emitter.call));
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

void lower::emitRowKernel(BodyEmitter &emitter, const RowProgram &program) { RowEmitter(emitter, program).emit(); }
