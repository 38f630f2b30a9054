//===- Registration.cpp - all dialects and passes ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Registration.h"
#include "drover/Dialect/Tfm/IR/Gradients.h"
#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"

void drover::registerAllDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<tfm::TfmDialect>();
  tfm::registerUpstreamGradients(registry);
}

void drover::registerAllPasses() {
  mlir::registerAllPasses();
  tfm::registerTfmPasses();
  tfm::registerTfmPipelines();
}
