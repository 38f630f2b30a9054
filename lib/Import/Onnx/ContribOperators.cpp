//===- ContribOperators.cpp - fused operators of com.microsoft ------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Schemas: onnxruntime docs/ContribOperators.md.
//
//===----------------------------------------------------------------------===//
#include "AttentionUtils.h"
#include <cmath>

using namespace llvm;

namespace drover::onnx {
namespace {

/// The default scale of a head, which must be known.
double headScale(NodeContext &n, const Value &query) {
  std::optional<int64_t> size = query.rank() == 4 ? query.shape[3].constant() : std::nullopt;
  if (!size || *size == 0) {
    n.unsupported("a symbolic head size", "fix it with --dim");
    return 1;
  }
  double scale = n.finiteAttr("scale", 0);
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(*size));
}

/// Past and new along the sequence; outputs the result as the present.
Value withPast(NodeContext &n, size_t input, size_t output, const Value &fresh, Expr &past) {
  Value result = fresh;
  if (n.has(input)) {
    Value before = n.plain(input);
    if (n.b.failed())
      return {};
    if (before.rank() != 4) {
      n.b.fail("expected a past of rank 4, not " + Twine(before.rank()));
      return {};
    }
    past = before.shape[2];
    result = n.b.concat({before, fresh}, 2);
  }
  n.out(output, result);
  return result;
}

/// Three parts of a packed width.
Value part(NodeContext &n, const Value &packed, const Expr &begin, const Expr &size) {
  return n.b.sliceAxis(packed, packed.rank() - 1, begin, begin + size);
}

/// A [B, T] mask with non-zero for keys that take part.
std::optional<Value> keyMask(NodeContext &n, size_t index) {
  if (!n.has(index))
    return std::nullopt;
  Value mask = n.plain(index);
  if (n.b.failed())
    return std::nullopt;
  if (mask.rank() != 2) {
    n.unsupported("a padding mask of rank " + Twine(mask.rank()), "a mask [batch, keys] is supported");
    return std::nullopt;
  }
  return n.b.cast(mask, ElemType::Bool);
}

/// What MultiHeadAttention and Attention end with: as many kv heads as heads, a padding mask, an added bias, causal or
/// not. `spec.query`, `key` and `value` are set.
void finish(NodeContext &n, AttentionSpec &spec, int64_t heads, const Expr &past, size_t paddingInput,
            size_t biasInput) {
  if (n.b.failed())
    return;
  spec.heads = spec.kvHeads = heads;
  spec.scale = headScale(n, spec.query);
  spec.keyMask = keyMask(n, paddingInput);
  if (n.has(biasInput))
    spec.mask = n.plain(biasInput);
  if (n.intAttr("unidirectional", 0))
    spec.causal = past.is(0) ? tfm::CausalKind::TopLeft : tfm::CausalKind::BottomRight;
  if (!n.b.failed() && n.unsupportedWhy.empty())
    n.out(0, attention(n, spec));
}

void groupQueryAttention(NodeContext &n) {
  TensorBuilder &b = n.b;
  int64_t heads = n.intAttr("num_heads", 0), kvHeads = n.intAttr("kv_num_heads", 0);
  Value query = n.plain(0), key, value;
  if (b.failed())
    return;
  if (n.has(11) || n.has(12) || n.has(13) || n.intAttr("smooth_softmax", 0))
    return n.unsupported("attention sinks or a quantized cache");
  if (heads <= 0 || kvHeads <= 0)
    return b.fail("num_heads and kv_num_heads must be positive");
  if (n.has(1)) {
    key = n.plain(1);
    value = n.plain(2);
  } else {
    // Packed: queries, keys and values of all heads side by side.
    std::optional<Expr> size =
        query.rank() == 3 ? SymbolTable::exactDiv(query.shape[2], heads + 2 * kvHeads) : std::nullopt;
    if (!size)
      return b.fail("a packed width does not divide into " + Twine(heads + 2 * kvHeads) + " heads");
    Expr queryWidth = *size * Expr(heads), keyWidth = *size * Expr(kvHeads);
    key = part(n, query, queryWidth, keyWidth);
    value = part(n, query, queryWidth + keyWidth, keyWidth);
    query = part(n, query, 0, queryWidth);
  }
  query = splitHeads(n, query, heads);
  key = splitHeads(n, key, kvHeads);
  value = splitHeads(n, value, kvHeads);
  if (b.failed())
    return;
  Expr rows = query.shape[2], past = n.has(3) ? n.in(3).shape.size() == 4 ? n.in(3).shape[2] : Expr(0) : Expr(0);
  if (n.intAttr("do_rotary", 0)) {
    Value positions;
    if (n.has(9))
      positions = n.plain(9);
    else
      positions = b.add(b.iota(ElemType::Int64, {Expr(1), rows}, 1), b.scalarInt(past));
    bool interleaved = n.intAttr("rotary_interleaved", 0) != 0;
    Value cos = cacheRows(n, n.plain(7), &positions), sin = cacheRows(n, n.plain(8), &positions);
    query = rotate(n, query, cos, sin, interleaved);
    key = rotate(n, key, cos, sin, interleaved);
  }
  AttentionSpec spec;
  spec.query = query;
  spec.key = withPast(n, 3, 1, key, past);
  spec.value = withPast(n, 4, 2, value, past);
  spec.heads = heads;
  spec.kvHeads = kvHeads;
  spec.scale = headScale(n, query);
  if (double softcap = n.finiteAttr("softcap", 0); softcap != 0)
    spec.softcap = softcap;
  spec.causal = past.is(0) ? tfm::CausalKind::TopLeft : tfm::CausalKind::BottomRight;
  if (int64_t window = n.intAttr("local_window_size", -1); window > 0)
    spec.window = window;
  if (n.has(10))
    spec.mask = n.plain(10);
  if (b.failed() || !n.unsupportedWhy.empty())
    return;
  // seqlens_k is the index of the last valid key of each sequence; where it is the last of all there
  // is nothing to mask.
  if (n.has(5)) {
    Value last = n.plain(5);
    Expr keys = spec.key.shape[2];
    bool full = last.known && !last.known->ints.empty() && all_equal(last.known->ints) &&
                last.known->ints.front() == keys - Expr(1);
    if (!full) {
      Value limit = b.reshape(b.cast(last, ElemType::Int64), {b.count(last.shape), Expr(1)});
      spec.keyMask = b.compare(Compare::LessOrEqual, b.iota(ElemType::Int64, {Expr(1), keys}, 1), limit);
    }
  }
  n.out(0, attention(n, spec));
}

void multiHeadAttention(NodeContext &n) {
  TensorBuilder &b = n.b;
  int64_t heads = n.intAttr("num_heads", 0);
  Value query = n.plain(0);
  if (b.failed())
    return;
  if (!n.has(1) || !n.has(2) || query.rank() != 3 || n.in(1).rank() != 3)
    return n.unsupported("packed or cross-attention layouts of MultiHeadAttention",
                         "query, key and value [batch, sequence, width] are supported");
  Value key = n.plain(1), value = n.plain(2);
  if (n.has(3)) {
    Value bias = n.plain(3);
    Expr width = query.shape[2];
    query = b.add(query, part(n, bias, 0, width));
    key = b.add(key, part(n, bias, width, width));
    value = b.add(value, part(n, bias, width * Expr(2), value.shape[2]));
  }
  AttentionSpec spec;
  Expr past = 0;
  spec.query = splitHeads(n, query, heads);
  spec.key = withPast(n, 6, 1, splitHeads(n, key, heads), past);
  spec.value = withPast(n, 7, 2, splitHeads(n, value, heads), past);
  finish(n, spec, heads, past, /*paddingInput=*/4, /*biasInput=*/5);
}

/// One product for queries, keys and values, then attention.
void fusedAttention(NodeContext &n) {
  TensorBuilder &b = n.b;
  int64_t heads = n.intAttr("num_heads", 0);
  Value x = n.plain(0);
  if (b.failed())
    return;
  if (n.intAttr("do_rotary", 0) || n.node.attribute("qkv_hidden_sizes"))
    return n.unsupported("com.microsoft.Attention with rotation or qkv_hidden_sizes");
  bool inOut = true;
  const Value &weights = n.in(1);
  Value packed;
  if (weights.initializer && n.parameters.isParameter(weights, Role::Linear)) {
    Value weight = n.parameters.get(n.node, weights, Role::Linear, &inOut);
    packed = b.linear(x, weight, inOut);
  } else {
    packed = b.linear(x, n.plain(weights), inOut);
  }
  if (n.has(2)) {
    Value bias = n.weight(2, Role::Bias);
    packed = bias.ir && isa<mlir::BlockArgument>(bias.ir) ? b.biasAdd(packed, bias) : b.add(packed, bias);
  }
  if (b.failed())
    return;
  std::optional<Expr> width = packed.rank() == 3 ? SymbolTable::exactDiv(packed.shape[2], 3) : std::nullopt;
  if (!width)
    return b.fail("the width of a packed projection is not three times anything");
  AttentionSpec spec;
  spec.query = splitHeads(n, part(n, packed, 0, *width), heads);
  spec.key = splitHeads(n, part(n, packed, *width, *width), heads);
  spec.value = splitHeads(n, part(n, packed, *width * Expr(2), *width), heads);
  Expr past = 0;
  if (n.has(4)) {
    // [2, B, heads, P, D].
    Value before = n.plain(4);
    if (b.failed())
      return;
    if (before.rank() != 5)
      return b.fail("expected a past of rank 5, not " + Twine(before.rank()));
    ArrayRef<Expr> sizes = ArrayRef<Expr>(before.shape).drop_front();
    past = sizes[2];
    spec.key = b.concat({b.reshape(b.sliceAxis(before, 0, 0, 1), sizes), spec.key}, 2);
    spec.value = b.concat({b.reshape(b.sliceAxis(before, 0, 1, 2), sizes), spec.value}, 2);
  }
  if (b.failed())
    return;
  if (n.isWanted(1)) {
    Shape single = spec.key.shape;
    single.insert(single.begin(), Expr(1));
    n.out(1, b.concat({b.reshape(spec.key, single), b.reshape(spec.value, single)}, 0));
  }
  finish(n, spec, heads, past, /*paddingInput=*/3, /*biasInput=*/5);
}

} // namespace

void addContribOperators(OperatorTable &table) {
  table.add(kMicrosoft, "GroupQueryAttention", groupQueryAttention);
  table.add(kMicrosoft, "MultiHeadAttention", multiHeadAttention);
  table.add(kMicrosoft, "Attention", fusedAttention);
}

} // namespace drover::onnx
