//===- CheckOptions.cpp - what compile accepts ----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Pipelines/Compile.h"
#include "drover/Schedule/PlanWords.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"
#include <algorithm>

using namespace llvm;

namespace drover {
namespace {

std::string checkChoice(StringRef option, StringRef value, ArrayRef<StringRef> accepted) {
  if (is_contained(accepted, value))
    return "";
  return (option + "=" + value + ": expected " + join(accepted, "|")).str();
}

std::string checkWords(const schedule::Plan &plan) {
  for (const schedule::PlanWords &words : schedule::planWords()) {
    const std::string &value = plan.*words.value;
    if (value.empty() || words.accepts(value)) // of the compute type the target has a default
      continue;
    std::string option = words.key;
    std::replace(option.begin(), option.end(), '_', '-');
    return "--" + option + "=" + value + ": expected " + words.expected("|");
  }
  return "";
}

/// A phase of the task, not after `last`; `why` says what makes that the last one.
std::string checkPhase(StringRef option, StringRef value, bool train, StringRef last, StringRef why) {
  if (value.empty())
    return "";
  SmallVector<StringRef> accepted;
  bool known = false, reached = true;
  for (const PhaseInfo &phase : compilePhases()) {
    if (phase.trainOnly && !train)
      continue;
    if (phase.name == value && reached)
      return "";
    known |= phase.name == value;
    if (reached)
      accepted.push_back(phase.name);
    reached &= phase.name != last;
  }
  std::string fault = known   ? ("comes after " + last + ", the last phase " + why).str()
                      : train ? "no such phase"
                              : "no such phase of the forward task";
  return (option + "=" + value + ": " + fault + "; expected one of " + join(accepted, ", ")).str();
}

/// Both phases against what is compiled, and the step program against a name that promises MLIR.
std::string checkPhases(const CompileOptions &options) {
  CompileOptions whole = options;
  whole.stopAfter.clear();
  std::string error = checkPhase("--stop-after", options.stopAfter, options.train, lastPhase(whole), "of --emit");
  if (!error.empty())
    return error;
  error = checkPhase("--print-after", options.printAfter, options.train, lastPhase(options), "that runs");
  if (error.empty() && options.stopAfter == "schedule" && StringRef(options.output).ends_with(".mlir"))
    return "-o " + options.output +
           ": --stop-after=schedule writes the step program as text, not MLIR; expected a "
           "name that does not end in .mlir";
  return error;
}

/// What a target can write.
std::string checkEmit(const CompileOptions &options) {
  if (options.target != "cuda" && (options.emit == Emit::Ptx || options.emit == Emit::Cubin))
    return std::string("--emit=") + (options.emit == Emit::Ptx ? "ptx" : "cubin") +
           ": needs --target=cuda; accepted on the host are mlir, llvm, obj and exe";
  return "";
}

} // namespace

std::string checkCompileOptions(const CompileOptions &options) {
  const schedule::Plan &plan = options.plan;
  std::string errors[] = {checkChoice("--target", options.target, {"host", "cuda"}), checkWords(plan),
                          checkChoice("--zero", std::to_string(plan.zero), {"0", "1", "2", "3"}), checkPhases(options),
                          checkEmit(options)};
  for (std::string &error : errors)
    if (!error.empty())
      return std::move(error);
  if (plan.microbatch < 0)
    return "--microbatch=" + std::to_string(plan.microbatch) + ": expected 1 or more";
  if (plan.sequenceLength < 0)
    return "--seq-len=" + std::to_string(plan.sequenceLength) + ": expected 1 or more";
  if (std::optional<schedule::Error> error = schedule::checkPlan(plan))
    return error->message;
  if (plan.tp == 1 && plan.tpOverlap != "none")
    return "--tp-overlap=" + plan.tpOverlap + ": needs --tp=2 or more; accepted with one rank is none";
  if (!options.train && plan.mask == "documents")
    return "--mask=documents: accepted with --task=train only";
  if (options.target == "host" && plan.attention != "generated" && plan.attention != "auto")
    return "--attention=" + plan.attention + ": needs --target=cuda; accepted on the host are generated and auto";
  if (options.target == "host" && plan.communicationSms > 0)
    return "--communication-sms=" + std::to_string(plan.communicationSms) +
           ": needs --target=cuda; accepted on the host is 0";
  std::string message;
  if (!plan.freeze.empty() && !Regex(plan.freeze).isValid(message))
    return "--freeze=" + plan.freeze + ": not a regular expression: " + message;
  StringRef last = lastPhase(options);
  bool writesText = (last != "object" && last != "link") || options.emit == Emit::Llvm;
  if (options.output.empty() && !writesText)
    return "-o: expected the file to write";
  return "";
}

} // namespace drover
