//===- Compile.h - from a model to an executable, in named phases *- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_PIPELINES_COMPILE_H
#define DROVER_PIPELINES_COMPILE_H

#include "drover/Cluster/Cluster.h"
#include "drover/Conversion/TfmToSchedule/TfmToSchedule.h"
#include "drover/Cost/Model.h"
#include "drover/Pipelines/ImportModel.h"
#include "drover/Schedule/StepProgram.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/raw_ostream.h"

namespace drover {

enum class Emit { Mlir, Llvm, Ptx, Cubin, Object, Executable };

struct CompileOptions {
  ModelImportOptions model;
  schedule::Plan plan;
  std::optional<cluster::Cluster> cluster; // that the ranks are placed on
  bool train = true;
  std::string target = "host";
  Emit emit = Emit::Executable;
  std::string stopAfter;  // phase; empty: the last that `emit` needs
  std::string printAfter; // phase; empty: none
  std::string output;     // empty: standard output, for text only
  std::string hostCpu;    // empty: this CPU
  std::string runtimeDir; // folder of libdrover_rt.a; empty: found by the environment or beside the compiler
  bool timing = false;
};

/// One step of compilation. Phases run in the order of `compilePhases`; at the boundary of each the module verifies.
struct PhaseInfo {
  llvm::StringLiteral name;
  llvm::StringLiteral description;
  /// What --print-after prints and --stop-after writes.
  llvm::StringLiteral result;
  bool trainOnly;
};
llvm::ArrayRef<PhaseInfo> compilePhases();

/// The phase after which a compilation ends: that of `stopAfter`, or the last that `emit` needs.
llvm::StringRef lastPhase(const CompileOptions &options);

/// Holds everything that can be said without reading the model against what is accepted. An empty string when all is
/// well, else one message.
std::string checkCompileOptions(const CompileOptions &options);

/// Runs the phases and writes what `emit` or `stopAfter` asks for. `log` takes what --print-after and --timing
/// print. Diagnostics go to the context; exactly one error per failure.
mlir::LogicalResult compileModel(mlir::MLIRContext &context, const CompileOptions &options, llvm::raw_ostream &log);

/// A step program and what its proof found.
struct CheckedProgram {
  schedule::StepProgram step;
  std::vector<std::string> faults;
};

/// Runs the phases up to `lower`, where memory is known, and proves the step program (schedule/Check.h). Faults of the
/// program are no failure here: they are the result.
mlir::FailureOr<CheckedProgram> checkModel(mlir::MLIRContext &context, const CompileOptions &options,
                                           llvm::raw_ostream &log);

/// A model as the planner sees it.
struct PlannedModel {
  cost::ModelShape shape;
  int64_t sequence = 0;
  std::optional<int64_t> microbatch; // where the model fixes it
};

/// Runs the phases up to `specialize`, with the plan's sequence length, and reads the model's shape.
mlir::FailureOr<PlannedModel> readPlannedModel(mlir::MLIRContext &context, const CompileOptions &options,
                                               llvm::raw_ostream &log);

} // namespace drover

#endif // DROVER_PIPELINES_COMPILE_H
