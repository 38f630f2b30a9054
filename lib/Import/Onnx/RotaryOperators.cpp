//===- RotaryOperators.cpp - rotary embeddings ----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "AttentionUtils.h"

using namespace llvm;

namespace drover::onnx {
namespace {

/// Both domains: x [B, S, heads * D] or [B, heads, S, D], then the rotation of its heads.
void emit(NodeContext &n, const Value &x, const Value &cosCache, const Value &sinCache, const Value *positions) {
  if (n.b.failed())
    return;
  int64_t heads = n.intAttr("num_heads", 0);
  int64_t rotary = n.intAttr("rotary_embedding_dim", 0);
  bool interleaved = n.intAttr("interleaved", 0) != 0;
  Value cos = cacheRows(n, cosCache, positions), sin = cacheRows(n, sinCache, positions);
  if (n.b.failed())
    return;
  // A cache may hold more columns than are rotated.
  if (rotary > 0 && !cos.shape.back().is(rotary / 2)) {
    cos = n.b.sliceAxis(cos, 2, 0, rotary / 2);
    sin = n.b.sliceAxis(sin, 2, 0, rotary / 2);
  }
  if (x.rank() == 4)
    return n.out(0, rotate(n, x, cos, sin, interleaved));
  // com.microsoft leaves the heads out where the whole head is rotated.
  if (heads == 0 && x.rank() == 3) {
    std::optional<int64_t> width = x.shape[2].constant(), half = cos.shape.back().constant();
    if (width && half && *half > 0 && *width % (2 * *half) == 0)
      heads = *width / (2 * *half);
  }
  n.out(0, mergeHeads(n, rotate(n, splitHeads(n, x, heads), cos, sin, interleaved)));
}

void rotaryEmbedding(NodeContext &n) {
  Value x = n.plain(0), cos = n.plain(1), sin = n.plain(2);
  if (!n.has(3))
    return emit(n, x, cos, sin, nullptr);
  Value positions = n.plain(3);
  emit(n, x, cos, sin, &positions);
}

void microsoftRotaryEmbedding(NodeContext &n) {
  Value x = n.plain(0), positions = n.plain(1), cos = n.plain(2), sin = n.plain(3);
  if (n.b.failed())
    return;
  if (n.floatAttr("scale", 1) != 1 || n.intAttr("is_packed_batching", 0))
    return n.unsupported("a rotation with a scale or packed batches");
  if (positions.rank() == 1) {
    // One offset: positions count up from it.
    Shape shape = {Expr(1), x.rank() == 4 ? x.shape[2] : x.shape[1]};
    positions = n.b.add(n.b.iota(ElemType::Int64, shape, 1), n.b.cast(positions, ElemType::Int64));
  }
  emit(n, x, cos, sin, &positions);
}

} // namespace

void addRotaryOperators(OperatorTable &table) {
  table.add("", "RotaryEmbedding", rotaryEmbedding);
  table.add(kMicrosoft, "RotaryEmbedding", microsoftRotaryEmbedding);
}

} // namespace drover::onnx
