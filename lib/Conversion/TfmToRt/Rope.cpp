//===- Rope.cpp - rotary position embedding ---------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A row computes the cosines and sines of its position once, into row buffers, and turns all heads by them.
//===----------------------------------------------------------------------===//
#include "SpecialKernels.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

/// A constant table in the module.
static Value frequencyTable(BodyEmitter &emitter, KernelBuilder &k, ArrayRef<float> values) {
  auto type = MemRefType::get({static_cast<int64_t>(values.size())}, k.b.getF32Type());
  auto data = DenseElementsAttr::get(RankedTensorType::get(type.getShape(), type.getElementType()), values);
  // Ropes of one model share their table.
  for (auto global : emitter.module.getOps<memref::GlobalOp>())
    if (global.getType() == type && global.getInitialValue() == Attribute(data))
      return memref::GetGlobalOp::create(k.b, type, global.getSymName());
  OpBuilder builder = OpBuilder::atBlockBegin(emitter.module.getBody());
  std::string name = emitter.name + "_frequencies_" + std::to_string(emitter.numKernels);
  memref::GlobalOp::create(builder, k.b.getLoc(), name, builder.getStringAttr("private"), type, data, /*constant=*/true,
                           builder.getI64IntegerAttr(64));
  return memref::GetGlobalOp::create(k.b, type, name);
}

void lower::emitRope(BodyEmitter &emitter, const Views &views, tfm::RopeOp op) {
  View input = views.of(op.getInput()), positions = views.of(op.getPositions()), result = views.of(op.getResult());
  int64_t headSize = op.getHeadSize(), half = op.getRotaryDim() / 2, cols = input.shape.back();
  int64_t heads = cols / headSize, lanes = emitter.lanes;
  bool interleaved = op.getInterleaved();
  Type storage = elementTypeOf(op.getInput()), type = computeType(storage);
  double magnitude = op.getMagnitude().convertToDouble();
  KernelBuilder k(emitter);
  Type f32 = k.b.getF32Type();
  auto rowBuffer = [&]() -> Value {
    return memref::AllocaOp::create(k.b, MemRefType::get({half}, type), k.b.getI64IntegerAttr(64));
  };
  Value cosines = rowBuffer(), sines = rowBuffer();
  Value table = frequencyTable(emitter, k, op.getFrequencies());

  // [B or 1, S] positions, [B, S, C] rows
  if (positions.shape[0] == 1 && input.shape[0] != 1)
    positions.strides[0] = 0;
  positions.shape = {input.shape[0], input.shape[1]};
  auto rowsOf = [](View view) {
    view.shape.pop_back();
    view.strides.pop_back();
    return view;
  };
  int64_t inStride = input.strides.back(), outStride = result.strides.back();
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

  k.indices([&](Value row) {
    Value from = viewPosition(k, rowsOf(input), row), to = viewPosition(k, rowsOf(result), row);
    Value source = k.buffer(input.root), target = k.buffer(result.root);
    Value id = k.load(k.buffer(positions.root), viewPosition(k, positions, row), elementTypeOf(op.getPositions()));
    Value position = arith::SIToFPOp::create(k.b, f32, id);
    vectors(half, [&](Value j, int64_t width) {
      Value frequency = k.load(table, j, f32, width, 1);
      Value angle = arith::MulFOp::create(k.b, k.splat(position, width), frequency);
      for (bool sine : {false, true}) {
        Value value = sine ? math::SinOp::create(k.b, angle).getResult() : math::CosOp::create(k.b, angle).getResult();
        if (magnitude != 1.0)
          value = arith::MulFOp::create(k.b, value, k.constant(value.getType(), magnitude));
        if (sine && op.getInverse())
          value = arith::NegFOp::create(k.b, value);
        if (type.isF64())
          value = arith::ExtFOp::create(k.b, VectorType::get({width}, type), value);
        k.store(value, sine ? sines : cosines, j, type, width, 1);
      }
    });
    k.loop(k.index(0), k.index(heads), 1, {}, [&](Value head, ValueRange) {
      Value channel = k.scale(head, headSize);
      Value in = k.add(from, k.scale(channel, inStride)), out = k.add(to, k.scale(channel, outStride));
      vectors(half, [&](Value j, int64_t width) {
        Value cosine = k.load(cosines, j, type, width, 1), sine = k.load(sines, j, type, width, 1);
        Value first = interleaved ? k.scale(j, 2) : j;
        int64_t step = interleaved ? 2 : 1, distance = interleaved ? 1 : half;
        auto at = [&](Value base, int64_t stride, int64_t extra) {
          return k.add(base, k.scale(k.add(first, k.index(extra)), stride));
        };
        Value a = k.load(source, at(in, inStride, 0), storage, width, inStride * step);
        Value x = k.load(source, at(in, inStride, distance), storage, width, inStride * step);
        Value turnedA =
            arith::SubFOp::create(k.b, arith::MulFOp::create(k.b, a, cosine), arith::MulFOp::create(k.b, x, sine));
        Value turnedX =
            arith::AddFOp::create(k.b, arith::MulFOp::create(k.b, x, cosine), arith::MulFOp::create(k.b, a, sine));
        k.store(turnedA, target, at(out, outStride, 0), storage, width, outStride * step);
        k.store(turnedX, target, at(out, outStride, distance), storage, width, outStride * step);
      });
      // Channels past rotary_dim pass through.
      int64_t rest = headSize - 2 * half;
      vectors(rest, [&](Value j, int64_t width) {
        Value value =
            k.load(source, k.add(in, k.scale(k.add(j, k.index(2 * half)), inStride)), storage, width, inStride);
        k.store(value, target, k.add(out, k.scale(k.add(j, k.index(2 * half)), outStride)), storage, width, outStride,
                /*rounded=*/true);
      });
      return SmallVector<Value>();
    });
  });
  k.launch(product(rowsOf(input).shape), 16384 / cols);
}
