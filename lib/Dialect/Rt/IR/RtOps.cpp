//===- RtOps.cpp - verifiers ------------------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Dialect/Rt/IR/Rt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace drover::rt;

#define GET_OP_CLASSES
#include "drover/Dialect/Rt/IR/RtOps.cpp.inc"

SmallVector<int64_t> drover::rt::stridesOf(Value buffer) {
  SmallVector<int64_t> strides;
  int64_t offset;
  LogicalResult ok = cast<MemRefType>(buffer.getType()).getStridesAndOffset(strides, offset);
  assert(succeeded(ok) && "expects a strided memref");
  (void)ok;
  return strides;
}

static MemRefType typeOf(Value buffer) { return cast<MemRefType>(buffer.getType()); }

static LogicalResult verifyUnitStride(Operation *op, Value buffer, StringRef name) {
  SmallVector<int64_t> strides = stridesOf(buffer);
  if (!strides.empty() && strides.back() != 1)
    return op->emitOpError("expects ") << name << " to have a unit stride in its last dimension, not "
                                       << strides.back();
  return success();
}

static LogicalResult verifyComputeType(Operation *op, Value buffer, StringRef name) {
  Type element = typeOf(buffer).getElementType();
  if (!element.isF32() && !element.isBF16())
    return op->emitOpError("expects ") << name << " to be f32 or bf16, not " << element;
  return success();
}

//===----------------------------------------------------------------------===//
// Launch
//===----------------------------------------------------------------------===//

LogicalResult LaunchOp::verify() {
  if (static_cast<int64_t>(getGrain()) <= 0) // C3
    return emitOpError("expects a positive grain, not ") << static_cast<int64_t>(getGrain());
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getKernelAttr());
  if (!kernel || !kernel->hasAttr(RtDialect::kKernelAttr)) // C1
    return emitOpError("expects ") << getKernelAttr() << " to be a function with " << RtDialect::kKernelAttr;
  SmallVector<Type> expected(2, IndexType::get(getContext())); // C2
  llvm::append_range(expected, getKernelOperands().getTypes());
  FunctionType type = kernel.getFunctionType();
  if (type.getInputs() != ArrayRef<Type>(expected) || type.getNumResults() != 0)
    return emitOpError("expects ") << getKernelAttr() << " to have the type "
                                   << FunctionType::get(getContext(), expected, {}) << ", not " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// Library calls
//===----------------------------------------------------------------------===//

LogicalResult MatmulOp::verify() {
  MemRefType lhs = typeOf(getLhs()), rhs = typeOf(getRhs()), result = typeOf(getResult());
  int64_t rank = lhs.getRank();
  if ((rank != 2 && rank != 3) || rhs.getRank() != rank || result.getRank() != rank) // C1
    return emitOpError("expects ranks 2 or 3 that agree, not ")
           << rank << ", " << rhs.getRank() << " and " << result.getRank();
  for (auto [buffer, name] : {std::pair(getLhs(), "lhs"), {getRhs(), "rhs"}, {getResult(), "result"}})
    if (failed(verifyUnitStride(*this, buffer, name)) || failed(verifyComputeType(*this, buffer, name))) // C3
      return failure();
  if (lhs.getElementType() != rhs.getElementType())
    return emitOpError("expects lhs and rhs to have equal element types, not ")
           << lhs.getElementType() << " and " << rhs.getElementType();
  int64_t m = lhs.getDimSize(rank - (getTransLhs() ? 1 : 2)), k = lhs.getDimSize(rank - (getTransLhs() ? 2 : 1));
  int64_t n = rhs.getDimSize(rank - (getTransRhs() ? 2 : 1)), k2 = rhs.getDimSize(rank - (getTransRhs() ? 1 : 2));
  bool batches = rank == 2 || (lhs.getDimSize(0) == result.getDimSize(0) && rhs.getDimSize(0) == result.getDimSize(0));
  if (k != k2 || !batches || result.getDimSize(rank - 2) != m || result.getDimSize(rank - 1) != n) // C2
    return emitOpError("expects sizes that agree, not ") << lhs << " times " << rhs << " into " << result;
  return success();
}

/// C1 of the attentions: rows of one stride.
static LogicalResult verifyRows(Operation *op, Value buffer, StringRef name) {
  MemRefType type = typeOf(buffer);
  if (type.getRank() != 3)
    return op->emitOpError("expects ") << name << " to have rank 3, not " << type.getRank();
  SmallVector<int64_t> strides = stridesOf(buffer);
  if (type.getDimSize(0) > 1 && type.getDimSize(1) > 0 && strides[0] != type.getDimSize(1) * strides[1])
    return op->emitOpError("expects the batch stride of ")
           << name << " to be " << type.getDimSize(1) * strides[1] << ", not " << strides[0];
  if (failed(verifyComputeType(op, buffer, name)))
    return failure();
  return verifyUnitStride(op, buffer, name);
}

static LogicalResult verifyLogSumExp(Operation *op, Value buffer) {
  MemRefType type = typeOf(buffer);
  if (!type.getElementType().isF32() || !type.getLayout().isIdentity()) // C2
    return op->emitOpError("expects log_sum_exp to be contiguous f32, not ") << type;
  return success();
}

LogicalResult AttentionOp::verify() {
  for (auto [buffer, name] :
       {std::pair(getQuery(), "query"), {getKey(), "key"}, {getValue(), "value"}, {getResult(), "result"}})
    if (failed(verifyRows(*this, buffer, name)))
      return failure();
  return verifyLogSumExp(*this, getLogSumExp());
}

LogicalResult AttentionGradOp::verify() {
  for (auto [buffer, name] : {std::pair(getQuery(), "query"),
                              {getKey(), "key"},
                              {getValue(), "value"},
                              {getResult(), "result"},
                              {getGradient(), "gradient"},
                              {getQueryGrad(), "query_grad"},
                              {getKeyGrad(), "key_grad"},
                              {getValueGrad(), "value_grad"}})
    if (failed(verifyRows(*this, buffer, name)))
      return failure();
  return verifyLogSumExp(*this, getLogSumExp());
}

LogicalResult EmbeddingGradOp::verify() {
  MemRefType ids = typeOf(getIds()), gradient = typeOf(getGradient()), table = typeOf(getTable());
  if (ids.getRank() != 1 || gradient.getRank() != 2 || table.getRank() != 2 || !table.getElementType().isF32()) // C1
    return emitOpError("expects ids of rank 1, a gradient of rank 2 and an f32 table of rank 2, not ")
           << ids << ", " << gradient << " and " << table;
  for (auto [buffer, name] : {std::pair(getIds(), "ids"), {getGradient(), "gradient"}, {getTable(), "table"}})
    if (!typeOf(buffer).getLayout().isIdentity())
      return emitOpError("expects ") << name << " to be contiguous, not " << buffer.getType();
  if (ids.getDimSize(0) != gradient.getDimSize(0) || gradient.getDimSize(1) != table.getDimSize(1)) // C2
    return emitOpError("expects sizes that agree, not ") << ids << ", " << gradient << " and " << table;
  return verifyComputeType(*this, getGradient(), "gradient");
}
