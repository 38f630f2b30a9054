//===- Specialize.cpp - bind symbolic sizes ---------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "IndexRange.h"
#include "TransformUtils.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMSPECIALIZE
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {

/// One result per result of `map`; failure where one is no integer, as for a division by zero.
FailureOr<SmallVector<int64_t>> evaluate(AffineMap map, ArrayRef<int64_t> symbols) {
  SmallVector<int64_t> values = evaluateSizes(map, symbols);
  if (llvm::any_of(values, ShapedType::isDynamic))
    return failure();
  return values;
}

struct Specialize : impl::TfmSpecializeBase<Specialize> {
  using TfmSpecializeBase::TfmSpecializeBase;

  void runOnOperation() override {
    if (failed(bindSymbols()))
      return signalPassFailure();
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (failed(specialize(function)))
        return signalPassFailure();
    getOperation()->removeAttr(TfmDialect::kSymbolsAttr);
  }

private:
  LogicalResult bindSymbols();
  LogicalResult specialize(func::FuncOp function);
  LogicalResult specializeArguments(func::FuncOp function);
  LogicalResult specialize(Operation *op);
  LogicalResult evaluateMaps(Operation *op);
  LogicalResult setShape(Value value, ArrayRef<int64_t> shape);
  LogicalResult checkPositions(EmbeddingOp op);

  SmallVector<int64_t> symbols;
};

LogicalResult Specialize::bindSymbols() {
  ModuleOp module = getOperation();
  SmallVector<StringRef> names;
  if (auto attr = module->getAttrOfType<ArrayAttr>(TfmDialect::kSymbolsAttr))
    for (Attribute name : attr)
      names.push_back(cast<StringAttr>(name).getValue());
  symbols.assign(names.size(), ShapedType::kDynamic);
  for (StringRef binding : sizes) {
    auto [name, text] = binding.split('=');
    int64_t value;
    if (text.getAsInteger(10, value) || value <= 0)
      return module.emitError("expects a size as name=positive integer, not '") << binding << "'";
    auto *found = llvm::find(names, name);
    if (found == names.end()) {
      InFlightDiagnostic error = module.emitError("has no symbolic size '") << name << "'";
      return names.empty() ? error << "; all its sizes are fixed" : error << "; it has " << quoted(names);
    }
    int64_t &bound = symbols[found - names.begin()];
    if (!ShapedType::isDynamic(bound) && bound != value)
      return module.emitError("size '") << name << "' is given twice, as " << bound << " and " << value;
    bound = value;
  }
  SmallVector<StringRef> unbound;
  for (auto [name, value] : llvm::zip(names, symbols))
    if (ShapedType::isDynamic(value))
      unbound.push_back(name);
  if (!unbound.empty())
    return module.emitError("needs a value for the symbolic size")
           << (unbound.size() > 1 ? "s " : " ") << quoted(unbound);
  return success();
}

/// Gives `value` the static shape `shape`; an error where its own type says otherwise.
LogicalResult Specialize::setShape(Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (failed(verifyCompatibleShape(type.getShape(), shape)) ||
      llvm::any_of(shape, [](int64_t size) { return size < 0; })) {
    std::string what;
    if (auto argument = dyn_cast<BlockArgument>(value))
      what = llvm::formatv("argument {0}", argument.getArgNumber());
    else
      what = llvm::formatv("result {0} of '{1}'", cast<OpResult>(value).getResultNumber(),
                           value.getDefiningOp()->getName());
    InFlightDiagnostic error = emitError(value.getLoc());
    error << what << " of type " << type << " would have the sizes [";
    llvm::interleaveComma(shape, error);
    return error << "]";
  }
  auto refined = type.clone(shape);
  if (type != refined) {
    value.setType(refined);
    ++numRefined;
  }
  return success();
}

LogicalResult Specialize::specializeArguments(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    auto attr = function.getArgAttrOfType<AffineMapAttr>(index, TfmDialect::kShapeAttr);
    if (!attr) {
      if (type && !type.hasStaticShape())
        return function.emitError("argument ")
               << index << " of type " << type << " has dynamic sizes, but no '" << TfmDialect::kShapeAttr << "'";
      continue;
    }
    FailureOr<SmallVector<int64_t>> shape = evaluate(attr.getValue(), symbols);
    if (failed(shape))
      return function.emitError("argument ")
             << index << " has sizes " << attr << ", which the symbols do not determine";
    if (failed(setShape(argument, *shape)))
      return failure();
    function.removeArgAttr(index, TfmDialect::kShapeAttr);
  }
  return success();
}

/// Replaces the maps over symbols that an op carries by what they are at the given sizes.
LogicalResult Specialize::evaluateMaps(Operation *op) {
  auto evaluateAttr = [&](StringRef name, AffineMap map) -> FailureOr<SmallVector<int64_t>> {
    FailureOr<SmallVector<int64_t>> values = evaluate(map, symbols);
    if (failed(values))
      return op->emitOpError("has '") << name << "' " << AffineMapAttr::get(map)
                                      << ", which the symbols do not determine";
    return values;
  };
  auto evaluateOffsets = [&](auto box) -> LogicalResult {
    std::optional<AffineMap> map = box.getOffsetMap();
    if (!map)
      return success();
    FailureOr<SmallVector<int64_t>> offsets = evaluateAttr("offset_map", *map);
    if (failed(offsets))
      return failure();
    box.setOffsets(*offsets);
    box.removeOffsetMapAttr();
    return success();
  };
  if (auto slice = dyn_cast<SliceOp>(op); slice && failed(evaluateOffsets(slice)))
    return failure();
  if (auto pad = dyn_cast<PadOp>(op); pad && failed(evaluateOffsets(pad)))
    return failure();
  if (auto shape = op->getAttrOfType<AffineMapAttr>("shape")) {
    FailureOr<SmallVector<int64_t>> sizes = evaluateAttr("shape", shape.getValue());
    if (failed(sizes) || failed(setShape(op->getResult(0), *sizes)))
      return failure();
    op->removeAttr("shape");
  }
  return success();
}

LogicalResult Specialize::specialize(Operation *op) {
  if (auto size = dyn_cast<SizeOp>(op)) {
    FailureOr<SmallVector<int64_t>> value = evaluate(size.getValue(), symbols);
    if (failed(value))
      return op->emitOpError("has 'value' ") << size.getValueAttr() << ", which the symbols do not determine";
    size.setValueAttr(AffineMapAttr::get(AffineMap::getConstantMap(value->front(), op->getContext())));
    SmallVector<OpFoldResult> folded;
    if (failed(op->fold(folded)) || folded.size() != 1)
      return op->emitOpError("is no constant at the given sizes");
    OpBuilder builder(op);
    Value constant = arith::ConstantOp::create(builder, op->getLoc(), cast<TypedAttr>(cast<Attribute>(folded.front())));
    op->replaceAllUsesWith(ValueRange(constant));
    op->erase();
    return success();
  }
  if (failed(evaluateMaps(op)))
    return failure();
  // One spelling of a splat, whether its shape was symbolic or not.
  if (auto fill = dyn_cast<FillOp>(op); fill && cast<RankedTensorType>(fill.getType()).hasStaticShape()) {
    OpBuilder builder(op);
    auto splat = DenseElementsAttr::get(cast<RankedTensorType>(fill.getType()), Attribute(fill.getValue()));
    fill.replaceAllUsesWith(Value(arith::ConstantOp::create(builder, op->getLoc(), splat)));
    fill.erase();
    return success();
  }
  SmallVector<SmallVector<int64_t>> shapes;
  if (auto inference = dyn_cast<ShapeInferenceOpInterface>(op)) {
    if (failed(inference.inferResultShapes(symbols, shapes)))
      return failure();
  } else if (op->hasTrait<OpTrait::Elementwise>() && op->getNumOperands() > 0) {
    SmallVector<int64_t> shape;
    for (Value operand : op->getOperands()) {
      auto type = dyn_cast<RankedTensorType>(operand.getType());
      if (!type)
        continue;
      if (!shape.empty() && failed(verifyCompatibleShape(shape, type.getShape())))
        return op->emitOpError("has operands of different shapes at the given sizes: ")
               << RankedTensorType::get(shape, type.getElementType()) << " and " << type;
      shape.assign(type.getShape().begin(), type.getShape().end());
    }
    shapes.assign(op->getNumResults(), shape);
  }
  for (OpResult result : op->getResults()) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (result.getResultNumber() < shapes.size()) {
      if (failed(setShape(result, shapes[result.getResultNumber()])))
        return failure();
    } else if (type && !type.hasStaticShape()) {
      return op->emitOpError("has a result of type ") << type << ", and no rule for its shape";
    }
  }
  return success();
}

/// A table of positions has a row for each that is counted up to.
LogicalResult Specialize::checkPositions(EmbeddingOp op) {
  auto range = indexRange(op.getIds());
  int64_t rows = op.getTable().getType().getDimSize(0);
  if (!range || op.getOffset() || (range->first >= 0 && range->second < rows))
    return success();
  InFlightDiagnostic error = op.emitOpError("counts positions from ") << range->first << " to " << range->second;
  error << " where the model has " << rows << ": accepted are up to " << rows << ", not ";
  llvm::interleaveComma(sizes, error, [&](const std::string &size) { error << size; });
  return error;
}

LogicalResult Specialize::specialize(func::FuncOp function) {
  if (function.isExternal())
    return success();
  if (failed(specializeArguments(function)))
    return failure();
  for (Operation &op : llvm::make_early_inc_range(function.getBody().getOps()))
    if (!op.hasTrait<OpTrait::IsTerminator>() && failed(specialize(&op)))
      return failure();
  for (EmbeddingOp embedding : function.getBody().getOps<EmbeddingOp>())
    if (failed(checkPositions(embedding)))
      return failure();
  Operation *terminator = function.getBody().back().getTerminator();
  function.setType(
      FunctionType::get(&getContext(), function.getBody().getArgumentTypes(), terminator->getOperandTypes()));
  return success();
}

} // namespace
} // namespace drover::tfm
