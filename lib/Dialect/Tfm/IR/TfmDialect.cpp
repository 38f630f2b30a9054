//===- TfmDialect.cpp - the model dialect -----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Dialect/Tfm/IR/Tfm.h"

using namespace mlir;
using namespace drover::tfm;

#include "drover/Dialect/Tfm/IR/TfmDialect.cpp.inc"
#include "drover/Dialect/Tfm/IR/TfmInterfaces.cpp.inc"

void TfmDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "drover/Dialect/Tfm/IR/TfmOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "drover/Dialect/Tfm/IR/TfmOps.cpp.inc"

Operation *TfmDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}
