//===- PlanOptions.h - the plan options of a command ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_TOOLS_DROVER_PLANOPTIONS_H
#define DROVER_TOOLS_DROVER_PLANOPTIONS_H

#include "CommandLine.h"
#include "drover/Schedule/Plan.h"

namespace drover::tool {

/// The plan of --plan=FILE with what is given on the command line on top.
llvm::Expected<schedule::Plan> readPlanOptions(const CommandLine &line);

/// Reads a plan file; the error names it.
llvm::Expected<schedule::Plan> readPlanFile(const std::string &path);

/// The options that give this plan, defaults left out: what a user can type behind `drover compile MODEL`.
std::string commandLineOf(const schedule::Plan &plan);

} // namespace drover::tool

#endif // DROVER_TOOLS_DROVER_PLANOPTIONS_H
