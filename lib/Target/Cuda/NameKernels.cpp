//===- NameKernels.cpp - kernels are named by their content -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Dialect/Rt/IR/Rt.h"
#include "drover/Target/Cuda/Cuda.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace drover;

namespace drover {
#define GEN_PASS_DEF_CUDANAMEKERNELS
#include "drover/Target/Cuda/Passes.h.inc"
} // namespace drover

namespace {
/// Kernels of equal content, the first of which stays.
struct Kernel {
  gpu::GPUModuleOp module;
  std::string stem; // what they do: of several the first in the order of letters, whatever the order of the bodies
};

struct CudaNameKernels : drover::impl::CudaNameKernelsBase<CudaNameKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::MapVector<StringAttr, Kernel> kernels; // by content
    llvm::StringMap<StringAttr> contents;        // by the name that the launches know
    for (auto kernelModule : llvm::make_early_inc_range(module.getOps<gpu::GPUModuleOp>())) {
      auto function = cast<LLVM::LLVMFuncOp>(kernelModule.lookupSymbol(kernelModule.getName()));
      auto stem = function->getAttrOfType<StringAttr>(rt::RtDialect::kKernelNameAttr);
      function->removeAttr(rt::RtDialect::kKernelNameAttr);
      std::string old = kernelModule.getName().str();
      StringAttr content = contents[old] = contentOf(kernelModule);
      auto [kernel, isNew] = kernels.insert({content, {kernelModule, stem.str()}});
      if (isNew)
        continue;
      kernel->second.stem = std::min(kernel->second.stem, stem.str());
      kernelModule.erase();
      ++numShared;
    }
    for (auto &[content, kernel] : kernels)
      rename(kernel.module, kernel.stem + "_" + content.str());
    module.walk([&](rt::GpuLaunchOp launch) {
      StringAttr content = contents.lookup(launch.getKernel().getRootReference().getValue());
      auto name = kernels.find(content)->second.module.getNameAttr();
      launch.setKernelAttr(SymbolRefAttr::get(name, {FlatSymbolRefAttr::get(name)}));
    });
  }

  /// 16 hex digits of the hash of a kernel without its name.
  static StringAttr contentOf(gpu::GPUModuleOp kernelModule) {
    rename(kernelModule, "kernel");
    std::string text;
    llvm::raw_string_ostream(text) << kernelModule;
    llvm::SHA256 hash;
    hash.update(text);
    std::string digits = llvm::toHex(hash.final(), /*LowerCase=*/true).substr(0, 16);
    return StringAttr::get(kernelModule.getContext(), digits);
  }

  /// The kernel has its module's name.
  static void rename(gpu::GPUModuleOp kernelModule, StringRef name) {
    cast<LLVM::LLVMFuncOp>(kernelModule.lookupSymbol(kernelModule.getName())).setSymName(name);
    kernelModule.setName(name);
  }
};
} // namespace
