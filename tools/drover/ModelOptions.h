//===- ModelOptions.h - options of every command that reads a model -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_TOOLS_DROVER_MODELOPTIONS_H
#define DROVER_TOOLS_DROVER_MODELOPTIONS_H

#include "drover/Import/Onnx/Import.h"
#include "llvm/Support/CommandLine.h"
#include <optional>

namespace drover::tool {

/// MODEL and import's options, for one subcommand.
class ModelOptions {
public:
  explicit ModelOptions(llvm::cl::SubCommand &command);

  llvm::StringRef path() const { return model.getValue(); }
  /// The import options; nothing after an error message.
  std::optional<onnx::ImportOptions> importOptions() const;

private:
  llvm::cl::opt<std::string> model;
  llvm::cl::list<std::string> dims, inputs;
  llvm::cl::opt<bool> noTie;
};

} // namespace drover::tool

#endif // DROVER_TOOLS_DROVER_MODELOPTIONS_H
