//===- BodyGradient.cpp - forward and backward of one body ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "BodyGradient.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace drover::tfm;

Value drover::tfm::logitsOf(CrossEntropyOp loss) {
  auto maximum = loss.getMaximum().getDefiningOp<LogitsMaxOp>();
  auto sum = loss.getSum().getDefiningOp<LogitsSumOp>();
  if (!maximum || !sum || loss.getTarget() != sum.getTarget() || sum.getMaximum() != loss.getMaximum() ||
      sum.getLabels() != loss.getLabels() || maximum.getLogits() != sum.getLogits())
    return nullptr;
  // A part of the vocabulary: partitioning comes after differentiation.
  if (maximum.getOffset() || maximum.getVocabulary() || sum.getOffset() || sum.getVocabulary())
    return nullptr;
  return sum.getLogits();
}

//===----------------------------------------------------------------------===//
// The path
//===----------------------------------------------------------------------===//

GradientPath::GradientPath(Block &body, ArrayRef<bool> wanted, ArrayRef<bool> arriving) {
  for (auto [argument, isWanted] : llvm::zip_equal(body.getArguments(), wanted))
    if (isWanted)
      active.insert(argument);
  for (Operation &op : body.without_terminator())
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return active.contains(operand); }))
      for (Value result : op.getResults())
        if (isFloatTensor(result.getType()))
          active.insert(result);

  for (auto [value, arrives] : llvm::zip_equal(body.getTerminator()->getOperands(), arriving))
    counts[value] += arrives && active.contains(value);
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    if (llvm::none_of(op.getResults(), [&](Value result) { return counts.lookup(result) > 0; }))
      continue;
    operations.insert(&op);
    if (auto loss = dyn_cast<CrossEntropyOp>(op)) {
      if (Value logits = logitsOf(loss))
        ++counts[logits];
      continue;
    }
    for (Value operand : op.getOperands())
      if (active.contains(operand))
        ++counts[operand];
  }
}

SmallVector<Operation *> GradientPath::undifferentiable() const {
  SmallVector<Operation *> result;
  for (Operation *op : llvm::reverse(operations)) {
    auto loss = dyn_cast<CrossEntropyOp>(op);
    if (loss ? !logitsOf(loss) : !isa<DifferentiableOpInterface>(op))
      result.push_back(op);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// The builder
//===----------------------------------------------------------------------===//

namespace {

class BodyDifferentiator {
public:
  BodyDifferentiator(const BodyUse &use, const RecomputePolicy &policy)
      : use(use), policy(policy), body(use.body), builder(body.getContext()) {}

  FailureOr<BodyGradient> run() {
    cloneIntoBackward();
    if (failed(buildGradients()))
      return failure();
    finishGradients();
    stash();
    sinkRebuilt();
    finishBackward();
    return std::move(result);
  }

private:
  void cloneIntoBackward();
  LogicalResult buildGradients();
  LogicalResult buildGradients(Operation *op, const GradientPath &path);
  void finishGradients();
  void stash();
  void sinkRebuilt();
  void finishBackward();

  BlockArgument addArgument(Type type, BodyGradient::Operand operand) {
    descriptors.push_back(operand);
    return block->addArgument(type, body.getLoc());
  }
  Value gradientOf(Value value, Type elementType);
  void contribute(Value value, Value gradient);
  Type gradientElementType(Value value);

  const BodyUse &use;
  const RecomputePolicy &policy;
  func::FuncOp body;
  OpBuilder builder;
  BodyGradient result;

  Block *block = nullptr;                         // of the backward
  SmallVector<BodyGradient::Operand> descriptors; // one per argument of `block`
  IRMapping toClone;                              // from the body into `block`
  DenseMap<Value, Value> toBody;                  // and back
  Operation *lastRebuilt = nullptr;               // the last operation that is no part of the gradient
  DenseMap<Value, SmallVector<Value>> gradients;  // contributions so far
  DenseMap<Value, unsigned> pending;              // contributions to come
  DenseMap<Value, Value> accumulated;             // parameter -> accumulator after the call
  Value seed;
};

void BodyDifferentiator::cloneIntoBackward() {
  Location loc = body.getLoc();
  result.backward =
      func::FuncOp::create(builder, loc, (body.getName() + "_backward").str(), builder.getFunctionType({}, {}));
  result.backward.setPrivate();
  result.backward->setAttr(TfmDialect::kBodyAttr, builder.getStringAttr(TfmDialect::kBackwardPhase));
  block = result.backward.addEntryBlock();
  for (BlockArgument argument : body.getArguments()) {
    Value clone = addArgument(argument.getType(), {BodyGradient::Operand::ForwardOperand, argument.getArgNumber()});
    toClone.map(argument, clone);
    toBody[clone] = argument;
  }
  builder.setInsertionPointToStart(block);
  for (Operation &op : body.getBody().front().without_terminator()) {
    lastRebuilt = builder.clone(op, toClone);
    for (auto [original, clone] : llvm::zip_equal(op.getResults(), lastRebuilt->getResults()))
      toBody[clone] = original;
  }
}

/// The element type in which the gradient of `value` is made. A contraction that writes wider than it reads
/// (the logits) takes its gradient in the type of its operands, rounded once by the loss.
Type BodyDifferentiator::gradientElementType(Value value) {
  Type own = getElementTypeOrSelf(value.getType());
  Operation *producer = value.getDefiningOp();
  if (!producer || recomputeClassOf(producer) != RecomputeClass::Contraction)
    return own;
  Type operand = getElementTypeOrSelf(producer->getOperand(0).getType());
  return operand.getIntOrFloatBitWidth() < own.getIntOrFloatBitWidth() ? operand : own;
}

/// The sum of the contributions, in f32 and rounded once where there are several; null where there is none.
Value BodyDifferentiator::gradientOf(Value value, Type elementType) {
  ArrayRef<Value> contributions = gradients[value];
  if (contributions.empty())
    return nullptr;
  Location loc = value.getLoc();
  Value sum = contributions.front();
  Type wide = wideType(value.getType()).getElementType();
  for (Value contribution : contributions.drop_front())
    sum =
        arith::AddFOp::create(builder, loc, castTo(builder, loc, sum, wide), castTo(builder, loc, contribution, wide));
  return castTo(builder, loc, sum, elementType);
}

/// Adds one of the expected contributions, null where it is zero. The gradient of a parameter goes into its
/// accumulator as soon as it is complete.
void BodyDifferentiator::contribute(Value value, Value gradient) {
  if (gradient)
    gradients[value].push_back(gradient);
  if (--pending[value])
    return;
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || use.kinds[argument.getArgNumber()] != OperandKind::Parameter)
    return;
  RankedTensorType type = wideType(value.getType());
  Value sum = gradientOf(value, type.getElementType());
  if (!sum)
    return;
  Value accumulator = addArgument(type, {BodyGradient::Operand::Accumulator, argument.getArgNumber()});
  accumulated[value] = AccumulateOp::create(builder, value.getLoc(), type, accumulator, sum);
}

LogicalResult BodyDifferentiator::buildGradients(Operation *op, const GradientPath &path) {
  if (auto loss = dyn_cast<CrossEntropyOp>(op)) {
    Value logits = logitsOf(loss);
    auto type = cast<RankedTensorType>(logits.getType());
    Type elementType = path.contributions(logits) > 1 ? wideType(type).getElementType() : gradientElementType(logits);
    contribute(logits, CrossEntropyGradOp::create(builder, op->getLoc(), type.clone(elementType), logits,
                                                  loss.getLabels(), loss.getMaximum(), loss.getSum(), seed,
                                                  /*offset=*/Value(), /*vocabulary=*/IntegerAttr()));
    return success();
  }
  SmallVector<Value> resultGradients, operandGradients;
  for (Value value : op->getResults())
    resultGradients.push_back(gradientOf(value, gradientElementType(value)));
  SmallVector<Type> operandTypes;
  for (Value operand : op->getOperands()) {
    bool wide = path.contributions(operand) > 1;
    if (auto argument = dyn_cast<BlockArgument>(operand))
      wide |= use.kinds[argument.getArgNumber()] == OperandKind::Parameter;
    auto type = cast<RankedTensorType>(operand.getType());
    operandTypes.push_back(!path.isActive(operand) ? Type()
                           : wide                  ? wideType(type)
                                                   : type.clone(gradientElementType(operand)));
  }
  if (llvm::any_of(resultGradients, [](Value value) { return bool(value); })) {
    if (failed(cast<DifferentiableOpInterface>(op).buildGradients(builder, resultGradients, operandTypes,
                                                                  operandGradients)))
      return failure();
    assert(operandGradients.size() == op->getNumOperands() && "one gradient per operand");
  }
  operandGradients.resize(op->getNumOperands());
  for (auto [operand, gradient] : llvm::zip_equal(op->getOperands(), operandGradients))
    if (path.isActive(operand))
      contribute(operand, gradient);
  return success();
}

LogicalResult BodyDifferentiator::buildGradients() {
  SmallVector<Value> returned;
  for (Value value : body.getBody().front().getTerminator()->getOperands())
    returned.push_back(toClone.lookup(value));
  // The path is read off the clone: a temporary terminator makes it a body.
  func::ReturnOp terminator = func::ReturnOp::create(builder, body.getLoc(), returned);
  GradientPath path(*block, use.wanted, use.arriving);
  terminator.erase();
  builder.setInsertionPointToEnd(block);

  SmallVector<Operation *> operations;
  for (Operation &op : llvm::reverse(*block))
    if (path.contains(&op))
      operations.push_back(&op);
  for (Value value : llvm::make_first_range(toBody))
    pending[value] = path.contributions(value);

  for (auto [index, value] : llvm::enumerate(returned)) {
    if (!use.arriving[index] || !path.isActive(value))
      continue;
    if (auto loss = value.getDefiningOp<CrossEntropyOp>()) {
      seed =
          addArgument(RankedTensorType::get({}, getElementTypeOrSelf(loss.getSum())), {BodyGradient::Operand::Seed, 0});
      continue;
    }
    auto type = cast<RankedTensorType>(value.getType());
    contribute(value, addArgument(type, {BodyGradient::Operand::ResultGradient, static_cast<unsigned>(index)}));
  }
  for (Operation *op : operations)
    if (failed(buildGradients(op, path)))
      return failure();
  return success();
}

/// Returns the gradients of boundary values, then the accumulators, and drops gradients nobody uses.
void BodyDifferentiator::finishGradients() {
  SmallVector<Value> values;
  for (BlockArgument argument : body.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (!use.wanted[index] || use.kinds[index] == OperandKind::Parameter)
      continue;
    if (Value gradient = gradientOf(block->getArgument(index), getElementTypeOrSelf(argument.getType()))) {
      values.push_back(gradient);
      result.results.push_back({BodyGradient::Result::OperandGradient, index});
    }
  }
  for (BlockArgument argument : body.getArguments()) {
    if (Value accumulator = accumulated.lookup(block->getArgument(argument.getArgNumber()))) {
      values.push_back(accumulator);
      result.results.push_back({BodyGradient::Result::Accumulator, argument.getArgNumber()});
    }
  }
  func::ReturnOp::create(builder, body.getLoc(), values);
  for (Operation *op = &block->back(); op != lastRebuilt;) {
    Operation *previous = op->getPrevNode();
    if (isOpTriviallyDead(op))
      op->erase();
    op = previous;
  }
}

/// Makes arguments of what is stashed; the rest of the cloned forward is what the backward rebuilds.
void BodyDifferentiator::stash() {
  SetVector<Value> needed;
  for (Operation *op = lastRebuilt ? lastRebuilt->getNextNode() : &block->front(); op; op = op->getNextNode())
    for (Value operand : op->getOperands())
      if (Value original = toBody.lookup(operand))
        needed.insert(original);
  Block &forward = body.getBody().front();
  SetVector<Value> stashed = selectStash(forward, use.kinds, needed, policy);

  result.forward = body.clone();
  result.forward.setName((body.getName() + "_forward").str());
  IRMapping toForward;
  toForward.map(forward.getArguments(), result.forward.getArguments());
  for (auto [original, clone] : llvm::zip_equal(forward, result.forward.getBody().front()))
    toForward.map(original.getResults(), clone.getResults());
  Operation *terminator = result.forward.getBody().front().getTerminator();
  for (Value value : stashed) {
    Value kept = toForward.lookup(value);
    auto found = llvm::find(terminator->getOperands(), kept);
    unsigned index = found - terminator->operand_begin();
    if (found == terminator->operand_end()) {
      terminator->insertOperands(index, kept);
      result.stashBytes += bytesOf(value.getType());
    }
    Value clone = toClone.lookup(value);
    clone.replaceAllUsesWith(addArgument(value.getType(), {BodyGradient::Operand::ForwardResult, index}));
  }
  result.forward.setType(builder.getFunctionType(result.forward.getArgumentTypes(), terminator->getOperandTypes()));
}

/// What is rebuilt lives from its first use on, not from the start of the backward.
void BodyDifferentiator::sinkRebuilt() {
  SmallVector<Operation *> rebuilt;
  for (Operation *op = lastRebuilt; op;) {
    Operation *previous = op->getPrevNode();
    if (isOpTriviallyDead(op))
      op->erase();
    else
      rebuilt.push_back(op);
    op = previous;
  }
  for (Operation *op : rebuilt) { // from the last to the first: users have their places
    Operation *first = nullptr;
    for (Operation *user : op->getUsers())
      if (!first || user->isBeforeInBlock(first))
        first = user;
    op->moveBefore(first);
  }
}

/// Puts the arguments in order (forward operands, stash, gradients, seed, accumulators), without the unused ones.
void BodyDifferentiator::finishBackward() {
  unsigned numOld = block->getNumArguments();
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq(numOld));
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return std::tie(descriptors[a].kind, descriptors[a].index) < std::tie(descriptors[b].kind, descriptors[b].index);
  });
  for (unsigned old : order) {
    BlockArgument argument = block->getArgument(old);
    if (argument.use_empty())
      continue;
    argument.replaceAllUsesWith(block->addArgument(argument.getType(), argument.getLoc()));
    result.operands.push_back(descriptors[old]);
  }
  block->eraseArguments(0, numOld);

  Operation *terminator = block->getTerminator();
  result.backward.setType(builder.getFunctionType(block->getArgumentTypes(), terminator->getOperandTypes()));
  for (auto [index, what] : llvm::enumerate(result.results)) {
    if (what.kind != BodyGradient::Result::Accumulator)
      continue;
    auto accumulate = terminator->getOperand(index).getDefiningOp<AccumulateOp>();
    unsigned argument = cast<BlockArgument>(accumulate.getAccumulator()).getArgNumber();
    result.backward.setResultAttr(index, TfmDialect::kInplaceAttr, builder.getI64IntegerAttr(argument));
  }
}

} // namespace

FailureOr<BodyGradient> drover::tfm::differentiateBody(const BodyUse &use, const RecomputePolicy &policy) {
  return BodyDifferentiator(use, policy).run();
}
