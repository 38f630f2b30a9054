//===- Differentiate.cpp - the backward of a microbatch ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "BodyGradient.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Regex.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMDIFFERENTIATE
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {

/// The forward program and what is wanted of it.
class MicrobatchGradient {
public:
  MicrobatchGradient(func::FuncOp forward, SymbolTable &symbols, const RecomputePolicy &policy)
      : forward(forward), symbols(symbols), policy(policy), builder(forward.getContext()) {}

  LogicalResult findTrainable(StringRef freeze);
  LogicalResult findCalls();
  LogicalResult checkDifferentiable();
  LogicalResult differentiateBodies();
  void rewrite();
  unsigned numBackwardBodies() const { return bodies.size(); }
  uint64_t stashBytes() const;

private:
  OperandKind kindOf(Value value);
  BodyUse useOf(func::CallOp call, const DenseSet<Value> &arriving);
  BlockArgument addArgument(Type type, Location loc, NamedAttribute attr);

  func::FuncOp forward;
  SymbolTable &symbols;
  const RecomputePolicy &policy;
  OpBuilder builder;

  DenseSet<Value> active; // depends on a trainable parameter
  SmallVector<func::CallOp> calls;
  Value loss;
  std::map<BodyUse, BodyGradient> bodies;
  llvm::MapVector<Operation *, BodyGradient *> gradientOf; // of a call, in program order

  func::FuncOp microbatch; // the new one
  SmallVector<DictionaryAttr> argumentAttrs;
};

/// A model whose weights an importer has taken for constants: some of these, by the names that they came with.
static InFlightDiagnostic &nameConstants(InFlightDiagnostic &error, func::FuncOp forward) {
  constexpr unsigned most = 3;
  unsigned number = 0;
  forward->getParentOfType<ModuleOp>().walk([&](arith::ConstantOp constant) {
    auto type = dyn_cast<RankedTensorType>(constant.getType());
    bool isNumber = type && type.hasStaticShape() && type.getNumElements() == 1;
    if (!type || !isFloatTensor(type) || isNumber || number++ >= most)
      return;
    error << (number == 1 ? ": every floating-point tensor is a constant, such as " : ", ");
    // The importer's: a tensor within the node that reads it, or the node alone.
    auto name = dyn_cast<NameLoc>(constant.getLoc());
    if (name && isa<NameLoc>(name.getChildLoc()))
      error << "'" << name.getName().getValue() << "'";
    else if (name)
      error << type << " in node '" << name.getName().getValue() << "'";
    else
      error << type;
  });
  return error;
}

LogicalResult MicrobatchGradient::findTrainable(StringRef freeze) {
  llvm::Regex regex(freeze);
  std::string reason;
  if (!freeze.empty() && !regex.isValid(reason))
    return forward.emitError("cannot read freeze '") << freeze << "' as a regular expression: " << reason;
  unsigned numParameters = 0, numFrozen = 0;
  for (BlockArgument argument : forward.getArguments()) {
    StringRef name = argumentName(forward, argument.getArgNumber(), TfmDialect::kParameterAttr);
    if (name.empty())
      continue;
    ++numParameters;
    bool isFrozen = !freeze.empty() && regex.match(name);
    numFrozen += isFrozen;
    if (isFloatTensor(argument.getType()) && !isFrozen)
      active.insert(argument);
  }
  if (active.empty()) {
    InFlightDiagnostic error = forward.emitError("has no parameter to train");
    if (numParameters == 0)
      return nameConstants(error, forward);
    if (numFrozen == numParameters)
      return error << ": freeze '" << freeze << "' matches all " << numParameters;
    return error << ": " << numParameters - numFrozen << " parameters hold integers";
  }
  if (!freeze.empty() && numFrozen == 0) {
    InFlightDiagnostic error = forward.emitError("has no parameter that freeze '") << freeze << "' matches";
    for (unsigned index = 0; index < forward.getNumArguments(); ++index)
      if (StringRef name = argumentName(forward, index, TfmDialect::kParameterAttr); !name.empty())
        return error << "; the first one is '" << name << "'";
  }
  return success();
}

/// Collects the calls, what depends on a trainable parameter, and the loss.
LogicalResult MicrobatchGradient::findCalls() {
  DenseMap<Value, Operation *> reader;
  for (Operation &op : forward.getBody().front().without_terminator()) {
    auto call = dyn_cast<func::CallOp>(op);
    auto body = call ? symbols.lookup<func::FuncOp>(call.getCallee()) : nullptr;
    if (!body || !body.getBody().hasOneBlock())
      return op.emitOpError("is not the call of a body; tfm-outline comes before");
    calls.push_back(call);
    SmallVector<bool> wanted;
    for (Value operand : call.getOperands()) {
      wanted.push_back(active.contains(operand));
      auto [it, isNew] = reader.try_emplace(operand, call);
      if (kindOf(operand) == OperandKind::Boundary && wanted.back() && !isNew)
        return call.emitOpError("reads a boundary value that another call reads as well; its gradient would be summed "
                                "between bodies");
    }
    SmallVector<bool> none(call.getNumResults(), false);
    GradientPath path(body.getBody().front(), wanted, none);
    for (auto [result, value] :
         llvm::zip_equal(call.getResults(), body.getBody().front().getTerminator()->getOperands()))
      if (path.isActive(value))
        active.insert(result);
  }
  Operation *terminator = forward.getBody().front().getTerminator();
  if (terminator->getNumOperands() == 1)
    if (auto result = dyn_cast<OpResult>(terminator->getOperand(0))) {
      auto body = symbols.lookup<func::FuncOp>(cast<func::CallOp>(result.getOwner()).getCallee());
      Value value = body.getBody().front().getTerminator()->getOperand(result.getResultNumber());
      if (value.getDefiningOp<CrossEntropyOp>())
        loss = result;
    }
  if (!loss)
    return forward.emitError("expects a 'tfm.cross_entropy' as its only result; tfm-attach-loss comes before");
  if (!active.contains(loss))
    return forward.emitError("has a loss that depends on no trainable parameter");
  return success();
}

OperandKind MicrobatchGradient::kindOf(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return OperandKind::Boundary;
  return forward.getArgAttr(argument.getArgNumber(), TfmDialect::kParameterAttr) ? OperandKind::Parameter
                                                                                 : OperandKind::Input;
}

BodyUse MicrobatchGradient::useOf(func::CallOp call, const DenseSet<Value> &arriving) {
  BodyUse use;
  use.body = symbols.lookup<func::FuncOp>(call.getCallee());
  for (Value operand : call.getOperands()) {
    use.kinds.push_back(kindOf(operand));
    use.wanted.push_back(active.contains(operand));
  }
  for (Value result : call.getResults())
    use.arriving.push_back(arriving.contains(result));
  return use;
}

/// One diagnostic for all operations that gradients would have to pass and that have no derivative.
LogicalResult MicrobatchGradient::checkDifferentiable() {
  DenseSet<Value> arriving{loss};
  SetVector<Operation *> missing;
  for (func::CallOp call : llvm::reverse(calls)) {
    BodyUse use = useOf(call, arriving);
    GradientPath path(use.body.getBody().front(), use.wanted, use.arriving);
    for (Operation *op : path.undifferentiable())
      missing.insert(op);
    for (auto [operand, argument] : llvm::zip_equal(call.getOperands(), use.body.getArguments()))
      if (kindOf(operand) == OperandKind::Boundary && path.contributions(argument) > 0)
        arriving.insert(operand);
  }
  if (missing.empty())
    return success();
  SetVector<StringRef> names;
  for (Operation *op : missing)
    names.insert(op->getName().getStringRef());
  InFlightDiagnostic error = forward.emitError("cannot be differentiated: no derivative of ")
                             << quoted(names.getArrayRef());
  for (Operation *op : missing)
    error.attachNote(op->getLoc()) << "'" << op->getName() << "' in @" << op->getParentOfType<func::FuncOp>().getName();
  return error;
}

LogicalResult MicrobatchGradient::differentiateBodies() {
  DenseSet<Value> arriving{loss};
  for (func::CallOp call : llvm::reverse(calls)) {
    BodyUse use = useOf(call, arriving);
    if (llvm::none_of(use.wanted, [](bool wanted) { return wanted; }) ||
        llvm::none_of(use.arriving, [](bool arrives) { return arrives; }))
      continue;
    auto found = bodies.find(use);
    if (found == bodies.end()) {
      FailureOr<BodyGradient> gradient = differentiateBody(use, policy);
      if (failed(gradient))
        return failure();
      symbols.insert(gradient->forward, use.body->getIterator());
      symbols.insert(gradient->backward, use.body->getIterator());
      found = bodies.emplace(use, std::move(*gradient)).first;
    }
    gradientOf[call] = &found->second;
    for (const BodyGradient::Result &result : found->second.results)
      if (result.kind == BodyGradient::Result::OperandGradient)
        arriving.insert(call.getOperand(result.index));
  }
  return success();
}

BlockArgument MicrobatchGradient::addArgument(Type type, Location loc, NamedAttribute attr) {
  argumentAttrs.push_back(builder.getDictionaryAttr(attr));
  return microbatch.getBody().front().addArgument(type, loc);
}

/// The new @microbatch: inputs, seed, parameters, accumulators; forward calls, then backward calls.
void MicrobatchGradient::rewrite() {
  Location loc = forward.getLoc();
  microbatch = func::FuncOp::create(builder, loc, forward.getName(), builder.getFunctionType({}, {}));
  microbatch->setDiscardableAttrs(forward->getDiscardableAttrDictionary());
  Block *block = microbatch.addEntryBlock();
  builder.setInsertionPointToStart(block);

  DenseMap<Value, Value> mapped; // from the old program into the new
  auto copyArguments = [&](bool parameters) {
    for (BlockArgument argument : forward.getArguments())
      if ((kindOf(argument) == OperandKind::Parameter) == parameters) {
        argumentAttrs.push_back(forward.getArgAttrDict(argument.getArgNumber()));
        mapped[argument] = block->addArgument(argument.getType(), argument.getLoc());
      }
  };
  copyArguments(/*parameters=*/false);
  auto lossCall = cast<func::CallOp>(loss.getDefiningOp());
  Type seedType;
  for (auto [operand, type] :
       llvm::zip_equal(gradientOf.lookup(lossCall)->operands, gradientOf.lookup(lossCall)->backward.getArgumentTypes()))
    if (operand.kind == BodyGradient::Operand::Seed)
      seedType = type;
  Value seed = addArgument(seedType, loc, builder.getNamedAttr(TfmDialect::kSeedAttr, builder.getUnitAttr()));
  copyArguments(/*parameters=*/true);

  // Accumulators in the order of their parameters.
  DenseSet<Value> contributing;
  for (func::CallOp call : calls)
    if (BodyGradient *gradient = gradientOf.lookup(call))
      for (const BodyGradient::Result &result : gradient->results)
        if (result.kind == BodyGradient::Result::Accumulator)
          contributing.insert(call.getOperand(result.index));
  SmallVector<BlockArgument> accumulating; // parameters of the old program
  DenseMap<Value, Value> accumulators;
  for (BlockArgument argument : forward.getArguments())
    if (contributing.contains(argument)) {
      accumulating.push_back(argument);
      accumulators[argument] =
          addArgument(wideType(argument.getType()), argument.getLoc(),
                      builder.getNamedAttr(TfmDialect::kAccumulatorAttr,
                                           forward.getArgAttr(argument.getArgNumber(), TfmDialect::kParameterAttr)));
    }

  auto makeCall = [&](func::CallOp original, StringRef callee, TypeRange results, ValueRange operands) {
    auto call = func::CallOp::create(builder, original.getLoc(), callee, results, operands);
    call->setDiscardableAttrs(original->getDiscardableAttrDictionary());
    return call;
  };
  DenseMap<Operation *, func::CallOp> forwardCalls;
  for (func::CallOp call : calls) {
    SmallVector<Value> operands;
    for (Value operand : call.getOperands())
      operands.push_back(mapped.lookup(operand));
    BodyGradient *gradient = gradientOf.lookup(call);
    func::CallOp made = gradient
                            ? makeCall(call, gradient->forward.getName(), gradient->forward.getResultTypes(), operands)
                            : makeCall(call, call.getCallee(), call.getResultTypes(), operands);
    for (auto [old, value] : llvm::zip(call.getResults(), made.getResults()))
      mapped[old] = value;
    forwardCalls[call] = made;
  }

  DenseMap<Value, Value> gradients; // of values of the old program
  for (func::CallOp call : llvm::reverse(calls)) {
    BodyGradient *gradient = gradientOf.lookup(call);
    if (!gradient)
      continue;
    SmallVector<Value> operands;
    for (const BodyGradient::Operand &operand : gradient->operands) {
      switch (operand.kind) {
      case BodyGradient::Operand::ForwardOperand:
        operands.push_back(mapped.lookup(call.getOperand(operand.index)));
        break;
      case BodyGradient::Operand::ForwardResult:
        operands.push_back(forwardCalls[call].getResult(operand.index));
        break;
      case BodyGradient::Operand::ResultGradient:
        operands.push_back(gradients.lookup(call.getResult(operand.index)));
        break;
      case BodyGradient::Operand::Seed:
        operands.push_back(seed);
        break;
      case BodyGradient::Operand::Accumulator:
        operands.push_back(accumulators.lookup(call.getOperand(operand.index)));
        break;
      }
    }
    func::CallOp made = makeCall(call, gradient->backward.getName(), gradient->backward.getResultTypes(), operands);
    for (auto [what, value] : llvm::zip_equal(gradient->results, made.getResults()))
      (what.kind == BodyGradient::Result::Accumulator ? accumulators : gradients)[call.getOperand(what.index)] = value;
  }

  SmallVector<Value> results{mapped.lookup(loss)};
  SmallVector<DictionaryAttr> resultAttrs{forward.getResultAttrDict(0)};
  for (BlockArgument parameter : accumulating) {
    results.push_back(accumulators.lookup(parameter));
    resultAttrs.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
        TfmDialect::kAccumulatorAttr, forward.getArgAttr(parameter.getArgNumber(), TfmDialect::kParameterAttr))));
  }
  func::ReturnOp::create(builder, loc, results);
  microbatch.setType(builder.getFunctionType(block->getArgumentTypes(), ValueRange(results).getTypes()));
  microbatch.setAllArgAttrs(argumentAttrs);
  microbatch.setAllResultAttrs(resultAttrs);

  SetVector<Operation *> replaced;
  for (func::CallOp call : calls)
    replaced.insert(symbols.lookup(call.getCallee()));
  Block::iterator position = std::next(forward->getIterator());
  symbols.erase(forward);
  symbols.insert(microbatch, position);
  for (Operation *body : replaced)
    if (SymbolTable::symbolKnownUseEmpty(body, microbatch))
      symbols.erase(body);
}

uint64_t MicrobatchGradient::stashBytes() const {
  uint64_t total = 0;
  for (auto [call, gradient] : gradientOf)
    total += gradient->stashBytes;
  return total;
}

struct Differentiate : impl::TfmDifferentiateBase<Differentiate> {
  using TfmDifferentiateBase::TfmDifferentiateBase;

  void runOnOperation() override {
    func::FuncOp forward = lookupFunction(getOperation(), "microbatch");
    if (!forward)
      return signalPassFailure();
    SmallVector<std::string> rebuilt(rebuild.begin(), rebuild.end());
    FailureOr<RecomputePolicy> policy = parsePolicy(forward, recompute, rebuilt);
    if (failed(policy))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    MicrobatchGradient gradient(forward, symbols, *policy);
    if (failed(gradient.findTrainable(freeze)) || failed(gradient.findCalls()) ||
        failed(gradient.checkDifferentiable()) || failed(gradient.differentiateBodies()))
      return signalPassFailure();
    numBackwardBodies += gradient.numBackwardBodies();
    stashBytes += gradient.stashBytes();
    gradient.rewrite();
  }
};

} // namespace
} // namespace drover::tfm
