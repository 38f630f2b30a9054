//===- RowProgram.cpp - building blocks of fused kernels --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "RowProgram.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

bool lower::isNarrowFloat(Type type) { return type.isBF16() || type.isF16(); }

Type lower::computeType(Type type) { return isNarrowFloat(type) ? Float32Type::get(type.getContext()) : type; }

bool RowProgram::hasColumnSums() const {
  return llvm::any_of(sinks, [](const Sink &sink) { return sink.columnSum; });
}

unsigned RowProgram::numPhases() const {
  unsigned phases = 1;
  for (const Sink &sink : sinks)
    phases = std::max(phases, nodes[sink.node].phase + 1);
  return phases;
}

bool RowProgram::isFlat() const {
  if (domain.cols == 1)
    return false;
  auto flat = [&](const Access &access) {
    return access.isUniform() || (access.offset == 0 && access.isIdentity(domain.rows, domain.cols, false));
  };
  for (const Node &node : nodes) {
    if (node.kind == NodeKind::RowReduce || node.gatherStride)
      return false;
    if ((node.kind == NodeKind::Load || node.kind == NodeKind::Index) && !flat(node.access))
      return false;
  }
  return llvm::all_of(
      sinks, [&](const Sink &sink) { return !sink.columnSum && !sink.access.isUniform() && flat(sink.access); });
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

NodeId RowProgramBuilder::push(Node node) {
  bool scalar = node.kind == NodeKind::Compute || node.kind == NodeKind::Round;
  for (NodeId operand : node.operands) {
    const Node &from = program.nodes[operand];
    node.phase = std::max(node.phase, from.phase + (node.kind == NodeKind::RowReduce ? 1 : 0));
    scalar &= from.perRow;
    if (node.kind == NodeKind::Compute || node.kind == NodeKind::Round)
      node.cost += from.perRow ? 0 : from.cost;
  }
  if (scalar)
    node.perRow = true;
  program.nodes.push_back(std::move(node));
  return program.nodes.size() - 1;
}

NodeId RowProgramBuilder::constant(TypedAttr value) {
  Node node{NodeKind::Constant, computeType(value.getType())};
  if (auto number = dyn_cast<FloatAttr>(value); number && node.type != value.getType())
    value = FloatAttr::get(node.type, number.getValueAsDouble());
  node.constant = value;
  node.perRow = true;
  return push(std::move(node));
}

NodeId RowProgramBuilder::constant(Type type, double value) { return constant(FloatAttr::get(type, value)); }

NodeId RowProgramBuilder::zero(Type type) { return constant(cast<TypedAttr>(Builder(context).getZeroAttr(type))); }

NodeId RowProgramBuilder::columnIndex() {
  Node node{NodeKind::Index, IntegerType::get(context, 64)};
  node.access.colStride = 1;
  return push(std::move(node));
}

NodeId RowProgramBuilder::shardOffset(tfm::ShardOffsetOp op) {
  Type i64 = IntegerType::get(context, 64);
  Node node{NodeKind::RankIndex, i64};
  node.definition = op;
  node.perRow = true;
  NodeId size = constant(IntegerAttr::get(i64, static_cast<int64_t>(op.getSize())));
  return binary("arith.muli", push(std::move(node)), size);
}

NodeId RowProgramBuilder::compute(Type type, ArrayRef<NodeId> operands, BuildFn build, unsigned cost) {
  Node node{NodeKind::Compute, type};
  node.operands.assign(operands.begin(), operands.end());
  node.build = std::move(build);
  node.cost = cost;
  return push(std::move(node));
}

NodeId RowProgramBuilder::reduce(RowReduction kind, NodeId operand) {
  Node node{NodeKind::RowReduce, program.nodes[operand].type};
  node.operands = {operand};
  node.perRow = true;
  node.reduction = kind;
  return push(std::move(node));
}

/// A load of `value`, or the node that computes it in this kernel. `position` picks one of a few uniform values.
NodeId RowProgramBuilder::load(Value value, Role role, int64_t position) {
  View own = views.withoutPlacement(value);
  if (auto it = produced.find(own.root); it != produced.end()) {
    return it->second;
  }
  return loadView(views.of(value), elementTypeOf(value), role, position);
}

NodeId RowProgramBuilder::loadView(const View &view, Type type, Role role, int64_t position) {
  Operation *definition = view.root.getDefiningOp();
  if (definition && isInline(definition) && !views.isMaterialized(view.root)) {
    if (auto constantOp = dyn_cast<arith::ConstantOp>(definition))
      return constant(cast<SplatElementsAttr>(constantOp.getValue()).getSplatValue<TypedAttr>());
    if (auto fill = dyn_cast<tfm::FillOp>(definition))
      return constant(fill.getValue());
    if (auto offset = dyn_cast<tfm::ShardOffsetOp>(definition))
      return shardOffset(offset);
    auto iota = cast<tfm::IotaOp>(definition);
    Node index{NodeKind::Index, IntegerType::get(context, 64)};
    index.access = accessOf(view, role, program.domain.cols);
    index.perRow = index.access.colStride == 0;
    NodeId id = push(std::move(index));
    int64_t start = iota.getStart(), step = iota.getStep();
    return compute(type, {id}, [=](ImplicitLocOpBuilder &b, ValueRange operands) -> Value {
      Type wide = operands[0].getType();
      auto number = [&](int64_t n) -> Value {
        TypedAttr attr = b.getI64IntegerAttr(n);
        if (auto vector = dyn_cast<VectorType>(wide))
          attr = DenseElementsAttr::get(vector, attr);
        return arith::ConstantOp::create(b, attr);
      };
      Value scaled = arith::MulIOp::create(b, operands[0], number(step));
      Value sum = arith::AddIOp::create(b, scaled, number(start));
      Type target = type;
      if (auto vector = dyn_cast<VectorType>(wide))
        target = vector.clone(type);
      if (type.isInteger(64))
        return sum;
      if (type.isInteger(32))
        return arith::TruncIOp::create(b, target, sum);
      return arith::SIToFPOp::create(b, target, sum);
    });
  }
  Node node{NodeKind::Load, computeType(type)};
  node.access = accessOf(view, role, program.domain.cols);
  node.access.offset += position;
  node.storage = type;
  node.perRow = node.access.colStride == 0;
  node.cost = 1;
  // One load serves all readers of the same element.
  for (auto [id, other] : llvm::enumerate(program.nodes))
    if (other.kind == NodeKind::Load && !other.gatherStride && other.access.root == node.access.root &&
        other.access.offset == node.access.offset && other.access.rowShape == node.access.rowShape &&
        other.access.rowStrides == node.access.rowStrides && other.access.colStride == node.access.colStride)
      return id;
  return push(std::move(node));
}

NodeId RowProgramBuilder::gather(Operation *op, const View &table, int64_t axis, Access access, NodeId index,
                                 bool fromEnd) {
  Node node{NodeKind::Load, computeType(elementTypeOf(table.root))};
  node.access = std::move(access);
  node.storage = elementTypeOf(table.root);
  node.operands = {index};
  node.gatherStride = table.strides[axis];
  node.gatherSize = table.shape[axis];
  node.gatherFromEnd = fromEnd;
  node.gatherName = op->getName().stripDialect();
  node.perRow = node.access.colStride == 0;
  node.cost = 1;
  return push(std::move(node));
}

/// Rounds to the result's element type and makes the value known; its sink is added where it is needed in memory.
void RowProgramBuilder::define(Value result, NodeId node) {
  Type storage = elementTypeOf(result);
  const Node &from = program.nodes[node];
  if (isNarrowFloat(storage) && !(from.kind == NodeKind::Round && from.storage == storage) &&
      !(from.kind == NodeKind::Load && from.storage == storage)) {
    Node round{NodeKind::Round, from.type};
    round.operands = {node};
    round.storage = storage;
    round.cost = 4;
    node = push(std::move(round));
  }
  produced[result] = node;
}

void RowProgramBuilder::store(NodeId node, Value value, Role role) {
  Sink sink{node, value};
  View view = views.of(value);
  if (auto reshape = value.getDefiningOp<tfm::ReshapeOp>()) { // walked in the order of its operand
    view.shape = Sizes(shapeOf(reshape.getInput()));
    view.strides = contiguousStrides(view.shape);
  }
  if (value.getDefiningOp<tfm::GatherOp>()) { // in rows of whole slices
    view.shape = {program.domain.rows, program.domain.cols};
    view.strides = contiguousStrides(view.shape);
  }
  sink.access = accessOf(view, role, program.domain.cols);
  program.sinks.push_back(std::move(sink));
}

void RowProgramBuilder::columnSum(NodeId node, Value value, tfm::AccumulateOp accumulate) {
  Sink sink{node, value};
  sink.columnSum = true;
  sink.accumulate = accumulate;
  program.sinks.push_back(std::move(sink));
}

NodeId RowProgramBuilder::binary(StringRef name, NodeId a, NodeId b) {
  std::string op = name.str();
  return compute(program.nodes[a].type, {a, b}, [op](ImplicitLocOpBuilder &builder, ValueRange operands) -> Value {
    return builder.create(OperationState(builder.getLoc(), op, operands, {operands[0].getType()}))->getResult(0);
  });
}

NodeId RowProgramBuilder::unary(StringRef name, NodeId a, unsigned cost) {
  std::string op = name.str();
  return compute(
      program.nodes[a].type, {a},
      [op](ImplicitLocOpBuilder &builder, ValueRange operands) -> Value {
        return builder.create(OperationState(builder.getLoc(), op, operands, {operands[0].getType()}))->getResult(0);
      },
      cost);
}

/// Between float types, f32 and f64.
NodeId RowProgramBuilder::convert(NodeId a, Type type) {
  Type from = program.nodes[a].type;
  if (from == type)
    return a;
  bool wider = type.getIntOrFloatBitWidth() > from.getIntOrFloatBitWidth();
  return compute(type, {a}, [type, wider](ImplicitLocOpBuilder &b, ValueRange operands) -> Value {
    Type target = type;
    if (auto vector = dyn_cast<VectorType>(operands[0].getType()))
      target = vector.clone(type);
    if (wider)
      return arith::ExtFOp::create(b, target, operands[0]);
    return arith::TruncFOp::create(b, target, operands[0]);
  });
}
