//===- RowOps.cpp - ops as row programs -------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "RowProgram.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include <limits>

using namespace mlir;
using namespace drover;
using namespace drover::lower;

//===----------------------------------------------------------------------===//
// Which ops, over which domain
//===----------------------------------------------------------------------===//

static bool isElementwise(Operation *op) {
  if (isa<arith::ConstantOp>(op) || op->getNumResults() != 1 || op->getNumOperands() == 0)
    return false;
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
         isa<tfm::GeluOp, tfm::GeluGradOp, tfm::SiluOp, tfm::SiluGradOp, tfm::SwigluOp, tfm::AccumulateOp>(op);
}

/// True where the op reduces the last dimension alone.
static bool reducesColumns(tfm::ReduceOp op) {
  ArrayRef<int64_t> axes = op.getAxes();
  return axes.size() == 1 && axes.front() == static_cast<int64_t>(shapeOf(op.getInput()).size()) - 1 &&
         isa<FloatType>(elementTypeOf(op.getInput())) && op.getKind() != tfm::ReduceKind::Prod;
}

static Domain rowsAndColumns(ArrayRef<int64_t> shape) {
  if (shape.empty())
    return {};
  return {product(shape.drop_back()), shape.back()};
}

std::optional<Domain> lower::rowDomain(Operation *op, const Views &views) {
  if (isElementwise(op) || isInline(op)) {
    ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
    while (!shape.empty() && shape.back() == 1)
      shape = shape.drop_back();
    return rowsAndColumns(shape);
  }
  return TypeSwitch<Operation *, std::optional<Domain>>(op)
      .Case<tfm::SwigluGradOp, tfm::AdamWOp, tfm::SgdOp, tfm::RmsNormOp, tfm::RmsNormGradOp, tfm::LayerNormOp,
            tfm::LayerNormGradOp, tfm::LogitsMaxOp, tfm::LogitsSumOp, tfm::CrossEntropyGradOp, tfm::ColumnSumOp,
            tfm::BiasAddOp>([](Operation *layer) { return rowsAndColumns(shapeOf(layer->getOperand(0))); })
      .Case([](tfm::EmbeddingOp embedding) { return rowsAndColumns(shapeOf(embedding.getResult())); })
      .Case([](tfm::GatherOp gather) {
        ArrayRef<int64_t> shape = shapeOf(gather.getInput());
        int64_t axis = gather.getAxis();
        return Domain{product(shape.take_front(axis)) * product(shapeOf(gather.getIndices())),
                      product(shape.drop_front(axis + 1))};
      })
      .Case([](tfm::SoftmaxOp softmax) -> std::optional<Domain> {
        ArrayRef<int64_t> shape = shapeOf(softmax.getInput());
        if (static_cast<size_t>(softmax.getAxis()) + 1 != shape.size())
          return std::nullopt;
        return rowsAndColumns(shape);
      })
      .Case([](tfm::ReduceOp reduce) -> std::optional<Domain> {
        if (!reducesColumns(reduce))
          return std::nullopt;
        return rowsAndColumns(shapeOf(reduce.getInput()));
      })
      // Copies; a reshape is walked in the order of its operand, because it may be no view of it.
      .Case([](tfm::ReshapeOp reshape) { return rowsAndColumns(shapeOf(reshape.getInput())); })
      .Case<tfm::TransposeOp, tfm::SliceOp, tfm::BroadcastOp>(
          [](Operation *view) { return rowsAndColumns(shapeOf(view->getResult(0))); })
      .Default([](Operation *) { return std::nullopt; });
}

Role lower::operandRole(OpOperand &operand, const Views &views) {
  Operation *op = operand.getOwner();
  unsigned index = operand.getOperandNumber();
  return TypeSwitch<Operation *, Role>(op)
      .Case<tfm::RmsNormOp, tfm::LayerNormOp, tfm::BiasAddOp>(
          [&](auto) { return index == 0 ? Role::Element : Role::Column; })
      .Case<tfm::RmsNormGradOp, tfm::LayerNormGradOp>([&](auto) { return index < 2 ? Role::Element : Role::Column; })
      .Case<tfm::LogitsMaxOp>([&](auto) { return index == 0 ? Role::Element : Role::Uniform; })
      .Case<tfm::LogitsSumOp>(
          [&](auto) { return index == 0 ? Role::Element : (index == 3 ? Role::Uniform : Role::Row); })
      .Case<tfm::CrossEntropyGradOp>(
          [&](auto) { return index == 0 ? Role::Element : (index >= 4 ? Role::Uniform : Role::Row); })
      .Case<tfm::AdamWOp>([&](auto) { return index == 4 ? Role::Other : Role::Element; })
      .Case<tfm::SgdOp>([&](auto) { return index == 2 ? Role::Other : Role::Element; })
      .Case<tfm::EmbeddingOp>([&](auto) { return index == 0 ? Role::Row : (index == 2 ? Role::Uniform : Role::Other); })
      .Case<tfm::GatherOp>([&](auto) { return Role::Other; })
      .Case<tfm::TransposeOp, tfm::SliceOp, tfm::BroadcastOp>([&](auto) { return Role::Other; })
      .Default([&](Operation *) { return Role::Element; });
}

Role lower::resultRole(OpResult result, const Views &views) {
  return TypeSwitch<Operation *, Role>(result.getOwner())
      .Case<tfm::LogitsMaxOp, tfm::LogitsSumOp, tfm::ReduceOp>([](auto) { return Role::Row; })
      .Case<tfm::ColumnSumOp>([](auto) { return Role::Column; })
      .Case<tfm::RmsNormGradOp, tfm::LayerNormGradOp>(
          [&](auto) { return result.getResultNumber() == 0 ? Role::Element : Role::Column; })
      .Default([](Operation *) { return Role::Element; });
}

//===----------------------------------------------------------------------===//
// Element-wise ops
//===----------------------------------------------------------------------===//

/// An integer division for which every pair of operands has a result, as the processor traps where arith has none: by
/// zero it is 0, and so is the remainder; the smallest number by -1 wraps to itself.
static Value divideInts(ImplicitLocOpBuilder &b, StringRef name, Value dividend, Value divisor) {
  Type type = dividend.getType();
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  auto number = [&](const APInt &n) -> Value {
    TypedAttr attr = b.getIntegerAttr(getElementTypeOrSelf(type), n);
    if (auto vector = dyn_cast<VectorType>(type))
      attr = DenseElementsAttr::get(vector, Attribute(attr));
    return arith::ConstantOp::create(b, attr);
  };
  auto equal = [&](Value a, const APInt &n) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, a, number(n));
  };
  // Divided by 1 in place of these: x / 1 = x is also what the smallest number wraps to, and x % 1 = 0.
  Value byZero = equal(divisor, APInt::getZero(width)), undefined = byZero;
  if (!name.ends_with("ui")) {
    Value wraps = arith::AndIOp::create(b, equal(dividend, APInt::getSignedMinValue(width)),
                                        equal(divisor, APInt::getAllOnes(width)));
    undefined = arith::OrIOp::create(b, byZero, wraps);
  }
  Value safe = arith::SelectOp::create(b, undefined, number(APInt(width, 1)), divisor);
  Value result = b.create(OperationState(b.getLoc(), name, {dividend, safe}, {type}))->getResult(0);
  return arith::SelectOp::create(b, byZero, number(APInt::getZero(width)), result);
}

/// An upstream op on the compute types, as it stands.
LogicalResult RowProgramBuilder::addElementwise(Operation *op) {
  Type narrow = elementTypeOf(op->getResult(0));
  auto touchesNarrow = [](Value value) { return isNarrowFloat(elementTypeOf(value)); };
  bool isNarrow = isNarrowFloat(narrow) || llvm::any_of(op->getOperands(), touchesNarrow);
  if (isNarrow && isa<arith::BitcastOp>(op))
    return op->emitOpError("is not supported on ") << narrow << " by the host target; cast through f32";
  SmallVector<NodeId> operands;
  for (OpOperand &operand : op->getOpOperands())
    operands.push_back(load(operand.get(), Role::Element));
  Type type = computeType(narrow);
  // Casts to and from the narrow floats are what loads and rounding do.
  if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
    define(op->getResult(0), convert(operands[0], type));
    return success();
  }
  StringAttr name = op->getName().getIdentifier();
  NamedAttrList attributes(op->getAttrs());
  if (isa<arith::ArithFastMathInterface>(op))
    attributes.erase("fastmath");
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp, arith::CeilDivSIOp,
          arith::CeilDivUIOp>(op)) {
    auto divide = [name](ImplicitLocOpBuilder &b, ValueRange values) {
      return divideInts(b, name.getValue(), values[0], values[1]);
    };
    define(op->getResult(0), compute(type, operands, divide, 20));
    return success();
  }
  unsigned cost = isa<math::MathDialect>(op->getDialect()) ? 20 : (isa<arith::DivFOp>(op) ? 4 : 1);
  NodeId node = compute(
      type, operands,
      [name, type, attributes](ImplicitLocOpBuilder &b, ValueRange values) -> Value {
        Type result = type;
        if (auto vector = dyn_cast<VectorType>(values[0].getType()))
          result = vector.clone(type);
        OperationState state(b.getLoc(), name.getValue(), values, {result}, attributes.getAttrs());
        return b.create(state)->getResult(0);
      },
      cost);
  define(op->getResult(0), node);
  return success();
}

NodeId RowProgramBuilder::sigmoid(NodeId x) {
  Type type = program.nodes[x].type;
  NodeId minus = unary("arith.negf", x, 1);
  return div(constant(type, 1.0), add(exp(minus), constant(type, 1.0)));
}

/// GELU and its derivative; Hendrycks and Gimpel, arXiv 1606.08415.
void RowProgramBuilder::addGelu(Operation *op, tfm::GeluKind kind, bool gradient) {
  NodeId x = load(op->getOperand(0), Role::Element);
  Type type = program.nodes[x].type;
  auto number = [&](double value) { return constant(type, value); };
  NodeId half = number(0.5), one = number(1.0);
  NodeId result;
  if (kind == tfm::GeluKind::Erf) {
    NodeId cdf = mul(half, add(one, unary("math.erf", mul(x, number(0.70710678118654752)), 30)));
    // d/dx = cdf(x) + x pdf(x)
    result =
        gradient ? add(cdf, mul(x, mul(number(0.39894228040143268), exp(mul(number(-0.5), mul(x, x)))))) : mul(x, cdf);
  } else {
    const double root = 0.79788456080286536, cubic = 0.044715;
    NodeId square = mul(x, x);
    NodeId inner = mul(number(root), add(x, mul(number(cubic), mul(square, x))));
    NodeId tanh = unary("math.tanh", inner, 25);
    NodeId cdf = mul(half, add(one, tanh));
    if (gradient) {
      NodeId slope = mul(number(root), add(one, mul(number(3 * cubic), square)));
      NodeId sech = sub(one, mul(tanh, tanh));
      result = add(cdf, mul(mul(half, x), mul(sech, slope)));
    } else {
      result = mul(x, cdf);
    }
  }
  if (gradient)
    result = mul(load(op->getOperand(1), Role::Element), result);
  define(op->getResult(0), result);
}

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

static BuildFn select() {
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
  NodeId safe = compute(i64, {here, row, number(0)}, select());
  NodeId value = gather(op, table, 0, access, safe, false);
  Type type = program.nodes[value].type;
  define(op.getResult(), compute(type, {here, value, constant(type, 0.0)}, select()));
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
    return valid ? compute(type, {*valid, value, constant(type, padding)}, select()) : value;
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
      return define(sum.getTarget(), reduce(RowReduction::Sum, compute(type, {hit, x, constant(type, 0.0)}, select())));
    }
    // The label's logit where the label counts; element 0 is read, and not used, where it does not.
    NodeId counts = first ? compute(i1, {id, constant(IntegerAttr::get(i64, program.domain.cols))},
                                    compareInt(arith::CmpIPredicate::ult))
                          : compute(i1, {id, zero}, compareInt(arith::CmpIPredicate::sge));
    NodeId safe = compute(i64, {counts, id, zero}, select());
    View row = logits;
    row.shape.pop_back();
    row.strides.pop_back();
    NodeId target = convert(
        gather(op, logits, logits.shape.size() - 1, accessOf(row, Role::Row, program.domain.cols), safe, false), type);
    return define(sum.getTarget(), compute(type, {counts, target, constant(type, 0.0)}, select()));
  }
  auto gradient = cast<tfm::CrossEntropyGradOp>(op);
  columnsFrom(gradient.getOffset());
  Type type = computeType(elementTypeOf(gradient.getSum()));
  NodeId x = convert(load(gradient.getLogits(), Role::Element), type);
  NodeId id = label(gradient.getLabels());
  NodeId seed = convert(load(gradient.getSeed(), Role::Uniform), type);
  NodeId counts = compute(i1, {id, zero}, compareInt(arith::CmpIPredicate::sge));
  NodeId scale = compute(type, {counts, seed, constant(type, 0.0)}, select());
  NodeId inverse = div(scale, load(gradient.getSum(), Role::Row));
  NodeId probability = mul(exp(sub(x, load(gradient.getMaximum(), Role::Row))), inverse);
  NodeId hit = compute(i1, {columnIndex(), columnOf(id)}, compareInt(arith::CmpIPredicate::eq));
  NodeId minus = compute(type, {hit, scale, constant(type, 0.0)}, select());
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

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

/// What a copy reads: the view that the op would have been.
NodeId RowProgramBuilder::copySource(Operation *op) {
  if (isa<tfm::ReshapeOp>(op))
    return load(op->getOperand(0), Role::Element);
  std::optional<View> view = composeView(op, views.of(op->getOperand(0)));
  return loadView(*view, elementTypeOf(op->getResult(0)), Role::Element, 0);
}

LogicalResult RowProgramBuilder::add(Operation *op) {
  if (isInline(op)) {
    // Wanted in memory: the value that readers would have computed for themselves.
    Views fresh;
    RowProgramBuilder inlined(program, fresh, context);
    produced[op->getResult(0)] = inlined.element(op->getResult(0));
    return success();
  }
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tfm::RmsNormOp norm) { return addRmsNorm(norm), success(); })
      .Case([&](tfm::RmsNormGradOp norm) { return addRmsNormGrad(norm), success(); })
      .Case([&](tfm::LayerNormOp norm) { return addLayerNorm(norm), success(); })
      .Case([&](tfm::LayerNormGradOp norm) { return addLayerNormGrad(norm), success(); })
      .Case([&](tfm::GeluOp gelu) { return addGelu(gelu, gelu.getKind(), false), success(); })
      .Case([&](tfm::GeluGradOp gelu) { return addGelu(gelu, gelu.getKind(), true), success(); })
      .Case([&](tfm::SiluOp silu) {
        NodeId x = load(silu.getInput(), Role::Element);
        return define(silu.getResult(), mul(x, sigmoid(x))), success();
      })
      .Case([&](tfm::SiluGradOp silu) {
        NodeId x = load(silu.getInput(), Role::Element), s = sigmoid(x);
        NodeId one = constant(program.nodes[x].type, 1.0);
        NodeId slope = mul(s, add(one, mul(x, sub(one, s))));
        return define(silu.getResult(), mul(load(silu.getGradient(), Role::Element), slope)), success();
      })
      .Case([&](tfm::SwigluOp swiglu) {
        NodeId x = load(swiglu.getGate(), Role::Element);
        NodeId up = load(swiglu.getUp(), Role::Element);
        return define(swiglu.getResult(), mul(mul(x, sigmoid(x)), up)), success();
      })
      .Case([&](tfm::SwigluGradOp swiglu) {
        NodeId x = load(swiglu.getGate(), Role::Element), s = sigmoid(x);
        NodeId up = load(swiglu.getUp(), Role::Element), dy = load(swiglu.getGradient(), Role::Element);
        NodeId one = constant(program.nodes[x].type, 1.0), silu = mul(x, s);
        define(swiglu.getGateGrad(), mul(mul(dy, up), mul(s, add(one, sub(x, silu)))));
        return define(swiglu.getUpGrad(), mul(dy, silu)), success();
      })
      .Case([&](tfm::BiasAddOp bias) {
        NodeId x = load(bias.getInput(), Role::Element);
        return define(bias.getResult(), this->add(x, load(bias.getBias(), Role::Column))), success();
      })
      .Case([&](tfm::ColumnSumOp sum) {
        produced[sum.getResult()] = load(sum.getInput(), Role::Element);
        return success();
      })
      .Case([&](tfm::SoftmaxOp softmax) { return addSoftmax(softmax), success(); })
      .Case([&](tfm::ReduceOp reduce) { return addReduce(reduce), success(); })
      .Case<tfm::LogitsMaxOp, tfm::LogitsSumOp, tfm::CrossEntropyGradOp>(
          [&](Operation *logits) { return addLogits(logits), success(); })
      .Case<tfm::AdamWOp, tfm::SgdOp>([&](Operation *update) { return addOptimizer(update), success(); })
      .Case([&](tfm::AccumulateOp accumulate) {
        NodeId old = load(accumulate.getAccumulator(), Role::Element);
        NodeId value = convert(load(accumulate.getValue(), Role::Element), program.nodes[old].type);
        NodeId sum = this->add(old, value);
        // What another sum of this body wrote is always added to.
        if (isa<BlockArgument>(accumulate.getAccumulator())) {
          Node flag(NodeKind::CallAccumulates, IntegerType::get(context, 1));
          flag.perRow = true;
          sum = compute(program.nodes[old].type, {push(std::move(flag)), sum, value}, select());
        }
        return define(accumulate.getResult(), sum), success();
      })
      .Case([&](tfm::EmbeddingOp embedding) { return addEmbedding(embedding), success(); })
      .Case([&](tfm::GatherOp op) {
        View table = views.of(op.getInput()), ids = views.of(op.getIndices());
        int64_t axis = op.getAxis(), count = product(ids.shape);
        Sizes inner(table.shape.begin() + axis + 1, table.shape.end());
        Sizes innerStrides(table.strides.begin() + axis + 1, table.strides.end());
        collapse(inner, innerStrides);
        assert(inner.size() <= 1 && "the operand was made contiguous");
        View outer = table;
        outer.shape.assign(table.shape.begin(), table.shape.begin() + axis);
        outer.strides.assign(table.strides.begin(), table.strides.begin() + axis);
        outer.shape.push_back(count);
        outer.strides.push_back(0);
        Access access = accessOf(outer, Role::Row, program.domain.cols);
        access.colStride = inner.empty() ? 0 : innerStrides.front();
        // Row (outer, j) reads index j.
        View repeated = ids;
        repeated.shape.insert(repeated.shape.begin(), product(outer.shape) / std::max<int64_t>(count, 1));
        repeated.strides.insert(repeated.strides.begin(), 0);
        Node load{NodeKind::Load, elementTypeOf(op.getIndices())};
        load.access = accessOf(repeated, Role::Row, program.domain.cols);
        load.storage = load.type;
        load.perRow = true;
        NodeId id = push(std::move(load));
        return define(op.getResult(), gather(op, table, axis, access, id, true)), success();
      })
      .Case<tfm::ReshapeOp, tfm::TransposeOp, tfm::SliceOp, tfm::BroadcastOp>([&](Operation *view) {
        // Materialized: a copy through the view that the op would have been.
        produced[view->getResult(0)] = copySource(view);
        return success();
      })
      .Default([&](Operation *other) {
        if (isElementwise(other))
          return addElementwise(other);
        return LogicalResult(other->emitOpError("is not supported by the host target"));
      });
}
