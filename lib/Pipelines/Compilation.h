//===- Compilation.h - the state that phases share --------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_PIPELINES_COMPILATION_H
#define DROVER_LIB_PIPELINES_COMPILATION_H

#include "drover/Pipelines/Compile.h"
#include "drover/Target/Host/Host.h"
#include "mlir/Pass/PassManager.h"

namespace drover {

/// One compilation. Each phase is a method of its name; `run` calls them in the order of `compilePhases`.
class Compilation {
public:
  Compilation(mlir::MLIRContext &context, const CompileOptions &options, llvm::raw_ostream &log)
      : context(context), options(options), log(log), plan(options.plan) {}

  mlir::LogicalResult run();

  /// Runs the phases up to `lower` without writing anything; faults of the step program are kept.
  mlir::FailureOr<CheckedProgram> check();

  /// Runs the phases up to `specialize` and reads what the planner asks.
  mlir::FailureOr<PlannedModel> readForPlan();

private:
  mlir::LogicalResult runUpTo(llvm::StringRef last);
  // Phases of the model, Compile.cpp.
  mlir::LogicalResult importPhase();
  mlir::LogicalResult bindInputs();
  mlir::LogicalResult raise();
  mlir::LogicalResult specialize();
  mlir::LogicalResult attachLoss();
  mlir::LogicalResult computeDtype();
  mlir::LogicalResult outline();
  mlir::LogicalResult differentiate();
  mlir::LogicalResult splitBackward();
  mlir::LogicalResult updateBodies();
  mlir::LogicalResult partition();
  mlir::LogicalResult schedule();
  // Phases of the machine, CompileToHost.cpp.
  mlir::LogicalResult lower();
  mlir::LogicalResult object();
  mlir::LogicalResult link();
  /// Adds the step program, as data, to the lowered module.
  mlir::LogicalResult embed(llvm::ArrayRef<host::GpuImage> images, llvm::StringRef gpuModules);
  // The part of `object` that is about kernels of a GPU, CompileToCuda.cpp.
  mlir::LogicalResult kernels();
  /// What lies beside an executable for NCCL (docs/nccl.md).
  mlir::LogicalResult writeNcclFiles(mlir::Location location);
  mlir::LogicalResult writeKernels(llvm::ArrayRef<host::GpuImage> images);
  bool emitsKernels() const { return options.emit == Emit::Ptx || options.emit == Emit::Cubin; }

  static mlir::LogicalResult (Compilation::*const kPhaseMethods[])();
  mlir::LogicalResult runPhase(size_t index);

  /// Runs the passes that `build` adds on the module.
  mlir::LogicalResult runPasses(llvm::function_ref<void(mlir::OpPassManager &)> build);
  mlir::LogicalResult checkOutput();
  mlir::LogicalResult hashModel();
  /// An error at the model file.
  mlir::InFlightDiagnostic error();
  mlir::LogicalResult writeText(llvm::function_ref<mlir::LogicalResult(llvm::raw_ostream &)> print);
  mlir::LogicalResult printState(llvm::StringRef phase, llvm::raw_ostream &os);

  mlir::MLIRContext &context;
  const CompileOptions &options;
  llvm::raw_ostream &log;
  schedule::Plan plan;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ModelFacts facts;
  std::string modelHash;
  schedule::StepProgram step;
  bool checksOnly = false;
  std::vector<std::string> faults;    // of the step program
  std::vector<std::string> bodyNames; // of `step`, as functions of the lowered module
  std::string objectFile;             // where `object` wrote
  std::string ncclSettings;           // of a program for GPUs
};

/// Links an object with the runtime to an executable. Located error with what was tried where that fails.
mlir::LogicalResult linkExecutable(mlir::Location location, llvm::StringRef object, llvm::StringRef output,
                                   llvm::StringRef runtimeDir);

/// Copies NCCL's plugins from the runtime's folder beside an executable.
mlir::LogicalResult copyNcclPlugins(mlir::Location location, llvm::StringRef output, llvm::StringRef runtimeDir);
/// Puts the library of --attention=cudnn beside the executable.
mlir::LogicalResult copyCudnnLibrary(mlir::Location location, llvm::StringRef output, llvm::StringRef runtimeDir);

} // namespace drover

#endif // DROVER_LIB_PIPELINES_COMPILATION_H
