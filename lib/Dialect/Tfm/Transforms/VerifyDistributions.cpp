//===- VerifyDistributions.cpp - the proof of the partition -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TransformUtils.h"
#include "drover/Dialect/Tfm/IR/Partition.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMVERIFYDISTRIBUTIONS
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

/// Values that are passed on keep their types.
static LogicalResult verifyPassed(Operation *op, StringRef what, TypeRange actual, TypeRange expected) {
  if (actual.size() != expected.size())
    return op->emitOpError("passes ") << actual.size() << ' ' << what << "s where " << expected.size()
                                      << " are expected";
  for (auto [index, types] : llvm::enumerate(llvm::zip(actual, expected))) {
    auto [own, other] = types;
    if (own != other)
      return op->emitOpError("passes ") << what << ' ' << index << " on " << Distribution::of(own).str() << " (" << own
                                        << "), accepted is " << Distribution::of(other).str() << " (" << other << ")";
  }
  return success();
}

static LogicalResult verifyRule(Operation *op) {
  SmallVector<Distribution> operands, hints, expected;
  for (Value operand : op->getOperands())
    operands.push_back(Distribution::of(operand));
  for (Value result : op->getResults())
    hints.push_back(Distribution::of(result));
  std::string reason;
  if (failed(inferDistributions(op, operands, hints, expected, reason))) {
    InFlightDiagnostic diagnostic = op->emitOpError() << reason;
    for (auto [index, distribution] : llvm::enumerate(operands))
      diagnostic.attachNote() << "operand " << index << " is " << distribution.str();
    return failure();
  }
  for (auto [index, distribution] : llvm::enumerate(expected))
    if (distribution != hints[index])
      return op->emitOpError("has result ")
             << index << " on " << hints[index].str() << ", accepted is " << distribution.str();
  return success();
}

/// Axes of types are those of the grid with more than one rank.
static LogicalResult verifyAxes(Operation *op, const Grid &grid) {
  for (Value result : op->getResults()) {
    Distribution distribution = Distribution::of(result);
    for (Axis axis : kAxes)
      if (distribution[axis] != AxisState() && grid.size(axis) < 2)
        return op->emitOpError("has a result on ") << name(axis) << ", which is no axis of the grid";
  }
  return success();
}

static LogicalResult verifyFunction(func::FuncOp function, SymbolTable &symbols, const Grid &grid,
                                    llvm::DenseMap<int64_t, Operation *> &reductions) {
  for (Operation &op : function.front()) {
    if (auto call = dyn_cast<func::CallOp>(op)) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!callee)
        return call.emitOpError("calls '") << call.getCallee() << "', which is no function";
      if (failed(verifyPassed(call, "operand", call.getOperandTypes(), callee.getArgumentTypes())) ||
          failed(verifyPassed(call, "result", call.getResultTypes(), callee.getResultTypes())))
        return failure();
      continue;
    }
    if (isa<func::ReturnOp>(op)) {
      if (failed(verifyPassed(&op, "operand", op.getOperandTypes(), function.getResultTypes())))
        return failure();
      continue;
    }
    if (failed(verifyAxes(&op, grid)) || failed(verifyRule(&op)))
      return failure();
    if (auto id = op.getAttrOfType<IntegerAttr>(TfmDialect::kReductionAttr)) {
      auto [entry, isNew] = reductions.try_emplace(id.getInt(), &op);
      if (!isNew) {
        InFlightDiagnostic diagnostic = op.emitOpError("discharges reduction ") << id.getInt() << " a second time";
        diagnostic.attachNote(entry->second->getLoc()) << "the first is here";
        return failure();
      }
    }
  }
  return success();
}

/// A parameter is nowhere partial; its accumulator is cut as it is, and says what is reduced once a step.
static LogicalResult verifyMicrobatch(func::FuncOp microbatch, const Grid &grid) {
  llvm::StringMap<Distribution> parameters;
  for (auto [index, type] : llvm::enumerate(microbatch.getArgumentTypes())) {
    Distribution distribution = Distribution::of(type);
    bool isAccumulator = bool(microbatch.getArgAttr(index, TfmDialect::kAccumulatorAttr));
    for (Axis axis : kAxes)
      if (distribution[axis].kind == StateKind::Varying || (distribution[axis].isPartial() && !isAccumulator))
        return microbatch.emitError("has argument ")
               << index << " on " << distribution.str() << ", accepted are sharded and replicated";
    if (StringRef name = argumentName(microbatch, index, TfmDialect::kParameterAttr); !name.empty())
      parameters[name] = distribution;
  }
  for (unsigned index = 0; index < microbatch.getNumArguments(); ++index) {
    StringRef name = argumentName(microbatch, index, TfmDialect::kAccumulatorAttr);
    if (name.empty())
      continue;
    Distribution distribution = Distribution::of(microbatch.getArgumentTypes()[index]), whole = distribution;
    for (Axis axis : distribution.partialAxes())
      whole[axis] = AxisState();
    if (whole != parameters.lookup(name))
      return microbatch.emitError("has the accumulator of '")
             << name << "' on " << distribution.str() << ", which is cut otherwise than the parameter on "
             << parameters.lookup(name).str();
    // What is reduced once a step is summed over these, whoever holds it.
    for (Axis axis : {Axis::Cp, Axis::Dp})
      if (grid.size(axis) > 1 && distribution[axis] != AxisState::partial(Reduction::Sum, ReductionType::F32))
        return microbatch.emitError("has the accumulator of '")
               << name << "' on " << distribution.str() << ", expected P sum f32 over " << drover::tfm::name(axis);
  }
  for (auto [index, type] : llvm::enumerate(microbatch.getResultTypes())) {
    Distribution distribution = Distribution::of(type);
    bool isLoss = cast<RankedTensorType>(type).getRank() == 0;
    if (microbatch.getResultAttr(index, TfmDialect::kOutputAttr))
      for (Axis axis : distribution.partialAxes())
        if (!isLoss || (axis != Axis::Cp && axis != Axis::Dp))
          return microbatch.emitError("has output ")
                 << index << " on " << distribution.str() << ", which nothing reduces";
  }
  return success();
}

LogicalResult verifyDistributions(ModuleOp module) {
  auto attr = module->getAttrOfType<DictionaryAttr>(TfmDialect::kGridAttr);
  if (!attr)
    return success();
  Grid grid(attr);
  SymbolTable symbols(module);
  llvm::DenseMap<int64_t, Operation *> reductions;
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    if (failed(verifyFunction(function, symbols, grid, reductions)))
      return failure();
    if (function->hasAttr(TfmDialect::kMicrobatchAttr) && failed(verifyMicrobatch(function, grid)))
      return failure();
  }
  return success();
}

namespace {
struct VerifyDistributions : impl::TfmVerifyDistributionsBase<VerifyDistributions> {
  void runOnOperation() override {
    if (failed(verifyDistributions(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
} // namespace drover::tfm
