//===- ImportCommand.cpp - drover import ----------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "CommandContext.h"
#include "ModelOptions.h"
#include "Subcommands.h"
#include "drover/Pipelines/ImportModel.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace llvm;

namespace drover::tool {

static int run(const CommandLine &line) {
  Expected<onnx::ImportOptions> options = readModelOptions(line);
  if (!options)
    return failCommand(options.takeError());
  // Nothing that follows would fix sizes or inputs of another model.
  ModelKind kind = modelKindOf(options->path);
  if (std::vector<std::string> given = givenModelOptions(line);
      !(options->dims.empty() && options->inputs.empty()) &&
      (kind == ModelKind::HuggingFace || kind == ModelKind::Mlir))
    return failCommand(given.front() + ": import fixes this of ONNX files only; drover compile does of any model");
  CommandContext context;
  onnx::ImportReport report;
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(context, *options, &report);
  if (!module || (!line.has(OPT_no_raise) && failed(raiseModel(*module))))
    return 1;
  std::string message;
  std::unique_ptr<ToolOutputFile> output = mlir::openOutputFile(line.text(OPT_o, "-"), &message);
  if (!output)
    return failCommand(message);
  module->print(output->os());
  output->os() << '\n';
  output->keep();
  if (line.has(OPT_report))
    report.print(errs());
  return 0;
}

Subcommand importCommand() { return {"import", "read a model and write its tfm program", ImportCommand, run}; }

} // namespace drover::tool
