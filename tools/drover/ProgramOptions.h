//===- ProgramOptions.h - options of compile and check ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_TOOLS_DROVER_PROGRAMOPTIONS_H
#define DROVER_TOOLS_DROVER_PROGRAMOPTIONS_H

#include "CommandLine.h"
#include "drover/Pipelines/Compile.h"

namespace drover::tool {

/// MODEL, the plan, and what else says which program is made.
llvm::Expected<CompileOptions> readProgramOptions(const CommandLine &line);

/// The phases as a help text: those that end with `last`, or all.
std::string phaseNotes(llvm::StringRef last = "");

} // namespace drover::tool

#endif // DROVER_TOOLS_DROVER_PROGRAMOPTIONS_H
