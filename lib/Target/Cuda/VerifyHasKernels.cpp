//===- VerifyHasKernels.cpp - what no kernel computes yet -------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Target/Cuda/Cuda.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace drover;

/// Functions that the hardware has, or that polynomials stand for (rt-expand-math).
static bool isKernelFunction(Operation *op) {
  if (isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp, math::CountLeadingZerosOp,
          math::CountTrailingZerosOp, math::CtPopOp, math::FloorOp, math::FmaOp, math::RoundEvenOp, math::RsqrtOp,
          math::SqrtOp, math::TruncOp>(op))
    return true;
  return !getElementTypeOrSelf(op->getResult(0).getType()).isF64() &&
         isa<math::CosOp, math::ErfOp, math::ExpOp, math::LogOp, math::SinOp, math::TanhOp>(op);
}

LogicalResult cuda::verifyHasKernels(ModuleOp module) {
  llvm::MapVector<StringRef, SmallVector<Operation *>> missing; // by name
  for (auto body : module.getOps<func::FuncOp>())
    if (body->hasAttr("tfm.body"))
      body.walk([&](Operation *op) {
        if (isa<math::MathDialect>(op->getDialect()) && !isKernelFunction(op))
          missing[op->getName().getStringRef()].push_back(op);
      });
  if (missing.empty())
    return success();
  InFlightDiagnostic diagnostic = emitError(missing.front().second.front()->getLoc())
                                  << "the cuda target has no kernel yet for ";
  for (auto [number, entry] : llvm::enumerate(missing))
    diagnostic << (number ? ", " : "") << "'" << entry.first << "' (" << entry.second.size() << ")";
  for (auto &[name, ops] : missing)
    for (Operation *op : ops)
      diagnostic.attachNote(op->getLoc())
          << "'" << name << "' of body '" << op->getParentOfType<func::FuncOp>().getName() << "'";
  return diagnostic;
}
