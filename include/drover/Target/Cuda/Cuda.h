//===- Cuda.h - kernels of a GPU --------------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_TARGET_CUDA_CUDA_H
#define DROVER_TARGET_CUDA_CUDA_H

#include "drover/Target/Host/Host.h"
#include "mlir/Pass/Pass.h"

namespace mlir::gpu {
class GPUModuleOp;
}

namespace drover {

#define GEN_PASS_DECL_CUDANAMEKERNELS
#define GEN_PASS_REGISTRATION
#include "drover/Target/Cuda/Passes.h.inc"

} // namespace drover

namespace drover::cuda {

/// What the lowering needs of upstream dialects beside their operations.
void registerExtensions(mlir::DialectRegistry &registry);

/// From bodies on tensors (docs/body-abi.md) to the LLVM dialect: host functions that launch, and the kernels in
/// gpu.modules with the names of docs/cuda.md.
void buildCudaLoweringPipeline(mlir::OpPassManager &manager, const host::HostOptions &options);
void registerCudaPipelines();

/// One error that names every operation of the bodies that no kernel computes yet.
llvm::LogicalResult verifyHasKernels(mlir::ModuleOp module);

/// sm_90, for which newer ones have code too; another one of a kernel that is for it alone.
std::string architectureOf(mlir::gpu::GPUModuleOp kernel);
/// PTX of a lowered kernel, for sm_90 and newer, or for the kernel's own architecture.
llvm::FailureOr<std::string> emitPtx(mlir::gpu::GPUModuleOp kernel);

/// What ptxas says of a kernel.
struct Resources {
  int registers = 0, sharedBytes = 0, stackBytes = 0, spillStoreBytes = 0, spillLoadBytes = 0;
  /// Where it waits for each wgmma, since something touches the registers of one in flight.
  bool serializesWgmma = false;
};
struct Cubin {
  llvm::SmallVector<char, 0> image;
  Resources resources;
};
/// ptxas of CUDA_HOME or CUDA_PATH where one is set, else of PATH or of /usr/local/cuda; empty where there is none.
std::string findPtxas();
/// An error at `location` where there is none.
llvm::LogicalResult verifyHasPtxas(mlir::Location location);
/// Assembles PTX for the architecture that it names. Errors are located at `location`.
llvm::FailureOr<Cubin> assemble(mlir::Location location, llvm::StringRef ptx);
/// The compute capability of all kernels, 10 * major + minor.
inline constexpr unsigned kArchitecture = 90;

struct ImageOptions {
  /// Cubins too, for which ptxas is needed.
  bool assembled = true;
  /// Where cubins are kept, by the hash of their PTX and of ptxas' version. Empty: nowhere.
  std::string cacheFolder;
};
/// DROVER_KERNEL_CACHE (empty: nowhere); else drover/kernels in XDG_CACHE_HOME, or in .cache of HOME.
std::string defaultCacheFolder();
/// The images of all kernels of a lowered module, in its order, made on the context's threads.
llvm::FailureOr<std::vector<host::GpuImage>> emitImages(mlir::ModuleOp module, const ImageOptions &options);
/// Moves the gpu.modules out of a module, into MLIR bytecode of one of their own.
llvm::FailureOr<std::string> takeKernels(mlir::ModuleOp module);

} // namespace drover::cuda

#endif // DROVER_TARGET_CUDA_CUDA_H
