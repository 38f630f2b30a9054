//===- EraseDistributions.cpp - from proven to plain types ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Dialect/Tfm/IR/Distribution.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMERASEDISTRIBUTIONS
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {

DistAttr encodingOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<DistAttr>(tensor.getEncoding()) : DistAttr();
}

Type plain(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return encodingOf(type) ? RankedTensorType::get(tensor.getShape(), tensor.getElementType()) : type;
}

void erase(Operation *op) {
  for (Value result : op->getResults())
    result.setType(plain(result.getType()));
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    if (auto elements = dyn_cast<DenseElementsAttr>(constant.getValue()); elements && encodingOf(elements.getType())) {
      auto type = cast<ShapedType>(plain(elements.getType()));
      constant.setValueAttr(elements.isSplat() ? cast<TypedAttr>(elements.resizeSplat(type))
                                               : cast<TypedAttr>(elements.reshape(type)));
    }
}

struct EraseDistributions : impl::TfmEraseDistributionsBase<EraseDistributions> {
  void runOnOperation() override {
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      if (function->hasAttr(TfmDialect::kMicrobatchAttr))
        keep(function);
      SmallVector<Type> arguments, results;
      for (BlockArgument argument : function.getArguments()) {
        argument.setType(plain(argument.getType()));
        arguments.push_back(argument.getType());
      }
      function.walk([](Operation *op) { erase(op); });
      for (Type type : function.getResultTypes())
        results.push_back(plain(type));
      function.setFunctionType(FunctionType::get(&getContext(), arguments, results));
    }
  }

private:
  /// What is read after this pass: how parameters, accumulators and outputs are held.
  void keep(func::FuncOp microbatch) {
    for (auto [index, type] : llvm::enumerate(microbatch.getArgumentTypes()))
      if (DistAttr attr = encodingOf(type))
        microbatch.setArgAttr(index, TfmDialect::kDistributionAttr, attr);
    for (auto [index, type] : llvm::enumerate(microbatch.getResultTypes()))
      if (DistAttr attr = encodingOf(type))
        microbatch.setResultAttr(index, TfmDialect::kDistributionAttr, attr);
  }
};

} // namespace
} // namespace drover::tfm
