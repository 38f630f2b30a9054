//===- Subcommands.h - the subcommands of drover ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_TOOLS_DROVER_SUBCOMMANDS_H
#define DROVER_TOOLS_DROVER_SUBCOMMANDS_H

#include "llvm/Support/CommandLine.h"

namespace drover::tool {

/// One file each. `command` carries the name, the help text and the options; `run` is the rest of main.
struct Subcommand {
  llvm::cl::SubCommand &command;
  int (*run)();
};

Subcommand checkCommand();
Subcommand compileCommand();
Subcommand importCommand();

} // namespace drover::tool

#endif // DROVER_TOOLS_DROVER_SUBCOMMANDS_H
