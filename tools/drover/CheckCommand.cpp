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
namespace {

cl::SubCommand command("check", "prove a plan's program for every rank, and report its traffic and memory");
ProgramOptions programOptions(command);
cl::opt<bool> json("json", cl::desc("print the report as JSON"), cl::sub(command));

int run() {
  CompileOptions options;
  if (!programOptions.fill(options))
    return 1;
  // Nothing is written: the last phase that matters is the one that tells the bodies' workspace.
  options.emit = Emit::Mlir;
  if (std::string message = checkCompileOptions(options); !message.empty())
    return failCommand(message);

  CommandContext context;
  mlir::FailureOr<CheckedProgram> checked = checkModel(context, options, errs());
  if (failed(checked))
    return 1;
  outs() << (json ? schedule::reportJson(checked->step, checked->faults)
                  : schedule::reportText(checked->step, checked->faults));
  return checked->faults.empty() ? 0 : 1;
}

} // namespace

Subcommand checkCommand() { return {command, run}; }

} // namespace drover::tool
