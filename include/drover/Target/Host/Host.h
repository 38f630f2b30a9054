//===- Host.h - object code of a CPU ----------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_TARGET_HOST_HOST_H
#define DROVER_TARGET_HOST_HOST_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace drover::host {

struct HostOptions {
  /// The CPU to compile for, as clang's -march names it; empty for this machine's.
  std::string cpu;
  /// What runs beside a collective of tensor parallelism (convert-tfm-to-rt): none or bulk.
  std::string tpOverlap = "none";
  /// How attention is computed where there is a choice (convert-tfm-to-rt): generated, wgmma or cudnn.
  std::string attention = "generated";
};

/// From bodies on tensors (docs/body-abi.md) to the LLVM dialect, in the phases of docs/host-lowering.md.
void buildHostLoweringPipeline(mlir::OpPassManager &manager, const HostOptions &options);
/// The last part of it: functions on memrefs, with their rt operations, to the LLVM dialect.
void addLLVMPasses(mlir::OpPassManager &manager);
void registerHostPipelines();

/// A kernel of the GPU as a program carries it: struct drover_gpu_image.
struct GpuImage {
  std::string name;
  llvm::SmallVector<char, 0> cubin;
  /// Empty where the kernel is for its architecture alone.
  std::string ptx;
  /// Compute capability, 10 * major + minor.
  unsigned architecture = 0;
  bool isArchitectureSpecific = false;
};

/// What a program consists of, beside the code of its bodies.
struct ProgramParts {
  /// JSON, docs/step-program.md.
  llvm::StringRef metadata;
  /// struct drover_action, as bytes.
  llvm::ArrayRef<char> actions;
  /// Names of compiled functions of the module.
  llvm::ArrayRef<std::string> bodies;
  /// In any order; names are unique.
  llvm::ArrayRef<GpuImage> images;
  /// MLIR bytecode of a module with the gpu.modules of all images.
  llvm::StringRef gpuModules;
};

/// Adds a program under the symbol `drover_embedded_program` (docs/step-program.md) to a module that has been lowered.
llvm::LogicalResult embedProgram(mlir::ModuleOp module, const ProgramParts &parts);

/// LLVM IR, optimized, as text; and the object file.
llvm::FailureOr<std::string> emitLLVM(mlir::ModuleOp module, const HostOptions &options);
llvm::FailureOr<llvm::SmallVector<char, 0>> emitObject(mlir::ModuleOp module, const HostOptions &options);

} // namespace drover::host

#endif // DROVER_TARGET_HOST_HOST_H
