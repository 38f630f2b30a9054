//===- Interpreter.h - reference execution of tfm programs ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The executable semantics of a tfm program: every tfm operation and the arith, math and func operations around them,
// on the host, written to be read rather than to be fast. Arithmetic is in double; each result is rounded once to its
// element type. The importer folds constants with it, and transformations and targets are tested against it.
//===----------------------------------------------------------------------===//
#ifndef DROVER_INTERPRETER_INTERPRETER_H
#define DROVER_INTERPRETER_INTERPRETER_H

#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "drover/Support/Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <functional>
#include <memory>

namespace drover {

using TensorRef = std::shared_ptr<const Tensor>;

struct InterpreterOptions {
  /// Nothing is rounded: every float is computed and kept as a double (finite differences).
  bool exact = false;
  /// Values of the module's symbols s0, s1, ..; kDynamic or absent where unknown.
  llvm::SmallVector<int64_t> symbols;
  /// Supplies the value of a function argument that was not bound, when it is first read.
  std::function<mlir::FailureOr<Tensor>(mlir::BlockArgument, std::string &reason)> argument;
  /// The rank's coordinates by axis of `tfm.grid`; 0 where absent.
  llvm::StringMap<int64_t> coordinates;
  /// A result with more elements fails.
  int64_t maxElements = int64_t{1} << 31;
};

/// Evaluates values of one function on demand and remembers them. Failure leaves a reason and no diagnostic: that a
/// value cannot be evaluated is an answer, not an error.
class Interpreter {
public:
  explicit Interpreter(InterpreterOptions options = {});

  /// Gives a value, usually a function argument, a tensor. What was computed from it before stays as it is.
  void bind(mlir::Value value, Tensor tensor);

  /// The backward slice of `value`, computed from bound values, constants and symbols.
  mlir::FailureOr<TensorRef> evaluate(mlir::Value value);

  /// Why the last evaluation failed.
  llvm::StringRef getReason() const { return reason; }

  /// Forgets everything computed (not what was bound).
  void clear() { computed.clear(); }

private:
  mlir::LogicalResult execute(mlir::Operation *op);
  mlir::LogicalResult call(mlir::func::CallOp op, llvm::SmallVectorImpl<Tensor> &results);
  mlir::LogicalResult finish(mlir::Operation *op, llvm::MutableArrayRef<Tensor> results);
  TensorRef find(mlir::Value value) const;

  InterpreterOptions options;
  llvm::DenseMap<mlir::Value, TensorRef> bound, computed;
  std::string reason;
  unsigned depth = 0;
  friend mlir::LogicalResult interpret(mlir::func::FuncOp, llvm::ArrayRef<Tensor>, llvm::SmallVectorImpl<Tensor> &,
                                       const InterpreterOptions &, std::string *);
};

/// Runs a function. Arguments beyond `args` come from `options.argument`. Symbols that `options` leaves open are taken
/// from the sizes of the given arguments (their `tfm.shape`).
mlir::LogicalResult interpret(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> args,
                              llvm::SmallVectorImpl<Tensor> &results, const InterpreterOptions &options = {},
                              std::string *reason = nullptr);

/// The value of one SSA value, given tensors for values it depends on.
mlir::FailureOr<Tensor> evaluate(mlir::Value value, llvm::ArrayRef<std::pair<mlir::Value, Tensor>> bindings,
                                 const InterpreterOptions &options = {}, std::string *reason = nullptr);

/// The kind of a scalar or tensor type's elements; failure where no tensor can hold it. `index` is i64.
mlir::FailureOr<ElementKind> elementKind(mlir::Type type);

/// The elements of a constant (dense, resource or scalar).
mlir::FailureOr<Tensor> readConstant(mlir::TypedAttr attr, std::string &reason);

/// A dense constant of the tensor's elements, of the given type.
mlir::DenseElementsAttr makeConstant(mlir::RankedTensorType type, const Tensor &tensor);

/// The values of a parameter of type `type` from its file, mapped and not copied: in the model's orientation, as the
/// model's own values. `folder` is where relative names start.
mlir::FailureOr<Tensor> readSource(tfm::SourceAttr source, mlir::RankedTensorType type, llvm::StringRef folder,
                                   std::string &reason);

/// Takes from `shape`, the sizes of an argument with `tfm.shape` `map`, the symbols that `symbols` leaves open. Fails
/// where a size contradicts a symbol.
mlir::LogicalResult bindSymbols(mlir::AffineMap map, llvm::ArrayRef<int64_t> shape,
                                llvm::SmallVectorImpl<int64_t> &symbols, std::string &reason);

} // namespace drover

#endif // DROVER_INTERPRETER_INTERPRETER_H
