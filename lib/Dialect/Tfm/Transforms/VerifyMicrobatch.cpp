//===- VerifyMicrobatch.cpp - the contract of the bodies --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TransformUtils.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMVERIFYMICROBATCH
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {

/// Those of a microbatch, in the order of its calls, then those of flat bodies.
constexpr StringRef kPhases[] = {TfmDialect::kForwardPhase, TfmDialect::kBackwardPhase,
                                 TfmDialect::kWeightGradientPhase, TfmDialect::kUpdatePhase, TfmDialect::kNormPhase};
constexpr size_t kCalledPhases = 3;

LogicalResult verifyInplace(func::FuncOp body) {
  llvm::SmallDenseSet<int64_t> taken;
  for (unsigned result = 0; result < body.getNumResults(); ++result) {
    std::optional<int64_t> argument = inplaceArgument(body, result);
    if (!argument)
      continue;
    if (*argument < 0 || *argument >= static_cast<int64_t>(body.getNumArguments()))
      return body.emitError("expects '") << TfmDialect::kInplaceAttr << "' of result " << result << " to be below "
                                         << body.getNumArguments() << ", not " << *argument;
    if (!taken.insert(*argument).second)
      return body.emitError("has two results in the memory of argument ") << *argument;
    if (body.getArgumentTypes()[*argument] != body.getResultTypes()[result])
      return body.emitError("result ") << result << " of type " << body.getResultTypes()[result]
                                       << " cannot live in argument " << *argument << " of type "
                                       << body.getArgumentTypes()[*argument];
  }
  return success();
}

/// Every contribution to an accumulator leaves the body, in the memory it came from.
LogicalResult verifyAccumulate(func::FuncOp body, AccumulateOp accumulate) {
  auto argument = dyn_cast<BlockArgument>(accumulate.getAccumulator());
  if (!argument || !argument.hasOneUse())
    return accumulate.emitOpError("expects an argument of the body that nobody else reads");
  for (OpOperand &use : accumulate.getResult().getUses())
    if (isa<func::ReturnOp>(use.getOwner()) && accumulate->hasOneUse() &&
        inplaceArgument(body, use.getOperandNumber()) == argument.getArgNumber())
      return success();
  return accumulate.emitOpError("expects to be returned once, in place of argument ") << argument.getArgNumber();
}

LogicalResult verifyBody(func::FuncOp body) {
  StringRef phase = bodyPhase(body);
  if (!llvm::is_contained(kPhases, phase))
    return body.emitError("expects '") << TfmDialect::kBodyAttr << "' to be one of " << quoted(kPhases) << ", not '"
                                       << phase << "'";
  if (!body.getBody().hasOneBlock() || !body.isPrivate())
    return body.emitError("expects a body to be a private function of one block");
  bool isFlat = phase == TfmDialect::kUpdatePhase || phase == TfmDialect::kNormPhase;
  auto verifyType = [&](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && (tensor.hasStaticShape() || (isFlat && tensor.getRank() == 1));
  };
  for (Type type : llvm::concat<const Type>(body.getArgumentTypes(), body.getResultTypes()))
    if (!verifyType(type))
      return body.emitError("expects ") << (isFlat ? "flat" : "static") << " tensors, not " << type;
  for (Operation &op : body.getBody().front()) {
    if (op.getNumRegions() || isa<CallOpInterface>(op))
      return op.emitOpError("cannot stand in a body, which is straight-line");
    if (auto accumulate = dyn_cast<AccumulateOp>(op); accumulate && failed(verifyAccumulate(body, accumulate)))
      return failure();
  }
  if (phase == TfmDialect::kWeightGradientPhase)
    for (unsigned result = 0; result < body.getNumResults(); ++result)
      if (!inplaceArgument(body, result))
        return body.emitError("expects every result of a weight gradient to be an accumulator in place, not result ")
               << result;
  return verifyInplace(body);
}

/// The roles of arguments, and the accumulators by name.
LogicalResult verifyArguments(func::FuncOp microbatch, llvm::StringMap<unsigned> &accumulators) {
  const StringRef roles[] = {TfmDialect::kInputAttr, TfmDialect::kSeedAttr, TfmDialect::kParameterAttr,
                             TfmDialect::kAccumulatorAttr};
  llvm::StringMap<unsigned> parameters;
  for (unsigned index = 0; index < microbatch.getNumArguments(); ++index) {
    unsigned count = llvm::count_if(roles, [&](StringRef role) { return bool(microbatch.getArgAttr(index, role)); });
    if (count != 1)
      return microbatch.emitError("expects argument ")
             << index << " to have one of " << quoted(roles) << ", not " << count;
    if (StringRef name = argumentName(microbatch, index, TfmDialect::kParameterAttr); !name.empty())
      parameters[name] = index; // names are distinct by the dialect's verifier
    if (StringRef name = argumentName(microbatch, index, TfmDialect::kAccumulatorAttr); !name.empty())
      if (!accumulators.try_emplace(name, index).second)
        return microbatch.emitError("has two accumulators for the parameter '") << name << "'";
  }
  for (const auto &entry : accumulators) {
    auto found = parameters.find(entry.getKey());
    Type type = microbatch.getArgumentTypes()[entry.getValue()];
    if (found == parameters.end())
      return microbatch.emitError("has an accumulator for '") << entry.getKey() << "', which is no parameter";
    // Encodings differ: an accumulator's says what is still to be reduced (tfm-verify-distributions).
    auto expected = cast<RankedTensorType>(wideType(microbatch.getArgumentTypes()[found->second]));
    auto actual = cast<RankedTensorType>(type);
    if (actual.getShape() != expected.getShape() || actual.getElementType() != expected.getElementType())
      return microbatch.emitError("expects the accumulator of '")
             << entry.getKey() << "' to be " << expected << ", not " << type;
  }
  return success();
}

LogicalResult verifyCall(func::CallOp call, func::FuncOp body) {
  for (unsigned result = 0; result < call.getNumResults(); ++result) {
    std::optional<int64_t> index = inplaceArgument(body, result);
    if (!index)
      continue;
    Value overwritten = call.getOperand(*index);
    for (OpOperand &use : overwritten.getUses())
      if (use.getOwner() == call ? use.getOperandNumber() != *index : call->isBeforeInBlock(use.getOwner()))
        return call.emitOpError("overwrites operand ")
               << *index << " in place, which "
               << (use.getOwner() == call ? "it also reads as operand " : "is used later as operand ")
               << use.getOperandNumber();
  }
  return success();
}

/// Follows a result back through in-place calls to the argument it started from.
Value originOf(Value value, SymbolTable &symbols) {
  while (auto call = value.getDefiningOp<func::CallOp>()) {
    std::optional<int64_t> index =
        inplaceArgument(symbols.lookup<func::FuncOp>(call.getCallee()), cast<OpResult>(value).getResultNumber());
    if (!index)
      break;
    value = call.getOperand(*index);
  }
  return value;
}

LogicalResult verifyResults(func::FuncOp microbatch, SymbolTable &symbols,
                            const llvm::StringMap<unsigned> &accumulators) {
  llvm::StringMap<unsigned> returned;
  Operation *terminator = microbatch.getBody().front().getTerminator();
  for (unsigned index = 0; index < microbatch.getNumResults(); ++index) {
    auto output = microbatch.getResultAttr(index, TfmDialect::kOutputAttr);
    auto accumulator = microbatch.getResultAttrOfType<StringAttr>(index, TfmDialect::kAccumulatorAttr);
    if (bool(output) == bool(accumulator))
      return microbatch.emitError("expects result ") << index << " to have one of '" << TfmDialect::kOutputAttr
                                                     << "' and '" << TfmDialect::kAccumulatorAttr << "'";
    if (!accumulator)
      continue;
    auto argument = accumulators.find(accumulator.getValue());
    if (argument == accumulators.end() ||
        originOf(terminator->getOperand(index), symbols) != microbatch.getArgument(argument->second))
      return microbatch.emitError("expects result ")
             << index << " to be what in-place calls make of the accumulator of '" << accumulator.getValue() << "'";
    ++returned[accumulator.getValue()];
  }
  for (const auto &entry : accumulators)
    if (returned.lookup(entry.getKey()) != 1)
      return microbatch.emitError("returns the accumulator of '")
             << entry.getKey() << "' " << returned.lookup(entry.getKey()) << " times, not once";
  return success();
}

struct VerifyMicrobatch : impl::TfmVerifyMicrobatchBase<VerifyMicrobatch> {
  void runOnOperation() override {
    if (failed(verify()))
      signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  LogicalResult verify() {
    func::FuncOp microbatch = lookupFunction(getOperation(), "microbatch");
    if (!microbatch)
      return failure();
    if (!microbatch->hasAttr(TfmDialect::kMicrobatchAttr))
      return microbatch.emitError("expects the attribute '") << TfmDialect::kMicrobatchAttr << "'";
    SymbolTable symbols(getOperation());
    for (func::FuncOp body : getOperation().getOps<func::FuncOp>())
      if (body->hasAttr(TfmDialect::kBodyAttr) && failed(verifyBody(body)))
        return failure();
    llvm::StringMap<unsigned> accumulators;
    if (failed(verifyArguments(microbatch, accumulators)))
      return failure();
    size_t last = 0;
    for (Operation &op : microbatch.getBody().front().without_terminator()) {
      auto call = dyn_cast<func::CallOp>(op);
      auto body = call ? symbols.lookup<func::FuncOp>(call.getCallee()) : nullptr;
      size_t phase = llvm::find(kPhases, body ? bodyPhase(body) : StringRef()) - std::begin(kPhases);
      if (phase >= kCalledPhases)
        return op.emitOpError("is not the call of a forward, backward or weight_gradient body");
      if (phase < last)
        return op.emitOpError("calls a ") << kPhases[phase] << " body after a " << kPhases[last] << " one";
      last = phase;
      if (failed(verifyCall(call, body)))
        return failure();
    }
    return verifyResults(microbatch, symbols, accumulators);
  }
};

} // namespace
} // namespace drover::tfm
