//===- Inputs.h - named inputs of a model -----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_INTERPRETER_INPUTS_H
#define DROVER_INTERPRETER_INPUTS_H

#include "drover/Interpreter/Interpreter.h"

namespace drover {

/// What a model's function is run on, by the names of its arguments (`tfm.input`, `tfm.parameter`, `tfm.accumulator`,
/// `tfm.seed`, otherwise argN). Values are a .npy file, `zeros`, `ones` or `arange` (along the last dimension).
struct NamedInputs {
  llvm::StringMap<std::string> values;
  /// Where relative names of #tfm.source start.
  std::string folder;
  /// Fills parameters and inputs without a value with numbers that depend on the seed, the name and the index alone.
  std::optional<uint64_t> randomSeed;
};

/// The name of a function's argument and result.
std::string argumentName(mlir::func::FuncOp function, unsigned index);
std::string resultName(mlir::func::FuncOp function, unsigned index);

/// Supplies the arguments of `function`, for InterpreterOptions::argument. Sizes come from `symbols`.
mlir::FailureOr<Tensor> readArgument(mlir::func::FuncOp function, unsigned index, const NamedInputs &inputs,
                                     llvm::ArrayRef<int64_t> symbols, std::string &reason);

/// Binds the symbols that the .npy files among the inputs determine.
mlir::LogicalResult bindSymbols(mlir::func::FuncOp function, const NamedInputs &inputs,
                                llvm::SmallVectorImpl<int64_t> &symbols, std::string &reason);

} // namespace drover

#endif // DROVER_INTERPRETER_INPUTS_H
