//===- RegistersInFlight.cpp - who may use what wgmma writes ----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "RegistersInFlight.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"

using namespace mlir;
using namespace drover;

bool emu::isEmptyAsm(Operation *op) {
  auto assembly = dyn_cast<LLVM::InlineAsmOp>(op);
  return assembly && assembly.getAsmString().empty();
}

static LogicalResult verifyUses(Value value, llvm::SmallPtrSetImpl<void *> &seen) {
  if (!seen.insert(value.getAsOpaquePointer()).second)
    return success();
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<NVVM::WgmmaMmaAsyncOp>(user) || emu::isEmptyAsm(user))
      continue;
    Value next;
    if (isa<LLVM::ExtractValueOp, LLVM::InsertValueOp>(user))
      next = user->getResult(0);
    else if (auto branch = dyn_cast<BranchOpInterface>(user))
      next = branch.getSuccessorBlockArgument(use.getOperandNumber()).value_or(BlockArgument());
    if (!next)
      return user->emitError("uses a register of a wgmma that may be in flight");
    if (failed(verifyUses(next, seen)))
      return failure();
  }
  return success();
}

LogicalResult emu::verifyRegistersInFlight(Operation *product) {
  llvm::SmallPtrSet<void *, 16> seen;
  return verifyUses(product->getResult(0), seen);
}
