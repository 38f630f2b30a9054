//===- CanonicalOrder.cpp - one order for one model -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMCANONICALORDER
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {

/// Operations below `root` in post-order, without recursion: a model is thousands of operations deep.
void collectPostOrder(Operation *root, llvm::SetVector<Operation *> &order) {
  SmallVector<std::pair<Operation *, unsigned>> stack{{root, 0}};
  llvm::SmallPtrSet<Operation *, 32> open{root};
  while (!stack.empty()) {
    auto &[op, next] = stack.back();
    if (next == op->getNumOperands()) {
      order.insert(op);
      stack.pop_back();
      continue;
    }
    Operation *producer = op->getOperand(next++).getDefiningOp();
    if (producer && open.insert(producer).second)
      stack.push_back({producer, 0});
  }
}

/// Moves the parameters' arguments into the order of first use, dropping those without a use.
void orderParameters(func::FuncOp function) {
  Block &block = function.front();
  llvm::SetVector<unsigned> order;
  for (BlockArgument argument : block.getArguments())
    if (!function.getArgAttr(argument.getArgNumber(), TfmDialect::kParameterAttr))
      order.insert(argument.getArgNumber());
  for (Operation &op : block)
    for (Value operand : op.getOperands())
      if (auto argument = dyn_cast<BlockArgument>(operand))
        order.insert(argument.getArgNumber());

  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  SmallVector<BlockArgument> added;
  unsigned old = block.getNumArguments();
  for (unsigned index : order) {
    types.push_back(block.getArgument(index).getType());
    DictionaryAttr dictionary = function.getArgAttrDict(index);
    attributes.push_back(dictionary ? dictionary : DictionaryAttr::get(function.getContext()));
  }
  for (unsigned index : order) {
    BlockArgument argument = block.getArgument(index);
    argument.replaceAllUsesWith(block.addArgument(argument.getType(), argument.getLoc()));
  }
  block.eraseArguments(0, old);
  function.setFunctionType(FunctionType::get(function.getContext(), types, function.getResultTypes()));
  function.setAllArgAttrs(attributes);
}

/// A residual add has the branch second: of the two operands, the one that a projection computed.
void orderResidualAdds(Block &block) {
  auto isBranch = [](Value value) {
    Operation *producer = value.getDefiningOp();
    return producer && isa<LinearOp, BiasAddOp>(producer);
  };
  for (auto add : block.getOps<arith::AddFOp>())
    if (isBranch(add.getLhs()) && !isBranch(add.getRhs())) {
      Value lhs = add.getLhs();
      add.getLhsMutable().assign(add.getRhs());
      add.getRhsMutable().assign(lhs);
    }
}

struct CanonicalOrder : impl::TfmCanonicalOrderBase<CanonicalOrder> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    if (!function.getBody().hasOneBlock()) {
      function.emitError("expects a function of one block");
      return signalPassFailure();
    }
    Block &block = function.front();
    Operation *terminator = block.getTerminator();
    orderResidualAdds(block);
    llvm::SetVector<Operation *> order;
    collectPostOrder(terminator, order);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (!order.contains(&op)) {
        if (!isMemoryEffectFree(&op)) {
          op.emitOpError("has side effects; expects a function without");
          return signalPassFailure();
        }
        op.erase();
      }
    for (Operation *op : order)
      if (op != terminator)
        op->moveBefore(terminator);
    orderParameters(function);
  }
};

} // namespace
} // namespace drover::tfm
