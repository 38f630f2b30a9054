//===- Pipeline.cpp - from bodies to kernels in the LLVM dialect -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Conversion/RtToLLVM/RtToLLVM.h"
#include "drover/Conversion/TfmToRt/TfmToRt.h"
#include "drover/Dialect/Rt/Transforms/Passes.h"
#include "drover/Target/Cuda/Cuda.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace drover;

void cuda::registerExtensions(DialectRegistry &registry) {
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
  vector::registerConvertVectorToLLVMInterface(registry);
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

/// What the emulator compiles is what comes out of here (docs/cuda.md, Emulation).
static void addKernelPasses(OpPassManager &manager) {
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createLoopInvariantCodeMotionPass());
  // After CSE, so that a function of one argument is expanded once.
  RtExpandMathOptions math;
  math.wide = true;
  manager.addPass(createRtExpandMath(math));
  manager.addPass(arith::createArithExpandOpsPass());
  manager.addPass(createSCFToControlFlowPass());
  // Not NVVM's: what it makes inline PTX of stays an operation for the emulator (emitPtx converts it).
  ConvertToLLVMPassOptions toLLVM;
  toLLVM.filterDialects = {"arith", "cf", "math", "ub", "vector"};
  manager.addPass(createConvertToLLVMPass(toLLVM));
  manager.addPass(createReconcileUnrealizedCastsPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void cuda::buildCudaLoweringPipeline(OpPassManager &manager, const host::HostOptions &options) {
  ConvertTfmToRtOptions rtOptions;
  rtOptions.target = "cuda";
  rtOptions.tpOverlap = options.tpOverlap;
  rtOptions.attention = options.attention;
  manager.addPass(createConvertTfmToRt(rtOptions));
  manager.addNestedPass<func::FuncOp>(createCSEPass());
  manager.addPass(rt::createRtVerifyCollectives());
  addKernelPasses(manager.nest<gpu::GPUModuleOp>());
  manager.addPass(createCudaNameKernels());
  host::addLLVMPasses(manager);
}

void cuda::registerCudaPipelines() {
  PassPipelineRegistration<>("cuda-lowering", "bodies on tensors to the LLVM dialect, for a GPU",
                             [](OpPassManager &manager) { buildCudaLoweringPipeline(manager, {}); });
}
