//===- CommandLine.h - what a subcommand was told ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_TOOLS_DROVER_COMMANDLINE_H
#define DROVER_TOOLS_DROVER_COMMANDLINE_H

#include "llvm/Option/ArgList.h"
#include "llvm/Support/Error.h"

namespace drover::tool {

struct Subcommand;

/// Options.td's options as OPT_NAME.
enum OptionId {
  OPT_INVALID = 0,
#define OPTION(...) LLVM_MAKE_OPT_ID(__VA_ARGS__),
#include "Options.inc"
#undef OPTION
};

/// Which subcommands have an option, as Options.td's visibilities.
enum OptionVisibility : unsigned {
  ImportCommand = 1 << 1,
  CompileCommand = 1 << 2,
  CheckCommand = 1 << 3,
  PlanCommand = 1 << 4,
  CalibrateCommand = 1 << 5,
};

/// The arguments of a subcommand. Every error is one line that says what was given and what would be accepted.
class CommandLine {
public:
  /// Holds `arguments`, what follows the subcommand's name, against the options that it has.
  static llvm::Expected<CommandLine> parse(const Subcommand &command, llvm::ArrayRef<const char *> arguments);
  static void printHelp(const Subcommand &command, llvm::raw_ostream &os);

  /// MODEL; empty where only help was asked for.
  llvm::StringRef model() const;

  bool has(OptionId option) const { return arguments.hasArg(option); }
  /// The option's value, or `otherwise` where it was not given.
  std::string text(OptionId option, llvm::StringRef otherwise = "") const;
  std::vector<std::string> texts(OptionId option) const { return arguments.getAllArgValues(option); }

  /// Sets `value` where the option was given.
  llvm::Error readInteger(OptionId option, int64_t minimum, int64_t &value) const;
  /// Several, separated by commas.
  llvm::Error readIntegers(OptionId option, int64_t minimum, std::vector<int64_t> &values) const;

private:
  explicit CommandLine(llvm::opt::InputArgList arguments) : arguments(std::move(arguments)) {}

  llvm::opt::InputArgList arguments;
};

} // namespace drover::tool

#endif // DROVER_TOOLS_DROVER_COMMANDLINE_H
