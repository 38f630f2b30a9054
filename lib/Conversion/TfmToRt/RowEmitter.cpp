//===- RowEmitter.cpp - values of a fused kernel ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "RowEmitter.h"
#include "Collectives.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

int64_t lower::columnSumRows(Domain domain, Target target) {
  // At most 64 blocks on the host, and two for each of 132 multiprocessors, of at least 16 rows.
  int64_t blocks = std::clamp<int64_t>(domain.rows / 16, 1, target == Target::Host ? 64 : 264);
  return (domain.rows + blocks - 1) / blocks;
}

int64_t lower::columnSumBlocks(Domain domain, Target target) {
  int64_t rows = columnSumRows(domain, target);
  return (domain.rows + rows - 1) / rows;
}

int64_t lower::columnSumBytes(const RowProgram &program, const Sink &sink, Target target) {
  return columnSumBlocks(program.domain, target) * program.domain.cols * bytesOf(program.nodes[sink.node].type);
}

void lower::emitRowKernel(BodyEmitter &emitter, const RowProgram &program) {
  if (emitter.target == Target::Cuda)
    emitGpuRows(emitter, program);
  else
    emitHostRows(emitter, program);
}

const Sink *RowEmitter::storedEarlier(NodeId id, unsigned phase) const {
  if (nodes[id].phase >= phase || nodes[id].kind == NodeKind::Load)
    return nullptr;
  for (const Sink &sink : program.sinks)
    if (sink.node == id && !sink.columnSum && sink.access.colStride != 0)
      return &sink;
  return nullptr;
}

SmallVector<NodeId> RowEmitter::reductionsOf(unsigned phase) const {
  SmallVector<NodeId> reductions;
  for (auto [id, node] : llvm::enumerate(nodes))
    if (node.kind == NodeKind::RowReduce && node.phase == phase + 1)
      reductions.push_back(id);
  return reductions;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value RowEmitter::base(const Access &access) {
  Value &base = bases[&access];
  if (base)
    return base;
  base = k.index(access.offset);
  if (flat && !access.isUniform())
    return base = k.add(base, flatStart);
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
    value = k.callAccumulates();
    break;
  case NodeKind::RankIndex: {
    auto offset = cast<tfm::ShardOffsetOp>(node.definition);
    value = k.fromIndex(k.rankIndex(*axesOf(offset, offset.getAxes())), node.type);
    break;
  }
  case NodeKind::Index:
    value = k.fromIndex(base(node.access), node.type);
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
  if (node.phase < phase && isKept(id))
    return;
  for (NodeId operand : node.operands)
    prepare(operand, phase);
}

Value RowEmitter::position(const Step &step, const Access &access) {
  return k.add(base(access), k.scale(step.j, access.colStride));
}

Value RowEmitter::loadStep(const Access &access, Type type, const Step &step) {
  return k.load(k.buffer(access.root), position(step, access), type, step.width, access.colStride,
                alignedElements(access, std::nullopt, step.width));
}

Value RowEmitter::vector(NodeId id, Step &step, unsigned phase) {
  if (auto it = step.values.find(id); it != step.values.end())
    return it->second;
  const Node &node = nodes[id];
  Value value;
  if (node.perRow) {
    value = k.splat(scalars.lookup(id), step.width);
  } else if (const Sink *sink = storedEarlier(id, phase)) {
    value = loadStep(sink->access, elementTypeOf(sink->value), step);
  } else if (node.phase < phase && isKept(id)) {
    value = keptValue(id, step);
  } else if (node.kind == NodeKind::Load) {
    value = k.load(k.buffer(node.access.root), position(step, node.access), node.storage, step.width,
                   node.access.colStride, alignedElements(node.access, node.gatherStride, step.width));
  } else if (node.kind == NodeKind::Index) {
    auto type = VectorType::get({step.width}, node.type);
    SmallVector<int64_t> lanes;
    for (int64_t i = 0; i < step.width; ++i)
      lanes.push_back(i * node.access.colStride);
    Value start = position(step, node.access);
    Value first = k.splat(k.fromIndex(start, node.type), step.width);
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
// Stores
//===----------------------------------------------------------------------===//

void RowEmitter::storeStep(const Sink &sink, Step &step) {
  k.store(step.values.lookup(sink.node), k.buffer(sink.access.root), position(step, sink.access),
          elementTypeOf(sink.value), step.width, sink.access.colStride, nodes[sink.node].kind == NodeKind::Round,
          alignedElements(sink.access, std::nullopt, step.width));
}

void RowEmitter::storeRow(const Sink &sink) {
  k.store(scalar(sink.node), k.buffer(sink.access.root), base(sink.access), elementTypeOf(sink.value),
          nodes[sink.node].kind == NodeKind::Round);
}
