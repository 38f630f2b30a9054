//===- Passes.h - passes on compiled bodies before LLVM ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_DIALECT_RT_TRANSFORMS_PASSES_H
#define DROVER_DIALECT_RT_TRANSFORMS_PASSES_H

#include "drover/Dialect/Rt/IR/Rt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace drover::rt {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "drover/Dialect/Rt/Transforms/Passes.h.inc"

} // namespace drover::rt

#endif // DROVER_DIALECT_RT_TRANSFORMS_PASSES_H
