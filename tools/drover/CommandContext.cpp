//===- CommandContext.cpp - where a command works and reports -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "CommandContext.h"
#include "drover/Registration.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;
using namespace mlir;

namespace drover::tool {

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

/// The registry is needed only until the context has it.
static mlir::DialectRegistry allDialects() {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  return registry;
}

CommandContext::CommandContext()
    : context(allDialects()), handler(&context, [](Diagnostic &diagnostic) {
        printLocation(errs(), diagnostic.getLocation());
        errs() << (diagnostic.getSeverity() == DiagnosticSeverity::Error     ? ": error: "
                   : diagnostic.getSeverity() == DiagnosticSeverity::Warning ? ": warning: "
                                                                             : ": remark: ")
               << diagnostic << '\n';
        for (Diagnostic &note : diagnostic.getNotes())
          errs() << "  note: " << note << '\n';
        return success();
      }) {
  // One line says what is wrong; a whole program behind it would hide that.
  context.printOpOnDiagnostic(false);
}

int failCommand(const Twine &message) {
  WithColor::error(errs(), "drover") << message << '\n';
  return 1;
}

int failCommand(Error error) { return failCommand(toString(std::move(error))); }

} // namespace drover::tool
