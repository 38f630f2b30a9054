//===- VerifyDistributions.cpp - the proof of the partition -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TransformUtils.h"
#include "drover/Dialect/Tfm/IR/Partition.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/ADT/TypeSwitch.h"

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

/// Axes of a type are those of the grid with more than one rank, and a layout is one of the dimension whose part the
/// rank holds. `emit` begins the diagnostic: "has a result".
static LogicalResult verifyType(Type type, const Grid &grid, function_ref<InFlightDiagnostic()> emit) {
  Distribution distribution = Distribution::of(type);
  for (Axis axis : kAxes)
    if (distribution[axis] != AxisState() && (grid.size(axis) < 2 || !llvm::is_contained(grid.axes(), axis)))
      return emit() << " on " << name(axis) << ", which is no axis of the grid";
  auto tensor = dyn_cast<RankedTensorType>(type);
  for (int64_t dim = 0; tensor && dim < tensor.getRank(); ++dim) {
    SegmentsAttr layout = distribution.layoutOf(dim);
    if (!layout || tensor.isDynamicDim(dim))
      continue;
    int64_t ranks = grid.product(distribution.axesOf(dim));
    if (tensor.getDimSize(dim) > INT64_MAX / ranks || tensor.getDimSize(dim) * ranks != layout.paddedSize())
      return emit() << " whose dimension " << dim << " of " << tensor.getDimSize(dim) << " elements on each of "
                    << ranks << " ranks is not " << str(layout.getSegments());
  }
  return success();
}

static LogicalResult verifyTypes(Operation *op, const Grid &grid) {
  for (Type type : op->getResultTypes())
    if (failed(verifyType(type, grid, [&] { return op->emitOpError("has a result"); })))
      return failure();
  return success();
}

static LogicalResult verifySignature(func::FuncOp function, const Grid &grid) {
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (failed(verifyType(type, grid, [&, index = index] { return function.emitError("has argument ") << index; })))
      return failure();
  for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
    if (failed(verifyType(type, grid, [&, index = index] { return function.emitError("has result ") << index; })))
      return failure();
  return success();
}

/// The rows that a factor counts, as the rank holds them.
static std::optional<int64_t> localSize(Operation *op, const FactorSignature &signature, unsigned factor) {
  auto sizeIn = [&](ValueRange values, ArrayRef<FactorSignature::Value> dims) -> std::optional<int64_t> {
    for (auto [value, factors] : llvm::zip(values, dims))
      for (auto [dim, entry] : llvm::enumerate(factors))
        if (entry.factors.size() == 1 && entry.factors.front() == factor && entry.unit == 1 && !entry.broadcast)
          return cast<RankedTensorType>(value.getType()).getDimSize(dim);
    return std::nullopt;
  };
  std::optional<int64_t> size = sizeIn(op->getOperands(), signature.operands);
  return size ? size : sizeIn(op->getResults(), signature.results);
}

/// What differs by rank must be what the rule takes it for: where its rows begin, and where they stand.
static LogicalResult verifyRankValues(Operation *op) {
  auto varies = [](Value value) {
    Distribution distribution = Distribution::of(value);
    return llvm::any_of(kAxes, [&](Axis axis) { return distribution[axis].kind == StateKind::Varying; });
  };
  // The rule lets nothing but an offset vary.
  if (auto varying = llvm::find_if(op->getOperands(), varies); varying != op->getOperands().end()) {
    FactorSignature signature;
    cast<PartitionOpInterface>(op).getFactors(signature);
    auto offset = (*varying).getDefiningOp<ShardOffsetOp>();
    std::optional<int64_t> rows = localSize(op, signature, signature.offset->factor);
    if (!offset)
      return op->emitOpError("has an offset that is no tfm.shard_offset");
    if (rows && static_cast<int64_t>(offset.getSize()) != *rows)
      return op->emitOpError("has an offset in parts of ")
             << offset.getSize() << ", expected " << *rows << ", the rows that a rank holds";
  }
  Value index = TypeSwitch<Operation *, Value>(op)
                    .Case<AttentionOp, AttentionGradOp>([](auto attention) { return attention.getQueryIndex(); })
                    .Default([](Operation *) { return Value(); });
  if (index && !Distribution::of(index).isReplicated() && !index.getDefiningOp<GlobalIndexOp>())
    return op->emitOpError("has sharded rows of queries, whose query_index is no tfm.global_index");
  return success();
}

static LogicalResult verifyFunction(func::FuncOp function, SymbolTable &symbols, const Grid &grid,
                                    llvm::DenseMap<int64_t, Operation *> &reductions) {
  if (failed(verifySignature(function, grid)))
    return failure();
  if (function.isExternal())
    return success();
  if (!function.getBody().hasOneBlock())
    return function.emitError("has ") << function.getBody().getBlocks().size()
                                      << " blocks, expected one: no rule says what holds where they meet";
  for (Operation &op : function.front()) {
    if (op.getNumRegions() != 0)
      return op.emitOpError("has a region, expected none: no rule says what holds in it");
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
    if (failed(verifyTypes(&op, grid)) || failed(verifyRule(&op)) || failed(verifyRankValues(&op)))
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

/// What the step program reads beside a type: the size of the whole, and the dimension of which a rank of cp gets its
/// part.
static LogicalResult verifyWhole(func::FuncOp microbatch, Type type, DenseI64ArrayAttr whole, const Twine &what,
                                 const Grid &grid) {
  Distribution distribution = Distribution::of(type);
  auto local = cast<RankedTensorType>(type).getShape();
  bool fits = whole.size() == static_cast<int64_t>(local.size());
  for (unsigned dim = 0; fits && dim < local.size(); ++dim) {
    SegmentsAttr layout = distribution.layoutOf(dim);
    int64_t padded = layout ? layout.paddedSize() : whole[dim], part = distribution.localSize(dim, whole[dim], grid);
    bool isWhole = !layout || layout.validSize() == whole[dim];
    SmallVector<Axis, 4> axes = distribution.axesOf(dim);
    llvm::erase(axes, Axis::Dp); // a microbatch is one rank's
    fits = ShapedType::isDynamic(local[dim]) || (isWhole && part == local[dim] && part * grid.product(axes) == padded);
  }
  if (!fits)
    return microbatch.emitError("has ") << what << " of " << type << ", which is no part of ["
                                        << ArrayRef<int64_t>(whole) << "] on " << distribution.str();
  return success();
}

static LogicalResult verifyArgument(func::FuncOp microbatch, unsigned index, const Grid &grid) {
  Type type = microbatch.getArgumentTypes()[index];
  Distribution distribution = Distribution::of(type);
  bool isAccumulator = bool(microbatch.getArgAttr(index, TfmDialect::kAccumulatorAttr));
  for (Axis axis : kAxes)
    if (distribution[axis].kind == StateKind::Varying || (distribution[axis].isPartial() && !isAccumulator))
      return microbatch.emitError("has argument ")
             << index << " on " << distribution.str() << ", accepted are sharded and replicated";
  bool isParameter = bool(microbatch.getArgAttr(index, TfmDialect::kParameterAttr));
  for (Axis axis : {Axis::Cp, Axis::Dp})
    if (isParameter && distribution[axis].isSharded())
      return microbatch.emitError("has parameter ")
             << index << " on " << distribution.str() << ", of which each rank of " << drover::tfm::name(axis)
             << " has all";
  auto whole = microbatch.getArgAttrOfType<DenseI64ArrayAttr>(index, TfmDialect::kGlobalShapeAttr);
  if (whole && failed(verifyWhole(microbatch, type, whole, "argument " + Twine(index), grid)))
    return failure();
  if (!whole && isParameter && distribution != Distribution())
    return microbatch.emitError("has parameter ") << index << " on " << distribution.str() << " without '"
                                                  << TfmDialect::kGlobalShapeAttr << "', the model's shape of it";
  if (!microbatch.getArgAttr(index, TfmDialect::kInputAttr))
    return success();
  auto cut = microbatch.getArgAttrOfType<IntegerAttr>(index, TfmDialect::kCutDimAttr);
  AxisState expected = cut ? AxisState::sharded(cut.getInt(), /*twoChunk=*/true) : AxisState();
  if (distribution[Axis::Cp] != expected)
    return microbatch.emitError("has input ")
           << index << " on " << distribution.str() << ", of which a rank of cp is given "
           << (cut ? "two chunks of dimension " + Twine(cut.getInt()) : Twine("all"));
  return success();
}

/// A parameter is nowhere partial; its accumulator is cut as it is, and says what is reduced once a step.
static LogicalResult verifyMicrobatch(func::FuncOp microbatch, const Grid &grid) {
  llvm::StringMap<Distribution> parameters;
  for (auto [index, type] : llvm::enumerate(microbatch.getArgumentTypes())) {
    if (failed(verifyArgument(microbatch, index, grid)))
      return failure();
    if (StringRef name = argumentName(microbatch, index, TfmDialect::kParameterAttr); !name.empty())
      parameters[name] = Distribution::of(type);
  }
  const AxisState pending = AxisState::partial(Reduction::Sum, ReductionType::F32);
  bool isTraining = false;
  for (unsigned index = 0; index < microbatch.getNumArguments(); ++index) {
    StringRef name = argumentName(microbatch, index, TfmDialect::kAccumulatorAttr);
    if (name.empty())
      continue;
    isTraining = true;
    Distribution distribution = Distribution::of(microbatch.getArgumentTypes()[index]), whole = distribution;
    for (Axis axis : distribution.partialAxes())
      whole[axis] = AxisState();
    if (whole != parameters.lookup(name))
      return microbatch.emitError("has the accumulator of '")
             << name << "' on " << distribution.str() << ", which is cut otherwise than the parameter on "
             << parameters.lookup(name).str();
    // What is reduced once a step is summed over cp and dp, whoever holds it, and over others where it is partial.
    for (Axis axis : kAxes)
      if ((((axis == Axis::Cp || axis == Axis::Dp) && grid.size(axis) > 1) || distribution[axis].isPartial()) &&
          distribution[axis] != pending)
        return microbatch.emitError("has the accumulator of '")
               << name << "' on " << distribution.str() << ", expected P sum f32 over " << drover::tfm::name(axis);
  }
  for (auto [index, type] : llvm::enumerate(microbatch.getResultTypes())) {
    if (!microbatch.getResultAttr(index, TfmDialect::kOutputAttr))
      continue;
    Distribution distribution = Distribution::of(type);
    bool isLoss = cast<RankedTensorType>(type).getRank() == 0;
    for (Axis axis : distribution.partialAxes())
      if (!isLoss || (axis != Axis::Cp && axis != Axis::Dp))
        return microbatch.emitError("has output ")
               << index << " on " << distribution.str() << ", which nothing reduces";
    // The step program adds the loss over these, as docs/step-program.md says: one that is whole would count twice.
    for (Axis axis : {Axis::Cp, Axis::Dp})
      if (isTraining && isLoss && grid.size(axis) > 1 &&
          !(distribution[axis].isPartial() && distribution[axis].reduction == Reduction::Sum))
        return microbatch.emitError("has the loss on ")
               << distribution.str() << ", expected a sum that is partial over " << drover::tfm::name(axis);
    if (auto whole = microbatch.getResultAttrOfType<DenseI64ArrayAttr>(index, TfmDialect::kGlobalShapeAttr))
      if (failed(verifyWhole(microbatch, type, whole, "output " + Twine(index), grid)))
        return failure();
  }
  return success();
}

/// `tfm.grid` says how many ranks each axis has; the collectives' grid says the same.
static LogicalResult verifyGrid(ModuleOp module, Attribute attr) {
  auto sizes = dyn_cast<DictionaryAttr>(attr);
  auto sizeOf = [&](Axis axis) {
    auto size = sizes.getAs<IntegerAttr>(name(axis));
    return size ? size.getInt() : 1;
  };
  bool isGrid = sizes && llvm::all_of(sizes, [](NamedAttribute entry) {
                  auto size = dyn_cast<IntegerAttr>(entry.getValue());
                  return parseAxis(entry.getName()) && size && size.getValue().isStrictlyPositive() &&
                         size.getValue().isSignedIntN(32);
                });
  isGrid = isGrid &&
           llvm::all_of(ArrayRef{Axis::Tp, Axis::Cp, Axis::Dp}, [&](Axis axis) { return sizes.contains(name(axis)); });
  if (isGrid && (sizes.contains(name(Axis::Kv)) || sizes.contains(name(Axis::Replica))))
    isGrid = sizeOf(Axis::Kv) * sizeOf(Axis::Replica) == sizeOf(Axis::Tp);
  if (!isGrid)
    return module.emitError("has tfm.grid = ")
           << attr
           << ", expected positive numbers of ranks of tp, cp and dp, and where tp is split, of kv and replica, "
           << "whose product it is";
  Grid grid(sizes);
  SmallVector<int64_t> expected;
  for (Axis axis : grid.axes())
    expected.push_back(grid.size(axis));
  for (auto collectives : module.getOps<shard::GridOp>())
    if (collectives.getShape() != ArrayRef(expected))
      return collectives.emitOpError("has axes of ")
             << collectives.getShape() << " ranks, where tfm.grid has " << ArrayRef(expected);
  return success();
}

/// Without `tfm.grid` there is one rank, whose types name no axis.
static LogicalResult verifyWithoutGrid(ModuleOp module) {
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    for (Type type : llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes()))
      if (Distribution distribution = Distribution::of(type); !distribution.isReplicated())
        return function.emitError("has a type on ")
               << distribution.str() << ", where the module has no '" << TfmDialect::kGridAttr << "'";
  return success();
}

LogicalResult verifyDistributions(ModuleOp module) {
  Attribute attr = module->getAttr(TfmDialect::kGridAttr);
  if (!attr)
    return verifyWithoutGrid(module);
  if (failed(verifyGrid(module, attr)))
    return failure();
  for (auto nested : module.getOps<ModuleOp>())
    return nested.emitError("is a module in a partitioned one, expected none: nothing says what holds in it");
  Grid grid(cast<DictionaryAttr>(attr));
  SymbolTable symbols(module);
  llvm::DenseMap<int64_t, Operation *> reductions;
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
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
