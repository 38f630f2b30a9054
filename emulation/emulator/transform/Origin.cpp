//===- Origin.cpp - what a pointer is computed from -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Origin.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace drover;
using emu::Origin;

namespace {
class Tracer {
public:
  explicit Tracer(bool isKernel) : isKernel(isKernel) {}

  Origin trace(Value value) {
    if (!visited.insert(value).second)
      return {}; // a cycle adds nothing
    if (auto argument = dyn_cast<BlockArgument>(value))
      return traceArgument(argument);
    return TypeSwitch<Operation *, Origin>(value.getDefiningOp())
        .Case([&](LLVM::GEPOp op) { return trace(op.getBase()); })
        .Case([&](LLVM::AddrSpaceCastOp op) { return trace(op.getArg()); })
        .Case([&](LLVM::BitcastOp op) { return trace(op.getArg()); })
        .Case([&](LLVM::SelectOp op) { return join(trace(op.getTrueValue()), trace(op.getFalseValue())); })
        .Case([&](LLVM::AllocaOp) { return Origin{Origin::Local, -1}; })
        .Case([&](LLVM::AddressOfOp op) {
          bool shared = cast<LLVM::LLVMPointerType>(op.getType()).getAddressSpace() == 3;
          return Origin{shared ? Origin::Shared : Origin::Constant, -1};
        })
        .Case([&](LLVM::ExtractValueOp op) { return traceField(op.getContainer(), op.getPosition()); })
        .Default([](Operation *) { return Origin{Origin::Unknown, -1}; });
  }

private:
  static Origin join(Origin a, Origin b) {
    if (a.kind == Origin::Nothing)
      return b;
    if (b.kind == Origin::Nothing || (a.kind == b.kind && a.argument == b.argument))
      return a;
    return {Origin::Unknown, -1};
  }

  Origin traceArgument(BlockArgument argument) {
    Block *block = argument.getOwner();
    if (block->isEntryBlock()) {
      if (isKernel && isa<LLVM::LLVMFuncOp>(block->getParentOp()))
        return {Origin::Argument, int(argument.getArgNumber())};
      return {Origin::Unknown, -1};
    }
    Origin all;
    for (auto it = block->pred_begin(), end = block->pred_end(); it != end; ++it) {
      auto branch = dyn_cast<BranchOpInterface>((*it)->getTerminator());
      Value source = branch ? branch.getSuccessorOperands(it.getSuccessorIndex())[argument.getArgNumber()] : Value();
      all = join(all, source ? trace(source) : Origin{Origin::Unknown, -1});
    }
    return all;
  }

  /// The field of a struct that was put together in this function.
  Origin traceField(Value container, ArrayRef<int64_t> position) {
    while (auto insert = container.getDefiningOp<LLVM::InsertValueOp>()) {
      if (insert.getPosition() == position)
        return trace(insert.getValue());
      container = insert.getContainer();
    }
    return {Origin::Unknown, -1};
  }

  bool isKernel;
  llvm::DenseSet<Value> visited;
};
} // namespace

Origin emu::findOrigin(Value pointer, bool isKernel) { return Tracer(isKernel).trace(pointer); }
