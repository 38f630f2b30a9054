//===- PartitionRulesRings.cpp - collectives and their rings ----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "CollectiveRules.h"
#include "OpUtils.h"

using namespace mlir;
using namespace drover::tfm;

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

std::string drover::tfm::axisList(ArrayRef<Axis> axes) {
  std::string text;
  for (Axis axis : axes)
    text += (text.empty() ? "" : ", ") + name(axis).str();
  return text.empty() ? "no axis" : text;
}

LogicalResult drover::tfm::gatherOver(ArrayRef<Axis> axes, unsigned dim, Distribution &result, std::string &reason) {
  Distribution before = result;
  if (!result.removeSuffix(dim, axes)) {
    reason =
        ("gathers " + axisList(axes) + " on dimension " + Twine(dim) + ", which is on " + axisList(before.axesOf(dim)))
            .str();
    return failure();
  }
  if (SegmentsAttr layout = result.layoutOf(dim); layout && layout.getSegments().size() > 1) {
    reason =
        ("gathers dimension " + Twine(dim) + ", whose segments " + str(layout.getSegments()) + " would be interleaved")
            .str();
    return failure();
  }
  return success();
}

LogicalResult drover::tfm::reduceOver(Operation *op, ArrayRef<Axis> axes, Reduction reduction, Type from, Type to,
                                      Distribution &result, std::string &reason) {
  for (Axis axis : axes) {
    AxisState state = result[axis];
    if (!state.isPartial() || state.reduction != reduction) {
      reason =
          ("reduces by " + name(reduction) + " over " + name(axis) + ", on which the operand is " + result.str(axis))
              .str();
      return failure();
    }
    if (reductionTypeOf(from) != state.type || to != from) {
      reason = ("has to reduce over " + name(axis) + " in " + name(state.type)).str();
      return failure();
    }
    result[axis] = AxisState();
  }
  if (op->getAttrOfType<IntegerAttr>(TfmDialect::kReductionAttr))
    return success();
  reason = ("expects '" + Twine(TfmDialect::kReductionAttr) + "', the id of the reduction").str();
  return failure();
}

LogicalResult drover::tfm::scatterOver(ArrayRef<Axis> axes, unsigned dim, bool twoChunk, Distribution &result,
                                       std::string &reason) {
  Distribution before = result;
  if (result.append(dim, axes, twoChunk) && !(result.layoutOf(dim) && result.layoutOf(dim).getSegments().size() > 1))
    return success();
  reason = ("scatters dimension " + Twine(dim) + " over " + axisList(axes) + " of an operand on " + before.str()).str();
  return failure();
}

//===----------------------------------------------------------------------===//
// Rings: a collective and linears, one after the other
//===----------------------------------------------------------------------===//

static SmallVector<Axis> ringAxes(ArrayAttr names) {
  SmallVector<Axis> axes;
  for (StringAttr text : names.getAsRange<StringAttr>())
    axes.push_back(*parseAxis(text));
  return axes;
}

void GatherLinearOp::getFactors(FactorSignature &signature) {
  SmallVector<unsigned> rows = signature.newFactors(shapeOf(getInput()).size() - 1), whole(rows);
  unsigned k = signature.newFactor();
  whole.push_back(k);
  signature.operands = {FactorSignature::dims(whole)};
  for (bool inOut : getInOut()) {
    unsigned n = signature.newFactor();
    SmallVector<unsigned> dims(rows);
    dims.push_back(n);
    signature.operands.push_back(inOut ? FactorSignature::dims({k, n}) : FactorSignature::dims({n, k}));
    signature.results.push_back(FactorSignature::dims(dims));
  }
  if (getGathered())
    signature.results.push_back(FactorSignature::dims(whole));
  signature.pending.assign(getNumResults(),
                           {Reduction::Sum, reductionTypeOf(getElementTypeOrSelf(getInput().getType()))});
}

LogicalResult GatherLinearOp::inferDistributions(ArrayRef<Distribution> operands, ArrayRef<Distribution> hints,
                                                 SmallVectorImpl<Distribution> &results, std::string &reason) {
  Distribution gathered = operands[0];
  if (failed(gatherOver(ringAxes(getAxes()), getDim(), gathered, reason)))
    return failure();
  for (auto [index, inOut] : llvm::enumerate(getInOut())) {
    SmallVector<Distribution, 1> result;
    if (failed(inferByFactors(getResults().slice(index, 1).getTypes(), linearFactors(getInput(), inOut),
                              {gathered, operands[index + 1]}, hints[index], result, reason)))
      return failure();
    results.push_back(result.front());
  }
  if (getGathered())
    results.push_back(gathered);
  return success();
}

void GatherLinearOp::localize(Operation *, LocalValues &) {}

void LinearScatterOp::getFactors(FactorSignature &signature) {
  SmallVector<unsigned> rows = signature.newFactors(shapeOf(getResult()).size() - 1), result(rows);
  unsigned n = signature.newFactor();
  result.push_back(n);
  SmallVector<FactorSignature::Value> weights;
  for (bool inOut : getInOut()) {
    unsigned k = signature.newFactor();
    SmallVector<unsigned> dims(rows);
    dims.push_back(k);
    signature.operands.push_back(FactorSignature::dims(dims));
    weights.push_back(inOut ? FactorSignature::dims({k, n}) : FactorSignature::dims({n, k}));
  }
  signature.operands.append(weights.begin(), weights.end());
  signature.results = {FactorSignature::dims(result)};
  signature.pending = {{Reduction::Sum, reductionTypeOf(getElementTypeOrSelf(getResult().getType()))}};
}

LogicalResult LinearScatterOp::inferDistributions(ArrayRef<Distribution> operands, ArrayRef<Distribution> hints,
                                                  SmallVectorImpl<Distribution> &results, std::string &reason) {
  size_t count = getInputs().size();
  Distribution sum;
  for (size_t i = 0; i < count; ++i) {
    SmallVector<Distribution, 1> result;
    if (failed(inferByFactors(getOperation()->getResultTypes(), linearFactors(getInputs()[i], getInOut()[i]),
                              {operands[i], operands[count + i]}, hints, result, reason)))
      return failure();
    if (i > 0 && result.front() != sum) {
      reason = "adds " + sum.str() + " and " + result.front().str();
      return failure();
    }
    sum = result.front();
  }
  SmallVector<Axis> axes = ringAxes(getAxes());
  Type type = getElementTypeOrSelf(getResult().getType());
  if (failed(reduceOver(*this, axes, Reduction::Sum, type, type, sum, reason)) ||
      failed(scatterOver(axes, getDim(), /*twoChunk=*/false, sum, reason)))
    return failure();
  results.push_back(sum);
  return success();
}

void LinearScatterOp::localize(Operation *, LocalValues &) {}
