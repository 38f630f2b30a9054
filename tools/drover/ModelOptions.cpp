//===- ModelOptions.cpp - options of every command that reads a model -----===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ModelOptions.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;
using namespace mlir;

namespace drover::tool {

ModelOptions::ModelOptions(cl::SubCommand &command)
    : model(cl::Positional, cl::Required, cl::desc("MODEL"), cl::value_desc("MODEL"), cl::sub(command)),
      dims("dim", cl::desc("fix a symbolic size"), cl::value_desc("NAME=VALUE"), cl::sub(command)),
      inputs("input", cl::desc("replace a model input by a constant"),
             cl::value_desc("NAME=ones|zeros|arange|FILE.npy"), cl::sub(command)),
      noTie("no-tie", cl::desc("keep an output head with the embedding's values as a parameter of its own"),
            cl::sub(command)) {}

std::optional<onnx::ImportOptions> ModelOptions::importOptions() const {
  onnx::ImportOptions options;
  options.path = model;
  options.tie = !noTie;
  Error error = Error::success();
  for (const std::string &text : dims)
    error = joinErrors(std::move(error), options.addDim(text));
  for (const std::string &text : inputs)
    error = joinErrors(std::move(error), options.addInput(text));
  if (!error)
    return options;
  handleAllErrors(std::move(error),
                  [](const ErrorInfoBase &info) { WithColor::error(errs(), "drover") << info.message() << '\n'; });
  return std::nullopt;
}

/// A place as `file` or `file:line:column`, with the name of the node where there is one.
static void printLocation(raw_ostream &os, Location location) {
  if (auto name = dyn_cast<NameLoc>(location)) {
    if (!isa<UnknownLoc>(name.getChildLoc())) {
      printLocation(os, name.getChildLoc());
      os << ": ";
    }
    os << "node '" << name.getName().getValue() << '\'';
  } else if (auto file = dyn_cast<FileLineColLoc>(location)) {
    os << file.getFilename().getValue();
    if (file.getLine())
      os << ':' << file.getLine() << ':' << file.getColumn();
  } else {
    os << "drover";
  }
}

DiagnosticPrinter::DiagnosticPrinter(MLIRContext &context)
    : handler(&context, [](Diagnostic &diagnostic) {
        printLocation(errs(), diagnostic.getLocation());
        errs() << (diagnostic.getSeverity() == DiagnosticSeverity::Error     ? ": error: "
                   : diagnostic.getSeverity() == DiagnosticSeverity::Warning ? ": warning: "
                                                                             : ": remark: ")
               << diagnostic << '\n';
        for (Diagnostic &note : diagnostic.getNotes())
          errs() << "  note: " << note << '\n';
        return success();
      }) {}

} // namespace drover::tool
