//===- SearchOptions.h - the problem that a command line asks ---*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_TOOLS_DROVER_SEARCHOPTIONS_H
#define DROVER_TOOLS_DROVER_SEARCHOPTIONS_H

#include "CommandLine.h"
#include "drover/Planner/Problem.h"

namespace drover::tool {

/// Sets all of a problem but the model, the cluster, and what needs the model.
llvm::Error readSearchOptions(const CommandLine &line, planner::Problem &problem);
/// The rest, once the model is there.
void finishSearchOptions(const CommandLine &line, planner::Problem &problem);

/// Sets every choice of a problem to what the plan of a file has. Layers that it leaves out are even, for which the
/// model must be there: `fixLayers`.
llvm::Error fixChoices(const std::string &planFile, planner::Problem &problem);
void fixLayers(planner::Problem &problem);

/// A positive number that may end in K, M, B or T, for a thousand up to a trillion.
std::optional<double> parseCount(llvm::StringRef text);

} // namespace drover::tool

#endif // DROVER_TOOLS_DROVER_SEARCHOPTIONS_H
