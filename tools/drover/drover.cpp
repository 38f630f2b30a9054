//===- drover.cpp - the compiler's driver ---------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "CommandContext.h"
#include "Subcommands.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"

using namespace llvm;
using namespace drover::tool;

static void printUsage(ArrayRef<Subcommand> subcommands, raw_ostream &os) {
  os << "usage: drover SUBCOMMAND MODEL [options]\n\nsubcommands:\n";
  for (const Subcommand &subcommand : subcommands)
    os << "  " << left_justify(subcommand.name, 10) << subcommand.summary << "\n";
  os << "\n'drover SUBCOMMAND --help' lists a subcommand's options; 'drover --version' prints the version.\n";
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  // One line each, in the order of work.
  const Subcommand subcommands[] = {
      importCommand(), planCommand(), compileCommand(), checkCommand(), calibrateCommand(),
  };
  StringRef name = argc > 1 ? argv[1] : "";
  if (is_contained({"--help", "-h", "help"}, name)) {
    printUsage(subcommands, outs());
    return 0;
  }
  if (name == "--version") {
    outs() << "drover " << DROVER_VERSION << "\n";
    return 0;
  }
  const Subcommand *subcommand = find_if(subcommands, [&](const Subcommand &one) { return one.name == name; });
  if (subcommand == std::end(subcommands)) {
    std::string accepted = join(map_range(subcommands, [](const Subcommand &one) { return one.name; }), "|");
    if (name.empty()) {
      printUsage(subcommands, errs());
      return failCommand("expected a subcommand: " + accepted);
    }
    return failCommand("'" + name.str() + "': unknown subcommand; expected " + accepted);
  }
  Expected<CommandLine> line = CommandLine::parse(*subcommand, ArrayRef(argv + 2, argv + argc));
  if (!line)
    return failCommand(line.takeError());
  if (line->has(OPT_help)) {
    CommandLine::printHelp(*subcommand, outs());
    return 0;
  }
  return subcommand->run(*line);
}
