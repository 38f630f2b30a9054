//===- CompileCommand.cpp - drover compile --------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "CommandContext.h"
#include "ProgramOptions.h"
#include "Subcommands.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace drover::tool {
namespace {

std::string phaseHelp() {
  std::string text = "the phase to stop after; its program goes to OUT. In order:";
  for (const PhaseInfo &phase : compilePhases())
    text += ("\n  " + phase.name + (phase.trainOnly ? " (train)" : "") + ": " + phase.description).str();
  return text;
}

cl::SubCommand command("compile", "compile a model's training step or forward to an executable");
ProgramOptions programOptions(command);
cl::opt<std::string> emitKind("emit", cl::desc("mlir, llvm, obj or exe (exe)"), cl::init("exe"), cl::sub(command));
const std::string stopHelp = phaseHelp();
cl::opt<std::string> stopAfter("stop-after", cl::desc(stopHelp), cl::value_desc("PHASE"), cl::sub(command));
cl::opt<std::string> output("o", cl::desc("the file to write"), cl::value_desc("OUT"), cl::sub(command));

std::optional<Emit> parseEmit(StringRef text) {
  return StringSwitch<std::optional<Emit>>(text)
      .Case("mlir", Emit::Mlir)
      .Case("llvm", Emit::Llvm)
      .Case("obj", Emit::Object)
      .Case("exe", Emit::Executable)
      .Default(std::nullopt);
}

int run() {
  CompileOptions options;
  if (!programOptions.fill(options))
    return 1;
  if (emitKind == "ptx" || emitKind == "cubin")
    return failCommand("--emit=" + emitKind +
                       ": needs --target=cuda; accepted on the host are mlir, llvm, obj and exe");
  std::optional<Emit> emit = parseEmit(emitKind);
  if (!emit)
    return failCommand("--emit=" + emitKind + ": expected mlir|llvm|obj|exe");
  options.emit = *emit;
  options.stopAfter = stopAfter;
  options.output = output;
  if (std::string message = checkCompileOptions(options); !message.empty())
    return failCommand(message);

  CommandContext context;
  return failed(compileModel(context, options, errs()));
}

} // namespace

Subcommand compileCommand() { return {command, run}; }

} // namespace drover::tool
