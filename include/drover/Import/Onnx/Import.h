//===- Import.h - from an ONNX file to a tfm program ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// The ONNX front end as a library function. It reads a file, reasons about its (symbolic) shapes,
// folds what is known and emits one `tfm` function; raising is left to the passes of the dialect.
//
//===----------------------------------------------------------------------===//
#ifndef DROVER_IMPORT_ONNX_IMPORT_H
#define DROVER_IMPORT_ONNX_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace drover::onnx {

/// A value that the user gives to a model input; the input is then no argument of the function.
struct ConstantInput {
  enum class Kind { Ones, Zeros, Arange, File };
  Kind kind = Kind::Ones;
  /// Kind::File: a .npy file.
  std::string path;
};

struct ImportOptions {
  std::string path;
  /// Values of symbolic sizes by name.
  std::map<std::string, int64_t> dims;
  /// Constant inputs by name.
  std::map<std::string, ConstantInput> inputs;
  /// An embedding table and an output head with equal values are one parameter.
  bool tie = true;

  /// Takes one `NAME=VALUE` of --dim. An error says what would be accepted.
  llvm::Error addDim(llvm::StringRef text);
  /// Takes one `NAME=ones|zeros|arange|FILE.npy` of --input.
  llvm::Error addInput(llvm::StringRef text);
};

/// What a person wants to know about an import, for --report.
struct ImportReport {
  struct Parameter {
    std::string name, initializer, shape, note;
  };
  struct Tie {
    std::string name, with;
  };
  std::string producer, opsets;
  int64_t irVersion = 0;
  uint64_t nodes = 0, folded = 0;
  std::vector<std::string> symbols;
  std::vector<Parameter> parameters;
  std::vector<Tie> ties;
  /// Float initializers that became constants, and why.
  std::vector<std::pair<std::string, std::string>> constants;
  /// Anything that a user should look at.
  std::vector<std::string> remarks;

  void print(llvm::raw_ostream &os) const;
};

/// Imports `options.path`. Returns null after exactly one error diagnostic.
mlir::OwningOpRef<mlir::ModuleOp> importOnnx(mlir::MLIRContext &context, const ImportOptions &options,
                                             ImportReport *report = nullptr);

} // namespace drover::onnx

#endif // DROVER_IMPORT_ONNX_IMPORT_H
