//===- drover.cpp - the compiler's driver ---------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Subcommands.h"
#include "llvm/Support/InitLLVM.h"

using namespace drover::tool;

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  // One line each, in the order of work.
  const Subcommand subcommands[] = {
      importCommand(),
      compileCommand(),
      checkCommand(),
  };
  // Before a subcommand there are none but LLVM's own, which are for its developers.
  static llvm::cl::OptionCategory category("drover options");
  llvm::cl::HideUnrelatedOptions(category);
  llvm::cl::ParseCommandLineOptions(argc, argv, "drover: a compiler for training transformers on GPU clusters\n");
  for (const Subcommand &subcommand : subcommands)
    if (subcommand.command)
      return subcommand.run();
  llvm::cl::PrintHelpMessage();
  return 1;
}
