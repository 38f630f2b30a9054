//===- CheckCommand.cpp - drover check ------------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "CommandContext.h"
#include "ProgramOptions.h"
#include "Subcommands.h"
#include "drover/Schedule/Report.h"

using namespace llvm;

namespace drover::tool {

static int run(const CommandLine &line) {
  Expected<CompileOptions> options = readProgramOptions(line);
  if (!options)
    return failCommand(options.takeError());
  // Nothing is written: the last phase that matters is the one that tells the bodies' workspace.
  options->emit = Emit::Mlir;
  if (std::string message = checkCompileOptions(*options); !message.empty())
    return failCommand(message);

  CommandContext context;
  mlir::FailureOr<CheckedProgram> checked = checkModel(context, *options, errs());
  if (failed(checked))
    return 1;
  outs() << (line.has(OPT_json) ? schedule::reportJson(checked->step, checked->faults)
                                : schedule::reportText(checked->step, checked->faults));
  return checked->faults.empty() ? 0 : 1;
}

Subcommand checkCommand() {
  return {"check", "prove a plan's program for every rank, and report its traffic and memory", CheckCommand, run,
          [] { return phaseNotes("lower"); }};
}

} // namespace drover::tool
