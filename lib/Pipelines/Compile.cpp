//===- Compile.cpp - phases from a model to its step program --------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Pipelines/Compile.h"
#include "Compilation.h"
#include "Sizes.h"
#include "drover/Conversion/TfmToCost/TfmToCost.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "drover/Schedule/BuildStepProgram.h"
#include "drover/Schedule/Check.h"
#include "drover/Schedule/Serialize.h"
#include "drover/Schedule/Verify.h"
#include "drover/Target/Host/Host.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/ToolOutputFile.h"
#include <chrono>

using namespace mlir;

namespace drover {
namespace {

constexpr llvm::StringLiteral kMlir = "MLIR";
// Data, not IR (docs/step-program.md): the bodies that it calls are what the phase before hands on.
constexpr llvm::StringLiteral kStepProgram = "the step program as text";
constexpr llvm::StringLiteral kObject = "an object file; --print-after prints LLVM IR";
constexpr llvm::StringLiteral kExecutable = "an executable; --print-after prints LLVM IR";

constexpr PhaseInfo kPhases[] = {
    {"import", "read the model file into tfm, global tensors and symbolic sizes", kMlir, false},
    // Before raising: a mask made of ones is no mask, and positions that count up are RoPE's own.
    {"bind-inputs", "replace inputs that --input or training fixes by constants", kMlir, false},
    {"raise", "masks, rotary embedding, norms, activations and attention become single operations", kMlir, false},
    // After raising, which concludes what holds at every size, not only at this one.
    {"specialize", "bind every symbolic size: from here on shapes are static", kMlir, false},
    {"attach-loss", "append the cross-entropy and drop what training does not need", kMlir, true},
    // Before outlining, so that a rounding belongs to the body that computes the value.
    {"compute-dtype", "give parameters and activations the compute dtype", kMlir, false},
    {"outline", "structurally equal layers become one body", kMlir, false},
    // Body by body: its size follows distinct layers, not layers.
    {"differentiate", "derive the backward of each body and what is stashed", kMlir, true},
    // Before the partition, so that each part has collectives of its own and none is cut apart.
    {"split-backward", "split backwards into input and weight parts where the schedule runs these apart", kMlir, true},
    {"update-bodies", "add the bodies of the optimizer, the norm and the cast", kMlir, true},
    // After differentiation, so that no collective is ever differentiated.
    {"partition", "cut bodies over tp, cp and dp, insert the collectives and prove them", kMlir, false},
    // Before lowering, which erases the calls that the schedule is read off.
    {"schedule", "cut into chunks, order the work, place every slot in the arena", kStepProgram, false},
    {"lower", "bodies to kernels and library calls in the LLVM dialect, with the step program as data", kMlir, false},
    {"object", "optimize and write machine code", kObject, false},
    {"link", "link with the runtime", kExecutable, false},
};

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace

llvm::ArrayRef<PhaseInfo> compilePhases() { return kPhases; }

StringRef lastPhase(const CompileOptions &options) {
  if (!options.stopAfter.empty())
    return options.stopAfter;
  switch (options.emit) {
  case Emit::Mlir:
    return "lower";
  case Emit::Llvm:
  case Emit::Ptx:
  case Emit::Cubin:
  case Emit::Object:
    return "object";
  case Emit::Executable:
    break;
  }
  return "link";
}

LogicalResult (Compilation::*const Compilation::kPhaseMethods[])() = {
    &Compilation::importPhase,   &Compilation::bindInputs,   &Compilation::raise,     &Compilation::specialize,
    &Compilation::attachLoss,    &Compilation::computeDtype, &Compilation::outline,   &Compilation::differentiate,
    &Compilation::splitBackward, &Compilation::updateBodies, &Compilation::partition, &Compilation::schedule,
    &Compilation::lower,         &Compilation::object,       &Compilation::link};

LogicalResult Compilation::run() {
  static_assert(std::size(kPhases) == std::size(kPhaseMethods), "one method a phase");
  if (failed(checkOutput()))
    return failure();
  StringRef last = lastPhase(options);
  if (failed(runUpTo(last)))
    return failure();
  // The machine's phases write their own files.
  if (last == "object" || last == "link")
    return success();
  return writeText([&](raw_ostream &os) { return printState(last, os); });
}

LogicalResult Compilation::runPhase(size_t index) {
  const PhaseInfo &phase = kPhases[index];
  auto start = std::chrono::steady_clock::now();
  if (failed((this->*kPhaseMethods[index])()) || failed(verify(*module)))
    return failure();
  if (options.timing)
    log << llvm::format("%8.3f s  ", secondsSince(start)) << phase.name << "\n";
  return phase.name == options.printAfter ? printState(phase.name, log) : success();
}

LogicalResult Compilation::runUpTo(StringRef last) {
  for (size_t i = 0; i < std::size(kPhases); ++i) {
    if (kPhases[i].trainOnly && !options.train)
      continue;
    if (failed(runPhase(i)))
      return failure();
    if (kPhases[i].name == last)
      break;
  }
  return success();
}

FailureOr<CheckedProgram> Compilation::check() {
  checksOnly = true;
  if (failed(runUpTo("lower")))
    return failure();
  return CheckedProgram{std::move(step), std::move(faults)};
}

FailureOr<PlannedModel> Compilation::readForPlan() {
  if (failed(runUpTo("specialize")))
    return failure();
  FailureOr<cost::ModelShape> shape = readModelShape(*module);
  if (failed(shape))
    return failure();
  PlannedModel model{*shape, plan.sequenceLength, std::nullopt};
  if (facts.batch.size >= 0)
    model.microbatch = facts.batch.size;
  return model;
}

LogicalResult Compilation::printState(StringRef phase, raw_ostream &os) {
  if (phase == "object" || phase == "link") {
    host::HostOptions hostOptions;
    hostOptions.cpu = options.hostCpu;
    FailureOr<std::string> text = host::emitLLVM(*module, hostOptions);
    if (failed(text))
      return failure();
    os << *text;
  } else if (phase == "schedule") {
    os << schedule::printStepProgram(step);
  } else {
    os << *module << "\n";
  }
  return success();
}

InFlightDiagnostic Compilation::error() { return emitError(FileLineColLoc::get(&context, options.model.path, 0, 0)); }

/// What cannot be written is said before the work, not after it.
LogicalResult Compilation::checkOutput() {
  if (emitsKernels() && lastPhase(options) == "object") {
    std::error_code code = llvm::sys::fs::create_directories(options.output);
    if (!code && !llvm::sys::fs::is_directory(options.output))
      code = std::make_error_code(std::errc::not_a_directory);
    return code ? error() << "cannot make the folder '" << options.output << "': " << code.message() : success();
  }
  if (options.output.empty() || options.output == "-")
    return success();
  bool exists = llvm::sys::fs::exists(options.output);
  int descriptor = -1;
  std::error_code code = llvm::sys::fs::openFileForWrite(
      options.output, descriptor, exists ? llvm::sys::fs::CD_OpenExisting : llvm::sys::fs::CD_CreateNew);
  if (code)
    return error() << "cannot write '" << options.output << "': " << code.message();
  llvm::sys::fs::file_t file = llvm::sys::fs::convertFDToNativeFile(descriptor);
  (void)llvm::sys::fs::closeFile(file);
  if (!exists)
    (void)llvm::sys::fs::remove(options.output);
  return success();
}

LogicalResult Compilation::writeText(llvm::function_ref<LogicalResult(raw_ostream &)> print) {
  std::string message;
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(options.output.empty() ? "-" : options.output, &message);
  if (!file)
    return error() << message;
  if (failed(print(file->os())))
    return failure();
  file->keep();
  return success();
}

LogicalResult Compilation::runPasses(llvm::function_ref<void(OpPassManager &)> build) {
  PassManager manager(&context);
  build(manager);
  return manager.run(*module);
}

LogicalResult Compilation::importPhase() {
  module = importModel(context, options.model);
  if (!module)
    return failure();
  return hashModel();
}

/// The executable holds no weights: it reads them from the file whose hash this is.
LogicalResult Compilation::hashModel() {
  auto buffer = llvm::MemoryBuffer::getFile(options.model.path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return error() << "cannot be read: " << buffer.getError().message();
  llvm::SHA256 hash;
  hash.update((*buffer)->getBuffer());
  modelHash = llvm::toHex(hash.final(), /*LowerCase=*/true);
  return success();
}

LogicalResult Compilation::bindInputs() {
  // The ONNX front end has bound what --input names, files too.
  bool imported = modelKindOf(options.model.path) == ModelKind::Onnx;
  std::vector<std::string> given, usual;
  for (const auto &[name, input] : options.model.inputs) {
    if (imported)
      continue;
    switch (input.kind) {
    case onnx::ConstantInput::Kind::Ones:
      given.push_back(name + "=ones");
      break;
    case onnx::ConstantInput::Kind::Zeros:
      given.push_back(name + "=zeros");
      break;
    case onnx::ConstantInput::Kind::Arange:
      given.push_back(name + "=arange");
      break;
    case onnx::ConstantInput::Kind::File:
      return error() << "--input=" << name << "=FILE is for ONNX models: accepted here are ones, zeros and arange";
    }
  }
  if (options.train) {
    if (!options.model.inputs.count("attention_mask"))
      usual.push_back("attention_mask=ones");
    // With a document mask positions stay an input: --reset-positions restarts them in every document.
    if (!options.model.inputs.count("position_ids") && plan.mask == "model")
      usual.push_back("position_ids=arange");
  }
  return runPasses([&](OpPassManager &manager) {
    auto add = [&](const std::vector<std::string> &inputs, bool optional) {
      tfm::TfmBindInputsOptions bind;
      bind.inputs.assign(inputs.begin(), inputs.end());
      bind.optional = optional;
      if (!inputs.empty())
        manager.addPass(tfm::createTfmBindInputs(bind));
    };
    add(given, /*optional=*/false);
    add(usual, /*optional=*/true);
  });
}

LogicalResult Compilation::raise() { return raiseModel(*module); }

LogicalResult Compilation::specialize() {
  FailureOr<ModelFacts> read = readModelFacts(*module);
  if (failed(read))
    return failure();
  facts = std::move(*read);
  // The ONNX front end has bound what --dim names.
  std::map<std::string, int64_t> dims;
  if (modelKindOf(options.model.path) != ModelKind::Onnx)
    dims = options.model.dims;
  FailureOr<std::vector<std::string>> sizes = resolveSizes(*module, facts, dims, options.train, plan);
  if (failed(sizes))
    return failure();
  tfm::TfmSpecializeOptions bind;
  bind.sizes.assign(sizes->begin(), sizes->end());
  return runPasses([&](OpPassManager &manager) { manager.addPass(tfm::createTfmSpecialize(bind)); });
}

LogicalResult Compilation::attachLoss() {
  tfm::TfmAttachLossOptions loss;
  loss.documents = plan.mask == "documents";
  return runPasses([&](OpPassManager &manager) { manager.addPass(tfm::createTfmAttachLoss(loss)); });
}

LogicalResult Compilation::computeDtype() {
  if (plan.computeType.empty())
    plan.computeType = options.target == "cuda" ? "bf16" : "f32";
  tfm::TfmApplyComputeDtypeOptions dtype;
  dtype.dtype = plan.computeType;
  return runPasses([&](OpPassManager &manager) { manager.addPass(tfm::createTfmApplyComputeDtype(dtype)); });
}

LogicalResult Compilation::outline() {
  return runPasses([&](OpPassManager &manager) { manager.addPass(tfm::createTfmOutline()); });
}

/// The items of --rebuild.
static SmallVector<std::string> rebuildOf(const schedule::Plan &plan) {
  SmallVector<StringRef> items;
  StringRef(plan.rebuild).split(items, ',');
  return llvm::map_to_vector(items, [](StringRef item) { return item.str(); });
}

LogicalResult Compilation::differentiate() {
  tfm::TfmDifferentiateOptions options;
  options.recompute = plan.recompute;
  options.rebuild = rebuildOf(plan);
  options.freeze = plan.freeze;
  return runPasses([&](OpPassManager &manager) {
    manager.addPass(tfm::createTfmDifferentiate(options));
    manager.addPass(tfm::createTfmVerifyMicrobatch());
  });
}

LogicalResult Compilation::splitBackward() {
  if (plan.schedule() != schedule::ScheduleKind::ZeroBubbleH1)
    return success();
  tfm::TfmSplitBackwardOptions options;
  options.rebuild = rebuildOf(plan);
  return runPasses([&](OpPassManager &manager) {
    manager.addPass(tfm::createTfmSplitBackward(options));
    manager.addPass(tfm::createTfmVerifyMicrobatch());
  });
}

LogicalResult Compilation::updateBodies() {
  tfm::TfmAddUpdateBodiesOptions update;
  update.optimizer = plan.optimizer;
  update.dtype = plan.computeType;
  // The runtime adds on the host itself.
  update.addGradients = options.target == "cuda" && plan.reduceEvery == "run";
  return runPasses([&](OpPassManager &manager) { manager.addPass(tfm::createTfmAddUpdateBodies(update)); });
}

LogicalResult Compilation::partition() {
  // Over PP and DP alone a rank's bodies are those of one rank.
  if (plan.tp == 1 && plan.cp == 1)
    return success();
  tfm::TfmPartitionOptions cut;
  cut.tp = plan.tp;
  cut.cp = plan.cp;
  cut.dp = plan.dp;
  return runPasses([&](OpPassManager &manager) {
    manager.addPass(tfm::createTfmPartition(cut));
    manager.addNestedPass<func::FuncOp>(tfm::createTfmSimplifyCollectives());
    if (plan.schedule() == schedule::ScheduleKind::ZeroBubbleH1)
      manager.addPass(tfm::createTfmShareGathers());
    manager.addPass(tfm::createTfmVerifyDistributions());
    if (plan.tpOverlap == "ring") {
      manager.addNestedPass<func::FuncOp>(tfm::createTfmRingOverlap());
      manager.addPass(tfm::createTfmVerifyDistributions());
    }
    manager.addPass(tfm::createTfmVerifyMicrobatch());
  });
}

LogicalResult Compilation::schedule() {
  FailureOr<schedule::MicrobatchProgram> program = extractMicrobatch(*module, facts, options.train);
  if (failed(program))
    return failure();
  schedule::Result<schedule::StepProgram> built = schedule::buildStepProgram(*program, plan);
  if (!built)
    return error() << built.error();
  step = std::move(*built);
  llvm::SmallString<128> path(options.model.path);
  if (std::error_code code = llvm::sys::fs::make_absolute(path))
    return error() << "cannot be made an absolute path: " << code.message();
  step.model = {path.str().str(), modelHash, nameOf(modelKindOf(options.model.path))};
  // The boundary of this phase: every access of every action, replayed.
  faults = schedule::verifyStepProgram(*program, step);
  for (std::string &fault : schedule::checkStepProgram(step))
    faults.push_back(std::move(fault));
  if (faults.empty() || checksOnly)
    return success();
  InFlightDiagnostic diagnostic = error() << "the step program is wrong: " << faults.front();
  for (const std::string &fault : llvm::ArrayRef(faults).drop_front())
    diagnostic.attachNote() << fault;
  return diagnostic;
}

FailureOr<CheckedProgram> checkModel(MLIRContext &context, const CompileOptions &options, raw_ostream &log) {
  return Compilation(context, options, log).check();
}

FailureOr<PlannedModel> readPlannedModel(MLIRContext &context, const CompileOptions &options, raw_ostream &log) {
  return Compilation(context, options, log).readForPlan();
}

LogicalResult compileModel(MLIRContext &context, const CompileOptions &options, raw_ostream &log) {
  return Compilation(context, options, log).run();
}

} // namespace drover
