//===- RowLayers.cpp - layers as row programs -------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "RowProgram.h"
#include <limits>

using namespace mlir;
using namespace drover;
using namespace drover::lower;

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

NodeId RowProgramBuilder::mean(NodeId a) {
  Type type = program.nodes[a].type;
  return mul(reduce(RowReduction::Sum, a), constant(type, 1.0 / program.domain.cols));
}

NodeId RowProgramBuilder::reciprocalRoot(NodeId variance, double eps) {
  Type type = program.nodes[variance].type;
  return div(constant(type, 1.0), unary("math.sqrt", add(variance, constant(type, eps)), 8));
}

void RowProgramBuilder::addRmsNorm(tfm::RmsNormOp op) {
  NodeId x = load(op.getInput(), Role::Element);
  NodeId r = reciprocalRoot(mean(mul(x, x)), op.getEps().convertToDouble());
  NodeId result = mul(x, r);
  if (op.getWeight()) {
    NodeId w = load(op.getWeight(), Role::Column);
    if (double offset = op.getWeightOffset().convertToDouble(); offset != 0.0)
      w = add(w, constant(program.nodes[w].type, offset));
    result = mul(result, w);
  }
  define(op.getResult(), result);
}

void RowProgramBuilder::addRmsNormGrad(tfm::RmsNormGradOp op) {
  NodeId x = load(op.getInput(), Role::Element), dy = load(op.getGradient(), Role::Element), g = dy;
  if (op.getWeight()) {
    NodeId w = load(op.getWeight(), Role::Column);
    if (double offset = op.getWeightOffset().convertToDouble(); offset != 0.0)
      w = add(w, constant(program.nodes[w].type, offset));
    g = mul(dy, w);
  }
  NodeId r = reciprocalRoot(mean(mul(x, x)), op.getEps().convertToDouble());
  NodeId m = mul(mul(r, r), mean(mul(g, x)));
  define(op.getInputGrad(), mul(r, sub(g, mul(x, m))));
  if (op.getWeightGrad())
    produced[op.getWeightGrad()] = mul(dy, mul(x, r));
}

void RowProgramBuilder::addLayerNorm(tfm::LayerNormOp op) {
  NodeId x = load(op.getInput(), Role::Element);
  NodeId centered = sub(x, mean(x));
  NodeId r = reciprocalRoot(mean(mul(centered, centered)), op.getEps().convertToDouble());
  NodeId result = mul(centered, r);
  if (op.getWeight())
    result = mul(result, load(op.getWeight(), Role::Column));
  if (op.getBias())
    result = add(result, load(op.getBias(), Role::Column));
  define(op.getResult(), result);
}

void RowProgramBuilder::addLayerNormGrad(tfm::LayerNormGradOp op) {
  NodeId x = load(op.getInput(), Role::Element), dy = load(op.getGradient(), Role::Element), g = dy;
  if (op.getWeight())
    g = mul(dy, load(op.getWeight(), Role::Column));
  NodeId centered = sub(x, mean(x));
  NodeId r = reciprocalRoot(mean(mul(centered, centered)), op.getEps().convertToDouble());
  NodeId normalized = mul(centered, r);
  NodeId shift = mean(g), slope = mean(mul(g, normalized));
  define(op.getInputGrad(), mul(r, sub(sub(g, shift), mul(normalized, slope))));
  if (op.getWeightGrad())
    produced[op.getWeightGrad()] = mul(dy, normalized);
  if (op.getBiasGrad())
    produced[op.getBiasGrad()] = dy;
}

//===----------------------------------------------------------------------===//
// Softmax, the loss, reductions over the last dimension
//===----------------------------------------------------------------------===//

void RowProgramBuilder::addSoftmax(tfm::SoftmaxOp op) {
  NodeId x = load(op.getInput(), Role::Element);
  NodeId e = exp(sub(x, reduce(RowReduction::Max, x)));
  NodeId sum = reduce(RowReduction::Sum, e);
  define(op.getResult(), div(e, sum));
}

void RowProgramBuilder::addReduce(tfm::ReduceOp op) {
  NodeId x = load(op.getInput(), Role::Element);
  switch (op.getKind()) {
  case tfm::ReduceKind::Max:
    return define(op.getResult(), reduce(RowReduction::Max, x));
  case tfm::ReduceKind::Min:
    return define(op.getResult(), reduce(RowReduction::Min, x));
  case tfm::ReduceKind::Mean:
    return define(op.getResult(), mean(x));
  default:
    return define(op.getResult(), reduce(RowReduction::Sum, x));
  }
}

/// 1 where a <predicate> b, as an i1.
static BuildFn compareInt(arith::CmpIPredicate predicate) {
  return [predicate](ImplicitLocOpBuilder &b, ValueRange values) -> Value {
    return arith::CmpIOp::create(b, predicate, values[0], values[1]);
  };
}

BuildFn lower::selectNode() {
  return [](ImplicitLocOpBuilder &b, ValueRange values) -> Value {
    return arith::SelectOp::create(b, values[0], values[1], values[2]);
  };
}

static BuildFn extendToI64() {
  return [](ImplicitLocOpBuilder &b, ValueRange values) -> Value {
    Type i64 = b.getI64Type();
    if (auto vector = dyn_cast<VectorType>(values[0].getType()))
      i64 = vector.clone(i64);
    return values[0].getType() == i64 ? values[0] : arith::ExtSIOp::create(b, i64, values[0]).getResult();
  };
}

/// With an offset the row is read where the table has it, and its zeros are selected elsewhere.
void RowProgramBuilder::addEmbedding(tfm::EmbeddingOp op) {
  View table = views.of(op.getTable());
  Access access{table.root, table.offset, {}, {}, table.shape[1] == 1 ? 0 : table.strides[1]};
  NodeId id = load(op.getIds(), Role::Row);
  if (!op.getOffset())
    return define(op.getResult(), gather(op, table, 0, access, id, false));
  Type i1 = IntegerType::get(context, 1), i64 = IntegerType::get(context, 64);
  auto number = [&](int64_t value) { return constant(IntegerAttr::get(i64, value)); };
  NodeId row = binary("arith.subi", compute(i64, {id}, extendToI64()), load(op.getOffset(), Role::Uniform));
  NodeId here = compute(i1, {row, number(table.shape[0])}, compareInt(arith::CmpIPredicate::ult));
  NodeId safe = compute(i64, {here, row, number(0)}, selectNode());
  NodeId value = gather(op, table, 0, access, safe, false);
  Type type = program.nodes[value].type;
  define(op.getResult(), compute(type, {here, value, constant(type, 0.0)}, selectNode()));
}

void RowProgramBuilder::addLogits(Operation *op) {
  Type i1 = IntegerType::get(context, 1), i64 = IntegerType::get(context, 64);
  auto vocabulary = op->getAttrOfType<IntegerAttr>("vocabulary");
  // Numbers of the row's columns in the whole vocabulary begin at `first`.
  std::optional<NodeId> first, valid;
  auto columnsFrom = [&](Value offset) {
    if (offset)
      first = load(offset, Role::Uniform);
    if (!vocabulary)
      return;
    NodeId limit = constant(vocabulary);
    if (first)
      limit = binary("arith.subi", limit, *first);
    valid = compute(i1, {columnIndex(), limit}, compareInt(arith::CmpIPredicate::slt));
  };
  auto masked = [&](NodeId value, double padding) {
    Type type = program.nodes[value].type;
    return valid ? compute(type, {*valid, value, constant(type, padding)}, selectNode()) : value;
  };
  if (auto max = dyn_cast<tfm::LogitsMaxOp>(op)) {
    columnsFrom(max.getOffset());
    NodeId x = convert(load(max.getLogits(), Role::Element), computeType(elementTypeOf(max.getMaximum())));
    return define(max.getMaximum(), reduce(RowReduction::Max, masked(x, -std::numeric_limits<double>::infinity())));
  }
  auto label = [&](Value labels) { return compute(i64, {load(labels, Role::Row)}, extendToI64()); };
  auto columnOf = [&](NodeId id) { return first ? binary("arith.subi", id, *first) : id; };
  NodeId zero = constant(IntegerAttr::get(i64, 0));
  if (auto sum = dyn_cast<tfm::LogitsSumOp>(op)) {
    Type type = computeType(elementTypeOf(sum.getSum()));
    columnsFrom(sum.getOffset());
    NodeId x = convert(load(sum.getLogits(), Role::Element), type);
    define(sum.getSum(), reduce(RowReduction::Sum, masked(exp(sub(x, load(sum.getMaximum(), Role::Row))), 0.0)));
    NodeId id = columnOf(label(sum.getLabels()));
    View logits = views.of(sum.getLogits());
    if (produced.contains(sum.getLogits()) || produced.contains(logits.root)) {
      // This kernel computes the logits, and stores a row behind these sums at the earliest: pick the label's while
      // they pass. No label that does not count is a column.
      NodeId hit = compute(i1, {columnIndex(), id}, compareInt(arith::CmpIPredicate::eq));
      return define(sum.getTarget(),
                    reduce(RowReduction::Sum, compute(type, {hit, x, constant(type, 0.0)}, selectNode())));
    }
    // The label's logit where the label counts; element 0 is read, and not used, where it does not.
    NodeId counts = first ? compute(i1, {id, constant(IntegerAttr::get(i64, program.domain.cols))},
                                    compareInt(arith::CmpIPredicate::ult))
                          : compute(i1, {id, zero}, compareInt(arith::CmpIPredicate::sge));
    NodeId safe = compute(i64, {counts, id, zero}, selectNode());
    View row = logits;
    row.shape.pop_back();
    row.strides.pop_back();
    NodeId target = convert(
        gather(op, logits, logits.shape.size() - 1, accessOf(row, Role::Row, program.domain.cols), safe, false), type);
    return define(sum.getTarget(), compute(type, {counts, target, constant(type, 0.0)}, selectNode()));
  }
  auto gradient = cast<tfm::CrossEntropyGradOp>(op);
  columnsFrom(gradient.getOffset());
  Type type = computeType(elementTypeOf(gradient.getSum()));
  NodeId x = convert(load(gradient.getLogits(), Role::Element), type);
  NodeId id = label(gradient.getLabels());
  NodeId seed = convert(load(gradient.getSeed(), Role::Uniform), type);
  NodeId counts = compute(i1, {id, zero}, compareInt(arith::CmpIPredicate::sge));
  NodeId scale = compute(type, {counts, seed, constant(type, 0.0)}, selectNode());
  NodeId inverse = div(scale, load(gradient.getSum(), Role::Row));
  NodeId probability = mul(exp(sub(x, load(gradient.getMaximum(), Role::Row))), inverse);
  NodeId hit = compute(i1, {columnIndex(), columnOf(id)}, compareInt(arith::CmpIPredicate::eq));
  NodeId minus = compute(type, {hit, scale, constant(type, 0.0)}, selectNode());
  define(gradient.getResult(), masked(sub(probability, minus), 0.0));
}

//===----------------------------------------------------------------------===//
// The optimizer
//===----------------------------------------------------------------------===//

void RowProgramBuilder::addOptimizer(Operation *op) {
  Value hyper = op->getOperands().back();
  enum { LearningRate, WeightDecay, Beta1, Beta2, Eps, Bias1, Bias2, Clip };
  auto setting = [&](int64_t which) { return load(hyper, Role::Uniform, which); };
  Type f32 = Float32Type::get(context);
  NodeId one = constant(f32, 1.0);
  NodeId decay = sub(one, mul(setting(LearningRate), setting(WeightDecay)));
  NodeId p = mul(load(op->getOperand(0), Role::Element), decay);
  if (auto sgd = dyn_cast<tfm::SgdOp>(op)) {
    NodeId g = load(sgd.getGradient(), Role::Element);
    return define(sgd.getResult(), sub(p, mul(mul(setting(LearningRate), setting(Clip)), g)));
  }
  auto adamw = cast<tfm::AdamWOp>(op);
  NodeId g = mul(load(adamw.getGradient(), Role::Element), setting(Clip));
  NodeId m = add(mul(setting(Beta1), load(adamw.getMoment1(), Role::Element)), mul(sub(one, setting(Beta1)), g));
  NodeId v =
      add(mul(setting(Beta2), load(adamw.getMoment2(), Role::Element)), mul(sub(one, setting(Beta2)), mul(g, g)));
  NodeId rate = div(setting(LearningRate), setting(Bias1));
  NodeId root = div(unary("math.sqrt", v, 8), unary("math.sqrt", setting(Bias2), 8));
  define(adamw.getNewParameter(), sub(p, div(mul(rate, m), add(root, setting(Eps)))));
  define(adamw.getNewMoment1(), m);
  define(adamw.getNewMoment2(), v);
}
