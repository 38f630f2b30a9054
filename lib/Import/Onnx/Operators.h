//===- Operators.h - one handler per ONNX operator --------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_IMPORT_ONNX_OPERATORS_H
#define DROVER_LIB_IMPORT_ONNX_OPERATORS_H

#include "Parameters.h"
#include "TensorBuilder.h"
#include "llvm/ADT/StringMap.h"

namespace drover::onnx {

/// What a handler sees of its node. Attributes have defaults, absent inputs are invalid values.
class NodeContext {
public:
  NodeContext(const Node &node, int64_t opset, TensorBuilder &builder, Parameters &parameters, TensorData &data)
      : node(node), opset(opset), b(builder), parameters(parameters), data(data), outputs(node.outputs.size()) {}

  const Node &node;
  /// Version of the node's domain.
  int64_t opset;
  TensorBuilder &b;
  Parameters &parameters;
  TensorData &data;
  std::vector<Value> inputs, outputs;
  /// Outputs that something reads.
  std::vector<bool> wanted;

  bool has(size_t index) const { return index < inputs.size() && inputs[index].isValid(); }
  /// Input `index`; an error where it is absent.
  const Value &in(size_t index);
  size_t numInputs() const { return inputs.size(); }
  void out(size_t index, const Value &value) {
    if (index < outputs.size())
      outputs[index] = value;
  }
  bool isWanted(size_t index) const { return index < wanted.size() && wanted[index]; }

  // Of another type than asked for: an error that names the attribute.
  int64_t intAttr(llvm::StringRef name, int64_t otherwise) const;
  /// One of [low, high].
  int64_t intAttrIn(llvm::StringRef name, int64_t otherwise, int64_t low, int64_t high) const;
  double floatAttr(llvm::StringRef name, double otherwise) const;
  /// A float that is neither infinite nor NaN.
  double finiteAttr(llvm::StringRef name, double otherwise) const;
  llvm::StringRef stringAttr(llvm::StringRef name, llvm::StringRef otherwise) const;
  std::optional<std::vector<int64_t>> intsAttr(llvm::StringRef name) const;

  /// An axis in [0, rank), from one that may count from the end.
  int64_t axis(int64_t value, int64_t rank);
  /// Axes likewise, distinct.
  std::vector<int64_t> axes(llvm::ArrayRef<int64_t> values, int64_t rank);
  /// A small integer tensor as expressions, as constants; an error with `what` where it is not known.
  std::vector<Expr> exprs(size_t index, llvm::StringRef what);
  std::vector<int64_t> constants(size_t index, llvm::StringRef what);
  /// Axes from an attribute or, in newer opsets, from input `index`; nothing where neither is there.
  std::optional<std::vector<int64_t>> axesFrom(llvm::StringRef attribute, size_t index, int64_t rank);

  /// The input as a plain value: an initializer becomes a parameter or a constant.
  Value plain(size_t index);
  Value plain(const Value &value);
  /// The input in a role; plain where it is no parameter in it.
  Value weight(size_t index, Role role);

  /// Reports the node as unsupported; the import goes on to find the others.
  void unsupported(const llvm::Twine &why, const llvm::Twine &help = "");
  std::string unsupportedWhy, unsupportedHelp;

private:
  const Attribute *typedAttr(llvm::StringRef name, Attribute::Type type, llvm::StringRef expected) const;
};

/// Why the standard does not allow the node's attributes or so many inputs or outputs; empty where it does.
std::string checkSignature(const Node &node);

using Handler = void (*)(NodeContext &);

/// Handlers by domain and operator.
class OperatorTable {
public:
  static const OperatorTable &get();
  Handler lookup(llvm::StringRef domain, llvm::StringRef opType) const;
  void add(llvm::StringRef domain, llvm::StringRef opType, Handler handler);

private:
  OperatorTable();
  llvm::StringMap<Handler> handlers;
};

// One function per family of operators.
void addElementwiseOperators(OperatorTable &table);
void addShapeOperators(OperatorTable &table);
void addIndexOperators(OperatorTable &table);
void addMatrixOperators(OperatorTable &table);
void addNormOperators(OperatorTable &table);
void addRotaryOperators(OperatorTable &table);
void addAttentionOperators(OperatorTable &table);
void addLossOperators(OperatorTable &table);
void addContribOperators(OperatorTable &table);

constexpr llvm::StringLiteral kMicrosoft = "com.microsoft";

} // namespace drover::onnx

#endif // DROVER_LIB_IMPORT_ONNX_OPERATORS_H
