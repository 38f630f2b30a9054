//===- Importer.h - walks a graph and builds the program --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_IMPORT_ONNX_IMPORTER_H
#define DROVER_LIB_IMPORT_ONNX_IMPORTER_H

#include "Operators.h"
#include "drover/Import/Onnx/Import.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"
#include <deque>

namespace drover::onnx {

/// The nodes of a list in an order in which every value is made before it is read. `outer` holds the
/// names that are defined outside; the error names a missing or doubly defined value, or a cycle.
llvm::Expected<std::vector<const Node *>> sortNodes(llvm::ArrayRef<Node> nodes, const llvm::StringSet<> &outer,
                                                    llvm::StringRef where);

/// The names that a node reads: its inputs, and what its subgraphs capture.
void forEachRead(const Node &node, llvm::function_ref<void(llvm::StringRef)> read);

/// The tensor of a Constant, where it has one.
const Tensor *tensorOf(const Node &node);

/// Gives the tensors of Constants, which may be weights, the names that the graph has for them; lists of floats become
/// tensors, too.
void nameConstants(std::vector<Node> &nodes);

class Importer {
public:
  Importer(mlir::MLIRContext &context, const ImportOptions &options, ImportReport &report)
      : context(context), options(options), report(report) {}

  /// Null after one diagnostic.
  mlir::OwningOpRef<mlir::ModuleOp> run();

private:
  using Scope = llvm::StringMap<Value>;
  using Attributes = llvm::StringMap<const Attribute *>;

  // Preparation.
  llvm::Error checkDim(llvm::StringRef name, int64_t value) const;
  llvm::Error prepareSymbols();
  Expr dimOf(const ValueInfo &info, size_t index);
  bool isConstantInput(llvm::StringRef name) const { return options.inputs.count(name.str()) != 0; }
  void countUses(llvm::ArrayRef<Node> nodes, llvm::ArrayRef<Tensor> initializers,
                 llvm::StringMap<const Tensor *> &tensors);

  // One attempt; the builder asks for another where it has unified sizes.
  mlir::OwningOpRef<mlir::ModuleOp> build();
  bool addInput(const ValueInfo &info, size_t index, Scope &scope);
  Value constantInput(const ValueInfo &info, llvm::ArrayRef<Expr> shape, const ConstantInput &constant);
  bool checkOutput(const ValueInfo &info, const Value &value);
  Value initializerValue(const Tensor &tensor);
  bool addInitializers(const Graph &graph, Scope &scope);
  /// Cleans up, then names arguments and results.
  bool finish(mlir::ModuleOp module, mlir::func::FuncOp func);

  // Nodes. False after a diagnostic or where the attempt ends.
  bool processNodes(llvm::ArrayRef<Node> nodes, llvm::ArrayRef<llvm::StringRef> results, llvm::StringRef where);
  bool processNode(const Node &node, const llvm::StringSet<> &live);
  bool processFunction(const Node &node, const Function &function, llvm::ArrayRef<Value> inputs);
  bool processIf(const Node &node);
  Node withAttributes(const Node &node) const;
  const Function *findFunction(const Node &node) const;
  int64_t opsetOf(llvm::StringRef domain) const;

  const Value *lookup(llvm::StringRef name) const;
  llvm::StringSet<> visibleNames() const;
  void define(llvm::StringRef name, const Value &value);
  void recordUnsupported(const Node &node, llvm::StringRef why, llvm::StringRef help);
  void reportUnsupported();

  mlir::Location fileLocation() const;
  mlir::Location locationOf(const Node &node) const;
  bool error(mlir::Location location, const llvm::Twine &message);

  mlir::MLIRContext &context;
  const ImportOptions &options;
  ImportReport &report;
  Model model;
  SymbolTable symbols;
  std::unique_ptr<TensorData> data;
  std::unique_ptr<ParameterNames> names;
  std::unique_ptr<Parameters> parameters;
  std::unique_ptr<TensorBuilder> builder;
  /// Names and shapes of the arguments that are model inputs.
  std::vector<std::pair<std::string, Shape>> inputArguments;
  std::deque<std::string> rewrittenDims;

  /// Names visible here: the innermost scope last. A function body sees only its own.
  std::vector<Scope> scopes;
  size_t firstVisible = 0;
  /// Attributes of the calls that lead here, and their opsets.
  const Attributes *attributes = nullptr;
  const Function *function = nullptr;
  unsigned depth = 0;
  uint64_t processed = 0;

  struct Unsupported {
    std::string opType, domain, name, why, help;
  };
  std::vector<Unsupported> unsupportedNodes;
  llvm::StringSet<> missing;
};

} // namespace drover::onnx

#endif // DROVER_LIB_IMPORT_ONNX_IMPORTER_H
