//===- Parameters.h - which tensors are parameters, and their names -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_IMPORT_ONNX_PARAMETERS_H
#define DROVER_LIB_IMPORT_ONNX_PARAMETERS_H

#include "TensorBuilder.h"
#include "drover/Import/Onnx/Import.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace drover::onnx {

/// What an operator does with an initializer: it decides whether that is a parameter, and how a name
/// that folding has lost is rebuilt.
enum class Role { Embedding, Linear, NormWeight, Bias, Other };

/// What the values of an initializer look like where they follow a formula (a mask, a table of positions, slopes), as
/// a phrase; empty where only training can have made them. A constant all over is no formula.
llvm::StringRef formulaBehind(const Tensor &tensor, llvm::StringRef bytes);
/// True where nearly all values of an initializer differ, as weights do.
bool isIrregular(const Tensor &tensor, llvm::StringRef bytes);

/// Recovers the model's own parameter names from what exporters leave behind.
class ParameterNames {
public:
  explicit ParameterNames(const Model &model);

  enum class Kind { Unknown, Parameter, Buffer };
  /// What the file itself says about an initializer of this name.
  Kind kindOf(llvm::StringRef name) const;
  /// A dotted path as modules have, not a name that an exporter made up.
  static bool isOwn(llvm::StringRef name);
  /// Surely no name of the model's: an exporter computed what it names. A parameter of the model itself has a name
  /// without dots.
  bool isMadeUp(llvm::StringRef name) const;
  /// The file lists its parameters and buffers.
  bool hasSignature() const { return !parameters.empty(); }

  struct Name {
    std::string text;
    /// The initializer is not the parameter itself but a folded function of it.
    bool folded = false;
    /// The metadata of the node refers to the parameter directly.
    bool direct = false;
  };
  /// The parameter behind `name` as used by `node` in `role`; `shared`: several nodes use it.
  Name nameFor(const Node &node, llvm::StringRef name, Role role, bool shared) const;

private:
  std::string scopeOf(const Node &node) const;
  std::string fromMetadata(const Node &node, Role role) const;

  /// Placeholder (`p_model_norm_weight`) to target (`model.norm.weight`), from the graph signature.
  llvm::StringMap<std::string> targets;
  llvm::StringSet<> parameters, buffers;
};

/// The parameter arguments of the function under construction.
class Parameters {
public:
  Parameters(const Model &model, TensorData &data, const ParameterNames &names, bool tie, ImportReport &report)
      : model(model), data(data), names(names), tie(tie), report(report) {}

  /// Starts with a function's entry block.
  void begin(TensorBuilder &builder, mlir::Block &block);

  /// True where the operator should take `value` as a parameter in this role.
  bool isParameter(const Value &value, Role role) const;
  /// The argument for a use of an initializer. With `Role::Linear` the result says in `inOut` how the
  /// argument is oriented; other roles get the orientation that `value` has.
  Value get(const Node &node, const Value &value, Role role, bool *inOut = nullptr);
  /// A use outside of any role: a parameter where the file says so, else a constant.
  mlir::Value materialize(const Node &node, const Value &value);

  /// True where a Constant node may stand for a weight, so that its role decides. A file that has its weights in
  /// initializers has in Constants what its code computes, unless nearly all values differ as only training makes them.
  bool mayBeParameter(const Tensor &constant) const;

  /// True, with an error of the builder's, for a weight without values. What a graph may hold empty (a past, a region)
  /// is no matrix and has no parameter's name.
  bool refuseEmpty(const Tensor &tensor) const;

  /// Tells of constants that a user may take for parameters, by name and size.
  void reportConstants(mlir::Location location) const;
  /// Notes a float initializer whose single value the program holds.
  void noteScalar(const Tensor &tensor) { noteConstant(tensor, "a single number"); }

  /// How many nodes use an initializer or a Constant; set before emission.
  llvm::DenseMap<const Tensor *, unsigned> uses;
  /// The tensors of Constant nodes; set before emission.
  llvm::DenseSet<const Tensor *> constantNodes;

  struct Argument {
    std::string name;
    const Tensor *tensor;
    bool transposed;
    double plus;
    mlir::Value value;
  };
  const std::vector<Argument> &getArguments() const { return arguments; }
  /// #tfm.source of an argument; null where its values are not plain bytes of a file.
  llvm::Expected<tfm::SourceAttr> source(const Argument &argument);

private:
  struct Look {
    llvm::StringRef formula;
    bool isIrregular = false;
  };
  const Look &lookAt(const Tensor &tensor) const;
  bool holdsWeightsInConstants() const;
  /// Why an initializer without a role is a constant; empty where it is a parameter.
  llvm::StringRef whyConstant(llvm::StringRef name, const Tensor &tensor) const;
  void noteConstant(const Tensor &tensor, llvm::StringRef why);
  bool sameBits(const Tensor &a, const Tensor &b, bool transposed);
  mlir::Value argument(llvm::StringRef name, const Tensor &tensor, ElemType type, bool transposed, double plus);
  const Argument *tiedEmbedding(const Tensor &tensor, bool &transposed);
  bool isDowncast(const Tensor &tensor) const;

  const Model &model;
  TensorData &data;
  const ParameterNames &names;
  bool tie;
  ImportReport &report;
  TensorBuilder *builder = nullptr;
  mlir::Block *block = nullptr;
  std::vector<Argument> arguments;
  std::vector<size_t> embeddings;
  llvm::StringMap<size_t> byName;
  mutable llvm::DenseMap<const Tensor *, Look> looks;
  mutable std::optional<bool> weightsInConstants;
  /// Constants that `reportConstants` tells of, and why they are some.
  llvm::MapVector<const Tensor *, llvm::StringRef> doubtful;
};

} // namespace drover::onnx

#endif // DROVER_LIB_IMPORT_ONNX_PARAMETERS_H
