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
namespace {
cl::SubCommand command("import", "read a model and write its tfm program");
ModelOptions modelOptions(command);
cl::opt<std::string> outputFile("o", cl::desc("where to write the program"), cl::value_desc("FILE.mlir"), cl::init("-"),
                                cl::sub(command));
cl::opt<bool> noRaise("no-raise", cl::desc("write the program as the front end reads it, before raising"),
                      cl::sub(command));
cl::opt<bool> printReport("report",
                          cl::desc("print what was imported (parameters, ties, symbolic sizes) to standard error"),
                          cl::sub(command));

int run() {
  std::optional<onnx::ImportOptions> options = modelOptions.importOptions();
  if (!options)
    return 1;
  CommandContext context;
  onnx::ImportReport report;
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(context, *options, &report);
  if (!module || (!noRaise && failed(raiseModel(*module))))
    return 1;
  std::string message;
  std::unique_ptr<ToolOutputFile> output = mlir::openOutputFile(outputFile, &message);
  if (!output)
    return failCommand(message);
  module->print(output->os());
  output->os() << '\n';
  output->keep();
  if (printReport)
    report.print(errs());
  return 0;
}
} // namespace

Subcommand importCommand() { return {command, run}; }

} // namespace drover::tool
