//===- NodeContext.cpp - what a handler sees of its node ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Operators.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace llvm;

namespace drover::onnx {

const Value &NodeContext::in(size_t index) {
  static const Value absent;
  if (has(index))
    return inputs[index];
  b.fail("input " + Twine(index) + " is missing");
  return absent;
}

const Attribute *NodeContext::typedAttr(StringRef name, Attribute::Type type, StringRef expected) const {
  const Attribute *attribute = node.attribute(name);
  // Files of IR 1 do not say the type.
  if (!attribute || attribute->type == type || attribute->type == Attribute::Undefined)
    return attribute;
  b.fail("attribute '" + name + "' is of another type than " + expected);
  return nullptr;
}

int64_t NodeContext::intAttr(StringRef name, int64_t otherwise) const {
  const Attribute *attribute = typedAttr(name, Attribute::Int, "an integer");
  return attribute ? attribute->i : otherwise;
}

int64_t NodeContext::intAttrIn(StringRef name, int64_t otherwise, int64_t low, int64_t high) const {
  int64_t value = intAttr(name, otherwise);
  if (value >= low && value <= high)
    return value;
  b.fail("attribute '" + name + "' is " + Twine(value) + ", expected " + Twine(low) + " to " + Twine(high));
  return otherwise;
}

/// The shortest decimal that rounds to `value`: the number that the model's author wrote.
static double shortestDecimal(float value) {
  char text[32];
  for (int digits = 1; digits <= 9; ++digits) {
    snprintf(text, sizeof(text), "%.*g", digits, static_cast<double>(value));
    double decimal = strtod(text, nullptr);
    if (static_cast<float>(decimal) == value)
      return decimal;
  }
  return value;
}

double NodeContext::floatAttr(StringRef name, double otherwise) const {
  const Attribute *attribute = typedAttr(name, Attribute::Float, "a float");
  return attribute ? shortestDecimal(attribute->f) : otherwise;
}

double NodeContext::finiteAttr(StringRef name, double otherwise) const {
  double value = floatAttr(name, otherwise);
  if (std::isfinite(value))
    return value;
  b.fail("attribute '" + name + "' is not a finite number");
  return otherwise;
}

StringRef NodeContext::stringAttr(StringRef name, StringRef otherwise) const {
  const Attribute *attribute = typedAttr(name, Attribute::String, "a string");
  return attribute ? attribute->s : otherwise;
}

std::optional<std::vector<int64_t>> NodeContext::intsAttr(StringRef name) const {
  const Attribute *attribute = typedAttr(name, Attribute::Ints, "a list of integers");
  return attribute ? std::optional<std::vector<int64_t>>(attribute->ints) : std::nullopt;
}

int64_t NodeContext::axis(int64_t value, int64_t rank) {
  int64_t result = value < 0 ? value + rank : value;
  if (result >= 0 && result < rank)
    return result;
  b.fail("axis " + Twine(value) + " is out of rank " + Twine(rank));
  return 0;
}

std::vector<int64_t> NodeContext::axes(ArrayRef<int64_t> values, int64_t rank) {
  std::vector<int64_t> result;
  for (int64_t value : values) {
    int64_t one = axis(value, rank);
    if (is_contained(result, one))
      b.fail("axis " + Twine(value) + " appears twice");
    result.push_back(one);
  }
  return result;
}

std::vector<Expr> NodeContext::exprs(size_t index, StringRef what) {
  const Value &value = in(index);
  if (b.failed())
    return {};
  Value known = value;
  if (known.known && !isFloat(known.type)) {
    if (!known.known->uniform)
      return known.known->ints;
    std::optional<int64_t> count = b.count(known.shape).constant();
    if (count && *count <= TensorBuilder::maxKnown)
      return std::vector<Expr>(*count, known.intAt(0));
  }
  unsupported(what + " depends on data", "fix an input with --input or a symbolic size with --dim");
  return {};
}

std::vector<int64_t> NodeContext::constants(size_t index, StringRef what) {
  std::vector<int64_t> result;
  for (const Expr &expr : exprs(index, what)) {
    if (!expr.isConstant()) {
      unsupported(what + " is the symbolic " + b.symbols.str(expr), "fix the symbolic size with --dim");
      return {};
    }
    result.push_back(*expr.constant());
  }
  return result;
}

std::optional<std::vector<int64_t>> NodeContext::axesFrom(StringRef attribute, size_t index, int64_t rank) {
  if (has(index))
    return axes(constants(index, attribute), rank);
  if (std::optional<std::vector<int64_t>> values = intsAttr(attribute))
    return axes(*values, rank);
  return std::nullopt;
}

Value NodeContext::plain(const Value &value) {
  if (!value.initializer || b.failed())
    return value;
  Value result = value;
  result.ir = parameters.materialize(node, value);
  result.initializer = nullptr;
  result.transposed = false;
  result.hidden = parameters.isParameter(value, Role::Other);
  return result;
}

Value NodeContext::plain(size_t index) { return plain(in(index)); }

Value NodeContext::weight(size_t index, Role role) {
  const Value &value = in(index);
  return parameters.isParameter(value, role) ? parameters.get(node, value, role) : plain(value);
}

void NodeContext::unsupported(const Twine &why, const Twine &help) {
  if (unsupportedWhy.empty()) {
    unsupportedWhy = why.str();
    unsupportedHelp = help.str();
  }
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

OperatorTable::OperatorTable() {
  addElementwiseOperators(*this);
  addShapeOperators(*this);
  addIndexOperators(*this);
  addMatrixOperators(*this);
  addNormOperators(*this);
  addRotaryOperators(*this);
  addAttentionOperators(*this);
  addLossOperators(*this);
  addContribOperators(*this);
}

const OperatorTable &OperatorTable::get() {
  static const OperatorTable table;
  return table;
}

void OperatorTable::add(StringRef domain, StringRef opType, Handler handler) {
  handlers[(domain + ":" + opType).str()] = handler;
}

Handler OperatorTable::lookup(StringRef domain, StringRef opType) const {
  return handlers.lookup((domain + ":" + opType).str());
}

} // namespace drover::onnx
