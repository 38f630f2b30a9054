//===- ModelOptions.cpp - options of every command that reads a model -----===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ModelOptions.h"

using namespace llvm;

namespace drover::tool {

Expected<onnx::ImportOptions> readModelOptions(const CommandLine &line) {
  onnx::ImportOptions options;
  options.path = line.model().str();
  options.tie = !line.has(OPT_no_tie);
  for (const std::string &text : line.texts(OPT_dim))
    if (Error error = options.addDim(text))
      return error;
  for (const std::string &text : line.texts(OPT_input))
    if (Error error = options.addInput(text))
      return error;
  return options;
}

std::vector<std::string> givenModelOptions(const CommandLine &line) {
  std::vector<std::string> options;
  for (const std::string &text : line.texts(OPT_dim))
    options.push_back("--dim=" + text);
  for (const std::string &text : line.texts(OPT_input))
    options.push_back("--input=" + text);
  if (line.has(OPT_no_tie))
    options.emplace_back("--no-tie");
  return options;
}

} // namespace drover::tool
