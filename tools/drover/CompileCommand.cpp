//===- CompileCommand.cpp - drover compile --------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ModelOptions.h"
#include "PlanOptions.h"
#include "Subcommands.h"
#include "drover/Pipelines/Compile.h"
#include "drover/Registration.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;

namespace drover::tool {
namespace {

std::string phaseHelp() {
  std::string text = "the phase to stop after; its program goes to OUT. In order:";
  for (const PhaseInfo &phase : compilePhases())
    text += ("\n  " + phase.name + (phase.trainOnly ? " (train)" : "") + ": " + phase.description).str();
  return text;
}

cl::SubCommand command("compile", "compile a model's training step or forward to an executable");
ModelOptions modelOptions(command);
PlanOptions planOptions(command);
cl::opt<std::string> task("task", cl::desc("train or forward"), cl::Required, cl::sub(command));
cl::opt<std::string> target("target", cl::desc("host or cuda (host)"), cl::init("host"), cl::sub(command));
cl::opt<std::string> emitKind("emit", cl::desc("mlir, llvm, obj or exe (exe)"), cl::init("exe"), cl::sub(command));
const std::string stopHelp = phaseHelp();
cl::opt<std::string> stopAfter("stop-after", cl::desc(stopHelp), cl::value_desc("PHASE"), cl::sub(command));
cl::opt<std::string> printAfter("print-after", cl::desc("print the program after this phase to standard error"),
                                cl::value_desc("PHASE"), cl::sub(command));
cl::opt<std::string> output("o", cl::desc("the file to write"), cl::value_desc("OUT"), cl::sub(command));
cl::opt<std::string> hostCpu("host-cpu", cl::desc("the CPU to compile for (this one)"), cl::value_desc("NAME"),
                             cl::sub(command));
cl::opt<bool> timing("timing", cl::desc("print the seconds of each phase to standard error"), cl::sub(command));

std::optional<Emit> parseEmit(StringRef text) {
  return StringSwitch<std::optional<Emit>>(text)
      .Case("mlir", Emit::Mlir)
      .Case("llvm", Emit::Llvm)
      .Case("obj", Emit::Object)
      .Case("exe", Emit::Executable)
      .Default(std::nullopt);
}

int fail(const std::string &message) {
  WithColor::error(errs(), "drover") << message << '\n';
  return 1;
}

int run() {
  CompileOptions options;
  std::optional<onnx::ImportOptions> import = modelOptions.importOptions();
  std::optional<schedule::Plan> plan = import ? planOptions.plan() : std::nullopt;
  if (!plan)
    return 1;
  options.model = *import;
  options.plan = *plan;
  if (task != "train" && task != "forward")
    return fail("--task=" + task + ": expected train|forward");
  options.train = task == "train";
  options.target = target;
  if (emitKind == "ptx" || emitKind == "cubin")
    return fail("--emit=" + emitKind + ": needs --target=cuda; accepted on the host are mlir, llvm, obj and exe");
  std::optional<Emit> emit = parseEmit(emitKind);
  if (!emit)
    return fail("--emit=" + emitKind + ": expected mlir|llvm|obj|exe");
  options.emit = *emit;
  options.stopAfter = stopAfter;
  options.printAfter = printAfter;
  options.output = output;
  options.hostCpu = hostCpu;
  options.timing = timing;
  if (std::string message = checkCompileOptions(options); !message.empty())
    return fail(message);

  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  mlir::MLIRContext context(registry);
  // One line says what is wrong; a whole program behind it would hide that.
  context.printOpOnDiagnostic(false);
  DiagnosticPrinter printer(context);
  return failed(compileModel(context, options, errs()));
}

} // namespace

Subcommand compileCommand() { return {command, run}; }

} // namespace drover::tool
