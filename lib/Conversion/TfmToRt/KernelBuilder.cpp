//===- KernelBuilder.cpp - pieces of kernels --------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Emitter.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

Type lower::storageType(Type type) { return type.isInteger(1) ? IntegerType::get(type.getContext(), 8) : type; }

int64_t lower::bytesOf(Type type) { return (type.getIntOrFloatBitWidth() + 7) / 8; }

Value BodyEmitter::index(int64_t value) { return arith::ConstantIndexOp::create(body, value); }

Value BodyEmitter::strided(const View &view) {
  Type element = storageType(elementTypeOf(view.root));
  auto layout = StridedLayoutAttr::get(body.getContext(), view.offset, view.strides);
  bool plain = view.offset == 0 && ArrayRef(view.strides) == ArrayRef(contiguousStrides(view.shape));
  auto type = plain ? MemRefType::get(view.shape, element) : MemRefType::get(view.shape, element, layout);
  Value flat = buffer(view.root);
  if (flat.getType() == type)
    return flat;
  return memref::ReinterpretCastOp::create(body, type, flat, view.offset, view.shape, view.strides);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

KernelBuilder::KernelBuilder(BodyEmitter &emitter)
    : b(emitter.body.getLoc(), emitter.module.getContext()), emitter(emitter) {
  b.setInsertionPoint(emitter.function);
  Type index = b.getIndexType();
  std::string name = emitter.name + "_kernel_" + std::to_string(emitter.numKernels++);
  function = func::FuncOp::create(b, name, b.getFunctionType({index, index}, {}));
  function.setPrivate();
  function->setAttr(rt::RtDialect::kKernelAttr, b.getUnitAttr());
  b.setInsertionPointToEnd(function.addEntryBlock());
  func::ReturnOp ret = func::ReturnOp::create(b);
  b.setInsertionPoint(ret);
}

Value KernelBuilder::argument(Value bodyValue) {
  Value &argument = arguments[bodyValue];
  if (!argument) {
    operands.push_back(bodyValue);
    argument = block().addArgument(bodyValue.getType(), b.getLoc());
  }
  return argument;
}

void KernelBuilder::launch(Value count, int64_t grain) {
  function.setFunctionType(b.getFunctionType(block().getArgumentTypes(), {}));
  // A product that feeds a sum may be contracted; nothing is reassociated, and infinities are honored.
  auto contract = arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::contract);
  function.walk([&](arith::ArithFastMathInterface op) { op->setAttr(op.getFastMathAttrName(), contract); });
  rt::LaunchOp::create(emitter.body, emitter.call, function.getSymName(), count, std::max<int64_t>(grain, 1), operands);
}

Value KernelBuilder::index(int64_t value) { return arith::ConstantIndexOp::create(b, value); }

Value KernelBuilder::constant(Type type, double value) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr attr = isa<FloatType>(element) ? TypedAttr(b.getFloatAttr(element, value))
                                           : TypedAttr(b.getIntegerAttr(element, static_cast<int64_t>(value)));
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  return arith::ConstantOp::create(b, attr);
}

Value KernelBuilder::add(Value a, Value x) { return arith::AddIOp::create(b, a, x); }

Value KernelBuilder::scale(Value a, int64_t factor) {
  return factor == 1 ? a : arith::MulIOp::create(b, a, index(factor)).getResult();
}

Value KernelBuilder::position(Value index, int64_t size, bool fromEnd, StringRef opName) {
  Type i64 = b.getI64Type();
  if (index.getType() != i64)
    index = arith::ExtSIOp::create(b, i64, index);
  rt::CheckIndexOp::create(b, index, fromEnd ? -size : 0, size, emitter.name + ": " + opName.str());
  if (fromEnd) {
    auto number = [&](int64_t n) { return arith::ConstantOp::create(b, b.getI64IntegerAttr(n)); };
    Value negative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, number(0));
    index = arith::SelectOp::create(b, negative, arith::AddIOp::create(b, index, number(size)), index);
  }
  return arith::IndexCastOp::create(b, b.getIndexType(), index);
}

SmallVector<Value> KernelBuilder::loop(Value from, Value to, int64_t step, ValueRange carried,
                                       function_ref<SmallVector<Value>(Value, ValueRange)> build) {
  auto forOp = scf::ForOp::create(b, from, to, index(step), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(forOp.getBody());
  SmallVector<Value> next = build(forOp.getInductionVar(), forOp.getRegionIterArgs());
  if (!carried.empty())
    scf::YieldOp::create(b, next);
  return SmallVector<Value>(forOp.getResults());
}

void KernelBuilder::indices(function_ref<void(Value)> build) {
  loop(begin(), end(), 1, {}, [&](Value i, ValueRange) {
    build(i);
    return SmallVector<Value>();
  });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// `like` with another element type.
static Type withElement(Type like, Type element) {
  if (auto vector = dyn_cast<VectorType>(like))
    return vector.clone(element);
  return element;
}

Value KernelBuilder::widen(Value stored, Type type) {
  Type like = stored.getType();
  if (type.isInteger(1))
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, stored, constant(like, 0));
  if (type.isF16())
    return arith::ExtFOp::create(b, withElement(like, b.getF32Type()), stored);
  if (!type.isBF16())
    return stored;
  // bf16 is the upper half of an f32.
  Value bits = arith::BitcastOp::create(b, withElement(like, b.getIntegerType(16)), stored);
  Type i32 = withElement(like, b.getI32Type());
  Value wide = arith::ShLIOp::create(b, arith::ExtUIOp::create(b, i32, bits), constant(i32, 16));
  return arith::BitcastOp::create(b, withElement(like, b.getF32Type()), wide);
}

Value KernelBuilder::round(Value value, Type narrowType) {
  Type like = value.getType();
  if (narrowType.isF16()) {
    Value half = arith::TruncFOp::create(b, withElement(like, narrowType), value);
    return arith::ExtFOp::create(b, like, half);
  }
  // To nearest, ties to even: add just under half of the last kept bit, and one more where that bit is odd. A NaN
  // keeps its upper bits and becomes quiet.
  Type i32 = withElement(like, b.getI32Type());
  auto number = [&](int64_t n) { return constant(i32, static_cast<double>(n)); };
  Value bits = arith::BitcastOp::create(b, i32, value);
  Value odd = arith::AndIOp::create(b, arith::ShRUIOp::create(b, bits, number(16)), number(1));
  Value rounded = arith::AddIOp::create(b, arith::AddIOp::create(b, bits, number(0x7fff)), odd);
  Value quiet = arith::OrIOp::create(b, bits, number(0x400000));
  Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, value, value);
  Value chosen = arith::SelectOp::create(b, isNaN, quiet, rounded);
  Value kept = arith::AndIOp::create(b, chosen, number(-65536));
  return arith::BitcastOp::create(b, like, kept);
}

Value KernelBuilder::narrow(Value value, Type type, bool rounded) {
  Type like = value.getType();
  if (type.isInteger(1))
    return arith::ExtUIOp::create(b, withElement(like, b.getI8Type()), value);
  if (type.isF16())
    return arith::TruncFOp::create(b, withElement(like, type), value);
  if (!type.isBF16())
    return value;
  if (!rounded)
    value = round(value, type);
  Type i32 = withElement(like, b.getI32Type());
  Value bits = arith::BitcastOp::create(b, i32, value);
  Value upper = arith::ShRUIOp::create(b, bits, constant(i32, 16));
  Value half = arith::TruncIOp::create(b, withElement(like, b.getIntegerType(16)), upper);
  return arith::BitcastOp::create(b, withElement(like, type), half);
}

Value KernelBuilder::load(Value buffer, Value at, Type type) {
  return widen(memref::LoadOp::create(b, buffer, at), type);
}

void KernelBuilder::store(Value value, Value buffer, Value at, Type type, bool rounded) {
  memref::StoreOp::create(b, narrow(value, type, rounded), buffer, at);
}

Value KernelBuilder::load(Value buffer, Value at, Type type, int64_t width, int64_t stride) {
  auto vector = VectorType::get({width}, storageType(type));
  if (stride == 1)
    return widen(vector::LoadOp::create(b, vector, buffer, at), type);
  SmallVector<Value> lanes;
  for (int64_t i = 0; i < width; ++i)
    lanes.push_back(memref::LoadOp::create(b, buffer, add(at, index(i * stride))));
  return widen(vector::FromElementsOp::create(b, vector, lanes), type);
}

void KernelBuilder::store(Value value, Value buffer, Value at, Type type, int64_t width, int64_t stride, bool rounded) {
  Value stored = narrow(value, type, rounded);
  if (stride == 1) {
    vector::StoreOp::create(b, stored, buffer, at);
    return;
  }
  for (int64_t i = 0; i < width; ++i) {
    Value lane = vector::ExtractOp::create(b, stored, i);
    memref::StoreOp::create(b, lane, buffer, add(at, index(i * stride)));
  }
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

Value KernelBuilder::splat(Value scalar, int64_t width) {
  return vector::BroadcastOp::create(b, VectorType::get({width}, scalar.getType()), scalar);
}

double KernelBuilder::neutral(RowReduction kind) {
  double infinity = std::numeric_limits<double>::infinity();
  return kind == RowReduction::Sum ? 0.0 : (kind == RowReduction::Max ? -infinity : infinity);
}

Value KernelBuilder::combine(Value a, Value x, RowReduction kind) {
  if (kind == RowReduction::Sum)
    return arith::AddFOp::create(b, a, x);
  auto predicate = kind == RowReduction::Max ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT;
  return arith::SelectOp::create(b, arith::CmpFOp::create(b, predicate, x, a), x, a);
}

Value KernelBuilder::horizontal(Value vector, RowReduction kind) {
  int64_t width = cast<VectorType>(vector.getType()).getDimSize(0);
  for (; width > 1 && width % 2 == 0; width /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < width / 2; ++i) {
      low.push_back(i);
      high.push_back(width / 2 + i);
    }
    Value left = vector::ShuffleOp::create(b, vector, vector, low);
    Value right = vector::ShuffleOp::create(b, vector, vector, high);
    vector = combine(left, right, kind);
  }
  Value total = vector::ExtractOp::create(b, vector, int64_t(0));
  for (int64_t i = 1; i < width; ++i)
    total = combine(total, vector::ExtractOp::create(b, vector, i), kind);
  return total;
}
