//===- HostKernel.cpp - kernels of the host's threads -----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A function over a range of indices, on memrefs, which the pool's threads call.
//===----------------------------------------------------------------------===//
#include "Collectives.h"
#include "Emitter.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

namespace {
class HostKernel final : public KernelBuilder {
public:
  explicit HostKernel(BodyEmitter &emitter);

  Value argument(Value bodyValue) override;
  Value table(ArrayRef<float> values) override;
  Value callSize() override { return rt::CallSizeOp::create(b, b.getIndexType(), argument(emitter.call)); }
  Value callAccumulates() override { return rt::CallAccumulatesOp::create(b, b.getI1Type(), argument(emitter.call)); }
  Value rankIndex(const Axes &axes) override { return toIndex(linearIndex(b, argument(emitter.call), axes)); }
  void indices(function_ref<void(Value)> build) override;
  void launch(Value count, int64_t grain) override;
  Value round(Value value, Type narrow) override;

private:
  Block &block() { return function.getBody().front(); }
  Value loadStored(Value buffer, Value at, Type type, int64_t aligned) override;
  void storeStored(Value value, Value buffer, Value at, int64_t aligned) override;
  Value widenFloat(Value stored) override;
  Value narrowFloat(Value value, Type type, bool rounded) override;
  Value checkIndex(Value index, int64_t low, int64_t size, StringRef opName) override;

  func::FuncOp function;
  SmallVector<Value> operands;
  llvm::DenseMap<Value, Value> arguments;
};
} // namespace

std::unique_ptr<KernelBuilder> lower::createHostKernel(BodyEmitter &emitter) {
  return std::make_unique<HostKernel>(emitter);
}

HostKernel::HostKernel(BodyEmitter &emitter) : KernelBuilder(emitter, IndexType::get(emitter.module.getContext())) {
  b.setInsertionPoint(emitter.function);
  std::string name = emitter.name + "_kernel_" + std::to_string(emitter.numKernels++);
  function = func::FuncOp::create(b, name, b.getFunctionType({indexType, indexType}, {}));
  function.setPrivate();
  function->setAttr(rt::RtDialect::kKernelAttr, b.getUnitAttr());
  b.setInsertionPointToEnd(function.addEntryBlock());
  func::ReturnOp ret = func::ReturnOp::create(b);
  b.setInsertionPoint(ret);
}

Value HostKernel::argument(Value bodyValue) {
  Value &argument = arguments[bodyValue];
  if (!argument) {
    operands.push_back(bodyValue);
    argument = block().addArgument(bodyValue.getType(), b.getLoc());
  }
  return argument;
}

Value HostKernel::table(ArrayRef<float> values) {
  auto type = MemRefType::get({static_cast<int64_t>(values.size())}, b.getF32Type());
  auto data = DenseElementsAttr::get(RankedTensorType::get(type.getShape(), type.getElementType()), values);
  // Kernels of one model share their tables.
  for (auto global : emitter.module.getOps<memref::GlobalOp>())
    if (global.getType() == type && global.getInitialValue() == Attribute(data))
      return memref::GetGlobalOp::create(b, type, global.getSymName());
  OpBuilder builder = OpBuilder::atBlockBegin(emitter.module.getBody());
  std::string name = emitter.name + "_table_" + std::to_string(emitter.numKernels);
  memref::GlobalOp::create(builder, b.getLoc(), name, builder.getStringAttr("private"), type, data, /*constant=*/true,
                           builder.getI64IntegerAttr(64));
  return memref::GetGlobalOp::create(b, type, name);
}

void HostKernel::indices(function_ref<void(Value)> build) {
  loop(block().getArgument(0), block().getArgument(1), 1, {}, [&](Value i, ValueRange) {
    build(i);
    return SmallVector<Value>();
  });
}

void HostKernel::launch(Value count, int64_t grain) {
  function.setFunctionType(b.getFunctionType(block().getArgumentTypes(), {}));
  allowContraction(function);
  rt::LaunchOp::create(emitter.body, emitter.call, function.getSymName(), count, std::max<int64_t>(grain, 1), operands);
}

Value HostKernel::checkIndex(Value index, int64_t low, int64_t size, StringRef opName) {
  rt::CheckIndexOp::create(b, index, low, size, emitter.name + ": " + opName.str());
  return index;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value HostKernel::loadStored(Value buffer, Value at, Type type, int64_t) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector::LoadOp::create(b, vector, buffer, at);
  return memref::LoadOp::create(b, buffer, at);
}

void HostKernel::storeStored(Value value, Value buffer, Value at, int64_t) {
  if (isa<VectorType>(value.getType()))
    vector::StoreOp::create(b, value, buffer, at);
  else
    memref::StoreOp::create(b, value, buffer, at);
}

Value HostKernel::widenFloat(Value stored) {
  Type like = stored.getType();
  if (getElementTypeOrSelf(like).isF16())
    return arith::ExtFOp::create(b, withElement(like, b.getF32Type()), stored);
  // bf16 is the upper half of an f32.
  Value bits = arith::BitcastOp::create(b, withElement(like, b.getIntegerType(16)), stored);
  Type i32 = withElement(like, b.getI32Type());
  Value wide = arith::ShLIOp::create(b, arith::ExtUIOp::create(b, i32, bits), constant(i32, 16));
  return arith::BitcastOp::create(b, withElement(like, b.getF32Type()), wide);
}

Value HostKernel::round(Value value, Type narrowType) {
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

Value HostKernel::narrowFloat(Value value, Type type, bool rounded) {
  Type like = value.getType();
  if (type.isF16())
    return arith::TruncFOp::create(b, withElement(like, type), value);
  if (!rounded)
    value = round(value, type);
  Type i32 = withElement(like, b.getI32Type());
  Value bits = arith::BitcastOp::create(b, i32, value);
  Value upper = arith::ShRUIOp::create(b, bits, constant(i32, 16));
  Value half = arith::TruncIOp::create(b, withElement(like, b.getIntegerType(16)), upper);
  return arith::BitcastOp::create(b, withElement(like, type), half);
}
