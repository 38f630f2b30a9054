//===- Assignment.cpp - which axes shard which factor of an op --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "BodyPartitioner.h"
#include "Heads.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace drover::tfm {

static std::vector<unsigned> keyOf(const DimFactors &factors) {
  return {factors.factors.begin(), factors.factors.end()};
}

static SmallVector<Axis, 4> intersection(ArrayRef<Axis> axes, ArrayRef<Axis> group) {
  SmallVector<Axis, 4> result;
  for (Axis axis : axes)
    if (llvm::is_contained(group, axis))
      result.push_back(axis);
  return result;
}

bool BodyPartitioner::Assignment::uses(Axis axis) const {
  return llvm::any_of(axes, [&](const Axes &own) { return llvm::is_contained(own, axis); });
}

bool BodyPartitioner::Assignment::usesAny(ArrayRef<Axis> group) const {
  return llvm::any_of(group, [&](Axis axis) { return uses(axis); });
}

void BodyPartitioner::Assignment::assign(unsigned factor, Axis axis) {
  if (uses(axis))
    return;
  axes[factor].push_back(axis);
  llvm::sort(axes[factor], [](Axis a, Axis b) { return llvm::find(kNestingOrder, a) < llvm::find(kNestingOrder, b); });
}

//===----------------------------------------------------------------------===//
// What parameters say
//===----------------------------------------------------------------------===//

const ArgumentState *BodyPartitioner::accumulatedParameter(Value result) const {
  for (OpOperand &use : result.getUses()) {
    if (auto accumulate = dyn_cast<AccumulateOp>(use.getOwner()); accumulate && use.getOperandNumber() == 1)
      if (auto argument = dyn_cast<BlockArgument>(accumulate.getAccumulator()))
        return arguments[argument.getArgNumber()].parameter;
    // Of several uses of a parameter in one body.
    if (isa<arith::AddFOp>(use.getOwner()))
      if (const ArgumentState *parameter = accumulatedParameter(use.getOwner()->getResult(0)))
        return parameter;
  }
  return nullptr;
}

/// A gradient of a parameter is cut as the parameter is.
bool BodyPartitioner::assignDemanded(Operation *op, const FactorSignature &signature, Assignment &assignment) {
  bool isDecided = false;
  for (OpResult result : op->getResults()) {
    const ArgumentState *parameter = accumulatedParameter(result);
    if (!parameter || !parameter->isDecided)
      continue;
    isDecided |= parameter->parallelDim >= 0;
    for (auto [dim, factors] : llvm::enumerate(signature.results[result.getResultNumber()])) {
      for (Axis axis : intersection(parameter->distribution.axesOf(dim), tensorAxes)) {
        assignment.assign(factors.factors.back(), axis);
        isDecided = true;
      }
      if (SegmentsAttr layout = parameter->distribution.layoutOf(dim))
        assignment.layouts.try_emplace(keyOf(factors), layout);
    }
  }
  return isDecided;
}

/// A product with a parameter: column-parallel where its input is whole or cut by rows, row-parallel where the input is
/// cut along the contraction; afterwards as its first use decided.
bool BodyPartitioner::assignProduct(Operation *op, const FactorSignature &signature, Assignment &assignment) {
  if (!signature.product)
    return false;
  auto [weight, output, contraction] = *signature.product;
  ArgumentState *parameter = parameterOf(op->getOperand(weight));
  if (!parameter)
    return false;
  const FactorSignature::Value &weightDims = signature.operands[weight];
  auto weightDimOf = [&, &weightDims = weightDims](unsigned factor) -> unsigned {
    return weightDims[0].factors.front() == factor ? 0 : 1;
  };
  if (!parameter->isDecided) {
    Axes rows = intersection(
        distributionOf(op->getOperand(1 - weight)).axesOf(signature.operands[1 - weight].size() - 1), tensorAxes);
    if (!rows.empty()) {
      parameter->parallelDim = weightDimOf(contraction);
      for (Axis axis : rows)
        assignment.assign(contraction, axis);
      return true;
    }
    parameter->parallelDim = weightDimOf(output);
    OutputLayout layout = layoutOfOutputs(op->getResult(0), grid);
    for (Axis axis : layout.axes)
      assignment.assign(output, axis);
    assignment.layouts[{output}] = layout.segments;
    return true;
  }
  if (parameter->parallelDim < 0)
    return false;
  unsigned factor = weightDims[parameter->parallelDim].factors.front();
  Axes axes = intersection(parameter->distribution.axesOf(parameter->parallelDim), tensorAxes);
  for (Axis axis : axes)
    assignment.assign(factor, axis);
  SegmentsAttr layout = parameter->distribution.layoutOf(parameter->parallelDim);
  assignment.layouts[{factor}] = layout;
  if (factor != contraction || axes.size() == tensorAxes.size() || (layout && layout.getSegments().size() > 1))
    return true;
  // Kv heads that replicas share: each contracts its slice of a head, so that the result is partial over all of TP, as
  // the queries' is (notes on kv heads, docs/distributions.md).
  Axes rest;
  for (Axis axis : tensorAxes)
    if (!llvm::is_contained(axes, axis))
      rest.push_back(axis);
  auto type = cast<RankedTensorType>(op->getOperand(weight).getType());
  int64_t size =
      parameter->distribution.localSize(parameter->parallelDim, type.getDimSize(parameter->parallelDim), grid);
  if (size % grid.product(rest) == 0)
    for (Axis axis : rest)
      assignment.assign(factor, axis);
  return true;
}

bool BodyPartitioner::countsPlaces(Value ids) const {
  if (remade.contains(ids))
    return true;
  auto argument = dyn_cast<BlockArgument>(ids);
  return argument && arguments[argument.getArgNumber()].isPosition;
}

/// Tables of tokens are cut by rows; tables of places are whole on every rank, whose places are cut.
bool BodyPartitioner::assignLookup(Operation *op, const FactorSignature &signature, Assignment &assignment) {
  if (!signature.lookup)
    return false;
  auto [table, ids, rows] = *signature.lookup;
  ArgumentState *parameter = parameterOf(op->getOperand(table));
  if (!parameter)
    return false;
  if (!parameter->isDecided) {
    if (countsPlaces(op->getOperand(ids)))
      return false;
    parameter->parallelDim = 0;
    int64_t size = cast<RankedTensorType>(op->getOperand(table).getType()).getDimSize(0);
    int64_t padded = llvm::alignTo(size, grid.product(tensorAxes));
    for (Axis axis : tensorAxes)
      assignment.assign(rows, axis);
    if (padded != size)
      assignment.layouts[{rows}] = SegmentsAttr::get(op->getContext(), PaddedSegment{size, 1, 1, padded});
    return true;
  }
  if (parameter->parallelDim < 0)
    return false;
  for (Axis axis : intersection(parameter->distribution.axesOf(0), tensorAxes))
    assignment.assign(rows, axis);
  assignment.layouts[{rows}] = parameter->distribution.layoutOf(0);
  return true;
}

/// Follows a gradient of several outputs side by side to the product that contracts it.
std::optional<std::pair<const ArgumentState *, unsigned>> BodyPartitioner::parameterMetBy(Value value) const {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    auto rule = dyn_cast<PartitionOpInterface>(user);
    if (!rule)
      continue;
    FactorSignature signature;
    rule.getFactors(signature);
    if (signature.product && use.getOperandNumber() != signature.product->weight) {
      const ArgumentState *parameter = parameterOf(user->getOperand(signature.product->weight));
      if (!parameter || !parameter->isDecided)
        continue;
      for (auto [dim, factors] : llvm::enumerate(signature.operands[signature.product->weight]))
        if (factors.factors.front() == signature.product->contraction)
          return std::pair(parameter, static_cast<unsigned>(dim));
    }
    for (OpResult result : user->getResults()) {
      if (const ArgumentState *parameter = accumulatedParameter(result)) {
        unsigned factor = signature.operands[use.getOperandNumber()].back().factors.front();
        for (auto [dim, factors] : llvm::enumerate(signature.results[result.getResultNumber()]))
          if (factors.factors.front() == factor)
            return std::pair(parameter, static_cast<unsigned>(dim));
      }
    }
    if (isa<arith::AddFOp, arith::TruncFOp, arith::ExtFOp>(user))
      if (auto met = parameterMetBy(user->getResult(0)))
        return met;
  }
  return std::nullopt;
}

bool BodyPartitioner::assignPad(Operation *op, const FactorSignature &signature, Assignment &assignment) {
  auto pad = dyn_cast<PadOp>(op);
  if (!pad)
    return false;
  auto met = parameterMetBy(pad.getResult());
  if (!met || !met->first->distribution.layoutOf(met->second))
    return false;
  unsigned last = pad.getType().getRank() - 1;
  for (Axis axis : intersection(met->first->distribution.axesOf(met->second), tensorAxes))
    assignment.assign(signature.results[0][last].factors.front(), axis);
  return true;
}

//===----------------------------------------------------------------------===//
// What operands say
//===----------------------------------------------------------------------===//

/// The first operand that is cut over an axis of `group` decides for all of it.
bool BodyPartitioner::assignAnchors(Operation *op, const FactorSignature &signature, ArrayRef<Axis> group,
                                    Assignment &assignment) {
  SmallVector<unsigned> order(ArrayRef<unsigned>(signature.anchors));
  if (order.empty())
    llvm::append_range(order, llvm::seq<unsigned>(0, op->getNumOperands()));
  bool isDecided = false;
  for (unsigned index : order) {
    Value operand = op->getOperand(index);
    if (remade.contains(operand) || (parameterOf(operand) && !parameterOf(operand)->isDecided))
      continue;
    Distribution distribution = distributionOf(operand);
    bool isFirst = !isDecided;
    for (auto [dim, factors] : llvm::enumerate(signature.operands[index])) {
      bool isNested = factors.factors.size() > 1;
      // Later operands may only say how the inner factor of a nested dimension is cut.
      if (!isFirst && !isNested)
        continue;
      for (Axis axis : intersection(distribution.axesOf(dim), group)) {
        bool isInner = !isNested || axis == Axis::Replica;
        unsigned factor = isInner ? factors.factors.back() : factors.factors.front();
        if (signature.isWhole(factor) || assignment.uses(axis))
          continue;
        assignment.assign(factor, axis);
        isDecided = true;
      }
    }
  }
  return isDecided;
}

/// Where kv heads are shared by replicas, these share the queries of a group even if the queries are on all of them.
void BodyPartitioner::assignInner(const FactorSignature &signature, Operation *op, Assignment &assignment) {
  if (!grid.isSplit() || assignment.uses(Axis::Replica) || !llvm::is_contained(tensorAxes, Axis::Replica))
    return;
  for (auto [index, dims] : llvm::enumerate(signature.operands))
    for (auto [dim, factors] : llvm::enumerate(dims)) {
      if (factors.factors.size() < 2 || factors.broadcast || signature.isWhole(factors.factors.back()))
        continue;
      Value local = locals.lookup(op->getOperand(index));
      if (!local || Distribution::of(local)[Axis::Kv].kind == StateKind::Partial)
        continue;
      int64_t size = cast<RankedTensorType>(local.getType()).getDimSize(dim);
      bool isCutByKv = grid.size(Axis::Kv) == 1 || !Distribution::of(local).axesOf(dim).empty();
      if (isCutByKv && size % (factors.unit * grid.size(Axis::Replica)) == 0)
        assignment.assign(factors.factors.back(), Axis::Replica);
      return;
    }
}

/// A sum that somebody has to take, and nothing says where it goes: rows, as the residual stream.
void BodyPartitioner::assignSequence(Operation *op, const FactorSignature &signature, Assignment &assignment) {
  if (tensorAxes.empty() || assignment.usesAny(tensorAxes))
    return;
  SmallVector<Distribution> targets(op->getNumOperands());
  keepPartial(op, signature, assignment, targets);
  std::optional<unsigned> pending;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    if (remade.contains(operand))
      continue;
    Distribution distribution = distributionOf(operand);
    for (Axis axis : tensorAxes) {
      if (targets[index][axis].isPartial())
        return;
      if (distribution[axis].isPartial() && !pending)
        pending = index;
    }
  }
  if (!pending || signature.operands[*pending].size() < 3)
    return;
  const DimFactors &rows = signature.operands[*pending][1];
  int64_t size = cast<RankedTensorType>(locals.lookup(op->getOperand(*pending)).getType()).getDimSize(1);
  if (rows.factors.size() == 1 && !signature.isWhole(rows.factors[0]) && size % grid.product(tensorAxes) == 0)
    for (Axis axis : tensorAxes)
      assignment.assign(rows.factors[0], axis);
}

void BodyPartitioner::collectLayouts(Operation *op, const FactorSignature &signature, bool keepsLayout,
                                     Assignment &assignment) {
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    if (remade.contains(operand) || (parameterOf(operand) && !parameterOf(operand)->isDecided))
      continue;
    Distribution distribution = distributionOf(operand);
    for (auto [dim, factors] : llvm::enumerate(signature.operands[index])) {
      SegmentsAttr layout = distribution.layoutOf(dim);
      bool isCut = llvm::any_of(factors.factors, [&](unsigned factor) { return !assignment.axes[factor].empty(); });
      // What is gathered loses its padding; what is whole and padded already keeps it.
      if (!layout || !(isCut || distribution.axesOf(dim).empty() || keepsLayout))
        continue;
      assignment.layouts.try_emplace(keyOf(factors), factors.unit == 1 ? layout : layout.scaledDown(factors.unit));
    }
  }
}

/// A part of a dimension can be taken where it is cut segment by segment.
void BodyPartitioner::keepPartsWhole(Operation *op, FactorSignature &signature) const {
  if (auto slice = dyn_cast<SliceOp>(op))
    for (auto [dim, factors] : llvm::enumerate(signature.operands[0]))
      if (slice.getInput().getType().getDimSize(dim) != slice.getType().getDimSize(dim) &&
          !distributionOf(slice.getInput()).layoutOf(dim))
        signature.whole.emplace_back(factors.factors.front(), "a dimension that is cut in one segment");
  if (auto pad = dyn_cast<PadOp>(op))
    for (auto [dim, factors] : llvm::enumerate(signature.operands[0]))
      if (pad.getInput().getType().getDimSize(dim) != pad.getType().getDimSize(dim))
        signature.whole.emplace_back(factors.factors.front(), "a dimension that is cut in one segment");
}

BodyPartitioner::Assignment BodyPartitioner::chooseAssignment(Operation *op, FactorSignature &signature) {
  Assignment assignment;
  assignment.axes.resize(signature.numFactors);
  keepPartsWhole(op, signature);
  bool keepsLayout = false;
  assignAnchors(op, signature, Axis::Dp, assignment);
  assignAnchors(op, signature, Axis::Cp, assignment);
  if (!tensorAxes.empty()) {
    keepsLayout = assignPad(op, signature, assignment);
    bool isDecided = keepsLayout || assignDemanded(op, signature, assignment) ||
                     assignProduct(op, signature, assignment) || assignLookup(op, signature, assignment);
    if (!isDecided)
      assignAnchors(op, signature, tensorAxes, assignment);
    assignInner(signature, op, assignment);
    assignSequence(op, signature, assignment);
  }
  collectLayouts(op, signature, keepsLayout, assignment);
  return assignment;
}

//===----------------------------------------------------------------------===//
// From factors to distributions
//===----------------------------------------------------------------------===//

Distribution BodyPartitioner::distributionOf(const FactorSignature::Value &dims, const Assignment &assignment) const {
  Distribution result;
  for (auto [dim, factors] : llvm::enumerate(dims)) {
    for (unsigned factor : factors.factors)
      for (Axis axis : assignment.axes[factor])
        result[axis] = AxisState::sharded(dim, axis == Axis::Cp);
    auto layout = assignment.layouts.find(keyOf(factors));
    if (layout != assignment.layouts.end() && layout->second)
      result.setLayout(dim, factors.unit == 1 ? layout->second : layout->second.scaledUp(factors.unit));
  }
  return result;
}

void BodyPartitioner::keepPartial(Operation *op, const FactorSignature &signature, const Assignment &assignment,
                                  MutableArrayRef<Distribution> targets) {
  auto stateOf = [&](unsigned index, Axis axis) {
    Value operand = op->getOperand(index);
    return remade.contains(operand) ? AxisState() : distributionOf(operand)[axis];
  };
  auto mayPass = [&](const AxisState &state) {
    auto isWide = [&](Type type) { return getElementTypeOrSelf(type).getIntOrFloatBitWidth() >= bitWidth(state.type); };
    if (!state.isPartial() || state.reduction != Reduction::Sum)
      return false;
    return llvm::all_of(op->getResultTypes(), isWide) ||
           (keepsType(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
              return !remade.contains(operand) && isWide(locals.lookup(operand).getType());
            }));
  };
  for (Axis axis : kAxes) {
    if (assignment.uses(axis) || op->getNumOperands() == 0)
      continue;
    if (signature.isAdditive) {
      AxisState state = stateOf(0, axis);
      bool isCommon = mayPass(state);
      for (unsigned index = 1; index < op->getNumOperands(); ++index)
        isCommon &= stateOf(index, axis) == state;
      if (isCommon)
        for (Distribution &target : targets)
          target[axis] = state;
      continue;
    }
    for (unsigned index : signature.linear)
      if (AxisState state = stateOf(index, axis); mayPass(state)) {
        targets[index][axis] = state;
        break;
      }
  }
}

} // namespace drover::tfm
