//===- Specialize.cpp - bind symbolic sizes ---------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMSPECIALIZE
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {
struct Specialize : impl::TfmSpecializeBase<Specialize> {
  using TfmSpecializeBase::TfmSpecializeBase;

  void runOnOperation() override { signalPassFailure(); }
};
} // namespace
} // namespace drover::tfm
