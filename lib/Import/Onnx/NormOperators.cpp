//===- NormOperators.cpp - layer norm and RMS norm ------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Operators.h"

using namespace llvm;
using namespace mlir;

namespace drover::onnx {
namespace {

/// What the norms of all domains have in common.
struct Norm {
  Value x;
  std::optional<Value> weight, bias;
  int64_t axis;
  double eps;
  bool isRms;
  /// The statistics are computed in float32 even where the operands are shorter.
  bool wide;
};

/// The normalized value and the statistics in primitives, for what the one op does not cover.
struct Decomposed {
  Value y, mean, inverse;
};

Decomposed decompose(NodeContext &n, const Norm &norm) {
  std::vector<int64_t> axes;
  for (int64_t dim = norm.axis; dim < norm.x.rank(); ++dim)
    axes.push_back(dim);
  Value x = norm.wide && byteSize(norm.x.type) < 4 ? n.b.cast(norm.x, ElemType::Float) : norm.x;
  Decomposed result;
  Value centred = x;
  if (!norm.isRms) {
    result.mean = n.b.reduce(tfm::ReduceKind::Mean, x, axes, true);
    centred = n.b.sub(x, result.mean);
  }
  Value variance = n.b.reduce(tfm::ReduceKind::Mean, n.b.mul(centred, centred), axes, true);
  result.inverse = n.b.div(n.b.number(x, 1), n.b.unary(Unary::Sqrt, n.b.add(variance, n.b.number(x, norm.eps))));
  result.y = n.b.cast(n.b.mul(centred, result.inverse), norm.x.type);
  if (norm.weight)
    result.y = n.b.mul(n.b.cast(result.y, norm.weight->type), *norm.weight);
  if (norm.bias)
    result.y = n.b.add(result.y, *norm.bias);
  return result;
}

/// tfm.rms_norm or tfm.layer_norm: over the last dimension, vectors of the operand's type.
bool isDirect(const Norm &norm) {
  auto isVector = [&](const std::optional<Value> &value) {
    return !value || (value->rank() == 1 && value->shape[0] == norm.x.shape.back() && value->type == norm.x.type);
  };
  return norm.axis + 1 == norm.x.rank() && isVector(norm.weight) && isVector(norm.bias) &&
         (norm.weight || !norm.bias) && norm.eps >= 0;
}

Value direct(NodeContext &n, const Norm &norm) {
  OpBuilder &builder = n.b.builder;
  mlir::Value x = n.b.materialize(norm.x), weight, bias;
  if (norm.weight)
    weight = n.b.materialize(*norm.weight);
  if (norm.bias)
    bias = n.b.materialize(*norm.bias);
  if (n.b.failed())
    return {};
  FloatAttr eps = builder.getF64FloatAttr(norm.eps);
  mlir::Value result;
  if (norm.isRms)
    result = tfm::RmsNormOp::create(builder, n.b.location, x.getType(), x, weight, eps, builder.getF64FloatAttr(0));
  else
    result = tfm::LayerNormOp::create(builder, n.b.location, x.getType(), x, weight, bias, eps);
  return n.b.wrap(result, norm.x.type, norm.x.shape, {&norm.x});
}

/// Emits the norm to output 0, and the statistics where they are read.
void emit(NodeContext &n, const Norm &norm, int64_t meanOutput, int64_t inverseOutput) {
  if (n.b.failed())
    return;
  bool statistics = (meanOutput >= 0 && n.isWanted(meanOutput)) || (inverseOutput >= 0 && n.isWanted(inverseOutput));
  if (!statistics && isDirect(norm))
    return n.out(0, direct(n, norm));
  Decomposed parts = decompose(n, norm);
  n.out(0, parts.y);
  if (meanOutput >= 0 && !norm.isRms)
    n.out(meanOutput, parts.mean);
  if (inverseOutput >= 0)
    n.out(inverseOutput, parts.inverse);
}

std::optional<Value> optionalWeight(NodeContext &n, size_t index, Role role) {
  return n.has(index) ? std::optional<Value>(n.weight(index, role)) : std::nullopt;
}

template <bool isRms> void norm(NodeContext &n) {
  Norm norm;
  norm.x = n.plain(0);
  if (n.b.failed())
    return;
  norm.weight = optionalWeight(n, 1, Role::NormWeight);
  if (!isRms)
    norm.bias = optionalWeight(n, 2, Role::Bias);
  norm.axis = n.axis(n.intAttr("axis", -1), norm.x.rank());
  norm.eps = n.finiteAttr("epsilon", 1e-5);
  norm.isRms = isRms;
  norm.wide = n.intAttr("stash_type", 1) == 1;
  // RMSNormalization has one output; SimplifiedLayerNormalization the inverse as its second.
  emit(n, norm, isRms ? -1 : 1, isRms ? 1 : 2);
}

/// com.microsoft: the norm of x + skip (+ bias), which is the fourth output.
template <bool isRms> void skipNorm(NodeContext &n) {
  Value x = n.plain(0), skip = n.plain(1);
  size_t biasIndex = isRms ? 3 : 4;
  Value sum = n.b.add(x, skip);
  if (n.has(biasIndex)) {
    Value bias = n.weight(biasIndex, Role::Bias);
    sum = bias.rank() == 1 && bias.ir && isa<BlockArgument>(bias.ir) ? n.b.biasAdd(sum, bias) : n.b.add(sum, bias);
  }
  if (n.b.failed())
    return;
  Norm norm;
  norm.x = sum;
  norm.weight = optionalWeight(n, 2, Role::NormWeight);
  if (!isRms)
    norm.bias = optionalWeight(n, 3, Role::Bias);
  norm.axis = sum.rank() - 1;
  norm.eps = n.finiteAttr("epsilon", 1e-12);
  norm.isRms = isRms;
  norm.wide = true;
  emit(n, norm, 1, 2);
  n.out(3, sum);
}

} // namespace

void addNormOperators(OperatorTable &table) {
  table.add("", "LayerNormalization", norm<false>);
  table.add("", "RMSNormalization", norm<true>);
  // onnxruntime puts its own operator in the default domain, at any opset.
  table.add("", "SimplifiedLayerNormalization", norm<true>);
  table.add(kMicrosoft, "LayerNormalization", norm<false>);
  table.add(kMicrosoft, "SimplifiedLayerNormalization", norm<true>);
  table.add(kMicrosoft, "SkipLayerNormalization", skipNorm<false>);
  table.add(kMicrosoft, "SkipSimplifiedLayerNormalization", skipNorm<true>);
}

} // namespace drover::onnx
