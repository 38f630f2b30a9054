//===- RowOps.cpp - ops as row programs -------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "RowProgram.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

//===----------------------------------------------------------------------===//
// Which ops, over which domain
//===----------------------------------------------------------------------===//

bool lower::isElementProduct(Operation *op) {
  auto matmul = dyn_cast<tfm::MatmulOp>(op);
  return matmul &&
         llvm::all_of(op->getOperands(), [](Value operand) { return product(shapeOf(operand).take_back(2)) == 1; });
}

static bool isElementwise(Operation *op) {
  if (isa<arith::ConstantOp>(op) || op->getNumResults() != 1 || op->getNumOperands() == 0)
    return false;
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
         isa<tfm::GeluOp, tfm::GeluGradOp, tfm::SiluOp, tfm::SiluGradOp, tfm::SwigluOp, tfm::AccumulateOp>(op) ||
         isElementProduct(op);
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
          sum = compute(program.nodes[old].type, {push(std::move(flag)), sum, value}, selectNode());
        }
        return define(accumulate.getResult(), sum), success();
      })
      .Case([&](tfm::MatmulOp matmul) {
        NodeId x = load(matmul.getLhs(), Role::Element), y = load(matmul.getRhs(), Role::Element);
        Type type = computeType(elementTypeOf(matmul.getResult()));
        return define(matmul.getResult(), mul(convert(x, type), convert(y, type))), success();
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
