//===- RaisePipeline.cpp - the raising passes in order --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void drover::tfm::buildRaisePipeline(OpPassManager &manager) {
  OpPassManager &function = manager.nest<func::FuncOp>();
  auto cleanUp = [&] {
    function.addPass(createCanonicalizerPass());
    function.addPass(createCSEPass());
  };
  cleanUp();
  function.addPass(createTfmSimplifyViews());
  // Norms before linears: a norm's weight and bias are no bias_add.
  function.addPass(createTfmRaiseNorms());
  function.addPass(createTfmRaiseLinear());
  // Flattened rows meet once the linears between them let them through.
  function.addPass(createTfmSimplifyViews());
  function.addPass(createTfmRaiseActivations());
  cleanUp();
  // A rotation ends at linears and norms; equal tables must be one value to be read once.
  function.addPass(createTfmRaiseRope());
  function.addPass(createTfmRaisePositions());
  function.addPass(createTfmRaiseAttention());
  // The way from heads to hidden and back that each of them put in cancels.
  function.addPass(createTfmSimplifyViews());
  cleanUp();
  function.addPass(createTfmRaiseMasks());
  cleanUp();
  function.addPass(createTfmSimplifyViews());
  function.addPass(createTfmCanonicalOrder());
}

void drover::tfm::registerTfmPipelines() {
  PassPipelineRegistration<>(
      "tfm-raise", "all raising passes, from an importer's form to the form a person would write", buildRaisePipeline);
}
