//===- ModelFacts.cpp - tokens, vocabulary and initial values of a model --===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Conversion/TfmToSchedule/TfmToSchedule.h"
#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace drover {
namespace {

/// Initial value by one use of a parameter; nothing where the use says nothing.
std::optional<InitialValue> initialValueOf(OpOperand &use) {
  if (auto norm = dyn_cast<tfm::RmsNormOp>(use.getOwner()))
    return InitialValue{false, 1.0 - norm.getWeightOffset().convertToDouble()};
  if (auto norm = dyn_cast<tfm::LayerNormOp>(use.getOwner()))
    return InitialValue{false, use.get() == norm.getWeight() ? 1.0 : 0.0};
  if (isa<tfm::BiasAddOp>(use.getOwner()))
    return InitialValue{false, 0.0};
  return std::nullopt;
}

ModelFacts::Size sizeOf(func::FuncOp function, unsigned argument, unsigned dim) {
  auto type = cast<RankedTensorType>(function.getArgument(argument).getType());
  ModelFacts::Size size;
  if (!type.isDynamicDim(dim)) {
    size.size = type.getDimSize(dim);
    return size;
  }
  auto shape = function.getArgAttrOfType<AffineMapAttr>(argument, tfm::TfmDialect::kShapeAttr);
  if (shape && dim < shape.getValue().getNumResults())
    if (auto symbol = dyn_cast<AffineSymbolExpr>(shape.getValue().getResult(dim)))
      size.symbol = symbol.getPosition();
  return size;
}

} // namespace

FailureOr<ModelFacts> readModelFacts(ModuleOp module) {
  auto function = module.lookupSymbol<func::FuncOp>("model");
  if (!function || function.isExternal())
    return module.emitError("expects a function @model");
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (!function.getArgAttr(i, tfm::TfmDialect::kInputAttr) &&
        !function.getArgAttr(i, tfm::TfmDialect::kParameterAttr))
      return function.emitError("expects argument ")
             << i << " to be an input ('tfm.input') or a parameter ('tfm.parameter')";
  ModelFacts facts;

  // The table with most rows: learned positions are an embedding too.
  std::optional<unsigned> tokens;
  function.walk([&](tfm::EmbeddingOp embedding) {
    auto argument = dyn_cast<BlockArgument>(embedding.getIds());
    int64_t rows = embedding.getTable().getType().getDimSize(0);
    if (argument && argument.getOwner() == &function.front() && rows > facts.vocabulary) {
      tokens = argument.getArgNumber();
      facts.vocabulary = rows;
    }
  });
  for (unsigned i = 0; i < function.getNumArguments() && !tokens; ++i)
    if (function.getArgAttrOfType<StringAttr>(i, tfm::TfmDialect::kInputAttr) ==
        StringAttr::get(module.getContext(), "input_ids"))
      tokens = i;
  if (tokens) {
    auto name = function.getArgAttrOfType<StringAttr>(*tokens, tfm::TfmDialect::kInputAttr);
    auto type = dyn_cast<RankedTensorType>(function.getArgument(*tokens).getType());
    if (name && type && type.getRank() == 2) {
      facts.tokens = name.str();
      facts.batch = sizeOf(function, *tokens, 0);
      facts.sequence = sizeOf(function, *tokens, 1);
    }
  }

  double range = 0.02;
  if (auto attr = module->getAttrOfType<FloatAttr>(tfm::TfmDialect::kInitializerRangeAttr))
    range = attr.getValueAsDouble();
  for (BlockArgument argument : function.getArguments()) {
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), tfm::TfmDialect::kParameterAttr);
    if (!name)
      continue;
    InitialValue initial{true, range};
    for (OpOperand &use : argument.getUses())
      if (std::optional<InitialValue> value = initialValueOf(use))
        initial = *value;
    facts.initialValues[name.getValue()] = initial;
  }
  return facts;
}

} // namespace drover
