//===- AddUpdateBodies.cpp - flat bodies of the optimizer -------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TransformUtils.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMADDUPDATEBODIES
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {

struct AddUpdateBodies : impl::TfmAddUpdateBodiesBase<AddUpdateBodies> {
  using TfmAddUpdateBodiesBase::TfmAddUpdateBodiesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (optimizer != "adamw" && optimizer != "sgd") {
      module.emitError("expects optimizer adamw or sgd, not '") << optimizer << "'";
      return signalPassFailure();
    }
    if (dtype != "f32" && dtype != "bf16") {
      module.emitError("expects dtype f32 or bf16, not '") << dtype << "'";
      return signalPassFailure();
    }
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    Type f32 = builder.getF32Type();
    auto flat = [](Type element) { return RankedTensorType::get({ShapedType::kDynamic}, element); };
    Type values = flat(f32), hyper = RankedTensorType::get({8}, f32);

    if (optimizer == "adamw")
      addBody(builder, "adamw_update", "update", {values, values, values, values, hyper}, /*numInplace=*/3,
              [&](ValueRange arguments) -> ValueRange {
                return AdamWOp::create(builder, module.getLoc(), TypeRange{values, values, values}, arguments)
                    ->getResults();
              });
    else
      addBody(builder, "sgd_update", "update", {values, values, hyper}, /*numInplace=*/1,
              [&](ValueRange arguments) -> ValueRange {
                return SgdOp::create(builder, module.getLoc(), TypeRange(values), arguments)->getResults();
              });
    addBody(builder, "sum_of_squares", "norm", {values}, /*numInplace=*/0, [&](ValueRange arguments) -> ValueRange {
      auto sum = RankedTensorType::get({}, builder.getF64Type());
      return SumOfSquaresOp::create(builder, module.getLoc(), sum, arguments.front())->getResults();
    });
    if (dtype != "f32")
      addBody(builder, "cast_parameters", "update", {values}, /*numInplace=*/0,
              [&](ValueRange arguments) -> ValueRange {
                return arith::TruncFOp::create(builder, module.getLoc(), flat(builder.getBF16Type()), arguments.front())
                    ->getResults();
              });
    if (addGradients)
      addBody(builder, "add_gradients", "update", {values, values}, /*numInplace=*/1,
              [&](ValueRange arguments) -> ValueRange {
                return arith::AddFOp::create(builder, module.getLoc(), arguments[0], arguments[1])->getResults();
              });
  }

private:
  /// A private function of one operation. Its first `numInplace` results live in the first arguments.
  void addBody(OpBuilder &builder, StringRef name, StringRef phase, TypeRange arguments, unsigned numInplace,
               function_ref<ValueRange(ValueRange)> build) {
    OpBuilder::InsertionGuard guard(builder);
    Location loc = getOperation().getLoc();
    auto body = func::FuncOp::create(builder, loc, name, builder.getFunctionType(arguments, {}));
    body.setPrivate();
    body->setAttr(TfmDialect::kBodyAttr, builder.getStringAttr(phase));
    builder.setInsertionPointToStart(body.addEntryBlock());
    ValueRange results = build(body.getArguments());
    func::ReturnOp::create(builder, loc, results);
    body.setType(builder.getFunctionType(arguments, results.getTypes()));
    for (unsigned index = 0; index < numInplace; ++index)
      body.setResultAttr(index, TfmDialect::kInplaceAttr, builder.getI64IntegerAttr(index));
  }
};

} // namespace
} // namespace drover::tfm
