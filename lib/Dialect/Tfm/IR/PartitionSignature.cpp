//===- PartitionSignature.cpp - the rule of distributions -------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "CollectiveRules.h"
#include "drover/Dialect/Tfm/IR/Partition.h"
#include <map>

using namespace mlir;
using namespace drover::tfm;

SmallVector<unsigned> FactorSignature::newFactors(unsigned count) {
  SmallVector<unsigned> result;
  for (unsigned i = 0; i < count; ++i)
    result.push_back(newFactor());
  return result;
}

bool FactorSignature::isWhole(unsigned factor) const {
  return llvm::any_of(whole, [&](const auto &entry) { return entry.first == factor; });
}

FactorSignature::Value FactorSignature::dims(ArrayRef<unsigned> factors) {
  Value value;
  for (unsigned factor : factors)
    value.emplace_back(factor);
  return value;
}

void drover::tfm::elementwiseFactors(Operation *op, FactorSignature &signature) {
  unsigned rank = 0;
  auto rankOf = [](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type ? static_cast<unsigned>(type.getRank()) : 0u;
  };
  for (Value value : llvm::concat<Value>(op->getOperands(), op->getResults()))
    rank = std::max(rank, rankOf(value));
  SmallVector<unsigned> factors = signature.newFactors(rank);
  for (Value operand : op->getOperands())
    signature.operands.push_back(FactorSignature::dims(ArrayRef(factors).take_front(rankOf(operand))));
  for (Value result : op->getResults())
    signature.results.push_back(FactorSignature::dims(ArrayRef(factors).take_front(rankOf(result))));
  signature.pending.resize(op->getNumResults());
}

namespace {
using Axes = SmallVector<Axis, 4>;

/// One application of the rule.
class FactorRule {
public:
  FactorRule(TypeRange resultTypes, const FactorSignature &signature, ArrayRef<Distribution> operands,
             ArrayRef<Distribution> hints, std::string &reason)
      : resultTypes(resultTypes), signature(signature), operands(operands), hints(hints), reason(reason),
        axesOfFactor(signature.numFactors) {}

  LogicalResult run(SmallVectorImpl<Distribution> &results) {
    if (failed(bindOperands(/*nested=*/false)) || failed(bindOperands(/*nested=*/true)) || failed(bindCreated()) ||
        failed(checkFactors()) || failed(checkOffset()))
      return failure();
    for (unsigned i = 0; i < resultTypes.size(); ++i)
      results.push_back(Distribution());
    for (unsigned i = 0; i < resultTypes.size(); ++i)
      if (failed(distribute(i, results[i])))
        return failure();
    for (Axis axis : kAxes)
      if (failed(passPartial(axis, results)))
        return failure();
    return success();
  }

private:
  LogicalResult fail(const Twine &why) {
    reason = why.str();
    return failure();
  }

  static std::vector<unsigned> key(const DimFactors &factors) {
    return {factors.factors.begin(), factors.factors.end()};
  }

  /// Dimensions of operands say how their factors are sharded; nested factors after the others, whose axes they share.
  LogicalResult bindOperands(bool nested) {
    for (auto [index, dims] : llvm::enumerate(signature.operands))
      for (auto [dim, factors] : llvm::enumerate(dims))
        if ((factors.factors.size() > 1) == nested &&
            failed(bind(factors, operands[index], dim, "operand " + Twine(index))))
          return failure();
    return success();
  }

  LogicalResult bind(const DimFactors &factors, const Distribution &distribution, unsigned dim, const Twine &what) {
    Axes axes = distribution.axesOf(dim);
    if (factors.broadcast && axes.empty())
      return success();
    ArrayRef<Axis> rest = axes;
    for (unsigned factor : ArrayRef(factors.factors).drop_back()) {
      if (!axesOfFactor[factor])
        axesOfFactor[factor] = Axes();
      ArrayRef<Axis> outer = *axesOfFactor[factor];
      if (rest.take_front(outer.size()) != outer)
        return fail(what + " has dimension " + Twine(dim) + " on " + axisList(axes) + ", but its outer part is on " +
                    axisList(outer));
      rest = rest.drop_front(outer.size());
    }
    std::optional<Axes> &bound = axesOfFactor[factors.factors.back()];
    if (bound && ArrayRef<Axis>(*bound) != rest)
      return fail(what + " has dimension " + Twine(dim) + " on " + axisList(rest) + ", but another operand on " +
                  axisList(*bound));
    bound = Axes(rest);
    for (Axis axis : axes) {
      if (twoChunk.count(axis) && twoChunk[axis] != distribution[axis].twoChunk)
        return fail("operands hold " + name(axis) + " in different patterns");
      twoChunk[axis] = distribution[axis].twoChunk;
    }
    return bindLayout(factors, distribution.layoutOf(dim), dim, what);
  }

  LogicalResult bindLayout(const DimFactors &factors, SegmentsAttr layout, unsigned dim, const Twine &what) {
    SegmentsAttr scaled = layout && factors.unit != 1 ? layout.scaledDown(factors.unit) : layout;
    if (layout && !scaled)
      return fail(what + " has dimension " + Twine(dim) + " in segments " + drover::tfm::str(layout.getSegments()) +
                  ", which parts of " + Twine(factors.unit) + " do not divide");
    auto [entry, isNew] = layouts.try_emplace(key(factors), scaled);
    if (!isNew && entry->second != scaled)
      return fail(what + " has dimension " + Twine(dim) + " in segments " +
                  (scaled ? drover::tfm::str(scaled.getSegments()) : "[]") + ", but another operand in " +
                  (entry->second ? drover::tfm::str(entry->second.getSegments()) : "[]"));
    return success();
  }

  /// Factors that only results have are held as the results say.
  LogicalResult bindCreated() {
    for (auto [index, dims] : llvm::enumerate(signature.results))
      for (auto [dim, factors] : llvm::enumerate(dims))
        if (factors.factors.size() == 1 && !axesOfFactor[factors.factors[0]] &&
            failed(bind(factors, hints[index], dim, "result " + Twine(index))))
          return failure();
    return success();
  }

  LogicalResult checkFactors() {
    for (unsigned factor = 0; factor < signature.numFactors; ++factor) {
      if (!axesOfFactor[factor])
        axesOfFactor[factor] = Axes();
      for (Axis axis : *axesOfFactor[factor]) {
        if (factorOf.count(axis))
          return fail(name(axis) + " shards two independent dimensions");
        factorOf[axis] = factor;
      }
    }
    for (auto [factor, why] : signature.whole) {
      if (!axesOfFactor[factor]->empty())
        return fail(why + " must be whole, but is sharded over " + axisList(*axesOfFactor[factor]));
      for (const auto &[factors, layout] : layouts)
        if (layout && layout.isPadded() && llvm::is_contained(factors, factor))
          return fail(why + " must be whole, but is padded: " + drover::tfm::str(layout.getSegments()));
    }
    for (const FactorSignature::Requirement &requirement : signature.requirements)
      if (!requirement.isMet && !axesOfFactor[requirement.factor]->empty())
        return fail("rows sharded over " + axisList(*axesOfFactor[requirement.factor]) + " need the operand " +
                    requirement.operand);
    return success();
  }

  /// Only an offset may vary: over exactly the axes that shard what it counts.
  LogicalResult checkOffset() {
    for (auto [index, operand] : llvm::enumerate(operands))
      for (Axis axis : kAxes) {
        bool varies = operand[axis].kind == StateKind::Varying;
        bool isOffset = signature.offset && signature.offset->operand == static_cast<int>(index);
        bool wanted = isOffset && factorOf.count(axis) && factorOf[axis] == signature.offset->factor;
        if (varies && !wanted)
          return fail("operand " + Twine(index) + " varies over " + name(axis) +
                      (isOffset ? ", which does not shard the rows it counts" : ", which only an offset may"));
        if (wanted && !varies)
          return fail("the offset has to vary over " + name(axis));
      }
    if (signature.offset && signature.offset->operand < 0 && !axesOfFactor[signature.offset->factor]->empty())
      return fail("rows sharded over " + axisList(*axesOfFactor[signature.offset->factor]) + " need an offset");
    return success();
  }

  LogicalResult distribute(unsigned index, Distribution &result) {
    for (auto [dim, factors] : llvm::enumerate(signature.results[index])) {
      for (unsigned factor : factors.factors)
        for (Axis axis : *axesOfFactor[factor])
          result[axis] = AxisState::sharded(dim, twoChunk.lookup(axis));
      auto found = layouts.find(key(factors));
      SegmentsAttr layout = found == layouts.end() ? SegmentsAttr() : found->second;
      result.setLayout(dim, layout && factors.unit != 1 ? layout.scaledUp(factors.unit) : layout);
    }
    for (auto [axis, factor] : factorOf) {
      bool has = llvm::any_of(signature.results[index], [&, wanted = factor](const DimFactors &factors) {
        return llvm::is_contained(factors.factors, wanted);
      });
      if (has)
        continue;
      const FactorSignature::Pending &pending = signature.pending[index];
      if (!pending.type)
        return fail("result " + Twine(index) + " lacks a dimension that is sharded over " + name(axis));
      Type type = getElementTypeOrSelf(resultTypes[index]);
      if (type.getIntOrFloatBitWidth() < bitWidth(*pending.type))
        return fail("result " + Twine(index) + " is rounded to " + elementName(type) + ", but over " + name(axis) +
                    " it has to be reduced in " + name(*pending.type));
      result[axis] = AxisState::partial(pending.reduction, *pending.type);
    }
    return success();
  }

  LogicalResult passPartial(Axis axis, MutableArrayRef<Distribution> results) {
    SmallVector<unsigned> partial;
    for (auto [index, operand] : llvm::enumerate(operands))
      if (operand[axis].isPartial())
        partial.push_back(index);
    if (partial.empty())
      return success();
    AxisState state = operands[partial.front()][axis];
    if (signature.isAdditive) {
      for (const Distribution &operand : operands)
        if (operand[axis] != state)
          return fail("adds " + stateName(state) + " and " + operand.str(axis) + " over " + name(axis));
    } else if (partial.size() > 1) {
      return fail("multiplies two operands that are partial over " + name(axis));
    } else if (!llvm::is_contained(signature.linear, partial.front())) {
      return fail("operand " + Twine(partial.front()) + " is " + stateName(state) + " over " + name(axis) +
                  ", and the op is not linear in it");
    }
    if (state.reduction != Reduction::Sum)
      return fail("operand " + Twine(partial.front()) + " is " + stateName(state) + " over " + name(axis) +
                  ", which no op passes on");
    if (factorOf.count(axis))
      return fail("operand " + Twine(partial.front()) + " is " + stateName(state) + " over " + name(axis) +
                  ", which shards another operand");
    for (auto [index, result] : llvm::enumerate(results)) {
      Type type = getElementTypeOrSelf(resultTypes[index]);
      if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() < bitWidth(state.type))
        return fail("rounds to " + elementName(type) + " what is still to be reduced in " + name(state.type) +
                    " over " + name(axis));
      result[axis] = state;
    }
    return success();
  }

  static std::string stateName(const AxisState &state) {
    Distribution distribution;
    distribution[Axis::Tp] = state;
    return distribution.str(Axis::Tp);
  }
  static std::string elementName(Type type) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return text;
  }

  TypeRange resultTypes;
  const FactorSignature &signature;
  ArrayRef<Distribution> operands, hints;
  std::string &reason;
  SmallVector<std::optional<Axes>> axesOfFactor;
  llvm::SmallDenseMap<Axis, unsigned> factorOf;
  llvm::SmallDenseMap<Axis, bool> twoChunk;
  /// Keyed by the factors of a dimension, in their units.
  std::map<std::vector<unsigned>, SegmentsAttr> layouts;
};
} // namespace

LogicalResult drover::tfm::inferByFactors(TypeRange resultTypes, const FactorSignature &signature,
                                          ArrayRef<Distribution> operands, ArrayRef<Distribution> hints,
                                          SmallVectorImpl<Distribution> &results, std::string &reason) {
  return FactorRule(resultTypes, signature, operands, hints, reason).run(results);
}

LogicalResult drover::tfm::inferByFactors(Operation *op, const FactorSignature &signature,
                                          ArrayRef<Distribution> operands, ArrayRef<Distribution> hints,
                                          SmallVectorImpl<Distribution> &results, std::string &reason) {
  return inferByFactors(op->getResultTypes(), signature, operands, hints, results, reason);
}

LogicalResult drover::tfm::detail::inferByFactors(Operation *op, ArrayRef<Distribution> operands,
                                                  ArrayRef<Distribution> hints, SmallVectorImpl<Distribution> &results,
                                                  std::string &reason) {
  FactorSignature signature;
  cast<PartitionOpInterface>(op).getFactors(signature);
  return drover::tfm::inferByFactors(op, signature, operands, hints, results, reason);
}

LogicalResult drover::tfm::inferDistributions(Operation *op, ArrayRef<Distribution> operands,
                                              ArrayRef<Distribution> hints, SmallVectorImpl<Distribution> &results,
                                              std::string &reason) {
  if (auto rule = dyn_cast<PartitionOpInterface>(op))
    return rule.inferDistributions(operands, hints, results, reason);
  // What is without a rule gives equal results where its operands are equal; these look at the rank.
  if (op->getName().getDialectNamespace() == "shard") {
    reason = "has no rule";
    return failure();
  }
  for (auto [index, operand] : llvm::enumerate(operands))
    if (!operand.isReplicated()) {
      reason = ("has no rule, so that operand " + Twine(index) + " must be replicated, not " + operand.str()).str();
      return failure();
    }
  results.resize(op->getNumResults());
  return success();
}
