//===- AttentionUtils.cpp - heads, rotations, masks -----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "AttentionUtils.h"

using namespace llvm;
using namespace mlir;

namespace drover::onnx {

Value splitHeads(NodeContext &n, const Value &packed, int64_t heads) {
  if (n.b.failed())
    return {};
  if (packed.rank() != 3 || heads <= 0) {
    n.b.fail("expected [batch, sequence, heads * size] and a number of heads, not rank " + Twine(packed.rank()) +
             " and " + Twine(heads));
    return {};
  }
  std::optional<Expr> size = SymbolTable::exactDiv(packed.shape[2], heads);
  if (!size) {
    n.b.fail("a width of " + n.b.symbols.str(packed.shape[2]) + " does not divide into " + Twine(heads) + " heads");
    return {};
  }
  return n.b.transpose(n.b.reshape(packed, {packed.shape[0], packed.shape[1], Expr(heads), *size}), {0, 2, 1, 3});
}

Value mergeHeads(NodeContext &n, const Value &split) {
  if (n.b.failed())
    return {};
  Value rows = n.b.transpose(split, {0, 2, 1, 3});
  if (n.b.failed())
    return {};
  return n.b.reshape(rows, {rows.shape[0], rows.shape[1], rows.shape[2] * rows.shape[3]});
}

Value cacheRows(NodeContext &n, const Value &cache, const Value *positions) {
  if (n.b.failed() || cache.rank() == 3)
    return cache;
  if (cache.rank() != 2 || !positions) {
    n.b.fail("expected a cache [positions, size] with position ids, or [batch, sequence, size], not rank " +
             Twine(cache.rank()));
    return {};
  }
  return n.b.gather(cache, *positions, 0);
}

/// The rotation as exporters write it, so that it is raised alike:
/// x * [cos, cos] + [-x2, x1] * [sin, sin], or with pairs of neighbours for the interleaved kind.
static Value rotateAll(NodeContext &n, const Value &x, const Value &cos, const Value &sin, bool interleaved) {
  int64_t last = x.rank() - 1;
  Expr half = cos.shape.back();
  // [B, S, R] to [B, 1, S, 2 R].
  auto table = [&](const Value &rows) {
    Value flat = n.b.cast(rows, x.type);
    Shape shape = {flat.shape[0], Expr(1), flat.shape[1], half};
    if (!interleaved) {
      flat = n.b.reshape(flat, shape);
      return n.b.concat({flat, flat}, last);
    }
    shape.push_back(1);
    Shape twice = shape;
    twice.back() = 2;
    flat = n.b.broadcast(n.b.reshape(flat, shape), twice);
    shape.pop_back();
    shape.back() = half * Expr(2);
    return n.b.reshape(flat, shape);
  };
  Value rotated;
  if (!interleaved) {
    Value first = n.b.sliceAxis(x, last, 0, half), second = n.b.sliceAxis(x, last, half, half * Expr(2));
    rotated = n.b.concat({n.b.unary(Unary::Neg, second), first}, last);
  } else {
    auto every = [&](int64_t offset) {
      SmallVector<Expr> offsets(x.rank(), Expr(0));
      SmallVector<int64_t> strides(x.rank(), 1);
      Shape sizes = x.shape;
      offsets[last] = offset;
      strides[last] = 2;
      sizes[last] = half;
      Value part = n.b.slice(x, offsets, strides, sizes);
      sizes.push_back(1);
      return n.b.reshape(offset ? n.b.unary(Unary::Neg, part) : part, sizes);
    };
    Value even = every(0), odd = every(1);
    rotated = n.b.reshape(n.b.concat({odd, even}, last + 1), x.shape);
  }
  return n.b.add(n.b.mul(x, table(cos)), n.b.mul(rotated, table(sin)));
}

Value rotate(NodeContext &n, const Value &x, const Value &cos, const Value &sin, bool interleaved) {
  if (n.b.failed())
    return {};
  if (cos.rank() != 3 || sin.rank() != 3 || cos.shape != sin.shape || x.rank() != 4) {
    n.b.fail("cosines and sines of a rotation have different shapes");
    return {};
  }
  Expr rotary = cos.shape.back() * Expr(2), full = x.shape.back();
  if (rotary == full)
    return rotateAll(n, x, cos, sin, interleaved);
  if (n.b.symbols.less(full, rotary) == true) {
    n.b.fail("a rotation of " + n.b.symbols.str(rotary) + " channels is wider than a head of " + n.b.symbols.str(full));
    return {};
  }
  Value turned = rotateAll(n, n.b.sliceAxis(x, 3, 0, rotary), cos, sin, interleaved);
  return n.b.concat({turned, n.b.sliceAxis(x, 3, rotary, full)}, 3);
}

Value attention(NodeContext &n, const AttentionSpec &spec) {
  TensorBuilder &b = n.b;
  if (b.failed())
    return {};
  Expr batch = spec.query.shape[0], rows = spec.query.shape[2], keys = spec.key.shape[2];
  b.unify(batch, spec.key.shape[0]);
  b.unify(keys, spec.value.shape[2]);
  b.unify(spec.query.shape[3], spec.key.shape[3]);
  if (spec.kvHeads <= 0 || spec.heads % spec.kvHeads != 0) {
    b.fail("kv heads (" + Twine(spec.kvHeads) + ") do not divide query heads (" + Twine(spec.heads) + ")");
    return {};
  }
  mlir::Value query = b.materialize(mergeHeads(n, spec.query)), key = b.materialize(mergeHeads(n, spec.key)),
              value = b.materialize(mergeHeads(n, spec.value));
  mlir::Value mask, keyMask;
  if (spec.mask) {
    Value full = *spec.mask;
    Shape shape = full.shape;
    while (shape.size() < 4)
      shape.insert(shape.begin(), Expr(1));
    full = b.reshape(full, shape);
    // Every size of the mask may be 1 but the last.
    shape.back() = keys;
    for (auto [size, limit] : zip(shape, Shape{batch, Expr(spec.heads), rows, keys}))
      if (!size.is(1))
        b.unify(size, limit);
    mask = b.materialize(b.broadcast(full, shape));
  }
  if (spec.keyMask)
    keyMask = b.materialize(*spec.keyMask);
  if (b.failed())
    return {};
  Shape shape = {batch, rows, Expr(spec.heads) * spec.value.shape[3]};
  Shape sums = {batch, Expr(spec.heads), rows};
  ElemType sumType = spec.query.type == ElemType::Double ? ElemType::Double : ElemType::Float;
  OpBuilder &builder = b.builder;
  auto op = tfm::AttentionOp::create(
      builder, b.location, TypeRange{b.tensorType(spec.query.type, shape), b.tensorType(sumType, sums)}, query, key,
      value, mask, keyMask, mlir::Value(), mlir::Value(), builder.getI64IntegerAttr(spec.heads),
      builder.getI64IntegerAttr(spec.kvHeads), builder.getF64FloatAttr(spec.scale),
      tfm::CausalKindAttr::get(builder.getContext(), spec.causal),
      spec.window ? builder.getI64IntegerAttr(*spec.window) : IntegerAttr(),
      spec.softcap ? builder.getF64FloatAttr(*spec.softcap) : FloatAttr(), DenseF32ArrayAttr());
  return b.wrap(op.getResult(), spec.query.type, shape, {&spec.query});
}

} // namespace drover::onnx
