//===- CommandContext.h - where a command works and reports ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_TOOLS_DROVER_COMMANDCONTEXT_H
#define DROVER_TOOLS_DROVER_COMMANDCONTEXT_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Error.h"

namespace drover::tool {

/// A context with every dialect. Prints diagnostics as `drover: MODEL: error: ..`, notes below.
class CommandContext {
public:
  CommandContext();

  operator mlir::MLIRContext &() { return context; }

private:
  mlir::MLIRContext context;
  mlir::ScopedDiagnosticHandler handler;
};

/// Prints an error that has no place in a file. Returns main's status.
int failCommand(const llvm::Twine &message);
int failCommand(llvm::Error error);

} // namespace drover::tool

#endif // DROVER_TOOLS_DROVER_COMMANDCONTEXT_H
