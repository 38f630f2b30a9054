//===- CompileCommand.cpp - drover compile --------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ClusterOption.h"
#include "CommandContext.h"
#include "ProgramOptions.h"
#include "Subcommands.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace drover::tool {

static std::optional<Emit> parseEmit(StringRef text) {
  return StringSwitch<std::optional<Emit>>(text)
      .Case("mlir", Emit::Mlir)
      .Case("llvm", Emit::Llvm)
      .Case("ptx", Emit::Ptx)
      .Case("cubin", Emit::Cubin)
      .Case("obj", Emit::Object)
      .Case("exe", Emit::Executable)
      .Default(std::nullopt);
}

static int run(const CommandLine &line) {
  Expected<CompileOptions> options = readProgramOptions(line);
  if (!options)
    return failCommand(options.takeError());
  std::string emitKind = line.text(OPT_emit, "exe");
  std::optional<Emit> emit = parseEmit(emitKind);
  if (!emit)
    return failCommand("--emit=" + emitKind + ": expected mlir|llvm|ptx|cubin|obj|exe");
  options->emit = *emit;
  options->stopAfter = line.text(OPT_stop_after);
  options->output = line.text(OPT_o);
  if (std::string message = checkCompileOptions(*options); !message.empty())
    return failCommand(message);
  if (!placeOnCluster(line, *options, options->cluster))
    return 1;

  CommandContext context;
  return failed(compileModel(context, *options, errs()));
}

Subcommand compileCommand() {
  return {"compile", "compile a model's training step or forward to an executable", CompileCommand, run,
          [] { return phaseNotes(); }};
}

} // namespace drover::tool
