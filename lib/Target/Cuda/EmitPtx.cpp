//===- EmitPtx.cpp - kernels to PTX -----------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "../Optimize.h"
#include "drover/Target/Cuda/Cuda.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

using namespace mlir;
using namespace drover;

std::string cuda::architectureOf(gpu::GPUModuleOp kernel) {
  if (ArrayAttr targets = kernel.getTargetsAttr())
    for (auto target : targets.getAsRange<NVVM::NVVMTargetAttr>())
      return target.getChip().str();
  return "sm_" + std::to_string(cuda::kArchitecture);
}

/// What NVVM has no intrinsics for becomes inline PTX; nothing of that are kernels for all architectures.
static LogicalResult convertInstructions(gpu::GPUModuleOp kernel) {
  RewritePatternSet patterns(kernel.getContext());
  populateNVVMToLLVMConversionPatterns(patterns);
  ConversionTarget target(*kernel.getContext());
  target.addLegalDialect<LLVM::LLVMDialect>();
  return applyPartialConversion(kernel, target, std::move(patterns));
}

static std::unique_ptr<llvm::TargetMachine> createMachine(const std::string &architecture, std::string &error) {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, architecture, "+ptx80", options, std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

FailureOr<std::string> cuda::emitPtx(gpu::GPUModuleOp kernel) {
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(architectureOf(kernel), error);
  if (!machine)
    return kernel.emitError(error);
  OwningOpRef<gpu::GPUModuleOp> converted = kernel.clone();
  if (failed(convertInstructions(*converted)))
    return failure();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(*converted, context, kernel.getName());
  if (!module)
    return failure();
  module->setDataLayout(machine->createDataLayout());
  module->setTargetTriple(machine->getTargetTriple());
  optimizeModule(*module, *machine);
  SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager manager;
  if (machine->addPassesToEmitFile(manager, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return kernel.emitError("the target cannot emit PTX");
  manager.run(*module);
  return text.str().str();
}
