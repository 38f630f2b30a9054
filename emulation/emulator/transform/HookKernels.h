//===- HookKernels.h - kernels of a GPU as functions of the host -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_EMULATION_HOOKKERNELS_H
#define DROVER_EMULATION_HOOKKERNELS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>
#include <vector>

namespace drover::emu {

/// What the emulator must know of one argument (struct drover_emu_argument).
struct ArgumentInfo {
  uint32_t bytes = 0, flags = 0;
  uint64_t extent = 0;
};

/// What it must know of one kernel (struct drover_emu_kernel).
struct KernelInfo {
  std::string name;
  std::vector<ArgumentInfo> arguments;
  uint32_t staticSharedBytes = 0, sharedBytes = 0, maxThreads = 0;
};

/// What all kernels of a module share.
struct HookState {
  std::vector<std::string> sites;
  uint32_t granule = 2; ///< log2 of the narrowest access, at most 2
};

/// Moves the functions of all gpu.modules of `source`, which hold the llvm and nvvm dialects, into a module of their
/// own in which every load, store, atomic and nvvm operation has become a call of the emulator (lib/hooks.h), and adds
/// the table that drover_emu_library describes. What the emulator does not know is an error.
llvm::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> hookKernels(mlir::ModuleOp source);

/// Instruments one function; its pointers must be typed as they were on the GPU.
llvm::LogicalResult hookFunction(mlir::ModuleOp module, mlir::LLVM::LLVMFuncOp function, bool isKernel,
                                 HookState &state);

/// Adds the entry of each kernel and the table of all of them. Kernel i is the function `threadName(i)`.
void emitTable(mlir::ModuleOp module, llvm::ArrayRef<KernelInfo> kernels, const HookState &state);
std::string threadName(size_t kernel);

} // namespace drover::emu

#endif // DROVER_EMULATION_HOOKKERNELS_H
