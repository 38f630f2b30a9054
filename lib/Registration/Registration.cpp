//===- Registration.cpp - all dialects and passes ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Registration.h"
#include "drover/Conversion/RtToLLVM/RtToLLVM.h"
#include "drover/Conversion/TfmToRt/TfmToRt.h"
#include "drover/Dialect/Rt/IR/Rt.h"
#include "drover/Dialect/Rt/Transforms/Passes.h"
#include "drover/Dialect/Tfm/IR/Gradients.h"
#include "drover/Dialect/Tfm/IR/Partition.h"
#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "drover/Target/Cuda/Cuda.h"
#include "drover/Target/Host/Host.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"

void drover::registerAllDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<rt::RtDialect>();
  registry.insert<tfm::TfmDialect>();
  tfm::registerUpstreamGradients(registry);
  tfm::registerUpstreamPartitionRules(registry);
  cuda::registerExtensions(registry);
}

void drover::registerAllPasses() {
  mlir::registerAllPasses();
  cuda::registerCudaPipelines();
  registerTargetCudaPasses();
  host::registerHostPipelines();
  registerRtToLLVMPasses();
  registerTfmToRtPasses();
  rt::registerRtPasses();
  tfm::registerTfmPasses();
  tfm::registerTfmPipelines();
}
