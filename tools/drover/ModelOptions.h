//===- ModelOptions.h - options of every command that reads a model -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_TOOLS_DROVER_MODELOPTIONS_H
#define DROVER_TOOLS_DROVER_MODELOPTIONS_H

#include "CommandLine.h"
#include "drover/Import/Onnx/Import.h"

namespace drover::tool {

/// MODEL and import's options.
llvm::Expected<onnx::ImportOptions> readModelOptions(const CommandLine &line);

/// What was given of them besides MODEL, as a command line takes it again.
std::vector<std::string> givenModelOptions(const CommandLine &line);

} // namespace drover::tool

#endif // DROVER_TOOLS_DROVER_MODELOPTIONS_H
