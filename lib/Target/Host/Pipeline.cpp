//===- Pipeline.cpp - from bodies to the LLVM dialect -----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "HostMachine.h"
#include "drover/Conversion/RtToLLVM/RtToLLVM.h"
#include "drover/Conversion/TfmToRt/TfmToRt.h"
#include "drover/Dialect/Rt/Transforms/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace drover;

void host::buildHostLoweringPipeline(OpPassManager &manager, const HostOptions &options) {
  // Two registers a vector: the kernels' chains of dependent operations overlap.
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(options, error);
  ConvertTfmToRtOptions rtOptions;
  rtOptions.lanes = machine ? vectorBits(*machine) / 16 : 8; // emitObject reports an unknown CPU
  rtOptions.tpOverlap = options.tpOverlap;
  manager.addPass(createConvertTfmToRt(rtOptions));
  manager.addNestedPass<func::FuncOp>(createCSEPass());
  manager.addNestedPass<func::FuncOp>(createLoopInvariantCodeMotionPass());
  // What the passes above leave is what is compiled: none of those below sees a collective as one.
  manager.addPass(rt::createRtVerifyCollectives());
  // After CSE, so that a function of one argument is expanded once.
  manager.addNestedPass<func::FuncOp>(createRtExpandMath());
  manager.addNestedPass<func::FuncOp>(arith::createArithExpandOpsPass());
  addLLVMPasses(manager);
}

void host::addLLVMPasses(OpPassManager &manager) {
  manager.addPass(createConvertRtToLLVM());
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertVectorToLLVMPass());
  // What has an LLVM intrinsic becomes one; the rest calls libm.
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createConvertMathToLibmPass());
  manager.addPass(createFinalizeMemRefToLLVMConversionPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createUBToLLVMConversionPass());
  manager.addPass(createConvertFuncToLLVMPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}

namespace {
struct PipelineOptions : PassPipelineOptions<PipelineOptions> {
  Option<std::string> cpu{*this, "host-cpu", llvm::cl::desc("CPU to compile for; this machine's if empty")};
};
} // namespace

void host::registerHostPipelines() {
  PassPipelineRegistration<PipelineOptions>("host-lowering", "bodies on tensors to the LLVM dialect, for a CPU",
                                            [](OpPassManager &manager, const PipelineOptions &options) {
                                              HostOptions hostOptions;
                                              hostOptions.cpu = options.cpu;
                                              buildHostLoweringPipeline(manager, hostOptions);
                                            });
}
