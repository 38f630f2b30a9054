//===- RtToLLVM.h - the runtime's ABI ---------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_CONVERSION_RTTOLLVM_RTTOLLVM_H
#define DROVER_CONVERSION_RTTOLLVM_RTTOLLVM_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"

namespace drover {

#define GEN_PASS_DECL_CONVERTRTTOLLVM
#define GEN_PASS_DECL_RTEXPANDMATH
#define GEN_PASS_REGISTRATION
#include "drover/Conversion/RtToLLVM/Passes.h.inc"

} // namespace drover

#endif // DROVER_CONVERSION_RTTOLLVM_RTTOLLVM_H
