//===- WeightCut.cpp - what of a backward can wait ------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "WeightCut.h"
#include "FlowNetwork.h"

using namespace mlir;
using namespace drover::tfm;

namespace {

/// Capacities of the cut: bytes first. Then an operation that both parts run costs more than one that is moved into the
/// input part, since that one runs once, and one that stays costs nothing.
constexpr int64_t kPerByte = 1024, kPerRepeated = 16, kPerMoved = 1;

int64_t elementsOf(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); }

/// Work that never runs twice.
bool isWork(Operation *op) {
  RecomputeClass kind = recomputeClassOf(op);
  return kind == RecomputeClass::Contraction || kind == RecomputeClass::Attention || kind == RecomputeClass::Reduction;
}

/// True for a matrix product, and for a sum, conversion or other look at one.
bool isOfProduct(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  switch (recomputeClassOf(op)) {
  case RecomputeClass::Contraction:
    return true;
  case RecomputeClass::Cast:
  case RecomputeClass::Elementwise:
  case RecomputeClass::Movement:
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return elementsOf(operand) == elementsOf(value) && isOfProduct(operand);
    });
  default:
    return false;
  }
}

/// What makes `values`, down to the arguments and to `given`.
DenseSet<Operation *> sliceOf(ArrayRef<Value> values, const SetVector<Value> &given = {}) {
  DenseSet<Operation *> slice;
  SmallVector<Value> worklist(values);
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (op && !given.contains(value) && slice.insert(op).second)
      worklist.append(op->operand_begin(), op->operand_end());
  }
  return slice;
}

class BackwardCutter {
public:
  BackwardCutter(func::FuncOp body, ArrayRef<bool> isFree, const RecomputePolicy &policy)
      : block(body.getBody().front()), isFree(isFree), policy(policy) {}

  WeightCut run() {
    sortResults();
    wholeInput = sliceOf(resultsAt(cut.inputResults));
    wholeWeight = sliceOf(resultsAt(cut.weightResults));
    findCore();
    chooseHandedOver();
    collectOperations();
    return std::move(cut);
  }

private:
  SmallVector<Value> resultsAt(ArrayRef<unsigned> indices) const {
    return llvm::map_to_vector(indices, [&](unsigned index) { return block.getTerminator()->getOperand(index); });
  }
  bool isWeightOnly(Operation *op) const { return wholeWeight.contains(op) && !wholeInput.contains(op); }

  void sortResults();
  void findCore();
  void chooseHandedOver();
  void collectOperations();

  Block &block;
  ArrayRef<bool> isFree;
  const RecomputePolicy &policy;
  WeightCut cut;
  DenseSet<Operation *> wholeInput, wholeWeight; // what each part's results need, all of it
  DenseSet<Operation *> core;                    // what runs in the weight part in any case
  SetVector<Value> needed;                       // by the core
};

/// Gradients that a product makes can wait; the rest is made where its operands are.
void BackwardCutter::sortResults() {
  for (OpOperand &result : block.getTerminator()->getOpOperands()) {
    auto accumulate = result.get().getDefiningOp<AccumulateOp>();
    bool waits = accumulate && isOfProduct(accumulate.getValue());
    (waits ? cut.weightResults : cut.inputResults).push_back(result.getOperandNumber());
  }
}

/// The products that can wait, and what follows from them.
void BackwardCutter::findCore() {
  for (Operation &op : block.without_terminator()) {
    auto isCore = [&](Value operand) { return core.contains(operand.getDefiningOp()); };
    if (isWeightOnly(&op) && (isWork(&op) || llvm::any_of(op.getOperands(), isCore)))
      core.insert(&op);
  }
  for (Operation &op : block.without_terminator())
    if (core.contains(&op))
      for (Value operand : op.getOperands())
        if (!core.contains(operand.getDefiningOp()))
          needed.insert(operand);
}

void BackwardCutter::chooseHandedOver() {
  ValueCut values;
  DenseSet<Value> free; // follows from free arguments without work
  for (auto [argument, isFreeArgument] : llvm::zip_equal(block.getArguments(), isFree)) {
    int64_t bytes = isFreeArgument ? 0 : static_cast<int64_t>(bytesOf(argument.getType()));
    values.add(argument, bytes * kPerByte);
    values.charge(argument);
    if (isFreeArgument)
      free.insert(argument);
  }
  for (Operation &op : block.without_terminator()) {
    if (core.contains(&op))
      continue;
    bool isFreeOp =
        !isWork(&op) && llvm::all_of(op.getOperands(), [&](Value operand) { return free.contains(operand); });
    bool mayRepeat = isFreeOp || isView(&op) || treatmentOf(&op, policy).rebuildable;
    for (Value result : op.getResults()) {
      int64_t bytes = static_cast<int64_t>(bytesOf(result.getType()));
      // Of equal bytes the tensor is kept, not its views.
      values.add(result, bytes * kPerByte + kPerMoved * (isWeightOnly(&op) + isView(&op)));
      if (isFreeOp)
        free.insert(result);
      if (wholeInput.contains(&op) && !mayRepeat)
        values.charge(result);
      else if (wholeInput.contains(&op) && !isFreeOp && !isView(&op))
        values.charge(result, kPerRepeated);
      values.addMaking(result, op.getOperands());
    }
  }
  for (Value value : needed)
    values.addNeed(value);
  cut.handedOver = values.solve();
}

void BackwardCutter::collectOperations() {
  SmallVector<Value> made = resultsAt(cut.inputResults);
  llvm::append_range(made, cut.handedOver);
  DenseSet<Operation *> input = sliceOf(made), weight = sliceOf(resultsAt(cut.weightResults), cut.handedOver);
  for (Operation &op : block.without_terminator()) {
    if (input.contains(&op))
      cut.inputOps.push_back(&op);
    if (weight.contains(&op))
      cut.weightOps.push_back(&op);
  }
}

} // namespace

WeightCut drover::tfm::cutBackward(func::FuncOp body, ArrayRef<bool> isFree, const RecomputePolicy &policy) {
  return BackwardCutter(body, isFree, policy).run();
}
