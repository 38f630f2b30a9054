//===- ModelShape.cpp - a model as the planner sees it --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Conversion/TfmToCost/TfmToCost.h"
#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace drover {
namespace {

/// How far a shape's parameters and FLOPs may be from the model's: what it has no field for (biases of some linears
/// only, norms of heads) is far below.
constexpr double kTolerance = 0.01;

class ShapeReader {
public:
  explicit ShapeReader(func::FuncOp model) : model(model) {}

  FailureOr<cost::ModelShape> read();

private:
  LogicalResult collect();
  LogicalResult readAttention();
  LogicalResult readHead();
  LogicalResult readTables();
  LogicalResult readLayers();
  LogicalResult readNorms();
  LogicalResult compare();

  /// The argument that a weight is, seen through a transpose; null for a value that is computed.
  BlockArgument parameterOf(Value weight) {
    if (auto transpose = weight.getDefiningOp<tfm::TransposeOp>())
      weight = transpose.getInput();
    auto argument = dyn_cast<BlockArgument>(weight);
    return argument && argument.getOwner() == &model.front() &&
                   model.getArgAttr(argument.getArgNumber(), tfm::TfmDialect::kParameterAttr)
               ? argument
               : BlockArgument();
  }
  static int64_t widthOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape().back(); }

  func::FuncOp model;
  cost::ModelShape shape;
  SmallVector<tfm::AttentionOp> attentions;
  SmallVector<tfm::LinearOp> linears; // of layers, and the head last
  SmallVector<tfm::EmbeddingOp> embeddings;
  double flops = 0, tokens = 0;
  int64_t sequence = 0;
};

/// What computes, in program order.
LogicalResult ShapeReader::collect() {
  WalkResult walked = model.walk([&](tfm::CostOpInterface op) {
    Operation *operation = op.getOperation();
    if (auto attention = dyn_cast<tfm::AttentionOp>(operation))
      attentions.push_back(attention);
    else if (auto embedding = dyn_cast<tfm::EmbeddingOp>(operation))
      embeddings.push_back(embedding);
    else if (auto linear = dyn_cast<tfm::LinearOp>(operation); linear && parameterOf(linear.getWeight()))
      linears.push_back(linear);
    else if (op.getFlops() > 0) {
      op.emitOpError("has no price: expected products with parameters and attention only");
      return WalkResult::interrupt();
    }
    flops += static_cast<double>(op.getFlops());
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult ShapeReader::readAttention() {
  if (attentions.empty())
    return model.emitError("has no attention: priced are decoders of transformers");
  tfm::AttentionOp first = attentions.front();
  ArrayRef<int64_t> query = first.getQuery().getType().getShape();
  tokens = static_cast<double>(query[0] * query[1]);
  sequence = query[1];
  shape.layers = static_cast<int64_t>(attentions.size());
  shape.heads = static_cast<int64_t>(first.getNumHeads());
  shape.kvHeads = static_cast<int64_t>(first.getNumKvHeads());
  shape.headSize = first.getHeadSize();
  for (tfm::AttentionOp attention : attentions) {
    if (attention.getCausal() == tfm::CausalKind::None)
      return attention.emitOpError("is not causal: priced are decoders");
    if (attention.getWindow() && static_cast<int64_t>(*attention.getWindow()) < sequence)
      return attention.emitOpError("has a window of ")
             << *attention.getWindow() << " in " << sequence << " tokens: priced is attention to all earlier ones";
    if (attention.getNumHeads() != first.getNumHeads() || attention.getNumKvHeads() != first.getNumKvHeads() ||
        attention.getHeadSize() != shape.headSize || attention.getValueHeadSize() != shape.headSize)
      return attention.emitOpError("has ") << attention.getNumHeads() << " heads over " << attention.getNumKvHeads()
                                           << " of sizes " << attention.getHeadSize() << " and "
                                           << attention.getValueHeadSize() << ": priced are layers of one form, "
                                           << shape.heads << " over " << shape.kvHeads << " of size " << shape.headSize;
  }
  return success();
}

/// The last product gives the logits.
LogicalResult ShapeReader::readHead() {
  if (linears.empty())
    return model.emitError("has no products with parameters: priced are decoders of transformers");
  tfm::LinearOp head = linears.pop_back_val();
  shape.vocabulary = widthOf(head.getResult());
  shape.hidden = widthOf(head.getInput());
  BlockArgument weight = parameterOf(head.getWeight());
  shape.tied =
      llvm::any_of(embeddings, [&](tfm::EmbeddingOp embedding) { return parameterOf(embedding.getTable()) == weight; });
  return success();
}

/// A table with the head's rows is of tokens, another of learned positions.
LogicalResult ShapeReader::readTables() {
  bool hasTokens = false;
  for (tfm::EmbeddingOp embedding : embeddings) {
    ArrayRef<int64_t> table = embedding.getTable().getType().getShape();
    if (table[1] == shape.hidden && table[0] == shape.vocabulary && !hasTokens) {
      hasTokens = true;
      continue;
    }
    if (table[1] != shape.hidden || shape.positionRows > 0)
      return embedding.emitOpError("reads a table of ")
             << table[0] << " x " << table[1] << ": priced are one of " << shape.vocabulary
             << " tokens and one of positions, " << shape.hidden << " wide";
    shape.positionRows = table[0];
  }
  if (!hasTokens)
    return model.emitError("ends in a product of ")
           << shape.vocabulary << " rows that no embedding has: expected a head over the vocabulary";
  return success();
}

/// Equal shares of the linears, in order; their weights tell the width between and whether it is gated.
LogicalResult ShapeReader::readLayers() {
  auto layers = static_cast<size_t>(shape.layers);
  if (linears.empty() || linears.size() % layers != 0)
    return model.emitError("has ") << linears.size() << " products with parameters in " << layers
                                   << " layers: priced are layers of one form";
  size_t perLayer = linears.size() / layers;
  int64_t weights = 0;
  for (size_t i = 0; i < linears.size(); ++i) {
    Type type = linears[i].getWeight().getType(), expected = linears[i % perLayer].getWeight().getType();
    if (type != expected)
      return linears[i].emitOpError("has a weight of ")
             << type << " where the first layer has " << expected << ": priced are layers of one form";
    if (i < perLayer)
      weights += cast<RankedTensorType>(type).getNumElements();
  }
  // The last product of a layer is the one back to the residual stream.
  tfm::LinearOp down = linears[perLayer - 1];
  shape.ffnHidden = widthOf(down.getInput());
  int64_t wide = shape.hidden * shape.ffnHidden,
          rest = weights - 2 * shape.hidden * (shape.queryWidth() + shape.kvWidth());
  if (rest != 2 * wide && rest != 3 * wide)
    return down.emitOpError("ends a layer whose products have ")
           << weights << " weights: priced are attention with four of them and " << shape.ffnHidden
           << " wide layers with two or three";
  shape.gated = rest == 3 * wide;
  size_t biases = 0;
  model.walk([&](tfm::BiasAddOp) { ++biases; });
  shape.biases = biases >= linears.size();
  return success();
}

LogicalResult ShapeReader::readNorms() {
  SmallVector<Operation *> norms;
  model.walk([&](Operation *op) {
    // Norms of heads are a little of a layer's traffic.
    if (isa<tfm::RmsNormOp, tfm::LayerNormOp>(op) && widthOf(op->getOperand(0)) == shape.hidden)
      norms.push_back(op);
  });
  size_t expected = 2 * attentions.size() + 1;
  if (norms.size() != expected)
    return model.emitError("has ") << norms.size() << " norms of the residual stream: priced are two in each of "
                                   << attentions.size() << " layers and one behind";
  shape.layerNorm = isa<tfm::LayerNormOp>(norms.front());
  for (Operation *norm : norms)
    if (isa<tfm::LayerNormOp>(norm) != shape.layerNorm)
      return norm->emitOpError("is not of the kind of the first: priced are norms of one");
  return success();
}

/// The model's own sums against the shape's.
LogicalResult ShapeReader::compare() {
  double parameters = 0;
  for (BlockArgument argument : model.getArguments())
    if (parameterOf(argument))
      parameters += static_cast<double>(cast<RankedTensorType>(argument.getType()).getNumElements());
  auto isNear = [](double value, double expected) { return std::abs(value - expected) <= kTolerance * expected; };
  auto priced = static_cast<double>(shape.parameters());
  if (!isNear(priced, parameters))
    return model.emitError("has ") << static_cast<int64_t>(parameters) << " parameters, a decoder of its shape has "
                                   << shape.parameters();
  double forward = tokens * shape.flopsPerToken(sequence, cost::FlopsCount::Causal) / 3;
  if (!isNear(forward, flops))
    return model.emitError("computes ") << static_cast<int64_t>(flops) << " FLOPs forward, a decoder of its shape "
                                        << static_cast<int64_t>(forward);
  return success();
}

FailureOr<cost::ModelShape> ShapeReader::read() {
  if (failed(collect()) || failed(readAttention()) || failed(readHead()) || failed(readTables()) ||
      failed(readLayers()) || failed(readNorms()) || failed(compare()))
    return failure();
  assert(!cost::checkShape(shape) && "operations verify");
  return shape;
}

} // namespace

FailureOr<cost::ModelShape> readModelShape(ModuleOp module) {
  auto model = module.lookupSymbol<func::FuncOp>("model");
  if (!model || model.isExternal())
    return module.emitError("expects a function @model");
  return ShapeReader(model).read();
}

} // namespace drover
