//===- ShareGathers.cpp - what both parts gather is gathered once ---------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The gradient of a row-parallel product is gathered for the gradient of its input and for that of its weight. A split
// backward has these in two bodies: the first hands over what it has gathered.
//===----------------------------------------------------------------------===//
#include "TransformUtils.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMSHAREGATHERS
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {

/// How an input part has the value of an argument of a weight part, in each pair of their calls.
struct Origin {
  func::FuncOp body;
  bool isResult = false; // else an argument
  unsigned index = 0;
  SmallVector<func::CallOp> calls; // beside the calls of the weight part
};

class GatherSharer {
public:
  GatherSharer(ModuleOp module, func::FuncOp microbatch) : symbols(module), microbatch(microbatch) {}

  unsigned run();

private:
  func::FuncOp bodyOf(func::CallOp call) const { return symbols.lookup<func::FuncOp>(call.getCallee()); }
  SmallVector<Origin> originsOf(func::CallOp call, unsigned operand) const;
  std::optional<Origin> findOrigin(ArrayRef<func::CallOp> calls, unsigned argument, shard::AllGatherOp gather) const;
  SmallVector<Value> handOver(const Origin &origin, Value gathered, bool replacesResult);
  bool share(func::FuncOp weight, ArrayRef<func::CallOp> calls, shard::AllGatherOp gather);

  SymbolTable symbols;
  func::FuncOp microbatch;
  llvm::MapVector<Operation *, SmallVector<func::CallOp>> callsOf; // by body
};

/// The gather of `value` that is the same collective as `other`, of another body.
shard::AllGatherOp findSame(Value value, shard::AllGatherOp other) {
  for (Operation *user : value.getUsers())
    if (auto gather = dyn_cast<shard::AllGatherOp>(user))
      if (gather.getType() == other.getType() && gather.getProperties() == other.getProperties() &&
          gather->hasAttr(TfmDialect::kTwoChunkAttr) == other->hasAttr(TfmDialect::kTwoChunkAttr))
        return gather;
  return {};
}

Value valueIn(const Origin &origin) {
  func::FuncOp body = origin.body;
  return origin.isResult ? body.front().getTerminator()->getOperand(origin.index)
                         : Value(body.getArgument(origin.index));
}

/// The calls of input parts that make or read an operand of `call`, too.
SmallVector<Origin> GatherSharer::originsOf(func::CallOp call, unsigned operand) const {
  SmallVector<Origin> origins;
  Value value = call.getOperand(operand);
  auto add = [&](Operation *op, bool isResult, unsigned index) {
    auto other = dyn_cast_if_present<func::CallOp>(op);
    if (other && bodyPhase(bodyOf(other)) == TfmDialect::kBackwardPhase && other->isBeforeInBlock(call))
      origins.push_back({bodyOf(other), isResult, index, {other}});
  };
  if (auto result = dyn_cast<OpResult>(value))
    add(result.getOwner(), true, result.getResultNumber());
  for (OpOperand &use : value.getUses())
    add(use.getOwner(), false, use.getOperandNumber());
  return origins;
}

/// The gathered value as a result of each call of the input part: in place of result `index` where that one is not read
/// any more, else behind the others.
SmallVector<Value> GatherSharer::handOver(const Origin &origin, Value gathered, bool replacesResult) {
  func::FuncOp body = origin.body;
  Operation *terminator = body.front().getTerminator();
  unsigned index = llvm::find(terminator->getOperands(), gathered) - terminator->operand_begin();
  if (index == terminator->getNumOperands()) {
    if (replacesResult) {
      terminator->setOperand(index = origin.index, gathered);
      body.setType(FunctionType::get(body.getContext(), body.getArgumentTypes(), terminator->getOperandTypes()));
    } else {
      terminator->insertOperands(index, gathered);
      (void)body.insertResult(index, gathered.getType(), /*resultAttrs=*/{});
    }
  }

  DenseMap<Operation *, func::CallOp> renewed;
  for (func::CallOp &call : callsOf[body]) {
    OpBuilder builder(call);
    auto made = func::CallOp::create(builder, call.getLoc(), body, call.getOperands());
    made->setDiscardableAttrs(call->getDiscardableAttrDictionary());
    for (auto [old, now] : llvm::zip(call.getResults(), made.getResults()))
      old.replaceAllUsesWith(now);
    renewed[call] = made;
    call.erase();
    call = made;
  }
  return llvm::map_to_vector(origin.calls,
                             [&](func::CallOp call) -> Value { return renewed.lookup(call).getResult(index); });
}

/// Where the value of an argument of `calls` comes from, if the same input part gathers it as `gather` does before all.
std::optional<Origin> GatherSharer::findOrigin(ArrayRef<func::CallOp> calls, unsigned argument,
                                               shard::AllGatherOp gather) const {
  for (Origin &origin : originsOf(calls.front(), argument)) {
    if (!findSame(valueIn(origin), gather))
      continue;
    for (func::CallOp call : calls.drop_front())
      for (Origin &other : originsOf(call, argument))
        if (other.body == origin.body && other.isResult == origin.isResult && other.index == origin.index)
          origin.calls.push_back(other.calls.front());
    if (origin.calls.size() == calls.size())
      return origin;
  }
  return std::nullopt;
}

bool GatherSharer::share(func::FuncOp weight, ArrayRef<func::CallOp> calls, shard::AllGatherOp gather) {
  auto argument = dyn_cast<BlockArgument>(gather.getInput());
  if (!argument)
    return false;
  unsigned index = argument.getArgNumber();
  std::optional<Origin> origin = findOrigin(calls, index, gather);
  if (!origin)
    return false;
  Value first = findSame(valueIn(*origin), gather).getResult();
  // The gathered value takes the place of what the weight part reads only to gather it.
  bool replacesArgument = argument.hasOneUse();
  auto isOfArgument = [&](OpOperand &use) {
    return use.getOperandNumber() == index && llvm::is_contained(calls, dyn_cast<func::CallOp>(use.getOwner()));
  };
  bool replacesResult =
      replacesArgument && origin->isResult && llvm::all_of(callsOf[origin->body], [&](func::CallOp call) {
        return llvm::all_of(call.getResult(origin->index).getUses(), isOfArgument);
      });
  SmallVector<Value> gathered = handOver(*origin, first, replacesResult);
  if (!replacesArgument) {
    index = weight.getNumArguments();
    (void)weight.insertArgument(index, first.getType(), /*argAttrs=*/{}, gather.getLoc());
  }
  for (auto [call, value] : llvm::zip_equal(calls, gathered)) {
    if (replacesArgument)
      call->setOperand(index, value);
    else
      call->insertOperands(index, value);
  }
  argument = weight.getArgument(index);
  gather.getResult().replaceAllUsesWith(argument);
  gather.erase();
  argument.setType(first.getType());
  weight.setType(FunctionType::get(weight.getContext(), weight.front().getArgumentTypes(), weight.getResultTypes()));
  return true;
}

unsigned GatherSharer::run() {
  unsigned numShared = 0;
  for (auto call : microbatch.getOps<func::CallOp>())
    callsOf[bodyOf(call)].push_back(call);
  for (auto &[op, calls] : llvm::to_vector(callsOf)) {
    auto body = cast<func::FuncOp>(op);
    if (bodyPhase(body) == TfmDialect::kWeightGradientPhase)
      for (auto gather : llvm::to_vector(body.getOps<shard::AllGatherOp>()))
        numShared += share(body, calls, gather);
  }
  return numShared;
}

struct ShareGathers : impl::TfmShareGathersBase<ShareGathers> {
  void runOnOperation() override {
    func::FuncOp microbatch = lookupFunction(getOperation(), "microbatch");
    if (!microbatch)
      return signalPassFailure();
    numShared += GatherSharer(getOperation(), microbatch).run();
  }
};

} // namespace
} // namespace drover::tfm
