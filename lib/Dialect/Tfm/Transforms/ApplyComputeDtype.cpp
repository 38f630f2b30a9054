//===- ApplyComputeDtype.cpp - the dtype of activations ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TransformUtils.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMAPPLYCOMPUTEDTYPE
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {

struct ApplyComputeDtype : impl::TfmApplyComputeDtypeBase<ApplyComputeDtype> {
  using TfmApplyComputeDtypeBase::TfmApplyComputeDtypeBase;

  void runOnOperation() override {
    func::FuncOp model = lookupFunction(getOperation(), "model");
    if (!model || failed(parseDtype()))
      return signalPassFailure();
    Block &block = model.getBody().front();
    findWide(block);
    for (BlockArgument argument : block.getArguments())
      if (model.getArgAttr(argument.getArgNumber(), TfmDialect::kParameterAttr) && isFloatTensor(argument.getType()))
        retype(argument, compute);
    for (Operation &op : llvm::make_early_inc_range(block.without_terminator()))
      convert(&op);
    Operation *terminator = block.getTerminator();
    for (OpOperand &operand : terminator->getOpOperands())
      if (computed.contains(operand.get()) && !operand.get().getDefiningOp<CrossEntropyOp>())
        castOperand(operand, wide);
    model.setType(FunctionType::get(&getContext(), block.getArgumentTypes(), terminator->getOperandTypes()));
    eraseDeadOperations(block);
  }

private:
  LogicalResult parseDtype();
  void findWide(Block &block);
  void convert(Operation *op);
  void castOperand(OpOperand &operand, Type elementType);
  void retype(Value value, Type elementType) {
    value.setType(cast<RankedTensorType>(value.getType()).clone(elementType));
    computed.insert(value);
  }

  Type compute, wide;
  DenseSet<Value> computed;      // depends on a parameter; has its new type
  DenseSet<Operation *> wideOps; // compute logits and outputs, in f32
  DenseMap<std::pair<Value, Type>, Value> casts;
};

LogicalResult ApplyComputeDtype::parseDtype() {
  Builder builder(&getContext());
  compute = llvm::StringSwitch<Type>(dtype)
                .Case("f32", builder.getF32Type())
                .Case("bf16", builder.getBF16Type())
                .Case("f64", builder.getF64Type())
                .Default(nullptr);
  if (!compute)
    return getOperation().emitError("expects dtype f32, bf16 or f64, not '") << dtype << "'";
  wide = compute.isF64() ? compute : builder.getF32Type();
  return success();
}

/// Walks from the loss and the outputs towards the matrix product that makes them, as long as nobody else
/// reads what is on the way.
void ApplyComputeDtype::findWide(Block &block) {
  auto isRoot = [](Operation *op) {
    return op->hasTrait<OpTrait::IsTerminator>() || recomputeClassOf(op) == RecomputeClass::Reduction;
  };
  for (Operation &op : llvm::reverse(block)) {
    if (isRoot(&op) || op.getNumResults() != 1 || !isFloatTensor(op.getResult(0).getType()) || op.use_empty())
      continue;
    bool read = llvm::all_of(op.getUsers(), [&](Operation *user) {
      return isRoot(user) || (wideOps.contains(user) && recomputeClassOf(user) != RecomputeClass::Contraction);
    });
    bool isView = recomputeClassOf(&op) == RecomputeClass::Movement && op.getNumOperands() == 1;
    if (read && (isView || op.hasTrait<OpTrait::Elementwise>() || recomputeClassOf(&op) == RecomputeClass::Contraction))
      wideOps.insert(&op);
  }
}

/// Casts an operand, or makes a constant of the other type.
void ApplyComputeDtype::castOperand(OpOperand &operand, Type elementType) {
  Value value = operand.get();
  if (getElementTypeOrSelf(value.getType()) == elementType)
    return;
  Value &cast = casts[{value, elementType}];
  if (!cast) {
    OpBuilder builder(operand.getOwner());
    DenseElementsAttr constant;
    if (matchPattern(value, m_Constant(&constant)) && constant.isSplat()) {
      bool losesInfo;
      APFloat number = constant.getSplatValue<APFloat>();
      number.convert(llvm::cast<FloatType>(elementType).getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
      auto type = llvm::cast<RankedTensorType>(value.getType()).clone(elementType);
      cast = arith::ConstantOp::create(builder, value.getLoc(), DenseElementsAttr::get(type, number));
    } else {
      cast = castTo(builder, value.getLoc(), value, elementType);
      ++numCasts;
    }
  }
  operand.set(cast);
}

void ApplyComputeDtype::convert(Operation *op) {
  if (llvm::none_of(op->getOperands(), [&](Value operand) { return computed.contains(operand); }))
    return;
  RecomputeClass kind = recomputeClassOf(op);
  bool isWide = wideOps.contains(op);
  if (kind == RecomputeClass::Cast && isFloatTensor(op->getOperand(0).getType()) &&
      isFloatTensor(op->getResult(0).getType())) {
    // The model's own casts are between types that it no longer has.
    OpBuilder builder(op);
    Value value = castTo(builder, op->getLoc(), op->getOperand(0), isWide ? wide : compute);
    op->getResult(0).replaceAllUsesWith(value);
    if (wideOps.contains(op) && value.getDefiningOp())
      wideOps.insert(value.getDefiningOp());
    op->erase();
    computed.insert(value);
    return;
  }
  bool readsWide = kind == RecomputeClass::Reduction || (isWide && kind != RecomputeClass::Contraction);
  for (OpOperand &operand : op->getOpOperands()) {
    // An attention's mask may have any type.
    bool isMask = kind == RecomputeClass::Attention && !computed.contains(operand.get());
    if (isFloatTensor(operand.get().getType()) && !isMask)
      castOperand(operand, readsWide ? wide : compute);
  }
  for (OpResult result : op->getResults()) {
    if (!isFloatTensor(result.getType()))
      continue;
    if (isa<CrossEntropyOp>(op))
      computed.insert(result);
    else // log_sum_exp is attention's second result
      retype(result, isWide || kind == RecomputeClass::Reduction ||
                             (kind == RecomputeClass::Attention && result.getResultNumber() > 0)
                         ? wide
                         : compute);
  }
}

} // namespace
} // namespace drover::tfm
