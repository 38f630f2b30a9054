//===- StashSelection.cpp - what a forward keeps ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "StashSelection.h"
#include "FlowNetwork.h"

using namespace mlir;
using namespace drover::tfm;

FailureOr<RecomputePolicy> drover::tfm::parsePolicy(Operation *op, StringRef mode, ArrayRef<std::string> rebuild) {
  RecomputePolicy policy;
  auto parsed = llvm::StringSwitch<std::optional<RecomputeMode>>(mode)
                    .Case("none", RecomputeMode::None)
                    .Case("selective", RecomputeMode::Selective)
                    .Case("full", RecomputeMode::Full)
                    .Default(std::nullopt);
  if (!parsed)
    return op->emitError("expects recompute none, selective or full, not '") << mode << "'";
  policy.mode = *parsed;
  if (rebuild.empty() || (rebuild.size() == 1 && rebuild.front() == "auto"))
    return policy;
  policy.automatic = false;
  if (rebuild.size() == 1 && rebuild.front() == "none")
    return policy;
  for (StringRef name : rebuild) {
    auto kind = llvm::StringSwitch<std::optional<RecomputeClass>>(name)
                    .Case("norms", RecomputeClass::Norm)
                    .Case("act", RecomputeClass::Activation)
                    .Case("rope", RecomputeClass::Rope)
                    .Case("casts", RecomputeClass::Cast)
                    .Default(std::nullopt);
    if (!kind)
      return op->emitError("expects rebuild auto, none, or a list of norms, act, rope and casts, not '") << name << "'";
    policy.rebuilt.insert(*kind);
  }
  return policy;
}

bool drover::tfm::isView(Operation *op) {
  return recomputeClassOf(op) == RecomputeClass::Movement && op->getNumOperands() == 1;
}

Treatment drover::tfm::treatmentOf(Operation *op, const RecomputePolicy &policy) {
  if (policy.mode == RecomputeMode::Full)
    return {true, false};
  if (isView(op))
    return {true, true};
  switch (RecomputeClass kind = recomputeClassOf(op)) {
  case RecomputeClass::Contraction:
  case RecomputeClass::Reduction:
    return {false, true};
  case RecomputeClass::Attention:
    return policy.mode == RecomputeMode::Selective ? Treatment{true, false} : Treatment{false, true};
  case RecomputeClass::Elementwise:
    return {policy.automatic || policy.rebuilt.count(RecomputeClass::Activation), true};
  default:
    if (policy.automatic)
      return {true, true};
    return policy.rebuilt.count(kind) ? Treatment{true, false} : Treatment{false, true};
  }
}

namespace {

/// Knows what is never worth a stash: what follows from inputs alone or from parameters alone (masks,
/// positions, transposed weights), and views of arguments.
class FreeValues {
public:
  explicit FreeValues(Block &body, ArrayRef<OperandKind> kinds) {
    for (auto [argument, kind] : llvm::zip_equal(body.getArguments(), kinds)) {
      origins[argument] = kind == OperandKind::Boundary ? Input | Parameter
                          : kind == OperandKind::Input  ? Input
                                                        : Parameter;
      views.insert(argument);
    }
  }
  bool visit(Operation *op) {
    unsigned origin = 0;
    for (Value operand : op->getOperands())
      origin |= origins.lookup(operand);
    RecomputeClass kind = recomputeClassOf(op);
    bool view = isView(op) && views.contains(op->getOperand(0));
    for (Value result : op->getResults()) {
      origins[result] = origin;
      if (view)
        views.insert(result);
    }
    bool isWork = kind == RecomputeClass::Contraction || kind == RecomputeClass::Attention;
    return view || (!isWork && origin != (Input | Parameter));
  }

private:
  enum : unsigned { Input = 1, Parameter = 2 };
  DenseMap<Value, unsigned> origins;
  DenseSet<Value> views;
};

} // namespace

SetVector<Value> drover::tfm::selectStash(Block &body, ArrayRef<OperandKind> kinds, const SetVector<Value> &needed,
                                          const RecomputePolicy &policy) {
  ValueCut values;
  for (auto [argument, kind] : llvm::zip_equal(body.getArguments(), kinds)) {
    values.add(argument, kind == OperandKind::Boundary ? bytesOf(argument.getType()) : 0);
    values.charge(argument);
  }
  FreeValues free(body, kinds);
  for (Operation &op : body.without_terminator()) {
    Treatment treatment = free.visit(&op) ? Treatment{true, false} : treatmentOf(&op, policy);
    for (Value result : op.getResults()) {
      // Of equal bytes the tensor is kept, not its views.
      int64_t cost = bytesOf(result.getType()) + isView(&op);
      values.add(result, treatment.stashable ? cost : FlowNetwork::kUnbounded);
      if (treatment.rebuildable)
        values.addMaking(result, op.getOperands());
      else
        values.charge(result);
    }
  }
  for (Value value : needed)
    values.addNeed(value);
  return values.solve();
}
