//===- BindInputs.cpp - inputs that are known -----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "SymbolicSizes.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMBINDINPUTS
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {
struct BindInputs : impl::TfmBindInputsBase<BindInputs> {
  using TfmBindInputsBase::TfmBindInputsBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("model");
    if (!function || function.isExternal()) {
      getOperation().emitError("expects a function @model");
      return signalPassFailure();
    }
    for (const std::string &text : inputs)
      if (failed(bind(function, text)))
        return signalPassFailure();
  }

  LogicalResult bind(func::FuncOp function, StringRef text) {
    auto [name, value] = text.split('=');
    if (name.empty() || (value != "ones" && value != "zeros" && value != "arange"))
      return function.emitError("expects inputs of the form NAME=ones|zeros|arange, not '") << text << "'";
    std::optional<unsigned> index;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto input = function.getArgAttrOfType<StringAttr>(i, TfmDialect::kInputAttr); input && input == name)
        index = i;
    if (!index)
      return optional ? success() : LogicalResult(function.emitError("has no input '") << name << "' to bind");

    BlockArgument argument = function.getArgument(*index);
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    std::optional<Sizes> sizes = type ? symbolicSizes(argument) : std::nullopt;
    if (!sizes || !isa<IntegerType>(type.getElementType()) || (value == "arange" && type.getRank() == 0))
      return function.emitError("expects input '")
             << name << "' to be an integer tensor of known sizes, not " << argument.getType();
    OpBuilder builder = OpBuilder::atBlockBegin(&function.front());
    AffineMapAttr shape = shapeMap(*sizes, function);
    Value known;
    if (value == "arange")
      known = IotaOp::create(builder, argument.getLoc(), type, type.getRank() - 1, 0, 1, shape);
    else
      known = FillOp::create(builder, argument.getLoc(), type,
                             builder.getIntegerAttr(type.getElementType(), value == "ones"), shape);
    argument.replaceAllUsesWith(known);
    return function.eraseArgument(*index);
  }
};
} // namespace
} // namespace drover::tfm
