//===- RtDialect.cpp - registration of ops and types ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Dialect/Rt/IR/Rt.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace drover::rt;

#include "drover/Dialect/Rt/IR/RtDialect.cpp.inc"
#include "drover/Dialect/Rt/IR/RtEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "drover/Dialect/Rt/IR/RtTypes.cpp.inc"

void RtDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "drover/Dialect/Rt/IR/RtTypes.cpp.inc"
      >();
}

void RtDialect::initialize() {
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "drover/Dialect/Rt/IR/RtOps.cpp.inc"
      >();
}
