//===- ProgramOptions.cpp - options of compile and check ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ProgramOptions.h"
#include "CommandContext.h"

using namespace llvm;

namespace drover::tool {

ProgramOptions::ProgramOptions(cl::SubCommand &command)
    : model(command), plan(command), task("task", cl::desc("train or forward"), cl::Required, cl::sub(command)),
      target("target", cl::desc("host or cuda (host)"), cl::init("host"), cl::sub(command)),
      printAfter("print-after", cl::desc("print the program after this phase to standard error"),
                 cl::value_desc("PHASE"), cl::sub(command)),
      hostCpu("host-cpu", cl::desc("the CPU to compile for (this one)"), cl::value_desc("NAME"), cl::sub(command)),
      timing("timing", cl::desc("print the seconds of each phase to standard error"), cl::sub(command)) {}

bool ProgramOptions::fill(CompileOptions &result) const {
  std::optional<onnx::ImportOptions> import = model.importOptions();
  std::optional<schedule::Plan> given = import ? plan.plan() : std::nullopt;
  if (!given)
    return false;
  if (task != "train" && task != "forward") {
    failCommand("--task=" + task + ": expected train|forward");
    return false;
  }
  result.model = *import;
  result.plan = *given;
  result.train = task == "train";
  result.target = target;
  result.printAfter = printAfter;
  result.hostCpu = hostCpu;
  result.timing = timing;
  return true;
}

} // namespace drover::tool
