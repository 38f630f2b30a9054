//===- GpuRowPhases.cpp - the phases of a row -------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GpuRowEmitter.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

Value GpuRowEmitter::neutral(NodeId reduction, int64_t width) {
  const Node &node = nodes[reduction];
  return k.constant(VectorType::get({width}, node.type), KernelBuilder::neutral(node.reduction));
}

/// Whether a step from `column` on is in the row, as its group is in the domain; null where both always are.
Value GpuRowEmitter::isActive(Value column, Value isRow) {
  if (layout.steps * layout.group * layout.width == program.domain.cols)
    return isRow;
  Value inside = gpu.lessThan(column, k.index(program.domain.cols));
  return isRow ? arith::AndIOp::create(k.b, inside, isRow).getResult() : inside;
}

/// Loads along the columns that the phase needs and no earlier one has made.
void GpuRowEmitter::collectLoads(NodeId id, unsigned phase, const Step &step, llvm::SetVector<NodeId> &loads) const {
  const Node &node = nodes[id];
  if (node.perRow || step.values.contains(id))
    return;
  if (node.kind == NodeKind::Load) {
    loads.insert(id);
    return;
  }
  for (NodeId operand : node.operands)
    collectLoads(operand, phase, step, loads);
}

void GpuRowEmitter::loadColumns(unsigned phase, Step &step, Value active) {
  llvm::SetVector<NodeId> loads;
  for (const Sink &sink : program.sinks)
    if (needs(sink, phase) && isColumnSink(sink))
      collectLoads(sink.node, phase, step, loads);
  for (NodeId id : reductionsOf(phase))
    collectLoads(nodes[id].operands[0], phase, step, loads);
  if (!active || loads.empty())
    return; // where they are used
  SmallVector<Type> types;
  for (NodeId id : loads)
    types.push_back(VectorType::get({step.width}, nodes[id].type));
  auto branch = scf::IfOp::create(k.b, types, active, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(k.b);
    Step inside(step.j, step.width);
    k.b.setInsertionPointToStart(branch.thenBlock());
    SmallVector<Value> values;
    for (NodeId id : loads)
      values.push_back(vector(id, inside, phase));
    scf::YieldOp::create(k.b, values);
    k.b.setInsertionPointToStart(branch.elseBlock());
    values.clear();
    for (Type type : types)
      values.push_back(k.constant(type, 0.0));
    scf::YieldOp::create(k.b, values);
  }
  for (auto [id, value] : llvm::zip(loads, branch.getResults()))
    step.values[id] = value;
}

void GpuRowEmitter::finishReductions(ArrayRef<NodeId> reductions, ArrayRef<Value> accumulators) {
  SmallVector<Value> values;
  SmallVector<RowReduction> kinds;
  for (auto [id, accumulator] : llvm::zip(reductions, accumulators)) {
    kinds.push_back(nodes[id].reduction);
    values.push_back(k.horizontal(accumulator, kinds.back()));
  }
  for (auto [id, total] : llvm::zip(reductions, gpu.reduce(values, kinds, layout.group)))
    scalars[id] = total;
}

void GpuRowEmitter::emitHeldPhase(unsigned phase, Value isRow) {
  SmallVector<NodeId> reductions = reductionsOf(phase);
  SmallVector<Value> accumulators;
  for (NodeId id : reductions)
    accumulators.push_back(neutral(id, layout.width));
  for (auto [number, step] : llvm::enumerate(steps)) {
    Value active = isActive(step.j, isRow);
    loadColumns(phase, step, active);
    for (const Sink &sink : program.sinks)
      if (needs(sink, phase) && isColumnSink(sink))
        vector(sink.node, step, phase);
    for (auto [id, accumulator] : llvm::zip(reductions, accumulators)) {
      Value value = vector(nodes[id].operands[0], step, phase);
      if (active)
        value = arith::SelectOp::create(k.b, active, value, neutral(id, layout.width));
      accumulator = k.combine(accumulator, value, nodes[id].reduction);
    }
    for (auto [sum, sink] : llvm::enumerate(columnSums()))
      if (needs(*sink, phase))
        sums[sum][number] = arith::AddFOp::create(k.b, sums[sum][number], step.values.lookup(sink->node));
    gpu.when(active, [&, &step = step] {
      for (const Sink &sink : program.sinks)
        if (needs(sink, phase) && !sink.columnSum && sink.access.colStride != 0)
          storeStep(sink, step);
    });
  }
  if (!reductions.empty())
    finishReductions(reductions, accumulators);
}

/// Adds this row's values to the block's partial sums in the workspace, of which each thread has its own columns.
void GpuRowEmitter::addToPartials(Step &step, unsigned phase) {
  for (auto [sink, partial] : llvm::zip(columnSums(), partials)) {
    if (!needs(*sink, phase))
      continue;
    Type type = nodes[sink->node].type;
    auto [buffer, start] = partial;
    Value at = k.add(start, step.j);
    Value sum = k.load(buffer, at, type, step.width, 1, step.width);
    k.store(arith::AddFOp::create(k.b, sum, step.values.lookup(sink->node)), buffer, at, type, step.width, 1, false,
            step.width);
  }
}

void GpuRowEmitter::emitLoopedPhase(unsigned phase, Value isRow) {
  SmallVector<NodeId> reductions = reductionsOf(phase);
  SmallVector<Value> initial;
  for (NodeId id : reductions)
    initial.push_back(neutral(id, layout.width));
  Value to = k.index(program.domain.cols);
  if (isRow)
    to = arith::SelectOp::create(k.b, isRow, to, k.index(0));
  SmallVector<Value> totals =
      k.loop(k.scale(lane, layout.width), to, layout.group * layout.width, initial, [&](Value j, ValueRange carried) {
        Step step(j, layout.width);
        SmallVector<Value> accumulators = llvm::to_vector(carried);
        for (const Sink &sink : program.sinks)
          if (needs(sink, phase) && isColumnSink(sink))
            vector(sink.node, step, phase);
        for (auto [id, accumulator] : llvm::zip(reductions, accumulators))
          accumulator = k.combine(accumulator, vector(nodes[id].operands[0], step, phase), nodes[id].reduction);
        addToPartials(step, phase);
        for (const Sink &sink : program.sinks)
          if (needs(sink, phase) && !sink.columnSum && sink.access.colStride != 0)
            storeStep(sink, step);
        return accumulators;
      });
  if (!reductions.empty())
    finishReductions(reductions, totals);
}

void GpuRowEmitter::emitPhase(unsigned phase, Value isRow) {
  bool columns = !reductionsOf(phase).empty();
  for (const Sink &sink : program.sinks) {
    if (!needs(sink, phase))
      continue;
    prepare(sink.node, phase);
    if (!sink.columnSum)
      base(sink.access);
    columns |= isColumnSink(sink);
  }
  for (NodeId id : reductionsOf(phase))
    prepare(nodes[id].operands[0], phase);
  if (columns && layout.held)
    emitHeldPhase(phase, isRow);
  else if (columns)
    emitLoopedPhase(phase, isRow);
  // One thread stores what is one value a row.
  bool stores =
      llvm::any_of(program.sinks, [&](const Sink &sink) { return needs(sink, phase) && !isColumnSink(sink); });
  if (!stores)
    return;
  Value leads = layout.group > 1 ? gpu.isZero(lane) : Value();
  if (leads && isRow)
    leads = arith::AndIOp::create(k.b, leads, isRow);
  gpu.when(leads ? leads : isRow, [&] {
    for (const Sink &sink : program.sinks)
      if (needs(sink, phase) && !isColumnSink(sink))
        storeRow(sink);
  });
}

void GpuRowEmitter::emitRow(Value isRow) {
  startRow();
  steps.clear();
  for (int64_t i = 0; layout.held && i < layout.steps; ++i)
    steps.emplace_back(k.scale(k.add(lane, k.index(i * layout.group)), layout.width), layout.width);
  for (unsigned phase = 0; phase < program.numPhases(); ++phase)
    emitPhase(phase, isRow);
}
