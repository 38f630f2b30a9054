//===- ElementwiseOperators.cpp - arithmetic, comparisons, activations ----===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Operators.h"
#include <cmath>

using namespace llvm;
using namespace mlir;

namespace drover::onnx {
namespace {

//===----------------------------------------------------------------------===//
// Operands that may be parameters
//===----------------------------------------------------------------------===//

/// A vector along the last dimension of an activation is a bias or a norm weight.
bool isVectorFor(const Value &vector, const Value &other) {
  return vector.initializer && vector.rank() == 1 && other.rank() >= 1 && vector.shape[0] == other.shape.back();
}

/// Both operands of Add or Mul, an initializer beside an activation as a parameter.
std::pair<Value, Value> operands(NodeContext &n, std::optional<Role> role) {
  Value lhs = n.in(0), rhs = n.in(1);
  if (n.b.failed())
    return {lhs, rhs};
  auto take = [&](Value &value, const Value &other) {
    bool inRole = role && other.hidden && isVectorFor(value, other) && n.parameters.isParameter(value, *role);
    value = inRole ? n.parameters.get(n.node, value, *role) : n.plain(value);
  };
  // The activation first: it may itself be an initializer that the file calls a parameter.
  if (lhs.initializer) {
    rhs = rhs.initializer ? n.plain(rhs) : rhs;
    take(lhs, rhs);
  } else {
    take(rhs, lhs);
  }
  return {lhs, rhs};
}

/// True where `vector` is a whole parameter vector along the last dimension.
bool isBias(const Value &vector, const Value &other) {
  return vector.ir && isa<BlockArgument>(vector.ir) && vector.hidden && vector.rank() == 1 && other.rank() >= 1 &&
         isFloat(other.type) && vector.shape[0] == other.shape.back();
}

void add(NodeContext &n) {
  auto [lhs, rhs] = operands(n, Role::Bias);
  if (n.b.failed())
    return;
  if (isBias(rhs, lhs))
    n.out(0, n.b.biasAdd(lhs, rhs));
  else if (isBias(lhs, rhs))
    n.out(0, n.b.biasAdd(rhs, lhs));
  else
    n.out(0, n.b.add(lhs, rhs));
}

void mul(NodeContext &n) {
  auto [lhs, rhs] = operands(n, Role::NormWeight);
  n.out(0, n.b.mul(lhs, rhs));
}

template <Binary kind> void binary(NodeContext &n) {
  auto [lhs, rhs] = operands(n, std::nullopt);
  n.out(0, n.b.binary(kind, lhs, rhs));
}

/// Add, Min, Max over any number of operands.
template <Binary kind> void variadic(NodeContext &n) {
  Value result = n.plain(0);
  for (size_t i = 1; i < n.numInputs(); ++i)
    result = n.b.binary(kind, result, n.plain(i));
  n.out(0, result);
}

void mean(NodeContext &n) {
  variadic<Binary::Add>(n);
  if (!n.b.failed())
    n.out(0, n.b.div(n.outputs[0], n.b.number(n.outputs[0], n.numInputs())));
}

void mod(NodeContext &n) {
  bool fmod = n.intAttr("fmod", 0) != 0;
  n.out(0, n.b.binary(fmod ? Binary::Fmod : Binary::Mod, n.plain(0), n.plain(1)));
}

/// Small integer powers are products, so that norms and GELU look the same from every exporter.
void pow(NodeContext &n) {
  Value base = n.plain(0), exponent = n.plain(1);
  if (n.b.failed())
    return;
  std::optional<double> power = exponent.splat();
  if (isFloat(base.type) && power && n.b.count(exponent.shape).is(1) && base.rank() >= exponent.rank()) {
    if (*power == 1)
      return n.out(0, base);
    if (*power == 2)
      return n.out(0, n.b.mul(base, base));
    if (*power == 3)
      return n.out(0, n.b.mul(base, n.b.mul(base, base)));
    if (*power == 0.5)
      return n.out(0, n.b.unary(Unary::Sqrt, base));
    if (*power == -0.5)
      return n.out(0, n.b.div(n.b.number(base, 1), n.b.unary(Unary::Sqrt, base)));
  }
  n.out(0, n.b.binary(Binary::Pow, base, n.b.cast(exponent, base.type)));
}

template <Compare kind, bool swap> void compare(NodeContext &n) {
  Value lhs = n.plain(0), rhs = n.plain(1);
  n.out(0, swap ? n.b.compare(kind, rhs, lhs) : n.b.compare(kind, lhs, rhs));
}

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

template <Unary kind> void unary(NodeContext &n) { n.out(0, n.b.unary(kind, n.plain(0))); }

void reciprocal(NodeContext &n) {
  Value x = n.plain(0);
  n.out(0, n.b.div(n.b.number(x, 1), x));
}

void identity(NodeContext &n) {
  Value value = n.in(0);
  // The name behind an Identity is the parameter's where equal tensors were merged.
  if (value.initializer && ParameterNames::isOwn(n.node.outputs[0]))
    value.name = n.node.outputs[0];
  n.out(0, value);
}

void dropout(NodeContext &n) {
  Value x = n.plain(0);
  // Inference: from opset 12 training_mode is an input, before it the operator is the identity.
  if (n.has(2)) {
    std::optional<double> training = n.in(2).splat();
    std::optional<double> ratio = n.has(1) ? n.in(1).splat() : std::nullopt;
    if (training != 0.0 && ratio != 0.0)
      return n.unsupported("dropout in training mode", "export the model in evaluation mode");
  }
  n.out(0, x);
  if (n.isWanted(1))
    n.out(1, n.b.uniform(ElemType::Bool, x.shape, 1));
}

/// A weight that the file stores in 16 bits and the graph widens: still the weight, since no value changes.
bool isWidenedWeight(const Value &value, ElemType type) {
  return value.initializer && isFloat(value.type) && byteSize(value.type) == 2 && type == ElemType::Float;
}

Value castInput(NodeContext &n, ElemType type) {
  Value value = n.in(0);
  if (!isWidenedWeight(value, type))
    return value.type == type ? value : n.b.cast(n.plain(0), type);
  value.type = type;
  return value;
}

void castTo(NodeContext &n) {
  auto type = static_cast<ElemType>(n.intAttr("to", 0));
  if (!byteSize(type))
    return n.unsupported("a cast to " + str(type), "convert the model to float32, float16 or bfloat16");
  n.out(0, castInput(n, type));
}

void castLike(NodeContext &n) { n.out(0, castInput(n, n.in(1).type)); }

void isNaN(NodeContext &n) { n.out(0, n.b.isNaN(n.plain(0))); }

void isInf(NodeContext &n) {
  Value x = n.plain(0), result;
  auto equals = [&](double value) { return n.b.compare(Compare::Equal, x, n.b.number(x, value)); };
  bool positive = n.intAttr("detect_positive", 1), negative = n.intAttr("detect_negative", 1);
  if (positive && negative)
    result = n.b.binary(Binary::Or, equals(INFINITY), equals(-INFINITY));
  else if (positive || negative)
    result = equals(positive ? INFINITY : -INFINITY);
  else
    result = n.b.uniform(ElemType::Bool, x.shape, 0);
  n.out(0, result);
}

void where(NodeContext &n) { n.out(0, n.b.select(n.plain(0), n.plain(1), n.plain(2))); }

void clip(NodeContext &n) {
  Value x = n.plain(0);
  auto bound = [&](StringRef name, size_t index) -> std::optional<Value> {
    if (n.has(index))
      return n.plain(index);
    // Opset 6 to 10: attributes.
    if (n.node.attribute(name))
      return n.b.number(x, n.floatAttr(name, 0));
    return std::nullopt;
  };
  if (std::optional<Value> low = bound("min", 1))
    x = n.b.binary(Binary::Max, x, *low);
  if (std::optional<Value> high = bound("max", 2))
    x = n.b.binary(Binary::Min, x, *high);
  n.out(0, x);
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

void relu(NodeContext &n) {
  Value x = n.plain(0);
  n.out(0, n.b.binary(Binary::Max, x, n.b.number(x, 0)));
}

void leakyRelu(NodeContext &n) {
  Value x = n.plain(0);
  Value slope = n.b.mul(x, n.b.number(x, n.floatAttr("alpha", 0.01)));
  n.out(0, n.b.select(n.b.compare(Compare::Less, x, n.b.number(x, 0)), slope, x));
}

void softplus(NodeContext &n) {
  // log(1 + exp(x)) without overflow: max(x, 0) + log(1 + exp(-|x|)).
  Value x = n.plain(0);
  Value tail = n.b.unary(Unary::Exp, n.b.unary(Unary::Neg, n.b.unary(Unary::Abs, x)));
  n.out(0,
        n.b.add(n.b.binary(Binary::Max, x, n.b.number(x, 0)), n.b.unary(Unary::Log, n.b.add(tail, n.b.number(x, 1)))));
}

void hardSigmoid(NodeContext &n) {
  Value x = n.plain(0);
  Value line = n.b.add(n.b.mul(x, n.b.number(x, n.floatAttr("alpha", 0.2))), n.b.number(x, n.floatAttr("beta", 0.5)));
  n.out(0, n.b.binary(Binary::Min, n.b.binary(Binary::Max, line, n.b.number(x, 0)), n.b.number(x, 1)));
}

void sigmoid(NodeContext &n) { n.out(0, n.b.sigmoid(n.plain(0))); }

void emitGelu(NodeContext &n, const Value &x, tfm::GeluKind kind) {
  if (n.b.failed())
    return;
  mlir::Value operand = n.b.materialize(x);
  n.out(0, n.b.wrap(tfm::GeluOp::create(n.b.builder, n.b.location, operand.getType(), operand, kind), x.type, x.shape,
                    {&x}));
}

void gelu(NodeContext &n) {
  bool tanh = n.stringAttr("approximate", "none") == "tanh";
  emitGelu(n, n.plain(0), tanh ? tfm::GeluKind::Tanh : tfm::GeluKind::Erf);
}

/// com.microsoft BiasGelu and FastGelu: an optional bias first.
template <tfm::GeluKind kind> void biasGelu(NodeContext &n) {
  Value x = n.plain(0);
  if (n.has(1)) {
    Value bias = n.weight(1, Role::Bias);
    x = isBias(bias, x) ? n.b.biasAdd(x, bias) : n.b.add(x, bias);
  }
  emitGelu(n, x, kind);
}

/// x * sigmoid(alpha x): SiLU where alpha is 1.
Value swishOf(NodeContext &n, const Value &x, double alpha) {
  if (alpha != 1)
    return n.b.mul(x, n.b.sigmoid(n.b.mul(x, n.b.number(x, alpha))));
  mlir::Value operand = n.b.materialize(x);
  return n.b.wrap(tfm::SiluOp::create(n.b.builder, n.b.location, operand.getType(), operand), x.type, x.shape, {&x});
}

void swish(NodeContext &n) { n.out(0, swishOf(n, n.plain(0), n.floatAttr("alpha", 1))); }
void quickGelu(NodeContext &n) { n.out(0, swishOf(n, n.plain(0), n.floatAttr("alpha", 1.702))); }

void swiglu(NodeContext &n) {
  Value gate = n.plain(0), up = n.plain(1);
  double alpha = n.floatAttr("alpha", 1);
  if (n.b.failed())
    return;
  if (alpha != 1 || gate.shape != up.shape || gate.type != up.type)
    return n.out(0, n.b.mul(swishOf(n, gate, alpha), up));
  mlir::Value x = n.b.materialize(gate), y = n.b.materialize(up);
  n.out(0, n.b.wrap(tfm::SwigluOp::create(n.b.builder, n.b.location, x.getType(), x, y), gate.type, gate.shape,
                    {&gate, &up}));
}

} // namespace

void addElementwiseOperators(OperatorTable &table) {
  table.add("", "Add", add);
  table.add("", "Mul", mul);
  table.add("", "Sub", binary<Binary::Sub>);
  table.add("", "Div", binary<Binary::Div>);
  table.add("", "And", binary<Binary::And>);
  table.add("", "Or", binary<Binary::Or>);
  table.add("", "Xor", binary<Binary::Xor>);
  table.add("", "BitwiseAnd", binary<Binary::And>);
  table.add("", "BitwiseOr", binary<Binary::Or>);
  table.add("", "BitwiseXor", binary<Binary::Xor>);
  table.add("", "Mod", mod);
  table.add("", "Pow", pow);
  table.add("", "Sum", variadic<Binary::Add>);
  table.add("", "Min", variadic<Binary::Min>);
  table.add("", "Max", variadic<Binary::Max>);
  table.add("", "Mean", mean);
  table.add("", "Equal", compare<Compare::Equal, false>);
  table.add("", "Less", compare<Compare::Less, false>);
  table.add("", "LessOrEqual", compare<Compare::LessOrEqual, false>);
  table.add("", "Greater", compare<Compare::Less, true>);
  table.add("", "GreaterOrEqual", compare<Compare::LessOrEqual, true>);
  table.add("", "Neg", unary<Unary::Neg>);
  table.add("", "Abs", unary<Unary::Abs>);
  table.add("", "Sqrt", unary<Unary::Sqrt>);
  table.add("", "Exp", unary<Unary::Exp>);
  table.add("", "Log", unary<Unary::Log>);
  table.add("", "Erf", unary<Unary::Erf>);
  table.add("", "Tanh", unary<Unary::Tanh>);
  table.add("", "Sin", unary<Unary::Sin>);
  table.add("", "Cos", unary<Unary::Cos>);
  table.add("", "Floor", unary<Unary::Floor>);
  table.add("", "Ceil", unary<Unary::Ceil>);
  table.add("", "Round", unary<Unary::Round>);
  table.add("", "Sign", unary<Unary::Sign>);
  table.add("", "Not", unary<Unary::Not>);
  table.add("", "BitwiseNot", unary<Unary::Not>);
  table.add("", "Reciprocal", reciprocal);
  table.add("", "Identity", identity);
  table.add("", "Dropout", dropout);
  table.add("", "Cast", castTo);
  table.add("", "CastLike", castLike);
  table.add("", "IsNaN", isNaN);
  table.add("", "IsInf", isInf);
  table.add("", "Where", where);
  table.add("", "Clip", clip);
  table.add("", "Relu", relu);
  table.add("", "LeakyRelu", leakyRelu);
  table.add("", "Softplus", softplus);
  table.add("", "HardSigmoid", hardSigmoid);
  table.add("", "Sigmoid", sigmoid);
  table.add("", "Gelu", gelu);
  table.add("", "Swish", swish);
  table.add("", "SwiGLU", swiglu);
  table.add(kMicrosoft, "Gelu", gelu);
  table.add(kMicrosoft, "BiasGelu", biasGelu<tfm::GeluKind::Erf>);
  table.add(kMicrosoft, "FastGelu", biasGelu<tfm::GeluKind::Tanh>);
  table.add(kMicrosoft, "QuickGelu", quickGelu);
}

} // namespace drover::onnx
