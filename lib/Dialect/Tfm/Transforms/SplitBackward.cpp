//===- SplitBackward.cpp - backwards into input and weight parts ----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Zero-bubble schedules (Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241) run first what the stage before
// waits for and fill their bubbles with the rest.
//===----------------------------------------------------------------------===//
#include "WeightCut.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMSPLITBACKWARD
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {

/// One of the bodies that take a backward's place.
struct Part {
  func::FuncOp body;
  SmallVector<unsigned> arguments; // of the whole; what is handed over comes behind them
};

/// A body of `operations` that takes the arguments of `whole` which they use and `given`, and returns `results`.
Part buildPart(func::FuncOp whole, StringRef name, StringRef phase, ArrayRef<Operation *> operations,
               ArrayRef<Value> given, ArrayRef<Value> results) {
  llvm::SmallBitVector used(whole.getNumArguments());
  auto markUsed = [&](Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      used.set(argument.getArgNumber());
  };
  for (Operation *op : operations)
    llvm::for_each(op->getOperands(), markUsed);
  llvm::for_each(results, markUsed);

  OpBuilder builder(whole.getContext());
  Part part;
  part.body = func::FuncOp::create(builder, whole.getLoc(), name, builder.getFunctionType({}, {}));
  part.body.setPrivate();
  part.body->setAttr(TfmDialect::kBodyAttr, builder.getStringAttr(phase));
  Block *block = part.body.addEntryBlock();
  IRMapping mapping;
  for (unsigned index : used.set_bits()) {
    BlockArgument argument = whole.getArgument(index);
    part.arguments.push_back(index);
    mapping.map(argument, block->addArgument(argument.getType(), argument.getLoc()));
  }
  for (Value value : given)
    mapping.map(value, block->addArgument(value.getType(), value.getLoc()));
  builder.setInsertionPointToEnd(block);
  for (Operation *op : operations)
    builder.clone(*op, mapping);
  SmallVector<Value> returned = llvm::map_to_vector(results, [&](Value value) { return mapping.lookup(value); });
  func::ReturnOp::create(builder, whole.getLoc(), returned);
  part.body.setType(builder.getFunctionType(block->getArgumentTypes(), TypeRange(ValueRange(returned))));
  for (auto [index, value] : llvm::enumerate(returned))
    if (auto accumulate = value.getDefiningOp<AccumulateOp>())
      part.body.setResultAttr(
          index, TfmDialect::kInplaceAttr,
          builder.getI64IntegerAttr(cast<BlockArgument>(accumulate.getAccumulator()).getArgNumber()));
  return part;
}

class MicrobatchSplitter {
public:
  MicrobatchSplitter(ModuleOp module, func::FuncOp microbatch, const RecomputePolicy &policy)
      : symbols(module), microbatch(microbatch), policy(policy) {}

  LogicalResult run();
  unsigned numSplit = 0;
  uint64_t handedOverBytes = 0; // of one microbatch

private:
  LogicalResult findCalls();
  void findAccumulators();
  void splitBody(func::FuncOp body, ArrayRef<func::CallOp> calls);
  void moveWeightCalls();
  void threadAccumulators();

  SymbolTable symbols;
  func::FuncOp microbatch;
  const RecomputePolicy &policy;
  llvm::MapVector<Operation *, SmallVector<func::CallOp>> callsOf; // by backward body
  DenseMap<Value, Value> accumulatorOf;                            // every state of one to its argument
  SmallVector<func::CallOp> replaced;
};

LogicalResult MicrobatchSplitter::findCalls() {
  for (Operation &op : microbatch.front().without_terminator()) {
    auto call = dyn_cast<func::CallOp>(op);
    auto body = call ? symbols.lookup<func::FuncOp>(call.getCallee()) : nullptr;
    if (!body || !body.getBody().hasOneBlock())
      return op.emitOpError("is not the call of a body; tfm-differentiate comes before");
    if (bodyPhase(body) == TfmDialect::kWeightGradientPhase)
      return op.emitOpError("calls a weight gradient: backwards are split already");
    if (bodyPhase(body) == TfmDialect::kBackwardPhase)
      callsOf[body].push_back(call);
  }
  if (callsOf.empty())
    return microbatch.emitError("calls no backward to split; tfm-differentiate comes before");
  return success();
}

void MicrobatchSplitter::findAccumulators() {
  for (BlockArgument argument : microbatch.getArguments())
    if (microbatch.getArgAttr(argument.getArgNumber(), TfmDialect::kAccumulatorAttr))
      accumulatorOf[argument] = argument;
  for (auto call : microbatch.getOps<func::CallOp>())
    for (OpResult result : call.getResults())
      if (std::optional<int64_t> operand =
              inplaceArgument(symbols.lookup<func::FuncOp>(call.getCallee()), result.getResultNumber()))
        if (Value accumulator = accumulatorOf.lookup(call.getOperand(*operand)))
          accumulatorOf[result] = accumulator;
}

void MicrobatchSplitter::splitBody(func::FuncOp body, ArrayRef<func::CallOp> calls) {
  SmallVector<bool> isFree = llvm::map_to_vector(calls.front()->getOperands(), [&](Value operand) {
    return isa<BlockArgument>(operand) || accumulatorOf.contains(operand);
  });
  WeightCut cut = cutBackward(body, isFree, policy);
  if (cut.weightResults.empty())
    return;
  OpBuilder builder(body.getContext());
  if (cut.inputResults.empty()) {
    body->setAttr(TfmDialect::kBodyAttr, builder.getStringAttr(TfmDialect::kWeightGradientPhase));
    return;
  }
  auto valuesAt = [&](ArrayRef<unsigned> results) {
    return llvm::map_to_vector(results,
                               [&](unsigned index) { return body.front().getTerminator()->getOperand(index); });
  };
  SmallVector<Value> made = valuesAt(cut.inputResults);
  SmallVector<unsigned> handedOver; // results of the input part
  for (Value value : cut.handedOver) {
    handedOver.push_back(llvm::find(made, value) - made.begin());
    if (handedOver.back() == made.size())
      made.push_back(value);
    handedOverBytes += bytesOf(value.getType()) * calls.size();
  }
  StringRef stem = body.getName();
  stem.consume_back("_backward");
  Part input = buildPart(body, body.getName(), TfmDialect::kBackwardPhase, cut.inputOps, {}, made);
  Part weight = buildPart(body, (stem + "_weight_gradient").str(), TfmDialect::kWeightGradientPhase, cut.weightOps,
                          cut.handedOver.getArrayRef(), valuesAt(cut.weightResults));
  symbols.remove(body);
  symbols.insert(input.body, body->getIterator());
  symbols.insert(weight.body, body->getIterator());

  for (func::CallOp call : calls) {
    builder.setInsertionPoint(call);
    auto makeCall = [&](const Part &part, ArrayRef<unsigned> results, ArrayRef<Value> given) {
      SmallVector<Value> operands =
          llvm::map_to_vector(part.arguments, [&](unsigned index) { return call.getOperand(index); });
      llvm::append_range(operands, given);
      auto made = func::CallOp::create(builder, call.getLoc(), part.body, operands);
      made->setDiscardableAttrs(call->getDiscardableAttrDictionary());
      for (auto [index, result] : llvm::enumerate(results)) {
        if (Value accumulator = accumulatorOf.lookup(call.getResult(result)))
          accumulatorOf[made.getResult(index)] = accumulator;
        call.getResult(result).replaceAllUsesWith(made.getResult(index));
      }
      return made;
    };
    func::CallOp inputCall = makeCall(input, cut.inputResults, {});
    makeCall(weight, cut.weightResults,
             llvm::map_to_vector(handedOver, [&](unsigned index) -> Value { return inputCall.getResult(index); }));
    replaced.push_back(call);
  }
  body.erase();
  ++numSplit;
}

/// On a rank the weight parts of a microbatch run behind all of its input parts.
void MicrobatchSplitter::moveWeightCalls() {
  Operation *terminator = microbatch.front().getTerminator();
  for (func::CallOp call : llvm::to_vector(microbatch.getOps<func::CallOp>()))
    if (bodyPhase(symbols.lookup<func::FuncOp>(call.getCallee())) == TfmDialect::kWeightGradientPhase)
      call->moveBefore(terminator);
}

/// An accumulator passes through its calls in the order in which they stand now.
void MicrobatchSplitter::threadAccumulators() {
  DenseMap<Value, Value> current;
  auto follow = [&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (Value accumulator = accumulatorOf.lookup(operand.get()))
        operand.set(current.try_emplace(accumulator, accumulator).first->second);
  };
  for (auto call : microbatch.getOps<func::CallOp>()) {
    follow(call);
    for (OpResult result : call.getResults())
      if (Value accumulator = accumulatorOf.lookup(result))
        current[accumulator] = result;
  }
  follow(microbatch.front().getTerminator());
}

LogicalResult MicrobatchSplitter::run() {
  if (failed(findCalls()))
    return failure();
  findAccumulators();
  for (auto &[body, calls] : callsOf)
    splitBody(cast<func::FuncOp>(body), calls);
  for (func::CallOp call : replaced)
    call.erase();
  moveWeightCalls();
  threadAccumulators();
  return success();
}

struct SplitBackward : impl::TfmSplitBackwardBase<SplitBackward> {
  using TfmSplitBackwardBase::TfmSplitBackwardBase;

  void runOnOperation() override {
    func::FuncOp microbatch = lookupFunction(getOperation(), "microbatch");
    if (!microbatch)
      return signalPassFailure();
    SmallVector<std::string> rebuilt(rebuild.begin(), rebuild.end());
    FailureOr<RecomputePolicy> policy = parsePolicy(microbatch, "none", rebuilt);
    if (failed(policy))
      return signalPassFailure();
    MicrobatchSplitter splitter(getOperation(), microbatch, *policy);
    if (failed(splitter.run()))
      return signalPassFailure();
    numSplit += splitter.numSplit;
    handedOverBytes += splitter.handedOverBytes;
  }
};

} // namespace
} // namespace drover::tfm
