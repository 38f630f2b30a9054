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
};

/// From bodies on tensors (docs/body-abi.md) to the LLVM dialect, in the phases of docs/host-lowering.md.
void buildHostLoweringPipeline(mlir::OpPassManager &manager, const HostOptions &options);
void registerHostPipelines();

/// Adds the table of bodies, the metadata and the actions under the symbol `drover_embedded_program`
/// (docs/step-program.md) to a module that has been lowered. `actions` are struct drover_action, as bytes.
llvm::LogicalResult embedProgram(mlir::ModuleOp module, llvm::StringRef metadata, llvm::ArrayRef<char> actions,
                                 llvm::ArrayRef<std::string> bodyNames);

/// LLVM IR, optimized, as text; and the object file.
llvm::FailureOr<std::string> emitLLVM(mlir::ModuleOp module, const HostOptions &options);
llvm::FailureOr<llvm::SmallVector<char, 0>> emitObject(mlir::ModuleOp module, const HostOptions &options);

} // namespace drover::host

#endif // DROVER_TARGET_HOST_HOST_H
