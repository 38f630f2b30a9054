//===- TfmToRt.h - bodies to kernels and calls on memrefs -------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_CONVERSION_TFMTORT_TFMTORT_H
#define DROVER_CONVERSION_TFMTORT_TFMTORT_H

#include "drover/Dialect/Rt/IR/Rt.h"
#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"

namespace drover {

#define GEN_PASS_DECL_CONVERTTFMTORT
#define GEN_PASS_REGISTRATION
#include "drover/Conversion/TfmToRt/Passes.h.inc"

} // namespace drover

#endif // DROVER_CONVERSION_TFMTORT_TFMTORT_H
