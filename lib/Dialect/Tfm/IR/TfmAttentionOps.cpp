//===- TfmAttentionOps.cpp - rope and attention -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "OpUtils.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace drover::tfm;

//===----------------------------------------------------------------------===//
// Rope
//===----------------------------------------------------------------------===//

LogicalResult RopeOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  return inferSame(*this, getInput(), 1, shapes); // C5
}

LogicalResult RopeOp::verify() {
  ArrayRef<int64_t> input = shapeOf(getInput()), positions = shapeOf(getPositions());
  if (input.size() != 3)
    return emitOpError("expects an input of rank 3, not ") << str(input);
  if (positions.size() != 2 || (!compatible(positions[0], input[0]) && positions[0] != 1) ||
      !compatible(positions[1], input[1])) // C1
    return emitOpError("expects positions of shape ") << str(input.drop_back()) << ", not " << str(positions);
  int64_t head = getHeadSize(), rotary = getRotaryDim();
  if (head <= 0 || (!ShapedType::isDynamic(input[2]) && input[2] % head)) // C2
    return emitOpError("expects head_size (") << head << ") to divide the last size of input " << str(input);
  if (rotary <= 0 || rotary % 2 || rotary > head) // C3
    return emitOpError("expects rotary_dim to be even, positive and at most head_size (")
           << head << "), not " << rotary;
  if (std::optional<ArrayRef<float>> table = getInvFreq()) { // C4
    if (static_cast<int64_t>(table->size()) != rotary / 2)
      return emitOpError("expects inv_freq to have ") << rotary / 2 << " elements, not " << table->size();
    if (getScaling())
      return emitOpError("expects no scaling where inv_freq is given");
    for (float frequency : *table)
      if (!std::isfinite(frequency))
        return emitOpError("expects inv_freq to be finite, not ") << frequency;
  }
  double theta = getTheta().convertToDouble(), magnitude = getMagnitude().convertToDouble();
  if (!(theta > 0) || !std::isfinite(theta) || !std::isfinite(magnitude)) // C6
    return emitOpError("expects a positive theta and a finite magnitude, not ") << theta << " and " << magnitude;
  return verifyShapes(*this);
}
uint64_t RopeOp::getFlops() { return 0; }

static float toFloat(const APFloat &value) { return static_cast<float>(value.convertToDouble()); }

SmallVector<float> RopeOp::getFrequencies() {
  if (std::optional<ArrayRef<float>> table = getInvFreq())
    return SmallVector<float>(*table);
  return ropeFrequencies(getRotaryDim(), getTheta().convertToDouble(), getScalingAttr());
}

SmallVector<float> drover::tfm::ropeFrequencies(int64_t rotary, float theta, RopeScalingAttr scaling) {
  SmallVector<float> result;
  for (int64_t c = 0; c < rotary; c += 2)
    result.push_back(1.0f / std::pow(theta, static_cast<float>(c) / static_cast<float>(rotary)));
  if (!scaling)
    return result;
  for (float &frequency : result) {
    float factor = toFloat(scaling.getFactor());
    if (scaling.getKind() == "linear") {
      frequency /= factor;
      continue;
    }
    float low = toFloat(scaling.getLow()), high = toFloat(scaling.getHigh()), original = scaling.getOriginal();
    float wavelength = 2.0f * static_cast<float>(M_PI) / frequency;
    if (wavelength > original / low) {
      frequency /= factor;
    } else if (!(wavelength < original / high)) {
      float smooth = (original / wavelength - low) / (high - low);
      frequency = (1 - smooth) * frequency / factor + smooth * frequency;
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// The size of one of `heads` heads that make up a last size.
static int64_t headSize(int64_t size, int64_t heads) { return ShapedType::isDynamic(size) ? size : size / heads; }

/// Shapes of the result and of log_sum_exp; the head counts are positive.
template <typename OpT> static std::pair<Shape, Shape> forwardShapes(OpT op) {
  ArrayRef<int64_t> query = shapeOf(op.getQuery());
  int64_t heads = op.getNumHeads(), valueHead = headSize(shapeOf(op.getValue())[2], op.getNumKvHeads());
  return {{query[0], query[1], product(heads, valueHead)}, {query[0], heads, query[1]}};
}

template <typename OpT> static LogicalResult verifyAttention(OpT op) {
  ArrayRef<int64_t> query = shapeOf(op.getQuery()), key = shapeOf(op.getKey()), value = shapeOf(op.getValue());
  int64_t heads = op.getNumHeads(), kvHeads = op.getNumKvHeads();
  if (heads <= 0 || kvHeads <= 0 || heads % kvHeads) // C1
    return op.emitOpError("expects kv heads (") << kvHeads << ") to divide query heads (" << heads << ")";
  if (query.size() != 3 || key.size() != 3 || value.size() != 3)
    return op.emitOpError("expects query, key and value of rank 3, not ")
           << str(query) << ", " << str(key) << " and " << str(value);
  auto divides = [](int64_t count, int64_t size) { return ShapedType::isDynamic(size) || size % count == 0; };
  if (!divides(heads, query[2]) || !divides(kvHeads, key[2]) || !divides(kvHeads, value[2])) // C2
    return op.emitOpError("expects query heads (")
           << heads << ") to divide the last size of query " << str(query) << " and kv heads (" << kvHeads
           << ") those of key " << str(key) << " and value " << str(value);
  if (!compatible(headSize(query[2], heads), headSize(key[2], kvHeads)))
    return op.emitOpError("expects equal head sizes of query and key, not ")
           << query[2] / heads << " and " << key[2] / kvHeads;
  if (!compatible(query[0], key[0]) || !compatible(key.drop_back(), value.drop_back())) // C3
    return op.emitOpError("expects equal batches and equal lengths of key and value, not ")
           << str(query) << ", " << str(key) << " and " << str(value);
  auto broadcastable = [](int64_t size, int64_t full) { return size == 1 || compatible(size, full); };
  if (Value mask = op.getMask()) { // C5
    ArrayRef<int64_t> shape = shapeOf(mask);
    if (shape.size() != 4 || !broadcastable(shape[0], query[0]) || !broadcastable(shape[1], heads) ||
        !broadcastable(shape[2], query[1]) || !compatible(shape[3], key[1]))
      return op.emitOpError("expects a mask that broadcasts to ")
             << str({query[0], heads, query[1], key[1]}) << ", not " << str(shape);
  }
  if (Value mask = op.getKeyMask()) { // C6
    ArrayRef<int64_t> shape = shapeOf(mask);
    if (shape.size() != 2 || !broadcastable(shape[0], key[0]) || !compatible(shape[1], key[1]))
      return op.emitOpError("expects a key_mask of shape ") << str({key[0], key[1]}) << ", not " << str(shape);
  }
  if (Value documents = op.getDocuments()) { // C7
    ArrayRef<int64_t> shape = shapeOf(documents);
    bool square = op.getQueryIndex() || compatible(query[1], key[1]);
    if (shape.size() != 2 || !compatible(shape[0], query[0]) || !compatible(shape[1], key[1]) || !square)
      return op.emitOpError("expects documents of shape ")
             << str(key.drop_back()) << " and as many keys as queries, not " << str(shape);
  }
  if (op.getWindow() && static_cast<int64_t>(*op.getWindow()) <= 0) // C8
    return op.emitOpError("expects a positive window, not ") << static_cast<int64_t>(*op.getWindow());
  if (op.getSoftcap() && !(op.getSoftcap()->convertToDouble() > 0 && op.getSoftcap()->isFinite()))
    return op.emitOpError("expects a positive softcap, not ") << op.getSoftcap()->convertToDouble();
  if (op.getAlibiSlopes() && static_cast<int64_t>(op.getAlibiSlopes()->size()) != heads)
    return op.emitOpError("expects ") << heads << " alibi_slopes, not " << op.getAlibiSlopes()->size();
  if (Value index = op.getQueryIndex()) { // C9
    if (!compatible(shapeOf(index)[0], query[1]))
      return op.emitOpError("expects a query_index of shape ") << str({query[1]}) << ", not " << str(shapeOf(index));
    if (op.getCausal() == CausalKind::BottomRight)
      return op.emitOpError("expects causal none or top_left with a query_index, not bottom_right");
  }
  if (llvm::is_contained(query, 0) || llvm::is_contained(key, 0) || llvm::is_contained(value, 0)) // C10
    return op.emitOpError("expects sizes that are not 0, not ")
           << str(query) << ", " << str(key) << " and " << str(value);
  if (!op.getScale().isFinite())
    return op.emitOpError("expects a finite scale, not ") << op.getScale().convertToDouble();
  return verifySameElementType(op, {op.getQuery(), op.getKey(), op.getValue(), op.getResult()}); // C11
}

/// Multiply-adds of `products` products of the size of an attention's scores and as many of that of its output, over
/// all heads: pairs of query and key that a causal mask allows, times the head size. Query i of S sees i + 1 of T keys
/// under a top-left mask, i + 1 + T - S under a bottom-right one, but no less than none and no more than T. Queries
/// that are a part of the sequence see their share of all pairs, which CP's two chunks do exactly. 0 for dynamic sizes.
template <typename OpT> static uint64_t multiplyAdds(OpT op, uint64_t products) {
  ArrayRef<int64_t> query = shapeOf(op.getQuery()), key = shapeOf(op.getKey()), value = shapeOf(op.getValue());
  if (llvm::is_contained(query, ShapedType::kDynamic) || llvm::is_contained(value, ShapedType::kDynamic) ||
      ShapedType::isDynamic(key[1]))
    return 0;
  uint64_t queries = query[1], keys = key[1], least = std::min(queries, keys);
  auto half = [](uint64_t a, uint64_t x) { return countProduct({a, x}) / 2; };
  uint64_t pairs = countProduct({queries, keys});
  if (op.getCausal() == CausalKind::TopLeft && op.getQueryIndex())
    pairs = half(queries, keys + 1);
  else if (op.getCausal() == CausalKind::TopLeft)
    pairs = llvm::SaturatingAdd(half(least, least + 1), countProduct({queries - least, keys}));
  else if (op.getCausal() == CausalKind::BottomRight)
    pairs = llvm::SaturatingAdd(half(least, least + 1), countProduct({keys - least, queries}));
  uint64_t heads = op.getNumHeads(), kvHeads = op.getNumKvHeads();
  return countProduct({products, static_cast<uint64_t>(query[0]), pairs, heads, query[2] / heads + value[2] / kvHeads});
}

LogicalResult AttentionOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  auto [result, logSumExp] = forwardShapes(*this); // C4
  shapes.push_back(result);
  shapes.push_back(logSumExp);
  return success();
}
LogicalResult AttentionOp::verify() {
  if (failed(verifyAttention(*this)) ||
      failed(verifyAccumulator(*this, getLogSumExp(), getQuery(), "log_sum_exp"))) // C4
    return failure();
  return verifyShapes(*this);
}
uint64_t AttentionOp::getFlops() { return multiplyAdds(*this, 2); }

LogicalResult AttentionGradOp::inferResultShapes(ArrayRef<int64_t>, Shapes &shapes) {
  shapes.push_back(Shape(shapeOf(getQuery()))); // C2
  shapes.push_back(Shape(shapeOf(getKey())));
  shapes.push_back(Shape(shapeOf(getValue())));
  return success();
}
LogicalResult AttentionGradOp::verify() {
  if (failed(verifyAttention(*this))) // C3
    return failure();
  if (failed(verifySameElementType(*this, {getQuery(), getGradient()}))) // C1
    return failure();
  auto [expected, logSumExp] = forwardShapes(*this);
  for (Value operand : {getResult(), getGradient()})
    if (!compatible(expected, shapeOf(operand))) // C1
      return emitOpError("expects result and gradient of shape ") << str(expected) << ", not " << str(shapeOf(operand));
  if (!compatible(logSumExp, shapeOf(getLogSumExp())))
    return emitOpError("expects log_sum_exp of shape ") << str(logSumExp) << ", not " << str(shapeOf(getLogSumExp()));
  return verifyShapes(*this);
}
uint64_t AttentionGradOp::getFlops() {
  // Model FLOPs: dV, dP, dQ, dK. The scores that are computed again are hardware FLOPs only.
  return multiplyAdds(*this, 4);
}
