//===- TypeMutations.cpp - wrong distributions made of right ones ---------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TypeMutations.h"
#include "CollectiveMutations.h"
#include "FollowTypes.h"
#include "drover/Dialect/Tfm/IR/Partition.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"

using namespace mlir;
using namespace drover::tfm;

namespace {

SmallVector<Operation *> operationsOf(ModuleOp module) {
  SmallVector<Operation *> result;
  module.walk([&](Operation *op) { result.push_back(op); });
  return result;
}

std::string textOf(Operation &op) {
  std::string text;
  llvm::raw_string_ostream(text) << op;
  return text;
}

std::string textOf(Value value, Type type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (Operation *op = value.getDefiningOp())
    stream << *op;
  else
    stream << value << " of @" << cast<func::FuncOp>(value.getParentBlock()->getParentOp()).getName();
  stream << " as " << type;
  return text;
}

RankedTensorType withState(RankedTensorType type, Axis axis, AxisState state) {
  Distribution distribution = Distribution::of(type);
  distribution[axis] = state;
  return distribution.encode(type);
}

/// What an axis could hold of a tensor of `type` otherwise.
SmallVector<AxisState> otherStates(RankedTensorType type, Axis axis) {
  SmallVector<AxisState> states = {AxisState()};
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    states.push_back(AxisState::sharded(dim));
    if (axis == Axis::Cp)
      states.push_back(AxisState::sharded(dim, /*twoChunk=*/true));
  }
  for (ReductionType reduction : {ReductionType::F32, ReductionType::BF16, ReductionType::F64, ReductionType::I64})
    states.push_back(AxisState::partial(Reduction::Sum, reduction));
  states.push_back(AxisState::partial(Reduction::Max, ReductionType::F32));
  states.push_back(AxisState::varying());
  llvm::erase(states, Distribution::of(type)[axis]);
  return states;
}

/// Each number of a layout one more and one less, where that is a layout.
SmallVector<SegmentsAttr> otherLayouts(SegmentsAttr layout) {
  SmallVector<SegmentsAttr> result = {SegmentsAttr()};
  MLIRContext *context = layout.getContext();
  for (size_t index = 0; index < layout.getSegments().size(); ++index)
    for (int64_t PaddedSegment::*number :
         {&PaddedSegment::groups, &PaddedSegment::valid, &PaddedSegment::padded, &PaddedSegment::total})
      for (int64_t by : {-1, 1}) {
        SmallVector<PaddedSegment> segments(layout.getSegments());
        segments[index].*number += by;
        auto fails = [&] { return emitError(UnknownLoc::get(context)); };
        if (succeeded(SegmentsAttr::verify(fails, segments)))
          result.push_back(SegmentsAttr::get(context, segments));
      }
  return result;
}

/// Another type of a value, and of what says its type again.
void setType(Value value, RankedTensorType type) {
  value.setType(type);
  if (auto constant = value.getDefiningOp<arith::ConstantOp>()) {
    auto elements = cast<DenseElementsAttr>(constant.getValue());
    constant.setValueAttr(elements.isSplat() ? cast<TypedAttr>(elements.resizeSplat(type))
                                             : cast<TypedAttr>(elements.reshape(type)));
  }
  auto argument = dyn_cast<BlockArgument>(value);
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  if (function)
    function.setFunctionType(
        FunctionType::get(function.getContext(), function.front().getArgumentTypes(), function.getResultTypes()));
}

class Mutator {
public:
  Mutator(ModuleOp module, bool follow, int64_t stride, int64_t first,
          llvm::function_ref<void(const TypeMutant &)> visit)
      : module(module), grid(module->getAttrOfType<DictionaryAttr>(TfmDialect::kGridAttr)), follow(follow),
        stride(stride), next(stride - first), visit(visit) {
    for (auto [index, op] : llvm::enumerate(operationsOf(module)))
      places[op] = index;
  }

  void run() {
    for (Operation *op : operationsOf(module)) {
      forEachCollectiveChange(op, [&](StringRef mutation, llvm::function_ref<bool(Operation *)> change) {
        add(mutation, op->getName().stripDialect(), [&] { return textOf(*op); }, op, change);
      });
      for (OpResult result : op->getResults())
        if (!isa<func::CallOp>(op)) // has those of the callee
          mutateType(result, "value");
      if (auto function = dyn_cast<func::FuncOp>(op); function && !function.isExternal()) {
        bool isMicrobatch = function->hasAttr(TfmDialect::kMicrobatchAttr);
        for (BlockArgument argument : function.getArguments())
          if (isMicrobatch || !follow) // a body's follow the calls'
            mutateType(argument, isMicrobatch ? "argument of the microbatch" : "argument of a body");
        if (isMicrobatch && !follow)
          mutateAttributes(function);
      }
    }
    if (!follow)
      mutateGrids();
  }

private:
  /// A mutant: `change` gets the op of a copy that stands where `op` stands, and says whether it applies.
  void add(StringRef mutation, StringRef target, llvm::function_ref<std::string()> where, Operation *op,
           llvm::function_ref<bool(Operation *)> change) {
    if (next++ % stride != 0)
      return;
    OwningOpRef<ModuleOp> copy(cast<ModuleOp>(module->clone()));
    if (!change(operationsOf(*copy)[places.lookup(op)]) || (follow && !followTypes(*copy)))
      return;
    visit({mutation, target, where, *copy});
  }

  /// Whether the rule of the op that makes `value` could give it this type: else nothing follows a change of it.
  static bool isChosen(Value value, RankedTensorType type) {
    auto result = dyn_cast<OpResult>(value);
    if (!result)
      return true;
    SmallVector<Distribution> operands, hints, results;
    for (Value operand : result.getOwner()->getOperands())
      operands.push_back(Distribution::of(operand));
    for (Value other : result.getOwner()->getResults())
      hints.push_back(Distribution::of(other));
    hints[result.getResultNumber()] = Distribution::of(type);
    std::string reason;
    return succeeded(inferDistributions(result.getOwner(), operands, hints, results, reason)) &&
           results[result.getResultNumber()] == Distribution::of(type);
  }

  void addType(StringRef mutation, StringRef target, Value value, RankedTensorType type) {
    if (follow && !isChosen(value, type))
      return;
    auto argument = dyn_cast<BlockArgument>(value);
    Operation *op = argument ? argument.getOwner()->getParentOp() : value.getDefiningOp();
    unsigned index = argument ? argument.getArgNumber() : cast<OpResult>(value).getResultNumber();
    add(
        mutation, target, [&] { return textOf(value, type); }, op,
        [&](Operation *twin) {
          setType(argument ? Value(cast<func::FuncOp>(twin).getArgument(index)) : Value(twin->getResult(index)), type);
          return true;
        });
  }

  void mutateType(Value value, StringRef target) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return;
    for (Axis axis : grid.axes())
      if (grid.size(axis) > 1)
        for (AxisState state : otherStates(type, axis))
          addType("retarget state", target, value, withState(type, axis, state));
    Distribution distribution = Distribution::of(type);
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (SegmentsAttr layout = distribution.layoutOf(dim))
        for (SegmentsAttr other : otherLayouts(layout)) {
          Distribution changed = distribution;
          changed.setLayout(dim, other);
          addType("retarget layout", target, value, changed.encode(type));
        }
  }

  /// Other values of an attribute, and none.
  void addAttribute(func::FuncOp function, unsigned index, bool isResult, StringRef name, ArrayRef<Attribute> values) {
    for (Attribute value : values) {
      auto where = [&] {
        std::string text;
        llvm::raw_string_ostream(text) << (isResult ? "result " : "argument ") << index << ": " << name << " = "
                                       << value;
        return text;
      };
      add(value ? "retarget attribute" : "drop attribute", name, where, function, [&](Operation *twin) {
        auto changed = cast<func::FuncOp>(twin);
        if (isResult)
          value ? changed.setResultAttr(index, name, value)
                : void(changed.removeResultAttr(index, StringAttr::get(function.getContext(), name)));
        else
          value ? changed.setArgAttr(index, name, value) : void(changed.removeArgAttr(index, name));
        return true;
      });
    }
  }

  static SmallVector<Attribute> otherShapes(DenseI64ArrayAttr shape) {
    SmallVector<Attribute> result;
    if (!shape)
      return result;
    for (size_t dim = 0; dim < shape.asArrayRef().size(); ++dim)
      for (int64_t size : {shape[dim] - 1, shape[dim] + 1, 2 * shape[dim]}) {
        SmallVector<int64_t> sizes(shape.asArrayRef());
        sizes[dim] = size;
        result.push_back(DenseI64ArrayAttr::get(shape.getContext(), sizes));
      }
    result.push_back({});
    return result;
  }

  void mutateAttributes(func::FuncOp function) {
    Builder builder(function.getContext());
    for (unsigned index = 0; index < function.getNumArguments(); ++index) {
      addAttribute(function, index, false, TfmDialect::kGlobalShapeAttr,
                   otherShapes(function.getArgAttrOfType<DenseI64ArrayAttr>(index, TfmDialect::kGlobalShapeAttr)));
      if (!function.getArgAttr(index, TfmDialect::kInputAttr))
        continue;
      SmallVector<Attribute> dims;
      auto own = function.getArgAttrOfType<IntegerAttr>(index, TfmDialect::kCutDimAttr);
      for (int64_t dim = 0; dim < cast<RankedTensorType>(function.getArgumentTypes()[index]).getRank(); ++dim)
        if (!own || own.getInt() != dim)
          dims.push_back(builder.getI64IntegerAttr(dim));
      if (own)
        dims.push_back({});
      addAttribute(function, index, false, TfmDialect::kCutDimAttr, dims);
    }
    for (unsigned index = 0; index < function.getNumResults(); ++index)
      addAttribute(function, index, true, TfmDialect::kGlobalShapeAttr,
                   otherShapes(function.getResultAttrOfType<DenseI64ArrayAttr>(index, TfmDialect::kGlobalShapeAttr)));
  }

  void mutateGrids() {
    auto sizes = module->getAttrOfType<DictionaryAttr>(TfmDialect::kGridAttr);
    Builder builder(module.getContext());
    for (NamedAttribute entry : sizes)
      for (int64_t by : {0, 1, 2}) { // none, one rank more, twice as many
        NamedAttrList changed(sizes);
        int64_t size = cast<IntegerAttr>(entry.getValue()).getInt();
        if (by == 0)
          changed.erase(entry.getName());
        else
          changed.set(entry.getName(), builder.getI64IntegerAttr(by == 1 ? size + 1 : 2 * size));
        add(
            by == 0 ? "drop attribute" : "retarget attribute", TfmDialect::kGridAttr,
            [&] { return entry.getName().str(); }, module,
            [&](Operation *twin) {
              twin->setAttr(TfmDialect::kGridAttr, changed.getDictionary(module.getContext()));
              return true;
            });
      }
    for (auto collectives : module.getOps<shard::GridOp>())
      for (size_t axis = 0; axis < collectives.getShape().size(); ++axis)
        for (int64_t size : {collectives.getShape()[axis] + 1, 2 * collectives.getShape()[axis]}) {
          SmallVector<int64_t> shape(collectives.getShape());
          shape[axis] = size;
          add(
              "retarget attribute", "shard.grid", [&] { return "axis " + std::to_string(axis); }, collectives,
              [&](Operation *twin) {
                cast<shard::GridOp>(twin).setShape(shape);
                return true;
              });
        }
  }

  ModuleOp module;
  Grid grid;
  bool follow;
  int64_t stride, next;
  llvm::function_ref<void(const TypeMutant &)> visit;
  llvm::DenseMap<Operation *, size_t> places;
};

} // namespace

void forEachTypeMutant(ModuleOp module, bool follow, int64_t stride, int64_t first,
                       llvm::function_ref<void(const TypeMutant &)> visit) {
  Mutator(module, follow, stride, first, visit).run();
}
