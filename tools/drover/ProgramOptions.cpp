//===- ProgramOptions.cpp - options of compile and check ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ProgramOptions.h"
#include "ModelOptions.h"
#include "PlanOptions.h"

using namespace llvm;

namespace drover::tool {

Expected<CompileOptions> readProgramOptions(const CommandLine &line) {
  Expected<onnx::ImportOptions> import = readModelOptions(line);
  if (!import)
    return import.takeError();
  Expected<schedule::Plan> plan = readPlanOptions(line);
  if (!plan)
    return plan.takeError();
  std::string task = line.text(OPT_task);
  if (task.empty())
    return createStringError("--task: expected --task=train|forward");
  if (task != "train" && task != "forward")
    return createStringError("--task=" + task + ": expected train|forward");
  const std::pair<OptionId, const char *> trained[] = {{OPT_freeze, "freeze"}, {OPT_optimizer, "optimizer"}};
  for (auto [option, name] : trained)
    if (task == "forward" && line.has(option))
      return createStringError("--" + Twine(name) + "=" + line.text(option) + ": accepted with --task=train only");
  CompileOptions options;
  options.model = *import;
  options.plan = *plan;
  options.train = task == "train";
  options.target = line.text(OPT_target, options.target);
  options.printAfter = line.text(OPT_print_after);
  options.hostCpu = line.text(OPT_host_cpu);
  options.timing = line.has(OPT_timing);
  return options;
}

std::string phaseNotes(StringRef last) {
  std::string text = "phases, in order, with what each hands on:\n";
  raw_string_ostream os(text);
  for (const PhaseInfo &phase : compilePhases()) {
    os << "  " << left_justify(phase.name, 16) << phase.description << (phase.trainOnly ? " (train)" : "") << ": "
       << phase.result << "\n";
    if (phase.name == last)
      break;
  }
  return text;
}

} // namespace drover::tool
