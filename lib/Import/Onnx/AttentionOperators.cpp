//===- AttentionOperators.cpp - ONNX Attention, opsets 23 to 25 -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "AttentionUtils.h"
#include <cmath>

using namespace llvm;

namespace drover::onnx {
namespace {

/// What is derived from the inputs of Attention before either form is emitted.
struct Problem {
  AttentionSpec spec;
  bool packed = false;
  /// Length of the past; query i stands at position i + offset, per batch where lengths are given.
  Expr past = 0;
};

/// Query positions [B or 1, 1, S, 1]: i + past, or i + length - S where valid lengths are given.
Value queryPositions(NodeContext &n, const Problem &p, const Value *lengths) {
  Expr rows = p.spec.query.shape[2];
  Value positions = n.b.iota(ElemType::Int64, {Expr(1), Expr(1), rows, Expr(1)}, 2);
  if (!lengths)
    return n.b.add(positions, n.b.scalarInt(p.past));
  Value offset = n.b.sub(n.b.cast(*lengths, ElemType::Int64), n.b.scalarInt(rows));
  return n.b.add(positions, n.b.reshape(offset, {lengths->shape[0], Expr(1), Expr(1), Expr(1)}));
}

void restrict(NodeContext &n, std::optional<Value> &mask, const Value &allowed) {
  if (!mask)
    mask = allowed;
  else if (mask->type == ElemType::Bool)
    mask = n.b.binary(Binary::And, *mask, allowed);
  else
    mask = n.b.select(allowed, *mask, n.b.number(*mask, -INFINITY));
}

/// The given mask over all T keys: one that is shorter forbids the rest.
std::optional<Value> givenMask(NodeContext &n, const Expr &keys) {
  if (!n.has(3))
    return std::nullopt;
  Value mask = n.plain(3);
  if (n.b.failed())
    return std::nullopt;
  if (mask.rank() < 2 || mask.rank() > 4) {
    n.b.fail("a mask has rank " + Twine(mask.rank()) + ", expected 2 to 4");
    return std::nullopt;
  }
  Expr have = mask.shape.back();
  if (!have.is(1) && n.b.symbols.less(have, keys) == true) {
    Shape rest = mask.shape;
    rest.back() = keys - have;
    double forbidden = mask.type == ElemType::Bool ? 0 : -INFINITY;
    mask = n.b.concat({mask, n.b.uniform(mask.type, rest, forbidden)}, mask.rank() - 1);
  }
  return mask;
}

/// Causal, window and valid-length restrictions: attributes of tfm.attention where it has them.
void addRestrictions(NodeContext &n, Problem &p) {
  bool causal = n.intAttrIn("is_causal", 0, 0, 1) != 0;
  int64_t left = n.intAttr("left_window_size", -1), right = n.intAttr("right_window_size", -1);
  std::optional<Value> lengths;
  if (n.has(6))
    lengths = n.plain(6);
  Value keys = n.b.iota(ElemType::Int64, {Expr(1), Expr(1), Expr(1), p.spec.key.shape[2]}, 3);
  if (lengths) {
    Value limit = n.b.reshape(n.b.cast(*lengths, ElemType::Int64), {lengths->shape[0], Expr(1), Expr(1), Expr(1)});
    restrict(n, p.spec.mask, n.b.compare(Compare::Less, keys, limit));
  }
  if (n.b.failed() || (!causal && left < 0 && right < 0))
    return;
  if (!lengths && right < 0 && causal) {
    // With a past the keys are past + S, so that the last query sees the last key.
    p.spec.causal = p.past.is(0) ? tfm::CausalKind::TopLeft : tfm::CausalKind::BottomRight;
    if (left >= 0)
      p.spec.window = left + 1;
    return;
  }
  Value positions = queryPositions(n, p, lengths ? &*lengths : nullptr);
  if (causal)
    restrict(n, p.spec.mask, n.b.compare(Compare::LessOrEqual, keys, positions));
  if (left >= 0)
    restrict(n, p.spec.mask, n.b.compare(Compare::LessOrEqual, n.b.sub(positions, n.b.scalarInt(left)), keys));
  if (right >= 0)
    restrict(n, p.spec.mask, n.b.compare(Compare::LessOrEqual, keys, n.b.add(positions, n.b.scalarInt(right))));
}

/// [B, kv heads, T, D] to [B, heads, T, D]: each kv head for the queries of its group.
Value repeatHeads(NodeContext &n, const Value &x, int64_t heads, int64_t kvHeads) {
  if (heads == kvHeads || n.b.failed())
    return x;
  Shape single = {x.shape[0], Expr(kvHeads), Expr(1), x.shape[2], x.shape[3]}, repeated = single;
  repeated[2] = heads / kvHeads;
  return n.b.reshape(n.b.broadcast(n.b.reshape(x, single), repeated),
                     {x.shape[0], Expr(heads), x.shape[2], x.shape[3]});
}

/// In primitives, for the scores as an output: their state by qk_matmul_output_mode.
Value decompose(NodeContext &n, Problem &p) {
  AttentionSpec &spec = p.spec;
  TensorBuilder &b = n.b;
  // The standard scales both operands by the root.
  double root = std::sqrt(spec.scale);
  Value query = b.mul(spec.query, b.number(spec.query, root));
  Value key = b.mul(repeatHeads(n, spec.key, spec.heads, spec.kvHeads), b.number(spec.query, root));
  Value scores = b.matmul(query, key, false, true);
  int64_t mode = n.intAttrIn("qk_matmul_output_mode", 0, 0, 3);
  Value output = scores;
  if (spec.softcap)
    scores =
        b.mul(b.unary(Unary::Tanh, b.div(scores, b.number(scores, *spec.softcap))), b.number(scores, *spec.softcap));
  if (mode == 1)
    output = scores;
  if (spec.causal != tfm::CausalKind::None) {
    Value keys = b.iota(ElemType::Int64, {Expr(1), Expr(1), Expr(1), spec.key.shape[2]}, 3);
    Value positions = queryPositions(n, p, nullptr);
    restrict(n, spec.mask, b.compare(Compare::LessOrEqual, keys, positions));
    if (spec.window)
      restrict(n, spec.mask, b.compare(Compare::Less, b.sub(positions, keys), b.scalarInt(*spec.window)));
  }
  if (spec.mask && !b.failed())
    scores = spec.mask->type == ElemType::Bool ? b.select(*spec.mask, scores, b.number(scores, -INFINITY))
                                               : b.add(scores, *spec.mask);
  if (mode == 2)
    output = scores;
  auto precision = static_cast<ElemType>(n.intAttr("softmax_precision", 0));
  if (b.failed())
    return {};
  Value weights =
      isFloat(precision) ? b.cast(b.softmax(b.cast(scores, precision), 3), scores.type) : b.softmax(scores, 3);
  // A row in which nothing takes part gives zeros.
  weights = b.select(b.isNaN(weights), b.number(weights, 0), weights);
  if (mode == 3)
    output = weights;
  n.out(3, output);
  return mergeHeads(n, b.matmul(weights, repeatHeads(n, spec.value, spec.heads, spec.kvHeads)));
}

void onnxAttention(NodeContext &n) {
  TensorBuilder &b = n.b;
  Value query = n.plain(0), key = n.plain(1), value = n.plain(2);
  if (b.failed())
    return;
  Problem p;
  p.packed = query.rank() == 3;
  AttentionSpec &spec = p.spec;
  if (p.packed) {
    spec.heads = n.intAttr("q_num_heads", 0);
    spec.kvHeads = n.intAttr("kv_num_heads", 0);
    query = splitHeads(n, query, spec.heads);
    key = splitHeads(n, key, spec.kvHeads);
    value = splitHeads(n, value, spec.kvHeads);
  }
  if (b.failed())
    return;
  if (query.rank() != 4 || key.rank() != 4 || value.rank() != 4)
    return b.fail("expected query, key and value of rank 3 or 4");
  if (!p.packed) {
    std::optional<int64_t> heads = query.shape[1].constant(), kvHeads = key.shape[1].constant();
    if (!heads || !kvHeads)
      return n.unsupported("a symbolic number of heads", "fix it with --dim");
    spec.heads = *heads;
    spec.kvHeads = *kvHeads;
  }
  if (n.has(4) != n.has(5))
    return b.fail("past_key and past_value go together");
  if (n.has(4)) {
    Value pastKey = n.plain(4), pastValue = n.plain(5);
    if (b.failed())
      return;
    if (pastKey.rank() != 4 || pastValue.rank() != 4)
      return b.fail("expected a past of rank 4");
    p.past = pastKey.shape[2];
    key = b.concat({pastKey, key}, 2);
    value = b.concat({pastValue, value}, 2);
  }
  if (b.failed())
    return;
  spec.query = query;
  spec.key = key;
  spec.value = value;
  std::optional<int64_t> size = query.shape[3].constant();
  if (!size || *size == 0)
    return n.unsupported("a symbolic head size", "fix it with --dim");
  spec.scale = n.finiteAttr("scale", 1 / std::sqrt(static_cast<double>(*size)));
  if (double softcap = n.finiteAttr("softcap", 0); softcap != 0)
    spec.softcap = softcap;
  n.intAttrIn("qk_matmul_output_mode", 0, 0, 3); // also where nobody reads that output
  spec.mask = givenMask(n, key.shape[2]);
  addRestrictions(n, p);
  if (b.failed())
    return;
  n.out(1, key);
  n.out(2, value);
  bool direct = !n.isWanted(3) && (!spec.mask || spec.mask->type == ElemType::Bool || isFloat(spec.mask->type));
  Value result = direct ? attention(n, spec) : decompose(n, p);
  if (b.failed())
    return;
  n.out(0, p.packed ? result : splitHeads(n, result, spec.heads));
}

} // namespace

void addAttentionOperators(OperatorTable &table) { table.add("", "Attention", onnxAttention); }

} // namespace drover::onnx
