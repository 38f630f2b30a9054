//===- HookKernels.cpp - gpu.modules to a module of the host ----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "HookKernels.h"
#include "emu.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

using namespace mlir;
using namespace drover;

std::string emu::threadName(size_t kernel) { return ("drover_emu_thread_" + Twine(kernel)).str(); }

/// The bytes of the one shared global that a kernel uses, 0 for none or one without a size.
static FailureOr<uint32_t> staticSharedBytes(LLVM::LLVMFuncOp kernel, ModuleOp module) {
  LLVM::GlobalOp used;
  WalkResult walked = kernel.walk([&](LLVM::AddressOfOp op) {
    if (cast<LLVM::LLVMPointerType>(op.getType()).getAddressSpace() != 3)
      return WalkResult::advance();
    auto global = module.lookupSymbol<LLVM::GlobalOp>(op.getGlobalName());
    if (used && global != used) {
      op.emitError("a kernel has one global of shared memory, this one also uses '") << used.getSymName() << "'";
      return WalkResult::interrupt();
    }
    used = global;
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  return used ? uint32_t(DataLayout(module).getTypeSize(used.getType()).getFixedValue()) : 0;
}

static uint32_t maxThreads(LLVM::LLVMFuncOp kernel) {
  for (StringRef name : {"nvvm.reqntid", "nvvm.maxntid"})
    if (auto sizes = kernel->getAttrOfType<DenseI32ArrayAttr>(name)) {
      uint32_t product = 1;
      for (int32_t size : sizes.asArrayRef())
        product *= size;
      return product;
    }
  return 0;
}

static FailureOr<emu::KernelInfo> describe(LLVM::LLVMFuncOp kernel, ModuleOp module, StringRef name) {
  emu::KernelInfo info;
  info.name = name.str();
  DataLayout layout(module);
  for (BlockArgument argument : kernel.getArguments()) {
    emu::ArgumentInfo one;
    one.bytes = layout.getTypeSize(argument.getType()).getFixedValue();
    unsigned index = argument.getArgNumber();
    auto has = [&](StringRef attribute) { return bool(kernel.getArgAttr(index, attribute)); };
    if (isa<LLVM::LLVMPointerType>(argument.getType())) {
      one.flags = DROVER_EMU_POINTER | (has("llvm.readonly") ? DROVER_EMU_READONLY : 0) |
                  (has("llvm.noalias") ? DROVER_EMU_NOALIAS : 0);
      if (auto extent = kernel.getArgAttrOfType<IntegerAttr>(index, "llvm.dereferenceable"))
        one.extent = extent.getInt();
    } else if (!argument.getType().isIntOrFloat()) {
      return kernel.emitError("argument ")
             << index << " of a kernel is a pointer, an integer or a float, not " << argument.getType();
    }
    info.arguments.push_back(one);
  }
  FailureOr<uint32_t> fixed = staticSharedBytes(kernel, module);
  if (failed(fixed))
    return failure();
  info.staticSharedBytes = *fixed;
  auto promised = kernel->getAttrOfType<IntegerAttr>("drover.shared_bytes");
  info.sharedBytes = promised ? promised.getInt() : *fixed;
  info.maxThreads = maxThreads(kernel);
  return info;
}

/// Takes away what tells of the GPU, and what would let the host's optimizer believe the promises that are checked.
static void makeHostFunction(LLVM::LLVMFuncOp function) {
  SmallVector<StringAttr> names;
  for (NamedAttribute attribute : function->getDiscardableAttrs())
    names.push_back(attribute.getName());
  for (StringAttr name : names)
    function->removeDiscardableAttr(name);
  function.removeArgAttrsAttr();
  function.removeResAttrsAttr();
  function.setMemoryEffectsAttr({});
  function.setPassthroughAttr({});
  function.setComdatAttr({});
  function.setCConv(LLVM::CConv::C);
  if (!function.isExternal())
    function.setLinkage(LLVM::Linkage::Internal);
}

FailureOr<OwningOpRef<ModuleOp>> emu::hookKernels(ModuleOp source) {
  OwningOpRef<ModuleOp> result = ModuleOp::create(source.getLoc());
  std::vector<KernelInfo> kernels;
  HookState state;
  SmallVector<std::pair<LLVM::LLVMFuncOp, bool>> functions;
  unsigned number = 0;
  auto take = [&](gpu::GPUModuleOp gpuModule) -> LogicalResult {
    std::string prefix = ("m" + Twine(number++) + "_").str();
    SymbolTable symbols(gpuModule);
    for (Operation &op : llvm::make_early_inc_range(*gpuModule.getBody())) {
      auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
      if (!function && !isa<LLVM::GlobalOp>(op))
        return op.emitError("expects functions and globals of the llvm dialect in a gpu.module");
      bool isKernel = function && (function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()) ||
                                   function->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()));
      StringRef name = SymbolTable::getSymbolName(&op);
      std::string renamed = isKernel ? threadName(kernels.size()) : prefix + name.str();
      if (isKernel) {
        kernels.emplace_back();
        kernels.back().name = name.str();
      }
      if (function && function.isExternal()) // libdevice keeps its names
        renamed = name.str();
      if (renamed != name && failed(symbols.rename(&op, renamed)))
        return failure();
      if (function && !function.isExternal())
        functions.emplace_back(function, isKernel);
    }
    for (Operation &op : llvm::make_early_inc_range(*gpuModule.getBody())) {
      if (result->lookupSymbol(SymbolTable::getSymbolName(&op)))
        op.erase(); // a declaration that another module has, too
      else
        op.moveBefore(result->getBody(), result->getBody()->end());
    }
    return success();
  };
  WalkResult walked = source.walk([&](gpu::GPUModuleOp gpuModule) {
    return failed(take(gpuModule)) ? WalkResult::interrupt() : WalkResult::skip();
  });
  if (walked.wasInterrupted())
    return failure();
  if (kernels.empty())
    return source.emitError("expects a gpu.module with kernels (llvm.func with nvvm.kernel)"), failure();

  size_t next = 0;
  for (auto [function, isKernel] : functions) {
    if (!isKernel)
      continue;
    FailureOr<KernelInfo> info = describe(function, *result, kernels[next].name);
    if (failed(info))
      return failure();
    kernels[next++] = *info;
  }
  for (auto [function, isKernel] : functions) {
    makeHostFunction(function);
    if (failed(hookFunction(*result, function, isKernel, state)))
      return failure();
  }
  for (auto global : llvm::make_early_inc_range(result->getOps<LLVM::GlobalOp>()))
    if (global.getAddrSpace() == 3)
      global.erase();
  emitTable(*result, kernels, state);
  return result;
}
