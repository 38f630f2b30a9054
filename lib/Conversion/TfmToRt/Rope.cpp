//===- Rope.cpp - rotary position embedding ---------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A row computes the cosines and sines of its position once, into row buffers, and turns all heads by them.
//===----------------------------------------------------------------------===//
#include "GpuKernel.h"
#include "SpecialKernels.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace drover;
using namespace drover::lower;

namespace {
/// [B, S, heads * head_size] tensors whose pairs of channels turn by the angle of their row and frequency.
class Rope {
public:
  Rope(BodyEmitter &emitter, const Views &views, tfm::RopeOp op, KernelBuilder &k)
      : emitter(emitter), op(op), k(k), input(views.of(op.getInput())), positions(views.of(op.getPositions())),
        result(views.of(op.getResult())), headSize(op.getHeadSize()), half(op.getRotaryDim() / 2),
        heads(input.shape.back() / headSize), inStride(input.strides.back()), outStride(result.strides.back()),
        storage(elementTypeOf(op.getInput())), type(computeType(storage)) {
    // [B or 1, S] positions for [B, S, C] rows
    if (positions.shape[0] == 1 && input.shape[0] != 1)
      positions.strides[0] = 0;
    positions.shape = {input.shape[0], input.shape[1]};
  }

  void emitHostRow(Value row);
  /// Channels of step `step` of a row, of `count` heads from `firstHead` on.
  void emitGpuStep(Value row, Value step, Value firstHead, int64_t count);
  /// Pairs of a step, and steps of a row, on a GPU.
  int64_t gpuWidth() const;
  int64_t numRows() const { return product(rowsOf(input).shape); }

  int64_t numHeads() const { return heads; }
  int64_t numPairs() const { return half; }

private:
  static View rowsOf(View view) {
    view.shape.pop_back();
    view.strides.pop_back();
    return view;
  }
  Value from(Value row) { return viewPosition(k, rowsOf(input), row); }
  Value to(Value row) { return viewPosition(k, rowsOf(result), row); }
  Value position(Value row);
  Value turn(Value position, Value table, Value j, int64_t width, bool sine);
  void turnPairs(Value in, Value out, Value j, int64_t width, Value cosine, Value sine, int64_t aligned);
  void copy(Value in, Value out, Value channel, int64_t width);

  BodyEmitter &emitter;
  tfm::RopeOp op;
  KernelBuilder &k;
  View input, positions, result;
  int64_t headSize, half, heads, inStride, outStride;
  Type storage, type;
};
} // namespace

Value Rope::position(Value row) {
  Value id = k.load(k.buffer(positions.root), viewPosition(k, positions, row), elementTypeOf(op.getPositions()));
  return arith::SIToFPOp::create(k.b, k.b.getF32Type(), id);
}

/// Cosines or sines of the angles of pairs j, j + 1, ..
Value Rope::turn(Value position, Value table, Value j, int64_t width, bool sine) {
  Value frequency = k.load(table, j, k.b.getF32Type(), width, 1, width);
  Value angle = arith::MulFOp::create(k.b, k.splat(position, width), frequency);
  Value value = sine ? math::SinOp::create(k.b, angle).getResult() : math::CosOp::create(k.b, angle).getResult();
  double magnitude = op.getMagnitude().convertToDouble();
  if (magnitude != 1.0)
    value = arith::MulFOp::create(k.b, value, k.constant(value.getType(), magnitude));
  if (sine && op.getInverse())
    value = arith::NegFOp::create(k.b, value);
  if (type.isF64())
    value = arith::ExtFOp::create(k.b, VectorType::get({width}, type), value);
  return value;
}

/// Turns pairs j .. of the head at `in`.
void Rope::turnPairs(Value in, Value out, Value j, int64_t width, Value cosine, Value sine, int64_t aligned) {
  Value source = k.buffer(input.root), target = k.buffer(result.root);
  bool interleaved = op.getInterleaved();
  Value first = interleaved ? k.scale(j, 2) : j;
  int64_t step = interleaved ? 2 : 1, distance = interleaved ? 1 : half;
  auto at = [&](Value base, int64_t stride, int64_t extra) {
    return k.add(base, k.scale(k.add(first, k.index(extra)), stride));
  };
  Value a = k.load(source, at(in, inStride, 0), storage, width, inStride * step, aligned);
  Value x = k.load(source, at(in, inStride, distance), storage, width, inStride * step, aligned);
  Value turnedA =
      arith::SubFOp::create(k.b, arith::MulFOp::create(k.b, a, cosine), arith::MulFOp::create(k.b, x, sine));
  Value turnedX =
      arith::AddFOp::create(k.b, arith::MulFOp::create(k.b, x, cosine), arith::MulFOp::create(k.b, a, sine));
  k.store(turnedA, target, at(out, outStride, 0), storage, width, outStride * step, false, aligned);
  k.store(turnedX, target, at(out, outStride, distance), storage, width, outStride * step, false, aligned);
}

/// Channels past rotary_dim pass through.
void Rope::copy(Value in, Value out, Value channel, int64_t width) {
  Value value = k.load(k.buffer(input.root), k.add(in, k.scale(channel, inStride)), storage, width, inStride);
  k.store(value, k.buffer(result.root), k.add(out, k.scale(channel, outStride)), storage, width, outStride,
          /*rounded=*/true);
}

//===----------------------------------------------------------------------===//
// On the host: a row at a time
//===----------------------------------------------------------------------===//

void Rope::emitHostRow(Value row) {
  int64_t lanes = emitter.lanes;
  auto rowBuffer = [&]() -> Value {
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(&k.b.getInsertionBlock()->getParentOp()->getParentOfType<func::FuncOp>().front());
    return memref::AllocaOp::create(k.b, MemRefType::get({half}, type), k.b.getI64IntegerAttr(64));
  };
  Value cosines = rowBuffer(), sines = rowBuffer();
  /// Straight code over [0, count): whole vectors in a loop, then one short one.
  auto vectors = [&](int64_t count, function_ref<void(Value j, int64_t width)> build) {
    int64_t whole = count / lanes * lanes;
    if (whole > 0)
      k.loop(k.index(0), k.index(whole), lanes, {}, [&](Value j, ValueRange) {
        build(j, lanes);
        return SmallVector<Value>();
      });
    if (count > whole)
      build(k.index(whole), count - whole);
  };
  Value table = k.table(op.getFrequencies()), angle = position(row), start = from(row), end = to(row);
  vectors(half, [&](Value j, int64_t width) {
    k.store(turn(angle, table, j, width, false), cosines, j, type, width, 1);
    k.store(turn(angle, table, j, width, true), sines, j, type, width, 1);
  });
  k.loop(k.index(0), k.index(heads), 1, {}, [&](Value head, ValueRange) {
    Value channel = k.scale(head, headSize);
    Value in = k.add(start, k.scale(channel, inStride)), out = k.add(end, k.scale(channel, outStride));
    vectors(half, [&](Value j, int64_t width) {
      turnPairs(in, out, j, width, k.load(cosines, j, type, width, 1), k.load(sines, j, type, width, 1), 1);
    });
    vectors(headSize - 2 * half, [&](Value j, int64_t width) { copy(in, out, k.add(j, k.index(2 * half)), width); });
    return SmallVector<Value>();
  });
}

void lower::emitRope(BodyEmitter &emitter, const Views &views, tfm::RopeOp op) {
  std::unique_ptr<KernelBuilder> kernel = emitter.kernel();
  Rope rope(emitter, views, op, *kernel);
  kernel->indices([&](Value row) { rope.emitHostRow(row); });
  kernel->launch(rope.numRows(), 16384 / shapeOf(op.getInput()).back());
}

//===----------------------------------------------------------------------===//
// On a GPU: a thread has a few pairs of a row in several heads
//===----------------------------------------------------------------------===//

/// Heads of a thread: they share its cosines and sines.
static constexpr int64_t kGpuHeads = 16;

int64_t Rope::gpuWidth() const {
  int64_t width = std::gcd(half, 16 / std::min<int64_t>(bytesOf(storage), 16));
  if (inStride != 1 || outStride != 1)
    return width;
  width = std::gcd(width, headSize);
  for (const View *view : {&input, &result}) {
    width = std::gcd(width, view->offset);
    for (int64_t stride : ArrayRef(view->strides).drop_back())
      width = std::gcd(width, stride);
  }
  return width;
}

void Rope::emitGpuStep(Value row, Value step, Value firstHead, int64_t count) {
  int64_t width = gpuWidth(), rest = headSize - 2 * half, steps = half / width;
  Value table = k.table(op.getFrequencies()), angle = position(row), start = from(row), end = to(row);
  Value j = k.scale(step, width);
  Value cosine = turn(angle, table, j, width, false), sine = turn(angle, table, j, width, true);
  Value lastHead = k.add(firstHead, k.index(count));
  if (heads % count != 0)
    lastHead = arith::MinUIOp::create(k.b, lastHead, k.index(heads));
  k.loop(firstHead, lastHead, 1, {}, [&](Value head, ValueRange) {
    Value channel = k.scale(head, headSize);
    Value in = k.add(start, k.scale(channel, inStride)), out = k.add(end, k.scale(channel, outStride));
    turnPairs(in, out, j, width, cosine, sine, width);
    if (rest > 0)
      k.loop(step, k.index(rest), steps, {}, [&](Value i, ValueRange) {
        copy(in, out, k.add(i, k.index(2 * half)), 1);
        return SmallVector<Value>();
      });
    return SmallVector<Value>();
  });
}

void lower::emitGpuRope(BodyEmitter &emitter, const Views &views, tfm::RopeOp op) {
  GpuKernel kernel(emitter);
  KernelBuilder &k = kernel;
  Rope rope(emitter, views, op, k);
  int64_t steps = rope.numPairs() / rope.gpuWidth(), count = std::min(rope.numHeads(), kGpuHeads);
  int64_t parts = (rope.numHeads() + count - 1) / count;
  // Neighbouring threads have neighbouring pairs.
  k.indices([&](Value i) {
    auto split = [&](Value &rest, int64_t size) -> Value {
      Value low = arith::RemUIOp::create(k.b, rest, k.index(size));
      rest = arith::DivUIOp::create(k.b, rest, k.index(size));
      return low;
    };
    Value row = i, step = split(row, steps), part = split(row, parts);
    rope.emitGpuStep(row, step, k.scale(part, count), count);
  });
  k.launch(rope.numRows() * steps * parts, 1);
}
