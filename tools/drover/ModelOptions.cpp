//===- ModelOptions.cpp - options of every command that reads a model -----===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ModelOptions.h"
#include "CommandContext.h"

using namespace llvm;

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
  handleAllErrors(std::move(error), [](const ErrorInfoBase &info) { failCommand(info.message()); });
  return std::nullopt;
}

} // namespace drover::tool
