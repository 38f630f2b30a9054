//===- drover-opt.cpp - every pass and pipeline, in the manner of mlir-opt ===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Registration.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  drover::registerAllDialects(registry);
  drover::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "drover's optimizer driver\n", registry));
}
