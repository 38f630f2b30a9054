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

std::unique_ptr<KernelBuilder> BodyEmitter::kernel() {
  return target == Target::Cuda ? createGpuKernel(*this) : createHostKernel(*this);
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

Value KernelBuilder::index(int64_t value) { return arith::ConstantOp::create(b, b.getIntegerAttr(indexType, value)); }

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

static Value castInteger(ImplicitLocOpBuilder &b, Value value, Type type) {
  Type from = value.getType();
  if (from == type)
    return value;
  if (isa<IndexType>(from) || isa<IndexType>(type))
    return arith::IndexCastOp::create(b, type, value);
  if (from.getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth())
    return arith::ExtSIOp::create(b, type, value);
  return arith::TruncIOp::create(b, type, value);
}

Value KernelBuilder::toIndex(Value integer) { return castInteger(b, integer, indexType); }

Value KernelBuilder::fromIndex(Value index, Type type) { return castInteger(b, index, type); }

Value KernelBuilder::position(Value index, int64_t size, bool fromEnd, StringRef opName) {
  index = castInteger(b, index, b.getI64Type());
  index = checkIndex(index, fromEnd ? -size : 0, size, opName);
  if (fromEnd) {
    auto number = [&](int64_t n) { return arith::ConstantOp::create(b, b.getI64IntegerAttr(n)); };
    Value negative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, number(0));
    index = arith::SelectOp::create(b, negative, arith::AddIOp::create(b, index, number(size)), index);
  }
  return toIndex(index);
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

void KernelBuilder::allowContraction(Operation *function) {
  auto contract = arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::contract);
  function->walk([&](arith::ArithFastMathInterface op) { op->setAttr(op.getFastMathAttrName(), contract); });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Type KernelBuilder::withElement(Type like, Type element) {
  if (auto vector = dyn_cast<VectorType>(like))
    return vector.clone(element);
  return element;
}

Value KernelBuilder::widen(Value stored, Type type) {
  if (type.isInteger(1))
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, stored, constant(stored.getType(), 0));
  return isNarrowFloat(type) ? widenFloat(stored) : stored;
}

Value KernelBuilder::narrow(Value value, Type type, bool rounded) {
  if (type.isInteger(1))
    return arith::ExtUIOp::create(b, withElement(value.getType(), b.getI8Type()), value);
  return isNarrowFloat(type) ? narrowFloat(value, type, rounded) : value;
}

Value KernelBuilder::load(Value buffer, Value at, Type type) {
  return widen(loadStored(buffer, at, storageType(type), 1), type);
}

void KernelBuilder::store(Value value, Value buffer, Value at, Type type, bool rounded) {
  storeStored(narrow(value, type, rounded), buffer, at, 1);
}

Value KernelBuilder::load(Value buffer, Value at, Type type, int64_t width, int64_t stride, int64_t aligned) {
  auto vector = VectorType::get({width}, storageType(type));
  if (stride == 1)
    return widen(loadStored(buffer, at, vector, aligned), type);
  SmallVector<Value> lanes;
  for (int64_t i = 0; i < width; ++i)
    lanes.push_back(loadStored(buffer, add(at, index(i * stride)), storageType(type), 1));
  return widen(vector::FromElementsOp::create(b, vector, lanes), type);
}

void KernelBuilder::store(Value value, Value buffer, Value at, Type type, int64_t width, int64_t stride, bool rounded,
                          int64_t aligned) {
  Value stored = narrow(value, type, rounded);
  if (stride == 1)
    return storeStored(stored, buffer, at, aligned);
  for (int64_t i = 0; i < width; ++i)
    storeStored(vector::ExtractOp::create(b, stored, i), buffer, add(at, index(i * stride)), 1);
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
