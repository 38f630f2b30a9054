//===- BodyPartitioner.cpp - a body on one rank's part ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "BodyPartitioner.h"
#include "../TransformUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace drover::tfm {

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

ArgumentState *BodyPartitioner::parameterOf(Value global) const {
  auto argument = dyn_cast<BlockArgument>(global);
  if (!argument || arguments[argument.getArgNumber()].role != ArgumentState::Role::Parameter)
    return nullptr;
  return &arguments[argument.getArgNumber()];
}

Distribution BodyPartitioner::distributionOf(Value global) const {
  Value found = locals.lookup(global);
  return found ? Distribution::of(found) : Distribution();
}

RankedTensorType BodyPartitioner::localType(Value global, const Distribution &distribution) const {
  auto type = cast<RankedTensorType>(global.getType());
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    shape.push_back(distribution.localSize(dim, size, grid));
  return distribution.encode(RankedTensorType::get(shape, type.getElementType()));
}

FailureOr<Value> BodyPartitioner::resolve(Operation *user, Value global, const Distribution &target) {
  return remade.contains(global) ? materialize(user, global, target)
                                 : resolveLocal(user, locals.lookup(global), target);
}

FailureOr<Value> BodyPartitioner::resolveLocal(Operation *user, Value local, const Distribution &target) {
  std::string reason;
  FailureOr<Value> value = collectives.resolve(user->getLoc(), local, target, reason);
  if (failed(value))
    return user->emitOpError("cannot be partitioned: ") << reason;
  return value;
}

//===----------------------------------------------------------------------===//
// Values that are made again for each distribution: constants, positions
//===----------------------------------------------------------------------===//

bool BodyPartitioner::isRemade(Operation *op, const FactorSignature &signature) const {
  if (op->getNumResults() != 1 || isa<BroadcastOp>(op))
    return isa<BroadcastOp>(op);
  if (signature.lookup && parameterOf(op->getOperand(signature.lookup->table))) {
    const ArgumentState *table = parameterOf(op->getOperand(signature.lookup->table));
    return remade.contains(op->getOperand(signature.lookup->ids)) && (!table->isDecided || table->parallelDim < 0);
  }
  return llvm::all_of(op->getOperands(), [&](Value operand) { return remade.contains(operand); });
}

FailureOr<Value> BodyPartitioner::materialize(Operation *user, Value global, const Distribution &target) {
  Operation *op = global.getDefiningOp();
  auto key =
      std::pair(global.getAsOpaquePointer(),
                const_cast<void *>(target.encode(cast<RankedTensorType>(global.getType())).getAsOpaquePointer()));
  if (Value found = materialized[key])
    return found;
  auto iota = dyn_cast<IotaOp>(op);
  if (iota && !target.axesOf(iota.getAxis()).empty())
    return materialized[key] = materializeIota(iota, target);
  FactorSignature signature;
  cast<PartitionOpInterface>(op).getFactors(signature);
  keepPartsWhole(op, signature);
  Assignment assignment;
  assignment.axes.resize(signature.numFactors);
  for (auto [dim, factors] : llvm::enumerate(signature.results[0])) {
    if (factors.factors.size() > 1 || signature.isWhole(factors.factors[0]))
      continue; // sliced below
    for (Axis axis : target.axesOf(dim))
      assignment.assign(factors.factors[0], axis);
    if (SegmentsAttr layout = target.layoutOf(dim))
      assignment.layouts[{factors.factors[0]}] = factors.unit == 1 ? layout : layout.scaledDown(factors.unit);
  }
  FailureOr<Operation *> built = buildLocal(op, signature, assignment);
  if (failed(built))
    return failure();
  FailureOr<Value> value = resolveLocal(user, (*built)->getResult(0), target);
  if (failed(value))
    return failure();
  return materialized[key] = *value;
}

/// Places in the sequence: the global index of each of the rank's rows.
Value BodyPartitioner::materializeIota(IotaOp op, const Distribution &target) {
  Location loc = op.getLoc();
  unsigned axis = op.getAxis();
  RankedTensorType type = localType(op.getResult(), target);
  Value index = globalIndex(target, axis, type.getDimSize(axis));
  auto indexType = cast<RankedTensorType>(index.getType());
  auto splat = [&](int64_t value) {
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(indexType, builder.getI64IntegerAttr(value)));
  };
  if (op.getStep() != 1)
    index = arith::MulIOp::create(builder, loc, index, splat(op.getStep()));
  if (op.getStart() != 0)
    index = arith::AddIOp::create(builder, loc, index, splat(op.getStart()));
  Type elementType = type.getElementType();
  if (isa<FloatType>(elementType))
    index = arith::SIToFPOp::create(builder, loc, indexType.clone(elementType), index);
  else if (elementType != indexType.getElementType())
    index = arith::TruncIOp::create(builder, loc, indexType.clone(elementType), index);
  // As a dimension among others of size 1, then repeated along these.
  Distribution row;
  for (Axis cut : target.axesOf(axis))
    row[cut] = target[cut];
  SmallVector<int64_t> shape(type.getRank(), 1);
  shape[axis] = type.getDimSize(axis);
  auto rowType = row.encode(RankedTensorType::get(shape, elementType));
  if (rowType.getRank() > 1)
    index = ReshapeOp::create(builder, loc, rowType, index, /*shape=*/AffineMapAttr());
  return rowType == type ? index : BroadcastOp::create(builder, loc, type, index, /*shape=*/AffineMapAttr());
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

void BodyPartitioner::decideParameters(Operation *op, const FactorSignature &signature, const Assignment &assignment) {
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    ArgumentState *parameter = parameterOf(operand);
    if (!parameter || parameter->isDecided)
      continue;
    parameter->isDecided = true;
    Distribution whole = distributionOf(signature.operands[index], assignment);
    for (Axis axis : tensorAxes)
      parameter->distribution[axis] = whole[axis];
    for (unsigned dim = 0; dim < signature.operands[index].size(); ++dim)
      parameter->distribution.setLayout(dim, whole.layoutOf(dim));
    locals.lookup(operand).setType(localType(operand, parameter->distribution));
  }
}

/// Copies an op onto local operands.
FailureOr<Operation *> BodyPartitioner::buildLocal(Operation *op, const FactorSignature &signature,
                                                   const Assignment &assignment) {
  decideParameters(op, signature, assignment);
  SmallVector<Distribution> targets;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    Distribution &target = targets.emplace_back(distributionOf(signature.operands[index], assignment));
    Distribution has = distributionOf(operand);
    for (auto [dim, factors] : llvm::enumerate(signature.operands[index]))
      if (factors.broadcast)
        for (Axis axis : target.axesOf(dim))
          target[axis] = has[axis].isSharded() && has[axis].dim == dim ? has[axis] : AxisState();
  }
  keepPartial(op, signature, assignment, targets);
  IRMapping mapping;
  SmallVector<Value> operands;
  for (auto [operand, target] : llvm::zip(op->getOperands(), targets)) {
    FailureOr<Value> value = resolve(op, operand, target);
    if (failed(value))
      return failure();
    operands.push_back(*value);
  }
  Operation *copy = builder.clone(*op);
  copy->setOperands(operands);
  for (auto [index, result] : llvm::enumerate(copy->getResults())) {
    auto type = cast<RankedTensorType>(result.getType());
    Distribution hint = distributionOf(signature.results[index], assignment);
    if (isa<PadOp>(op))
      if (auto met = parameterMetBy(op->getResult(0)))
        hint.setLayout(type.getRank() - 1, met->first->distribution.layoutOf(met->second));
    SmallVector<int64_t> shape;
    for (auto [dim, factors] : llvm::enumerate(signature.results[index])) {
      int64_t size = hint.localSize(dim, type.getDimSize(dim), grid);
      // A part of a dimension has a size of its own, which `localize` gives it where it is sharded.
      bool isPart = isa<SliceOp, PadOp>(op) &&
                    cast<RankedTensorType>(op->getOperand(0).getType()).getDimSize(dim) != type.getDimSize(dim);
      if (isPart) {
        shape.push_back(type.getDimSize(dim));
        continue;
      }
      for (auto [operand, dims] : llvm::zip(operands, signature.operands))
        for (auto [from, other] : llvm::enumerate(dims))
          if (!other.broadcast && other.factors == factors.factors)
            size = cast<RankedTensorType>(operand.getType()).getDimSize(from) / other.unit * factors.unit;
      shape.push_back(size);
    }
    // A gradient that is still to be reduced over other ranks is not rounded before.
    Type elementType = type.getElementType();
    if (keepsType(op) && !Distribution::of(operands[0]).partialAxes().empty())
      elementType = getElementTypeOrSelf(operands[0].getType());
    const FactorSignature::Pending &pending = signature.pending[index];
    bool lacks = false;
    for (unsigned factor = 0; factor < signature.numFactors; ++factor)
      lacks |= !assignment.axes[factor].empty() && llvm::none_of(signature.results[index], [&](const DimFactors &dim) {
        return llvm::is_contained(dim.factors, factor);
      });
    if (lacks && pending.type && elementType.getIntOrFloatBitWidth() < bitWidth(*pending.type))
      elementType = elementTypeOf(*pending.type, builder.getContext());
    result.setType(hint.encode(RankedTensorType::get(shape, elementType)));
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(copy);
  cast<PartitionOpInterface>(copy).localize(op, *this);

  SmallVector<Distribution> own, hints, results;
  for (Value operand : copy->getOperands())
    own.push_back(Distribution::of(operand));
  for (Value result : copy->getResults())
    hints.push_back(Distribution::of(result));
  std::string reason;
  if (failed(inferDistributions(copy, own, hints, results, reason))) {
    InFlightDiagnostic diagnostic = op->emitOpError("cannot be partitioned: ") << reason;
    for (auto [index, distribution] : llvm::enumerate(own))
      diagnostic.attachNote() << "operand " << index << " is " << distribution.str();
    return failure();
  }
  for (auto [result, distribution] : llvm::zip(copy->getResults(), results))
    result.setType(distribution.encode(cast<RankedTensorType>(result.getType())));
  return copy;
}

/// True where a zero in the padding of an op's operands may not be one in its result.
static bool spoilsPadding(Operation *op, const FactorSignature &signature, RankedTensorType type,
                          llvm::function_ref<bool(Value)> isRemade) {
  bool isPadded = false;
  Distribution result = Distribution::of(type);
  for (unsigned dim = 0; dim < static_cast<unsigned>(type.getRank()); ++dim)
    if (SegmentsAttr layout = result.layoutOf(dim))
      for (const PaddedSegment &segment : layout.getSegments())
        isPadded |= signature.spoilsWithinGroups ? segment.valid != segment.padded
                                                 : segment.validSize() != segment.paddedSize();
  if (!isPadded)
    return false;
  if (!signature.preservesZero)
    return true;
  // A constant is no zero in its padding. What is linear in an operand of zeros, or multiplies by it, is zero all
  // the same; a sum is not.
  auto isZero = [&](unsigned index) { return !isRemade(op->getOperand(index)); };
  if (llvm::any_of(signature.linear, isZero) || llvm::any_of(signature.absorbing, isZero))
    return false;
  return llvm::any_of(op->getOperands(), isRemade);
}

LogicalResult BodyPartitioner::finishResult(Operation *op, const FactorSignature &signature, Value global,
                                            Value value) {
  auto isConstant = [&](Value operand) { return remade.contains(operand); };
  unsigned index = cast<OpResult>(global).getResultNumber();
  if (!llvm::is_contained(signature.unread, index) && isFloatTensor(value.getType()) &&
      spoilsPadding(op, signature, cast<RankedTensorType>(value.getType()), isConstant))
    value = maskPadding(op->getLoc(), value);
  bool isActivation = cast<RankedTensorType>(value.getType()).getRank() >= 3;
  Distribution distribution = Distribution::of(value);
  if (isActivation && (signature.settles || distribution[Axis::Cp].isPartial())) {
    std::string reason;
    FailureOr<Value> reduced =
        collectives.resolve(op->getLoc(), value, settled(value, /*scatterTensor=*/false), reason);
    if (failed(reduced))
      return op->emitOpError("cannot be partitioned: ") << reason;
    value = castTo(builder, op->getLoc(), *reduced, getElementTypeOrSelf(global.getType()));
  }
  locals[global] = value;
  return success();
}

Distribution BodyPartitioner::settled(Value value, bool scatterTensor) const {
  auto type = cast<RankedTensorType>(value.getType());
  Distribution target = Distribution::of(type);
  Axes scattered;
  if (type.getRank() >= 3 && target[Axis::Cp].isPartial() && target.axesOf(1).empty() &&
      type.getDimSize(1) % (2 * grid.size(Axis::Cp)) == 0)
    scattered.push_back(Axis::Cp);
  bool isPartial = llvm::any_of(tensorAxes, [&](Axis axis) { return target[axis].isPartial(); });
  int64_t rows = type.getRank() >= 3 ? type.getDimSize(1) / grid.product(scattered) : 1;
  bool isFree = llvm::all_of(tensorAxes, [&](Axis axis) { return !target[axis].isSharded(); });
  if (scatterTensor && isPartial && isFree && type.getRank() >= 3 && rows % grid.product(tensorAxes) == 0)
    llvm::append_range(scattered, tensorAxes);
  for (Axis axis : kAxes)
    if (target[axis].isPartial())
      target[axis] = AxisState();
  for (Axis axis : scattered)
    target[axis] = AxisState::sharded(1, axis == Axis::Cp);
  return target;
}

LogicalResult BodyPartitioner::partitionWithoutRule(Operation *op) {
  SmallVector<Value> operands;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    Distribution has = distributionOf(operand);
    for (Axis axis : {Axis::Cp, Axis::Dp})
      if (has[axis] != AxisState())
        return op->emitOpError("has no partition rule, so that operand ")
               << index << " must be whole over " << name(axis) << ", not " << has.str(axis) << "; accepted with "
               << name(axis) << " 1";
    FailureOr<Value> value = resolve(op, operand, Distribution());
    if (failed(value))
      return failure();
    operands.push_back(*value);
  }
  Operation *copy = builder.clone(*op);
  copy->setOperands(operands);
  for (auto [global, own] : llvm::zip(op->getResults(), copy->getResults()))
    locals[global] = own;
  return success();
}

LogicalResult BodyPartitioner::partitionReturn(func::ReturnOp op) {
  SmallVector<Value> results;
  for (Value operand : op.getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (remade.contains(operand)) {
      FailureOr<Value> value = materialize(op, operand, Distribution());
      if (failed(value))
        return failure();
      results.push_back(*value);
      continue;
    }
    Value value = locals.lookup(operand);
    auto type = cast<RankedTensorType>(value.getType());
    Distribution target = settled(value, /*scatterTensor=*/true);
    // Accumulators are reduced once a step, and so is the loss over CP and DP.
    if (isa_and_nonnull<AccumulateOp>(producer))
      target = Distribution::of(type);
    if (type.getRank() == 0)
      for (Axis axis : {Axis::Cp, Axis::Dp})
        target[axis] = Distribution::of(type)[axis];
    FailureOr<Value> resolved = resolve(op, operand, target);
    if (failed(resolved))
      return failure();
    results.push_back(*resolved);
  }
  func::ReturnOp::create(builder, op.getLoc(), results);
  return success();
}

LogicalResult BodyPartitioner::partition(Operation *op) {
  if (auto accumulate = dyn_cast<AccumulateOp>(op); accumulate && isa<BlockArgument>(accumulate.getAccumulator()))
    return partitionAccumulate(accumulate);
  if (auto terminator = dyn_cast<func::ReturnOp>(op))
    return partitionReturn(terminator);
  auto rule = dyn_cast<PartitionOpInterface>(op);
  if (!rule)
    return partitionWithoutRule(op);
  FactorSignature signature;
  rule.getFactors(signature);
  bool isPending = op->getNumOperands() > 0 && isPendingOverDp(op->getOperand(0));
  if (!(isPending && isa<BroadcastOp>(op)) && isRemade(op, signature)) {
    remade.insert(op->getResult(0));
    return success();
  }
  // What is pending is not rounded, and not widened twice.
  if (isPending && isa<arith::TruncFOp, arith::ExtFOp>(op)) {
    locals[op->getResult(0)] = locals.lookup(op->getOperand(0));
    return success();
  }
  if (std::optional<unsigned> pending = pendingFactor(op))
    return partitionScaling(op, *pending);
  if (!dropsBatch(op))
    return partitionByRule(op, signature);
  Value batch = locals.lookup(op->getOperand(0));
  locals[op->getOperand(0)] = collectives.sumOverDp(op->getLoc(), batch);
  LogicalResult result = partitionByRule(op, signature);
  locals[op->getOperand(0)] = batch;
  return result;
}

LogicalResult BodyPartitioner::partitionByRule(Operation *op, FactorSignature &signature) {
  Assignment assignment = chooseAssignment(op, signature);
  FailureOr<Operation *> built = buildLocal(op, signature, assignment);
  if (failed(built))
    return failure();
  for (auto [global, own] : llvm::zip(op->getResults(), (*built)->getResults()))
    if (failed(finishResult(op, signature, global, own)))
      return failure();
  return success();
}

FailureOr<func::FuncOp> BodyPartitioner::run() {
  builder.setInsertionPoint(body);
  local = func::FuncOp::create(builder, body.getLoc(), (body.getName() + "$local").str(), body.getFunctionType());
  local->setDiscardableAttrs(body->getDiscardableAttrDictionary());
  local.setPrivate();
  Block *block = local.addEntryBlock();
  for (auto [global, own, state] : llvm::zip(body.getArguments(), block->getArguments(), arguments)) {
    if (state.isDecided)
      own.setType(localType(global, state.distribution));
    locals[global] = own;
  }
  builder.setInsertionPointToEnd(block);
  for (Operation &op : body.front())
    if (failed(partition(&op))) {
      local.erase();
      return failure();
    }
  for (ArgumentState &state : arguments)
    state.isDecided = true;
  eraseDeadOperations(*block);
  Operation *terminator = block->getTerminator();
  local.setFunctionType(builder.getFunctionType(block->getArgumentTypes(), terminator->getOperandTypes()));
  if (ArrayAttr attrs = body.getAllArgAttrs())
    local.setAllArgAttrs(attrs);
  if (ArrayAttr attrs = body.getAllResultAttrs())
    local.setAllResultAttrs(attrs);
  return local;
}

} // namespace drover::tfm
