//===- Partition.cpp - from model bodies to one rank's ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "../TransformUtils.h"
#include "BodyPartitioner.h"
#include "Heads.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include <deque>
#include <numeric>

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMPARTITION
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {

/// True where every use of argument `index` of `function`, through calls, is what `accepts` says.
bool isOnlyUsed(func::FuncOp function, unsigned index, SymbolTable &symbols,
                llvm::function_ref<bool(OpOperand &)> accepts) {
  return llvm::all_of(function.getArgument(index).getUses(), [&](OpOperand &use) {
    auto call = dyn_cast<func::CallOp>(use.getOwner());
    if (!call)
      return accepts(use);
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    return callee && !callee.isExternal() && isOnlyUsed(callee, use.getOperandNumber(), symbols, accepts);
  });
}

/// Ids, positions and labels: one element a row, which goes where the row goes.
bool followsRows(OpOperand &use) {
  Operation *op = use.getOwner();
  unsigned index = use.getOperandNumber();
  return (isa<EmbeddingOp, EmbeddingGradOp, CrossEntropyOp>(op) && index == 0) ||
         (isa<RopeOp, LogitsSumOp, CrossEntropyGradOp>(op) && index == 1);
}

/// One body on local tensors, for the argument states that it was built for.
struct Variant {
  func::FuncOp body;
  SmallVector<ArgumentState> arguments;
};

class MicrobatchPartitioner {
public:
  MicrobatchPartitioner(ModuleOp module, func::FuncOp microbatch, const Grid &grid)
      : module(module), microbatch(microbatch), grid(grid), symbols(module), builder(module.getContext()) {}

  LogicalResult run() {
    if (failed(seedArguments()))
      return failure();
    for (Operation &op : microbatch.front().without_terminator()) {
      auto call = dyn_cast<func::CallOp>(op);
      auto callee = call ? symbols.lookup<func::FuncOp>(call.getCallee()) : nullptr;
      if (!callee || callee.isExternal())
        return op.emitOpError("is not the call of a body");
      if (failed(partitionCall(call, callee)))
        return failure();
    }
    finishBodies();
    finishMicrobatch();
    return success();
  }

private:
  LogicalResult checkLength(StringRef input, int64_t length) {
    int64_t cp = grid.size(Axis::Cp), tp = grid.product(grid.tensorAxes());
    // The sequence is cut in CP's two chunks, and a rank's rows once more over TP.
    int64_t unit = cp > 1 ? (tp > 1 ? std::lcm<int64_t>(2 * cp, cp * tp) : 2 * cp) : tp;
    if (length % unit == 0)
      return success();
    return microbatch.emitError("expects the sequence length of input '")
           << input << "' to be a multiple of " << unit << " at tp " << tp << " and cp " << cp << ", not " << length
           << ": accepted next to it are " << (length < unit ? unit : length / unit * unit) << " and "
           << (length / unit + (length < unit ? 2 : 1)) * unit
           << (tp > 1 ? "; tp cuts the sequence between attention and MLP" : "");
  }

  LogicalResult seedArguments() {
    llvm::StringMap<ArgumentState *> parameters;
    for (auto [index, argument] : llvm::enumerate(microbatch.getArguments())) {
      ArgumentState &state = states.emplace_back();
      stateOf[argument] = &state;
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type)
        return microbatch.emitError("expects argument ") << index << " to be a tensor, not " << argument.getType();
      if (StringRef name = argumentName(microbatch, index, TfmDialect::kParameterAttr); !name.empty()) {
        state.role = ArgumentState::Role::Parameter;
        state.isDecided = false;
        parameters[name] = &state;
      } else if (StringRef name = argumentName(microbatch, index, TfmDialect::kAccumulatorAttr); !name.empty()) {
        state.role = ArgumentState::Role::Accumulator;
        state.isDecided = false;
      } else if (microbatch.getArgAttr(index, TfmDialect::kInputAttr) && type.getRank() >= 1) {
        if (failed(seedInput(index, type, state)))
          return failure();
      }
    }
    for (unsigned index = 0; index < microbatch.getNumArguments(); ++index)
      if (StringRef name = argumentName(microbatch, index, TfmDialect::kAccumulatorAttr); !name.empty())
        states[index].parameter = parameters.lookup(name);
    return success();
  }

  LogicalResult seedInput(unsigned index, RankedTensorType type, ArgumentState &state) {
    StringRef name = argumentName(microbatch, index, TfmDialect::kInputAttr);
    if (grid.size(Axis::Dp) > 1)
      state.distribution[Axis::Dp] = AxisState::sharded(0);
    state.isPosition = name.contains("position") || name.contains("token_type");
    bool isRows = type.getRank() == 2 && isOnlyUsed(microbatch, index, symbols, followsRows);
    if (!isRows)
      return success();
    if (grid.size(Axis::Cp) > 1) {
      state.distribution[Axis::Cp] = AxisState::sharded(1, /*twoChunk=*/true);
      microbatch.setArgAttr(index, TfmDialect::kCutDimAttr, builder.getI64IntegerAttr(1));
    }
    return checkLength(name, type.getDimSize(1));
  }

  /// An earlier body that fits: parameters and accumulators that are open take what it decided.
  Variant *findVariant(StringRef callee, ArrayRef<ArgumentState *> arguments) {
    for (Variant &variant : variants[callee]) {
      bool fits = true;
      for (auto [argument, other] : llvm::zip(arguments, variant.arguments)) {
        bool isOpen = argument->role != ArgumentState::Role::Value && !argument->isDecided;
        fits &= isOpen ? true
                       : argument->distribution == other.distribution && argument->parallelDim == other.parallelDim &&
                             argument->isPosition == other.isPosition;
        fits &= (argument->parameter == nullptr) == (other.parameter == nullptr) &&
                (!argument->parameter || sameParameter(*argument->parameter, *other.parameter));
      }
      if (fits)
        return &variant;
    }
    return nullptr;
  }

  static bool sameParameter(const ArgumentState &a, const ArgumentState &b) {
    return a.isDecided == b.isDecided && a.distribution == b.distribution && a.parallelDim == b.parallelDim;
  }

  LogicalResult partitionCall(func::CallOp call, func::FuncOp callee) {
    SmallVector<ArgumentState *> arguments;
    for (Value operand : call.getOperands())
      arguments.push_back(stateOf.lookup(operand));
    Variant *variant = findVariant(call.getCallee(), arguments);
    if (!variant) {
      Variant built;
      for (ArgumentState *argument : arguments)
        built.arguments.push_back(*argument);
      FailureOr<func::FuncOp> body = BodyPartitioner(callee, built.arguments, grid, nextReduction).run();
      if (failed(body))
        return failure();
      built.body = *body;
      // Later arguments are held against the parameters as they are after the call, which may be arguments of it.
      for (ArgumentState &argument : built.arguments)
        if (argument.parameter)
          argument.parameter = &states.emplace_back(*argument.parameter);
      variants[call.getCallee()].push_back(std::move(built));
      variant = &variants[call.getCallee()].back();
    }
    for (auto [argument, decided] : llvm::zip(arguments, variant->arguments)) {
      argument->isDecided = true;
      argument->distribution = decided.distribution;
      argument->parallelDim = decided.parallelDim;
    }
    callees[call] = variant->body;
    for (auto [index, result] : llvm::enumerate(call.getResults())) {
      std::optional<int64_t> inplace = inplaceArgument(callee, index);
      if (inplace && arguments[*inplace]->role == ArgumentState::Role::Accumulator) {
        stateOf[result] = arguments[*inplace];
        continue;
      }
      ArgumentState &state = states.emplace_back();
      state.distribution = Distribution::of(variant->body.getFunctionType().getResult(index));
      stateOf[result] = &state;
    }
    return success();
  }

  /// Local bodies take the names of those that they replace.
  void finishBodies() {
    SmallVector<func::FuncOp> replaced;
    for (auto &entry : variants)
      replaced.push_back(symbols.lookup<func::FuncOp>(entry.getKey()));
    for (func::FuncOp body : replaced) {
      std::string name = body.getName().str();
      symbols.erase(body);
      for (auto [index, variant] : llvm::enumerate(variants[name])) {
        std::string own = name;
        for (unsigned suffix = index; index > 0 && symbols.lookup(own); ++suffix)
          own = name + "_v" + std::to_string(suffix);
        symbols.remove(variant.body);
        variant.body.setName(own);
        symbols.insert(variant.body);
      }
    }
  }

  void finishMicrobatch() {
    for (auto [call, body] : callees) {
      auto op = cast<func::CallOp>(call);
      op.setCallee(body.getName());
      for (auto [result, type] : llvm::zip(op.getResults(), body.getFunctionType().getResults()))
        result.setType(type);
    }
    for (auto [index, argument] : llvm::enumerate(microbatch.getArguments())) {
      auto type = cast<RankedTensorType>(argument.getType());
      const Distribution &distribution = stateOf.lookup(argument)->distribution;
      if (stateOf.lookup(argument)->role == ArgumentState::Role::Parameter)
        microbatch.setArgAttr(index, TfmDialect::kGlobalShapeAttr, builder.getDenseI64ArrayAttr(type.getShape()));
      SmallVector<int64_t> shape;
      for (auto [dim, size] : llvm::enumerate(type.getShape()))
        shape.push_back(distribution.localSize(dim, size, grid));
      argument.setType(distribution.encode(RankedTensorType::get(shape, type.getElementType())));
    }
    Operation *terminator = microbatch.front().getTerminator();
    for (auto [index, type] : llvm::enumerate(microbatch.getResultTypes()))
      if (microbatch.getResultAttr(index, TfmDialect::kOutputAttr))
        microbatch.setResultAttr(index, TfmDialect::kGlobalShapeAttr,
                                 builder.getDenseI64ArrayAttr(cast<RankedTensorType>(type).getShape()));
    microbatch.setFunctionType(
        builder.getFunctionType(microbatch.front().getArgumentTypes(), terminator->getOperandTypes()));
  }

  ModuleOp module;
  func::FuncOp microbatch;
  const Grid &grid;
  SymbolTable symbols;
  Builder builder;
  int64_t nextReduction = 0;
  /// Stable addresses: arguments of @microbatch first, then results of calls.
  std::deque<ArgumentState> states;
  llvm::DenseMap<Value, ArgumentState *> stateOf;
  llvm::StringMap<std::deque<Variant>> variants;
  llvm::MapVector<Operation *, func::FuncOp> callees;
};

struct Partition : impl::TfmPartitionBase<Partition> {
  using TfmPartitionBase::TfmPartitionBase;

  void runOnOperation() override {
    if (failed(partition()))
      signalPassFailure();
  }

private:
  LogicalResult partition() {
    ModuleOp module = getOperation();
    const std::pair<StringRef, int64_t> sizes[] = {{"tp", tp}, {"cp", cp}, {"dp", dp}};
    for (auto [name, size] : sizes)
      if (size < 1)
        return module.emitError("expects ") << name << " to be at least 1, not " << size;
    func::FuncOp microbatch = lookupFunction(module, "microbatch");
    if (!microbatch)
      return failure();
    if (module->hasAttr(TfmDialect::kGridAttr))
      return module.emitError("is partitioned already: it has '") << TfmDialect::kGridAttr << "'";
    if (tp == 1 && cp == 1 && dp == 1)
      return success();
    FailureOr<Grid> grid = chooseGrid(module, tp, cp, dp);
    if (failed(grid))
      return failure();
    module->setAttr(TfmDialect::kGridAttr, grid->getAttr(&getContext()));
    SmallVector<int64_t> shape;
    for (Axis axis : grid->axes())
      shape.push_back(grid->size(axis));
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    shard::GridOp::create(builder, module.getLoc(), kGridSymbol, shape);
    return MicrobatchPartitioner(module, microbatch, *grid).run();
  }
};

} // namespace
} // namespace drover::tfm
