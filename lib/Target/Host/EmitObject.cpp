//===- EmitObject.cpp - LLVM IR and object code -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "../Optimize.h"
#include "HostMachine.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace drover;

std::unique_ptr<llvm::TargetMachine> host::createMachine(const HostOptions &options, std::string &error) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  std::string cpu = options.cpu, features;
  if (cpu.empty()) {
    cpu = llvm::sys::getHostCPUName().str();
    for (const auto &feature : llvm::sys::getHostCPUFeatures())
      features += (features.empty() ? "" : ",") + std::string(feature.second ? "+" : "-") + feature.first().str();
  } else {
    std::unique_ptr<llvm::MCSubtargetInfo> known(target->createMCSubtargetInfo(triple, "", ""));
    if (!known || !known->isCPUStringValid(cpu)) {
      error = "unknown CPU '" + cpu + "' for " + triple.str();
      return nullptr;
    }
    // LLVM ends the process over this, at the first function.
    known.reset(target->createMCSubtargetInfo(triple, cpu, ""));
    if (triple.getArch() == llvm::Triple::x86_64 && !known->checkFeatures("+64bit")) {
      error = "CPU '" + cpu + "' has no 64-bit mode, which " + triple.str() + " needs";
      return nullptr;
    }
  }
  llvm::TargetOptions targetOptions;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, cpu, features, targetOptions, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

unsigned host::vectorBits(const llvm::TargetMachine &machine) {
  const llvm::MCSubtargetInfo *info = machine.getMCSubtargetInfo();
  auto has = [&](llvm::StringRef feature) { return info->checkFeatures(("+" + feature).str()); };
  if (!machine.getTargetTriple().isX86())
    return 128;
  return has("avx512f") ? 512 : (has("avx") ? 256 : 128);
}

void drover::optimizeModule(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

/// The module as optimized LLVM IR for the machine; null after an error.
static std::unique_ptr<llvm::Module> translate(ModuleOp module, llvm::TargetMachine &machine,
                                               llvm::LLVMContext &context) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  module.getContext()->appendDialectRegistry(registry);
  std::unique_ptr<llvm::Module> llvmModule = translateModuleToLLVMIR(module, context, "drover");
  if (!llvmModule)
    return nullptr;
  llvmModule->setDataLayout(machine.createDataLayout());
  llvmModule->setTargetTriple(machine.getTargetTriple());
  for (llvm::Function &function : *llvmModule) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    function.addFnAttr("prefer-vector-width", std::to_string(host::vectorBits(machine)));
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
  optimizeModule(*llvmModule, machine);
  return llvmModule;
}

namespace {
/// A program of the host and what it lives in.
struct HostModule {
  std::unique_ptr<llvm::TargetMachine> machine;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;

  LogicalResult build(ModuleOp source, const host::HostOptions &options) {
    std::string error;
    machine = host::createMachine(options, error);
    if (!machine)
      return source.emitError(error);
    module = translate(source, *machine, context);
    return success(module != nullptr);
  }
};
} // namespace

FailureOr<std::string> host::emitLLVM(ModuleOp module, const HostOptions &options) {
  HostModule built;
  if (failed(built.build(module, options)))
    return failure();
  std::string text;
  llvm::raw_string_ostream stream(text);
  built.module->print(stream, nullptr);
  return text;
}

FailureOr<SmallVector<char, 0>> host::emitObject(ModuleOp module, const HostOptions &options) {
  HostModule built;
  if (failed(built.build(module, options)))
    return failure();
  SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager manager;
  if (built.machine->addPassesToEmitFile(manager, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return module.emitError("the target cannot emit object files");
  manager.run(*built.module);
  return object;
}
