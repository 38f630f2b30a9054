//===- AttachLoss.cpp - from a model to its training loss -------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TransformUtils.h"
#include "drover/Dialect/Tfm/Transforms/Passes.h"

using namespace mlir;

namespace drover::tfm {
#define GEN_PASS_DEF_TFMATTACHLOSS
#include "drover/Dialect/Tfm/Transforms/Passes.h.inc"

namespace {

StringRef outputName(func::FuncOp model, unsigned index) {
  auto name = model.getResultAttrOfType<StringAttr>(index, TfmDialect::kOutputAttr);
  return name ? name.getValue() : "";
}

bool isLogitsLike(Type type) { return isFloatTensor(type) && cast<RankedTensorType>(type).getRank() == 3; }

/// The output called "logits", or the only one that can be logits.
FailureOr<unsigned> findLogits(func::FuncOp model) {
  SmallVector<unsigned> candidates;
  for (auto [index, type] : llvm::enumerate(model.getResultTypes())) {
    if (!isLogitsLike(type))
      continue;
    if (outputName(model, index) == "logits")
      return index;
    candidates.push_back(index);
  }
  if (candidates.size() == 1)
    return candidates.front();
  InFlightDiagnostic error = model.emitError("has no output 'logits' and ")
                             << candidates.size()
                             << " floating-point outputs of rank 3, where training needs one; its outputs are ";
  for (auto [index, type] : llvm::enumerate(model.getResultTypes()))
    error << (index ? ", '" : "'") << outputName(model, index) << "' (" << type << ")";
  return error;
}

struct AttachLoss : impl::TfmAttachLossBase<AttachLoss> {
  using TfmAttachLossBase::TfmAttachLossBase;

  void runOnOperation() override {
    func::FuncOp model = lookupFunction(getOperation(), "model");
    if (!model)
      return signalPassFailure();
    FailureOr<unsigned> logits = findLogits(model);
    if (failed(logits) || failed(attachLoss(model, *logits)))
      return signalPassFailure();
    eraseDeadOperations(model.getBody().front());
    if (documents && (failed(attachDocuments(model)) || failed(attachPositions(model))))
      return signalPassFailure();
  }

private:
  FailureOr<BlockArgument> addInput(func::FuncOp model, StringRef name, RankedTensorType type);
  LogicalResult attachLoss(func::FuncOp model, unsigned logitsIndex);
  LogicalResult attachDocuments(func::FuncOp model);
  LogicalResult attachPositions(func::FuncOp model);
  void usePositions(IotaOp iota, Value positions);

  SmallVector<int64_t> batchAndLength;
};

/// Adds an input after those the model has, before the parameters.
FailureOr<BlockArgument> AttachLoss::addInput(func::FuncOp model, StringRef name, RankedTensorType type) {
  unsigned position = 0;
  for (unsigned index = 0; index < model.getNumArguments(); ++index) {
    StringRef other = argumentName(model, index, TfmDialect::kInputAttr);
    if (other == name)
      return model.emitError("has an input '") << name << "' already, which the training step adds";
    if (!other.empty())
      position = index + 1;
  }
  NamedAttribute attr(StringAttr::get(&getContext(), TfmDialect::kInputAttr), StringAttr::get(&getContext(), name));
  if (failed(model.insertArgument(position, type, DictionaryAttr::get(&getContext(), attr), model.getLoc())))
    return failure();
  return model.getArgument(position);
}

LogicalResult AttachLoss::attachLoss(func::FuncOp model, unsigned logitsIndex) {
  Operation *terminator = model.getBody().front().getTerminator();
  Value logits = terminator->getOperand(logitsIndex);
  auto type = cast<RankedTensorType>(logits.getType());
  if (!type.hasStaticShape())
    return model.emitError("has logits of type ") << type << "; tfm-specialize comes before";
  batchAndLength.assign(type.getShape().begin(), type.getShape().end() - 1);

  OpBuilder builder(terminator);
  FailureOr<BlockArgument> labels =
      addInput(model, "labels", RankedTensorType::get(batchAndLength, builder.getI64Type()));
  if (failed(labels))
    return failure();
  Location loc = logits.getLoc();
  auto rows = RankedTensorType::get(batchAndLength, wideType(type).getElementType());
  Value maximum = LogitsMaxOp::create(builder, loc, rows, logits, /*offset=*/Value(), /*vocabulary=*/IntegerAttr());
  auto sum = LogitsSumOp::create(builder, loc, rows, rows, logits, *labels, maximum, /*offset=*/Value(),
                                 /*vocabulary=*/IntegerAttr());
  Value loss = CrossEntropyOp::create(builder, loc, RankedTensorType::get({}, builder.getF64Type()), *labels, maximum,
                                      sum.getSum(), sum.getTarget());

  numDroppedOutputs += model.getNumResults() - 1;
  terminator->setOperands(loss);
  model.setType(builder.getFunctionType(model.getArgumentTypes(), loss.getType()));
  DictionaryAttr attrs =
      builder.getDictionaryAttr(builder.getNamedAttr(TfmDialect::kOutputAttr, builder.getStringAttr("loss")));
  model.setAllResultAttrs(ArrayRef(attrs));
  return success();
}

LogicalResult AttachLoss::attachDocuments(func::FuncOp model) {
  SmallVector<AttentionOp> attentions(model.getBody().getOps<AttentionOp>());
  if (attentions.empty()) {
    auto softmaxes = model.getBody().getOps<SoftmaxOp>();
    return model.emitError("has no 'tfm.attention' to restrict to documents, but ")
           << std::distance(softmaxes.begin(), softmaxes.end()) << " 'tfm.softmax'; only mask=model is possible";
  }
  Builder builder(&getContext());
  FailureOr<BlockArgument> ids =
      addInput(model, "document_ids", RankedTensorType::get(batchAndLength, builder.getI32Type()));
  if (failed(ids))
    return failure();
  for (AttentionOp attention : attentions) {
    ArrayRef<int64_t> query = attention.getQuery().getType().getShape(), key = attention.getKey().getType().getShape();
    if (attention.getDocuments())
      return attention.emitOpError("has documents already");
    if (query[1] != key[1] || query.drop_back() != ArrayRef<int64_t>(batchAndLength))
      return attention.emitOpError("attends from [")
             << query[0] << ", " << query[1] << "] queries to [" << key[0] << ", " << key[1]
             << "] keys; documents need both to be [" << batchAndLength[0] << ", " << batchAndLength[1] << "]";
    attention.getDocumentsMutable().assign(*ids);
  }
  return success();
}

/// Positions that count up become an input, so that they can restart in every document.
LogicalResult AttachLoss::attachPositions(func::FuncOp model) {
  SmallVector<IotaOp> counts;
  for (auto iota : model.getBody().getOps<IotaOp>()) {
    ArrayRef<int64_t> shape = iota.getType().getShape();
    bool isRow = shape.size() == 2 && iota.getAxis() == 1 && iota.getStep() == 1 && shape[1] == batchAndLength[1] &&
                 iota.getType().getElementType().isInteger(64);
    if (isRow && llvm::any_of(iota->getUsers(), llvm::IsaPred<RopeOp, EmbeddingOp>))
      counts.push_back(iota);
  }
  if (counts.empty())
    return success();
  OpBuilder builder(&getContext());
  FailureOr<BlockArgument> positions =
      addInput(model, "position_ids", RankedTensorType::get(batchAndLength, builder.getI64Type()));
  if (failed(positions))
    return failure();
  for (IotaOp iota : counts)
    usePositions(iota, *positions);
  eraseDeadOperations(model.getBody().front());
  return success();
}

/// Gives those that look up or rotate by `iota` the positions instead; a table's rows are then those of each sequence.
void AttachLoss::usePositions(IotaOp iota, Value positions) {
  OpBuilder builder(iota);
  Location loc = iota.getLoc();
  if (iota.getStart() != 0) {
    auto type = cast<RankedTensorType>(positions.getType());
    Value start = arith::ConstantOp::create(builder, loc,
                                            DenseElementsAttr::get(type, builder.getI64IntegerAttr(iota.getStart())));
    positions = arith::AddIOp::create(builder, loc, positions, start);
  }
  for (Operation *user : llvm::make_early_inc_range(iota->getUsers())) {
    if (auto rope = dyn_cast<RopeOp>(user); rope && rope.getPositions() == iota) {
      rope.getPositionsMutable().assign(positions);
      continue;
    }
    auto embedding = dyn_cast<EmbeddingOp>(user);
    if (!embedding)
      continue;
    builder.setInsertionPoint(embedding);
    SmallVector<int64_t> shape(batchAndLength);
    shape.push_back(embedding.getType().getShape().back());
    Value rows = EmbeddingOp::create(builder, embedding.getLoc(), embedding.getType().clone(shape), positions,
                                     embedding.getTable(), embedding.getOffset());
    embedding->replaceUsesWithIf(ValueRange(rows),
                                 [&](OpOperand &use) { return use.get().getType() == rows.getType(); });
    for (Operation *other : llvm::make_early_inc_range(embedding->getUsers()))
      if (isa<BroadcastOp>(other) && other->getResult(0).getType() == rows.getType())
        other->getResult(0).replaceAllUsesWith(rows);
  }
}

} // namespace
} // namespace drover::tfm
