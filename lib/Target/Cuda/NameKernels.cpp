//===- NameKernels.cpp - kernels are named by their content -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Dialect/Rt/IR/Rt.h"
#include "drover/Target/Cuda/Cuda.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace drover;

namespace drover {
#define GEN_PASS_DEF_CUDANAMEKERNELS
#include "drover/Target/Cuda/Passes.h.inc"
} // namespace drover

namespace {
struct CudaNameKernels : drover::impl::CudaNameKernelsBase<CudaNameKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::StringMap<std::string> names; // by the name that the launches know
    llvm::StringSet<> kept;
    for (auto kernelModule : llvm::make_early_inc_range(module.getOps<gpu::GPUModuleOp>())) {
      std::string old = kernelModule.getName().str(), name = nameOf(kernelModule);
      names[old] = name;
      if (kept.insert(name).second)
        continue;
      kernelModule.erase();
      ++numShared;
    }
    module.walk([&](rt::GpuLaunchOp launch) {
      const std::string &name = names.lookup(launch.getKernel().getRootReference().getValue());
      launch.setKernelAttr(SymbolRefAttr::get(&getContext(), name, {FlatSymbolRefAttr::get(&getContext(), name)}));
    });
  }

  /// Renames the kernel and its module.
  std::string nameOf(gpu::GPUModuleOp kernelModule) {
    auto kernel = cast<LLVM::LLVMFuncOp>(kernelModule.lookupSymbol(kernelModule.getName()));
    auto stem = kernel->getAttrOfType<StringAttr>(rt::RtDialect::kKernelNameAttr);
    kernel->removeAttr(rt::RtDialect::kKernelNameAttr);
    kernel.setSymName("kernel");
    kernelModule.setName("kernel");
    std::string text;
    llvm::raw_string_ostream(text) << kernelModule;
    llvm::SHA256 hash;
    hash.update(text);
    std::string name = stem.getValue().str() + "_" + llvm::toHex(hash.final(), /*LowerCase=*/true).substr(0, 16);
    kernel.setSymName(name);
    kernelModule.setName(name);
    return name;
  }
};
} // namespace
