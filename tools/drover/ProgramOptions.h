//===- ProgramOptions.h - options of compile and check ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_TOOLS_DROVER_PROGRAMOPTIONS_H
#define DROVER_TOOLS_DROVER_PROGRAMOPTIONS_H

#include "ModelOptions.h"
#include "PlanOptions.h"
#include "drover/Pipelines/Compile.h"

namespace drover::tool {

/// MODEL, the plan, and what else says which program is made, for one subcommand.
class ProgramOptions {
public:
  explicit ProgramOptions(llvm::cl::SubCommand &command);

  /// Fills what the options say; false after an error message.
  bool fill(CompileOptions &result) const;

private:
  ModelOptions model;
  PlanOptions plan;
  llvm::cl::opt<std::string> task, target, printAfter, hostCpu;
  llvm::cl::opt<bool> timing;
};

} // namespace drover::tool

#endif // DROVER_TOOLS_DROVER_PROGRAMOPTIONS_H
