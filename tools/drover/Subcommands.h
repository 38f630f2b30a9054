//===- Subcommands.h - the subcommands of drover ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_TOOLS_DROVER_SUBCOMMANDS_H
#define DROVER_TOOLS_DROVER_SUBCOMMANDS_H

#include "CommandLine.h"

namespace drover::tool {

/// One file each; the options are Options.td's with this visibility.
struct Subcommand {
  llvm::StringLiteral name;
  const char *summary;
  unsigned visibility;
  /// The rest of main; what it returns is main's status.
  int (*run)(const CommandLine &);
  /// What the help says after the options, where there is more to say.
  std::string (*notes)() = nullptr;
  bool takesModel = true;
};

Subcommand calibrateCommand();
Subcommand checkCommand();
Subcommand compileCommand();
Subcommand importCommand();
Subcommand planCommand();

} // namespace drover::tool

#endif // DROVER_TOOLS_DROVER_SUBCOMMANDS_H
