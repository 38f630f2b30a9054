//===- AttentionUtils.h - heads, rotations, masks ---------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_IMPORT_ONNX_ATTENTIONUTILS_H
#define DROVER_LIB_IMPORT_ONNX_ATTENTIONUTILS_H

#include "Operators.h"

namespace drover::onnx {

/// [B, S, heads * D] to [B, heads, S, D] and back.
Value splitHeads(NodeContext &n, const Value &packed, int64_t heads);
Value mergeHeads(NodeContext &n, const Value &split);

/// Rotates the first 2 * R channels of [B, heads, S, D]; `cos` and `sin` are [B or 1, S, R].
Value rotate(NodeContext &n, const Value &x, const Value &cos, const Value &sin, bool interleaved);

/// The rows of a [P, R] cache at positions [B, S], or a [B, S, R] cache as it is.
Value cacheRows(NodeContext &n, const Value &cache, const Value *positions);

/// Scaled dot-product attention as the operators of all domains have it.
struct AttentionSpec {
  /// [B, heads, S, D], [B, kv heads, T, D], [B, kv heads, T, E].
  Value query, key, value;
  int64_t heads = 0, kvHeads = 0;
  double scale = 0;
  std::optional<double> softcap;
  /// Bool (true takes part) or float (added), broadcasting to [B, heads, S, T].
  std::optional<Value> mask;
  /// [B or 1, T], true takes part.
  std::optional<Value> keyMask;
  tfm::CausalKind causal = tfm::CausalKind::None;
  std::optional<int64_t> window;
};

/// tfm.attention; the result is [B, S, heads * E].
Value attention(NodeContext &n, const AttentionSpec &spec);

} // namespace drover::onnx

#endif // DROVER_LIB_IMPORT_ONNX_ATTENTIONUTILS_H
