//===- RtOps.cpp - verifiers ------------------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Dialect/Rt/IR/Rt.h"
#include "drover/rt/abi.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
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

DictionaryAttr drover::rt::describeCollective(CollectiveStartOp op) {
  Builder builder(op.getContext());
  Type element = cast<MemRefType>(op.getIn().getType()).getElementType();
  MemRefType in = cast<MemRefType>(op.getIn().getType()), out = cast<MemRefType>(op.getOut().getType());
  int64_t bytes = std::max(in.getNumElements(), out.getNumElements()) *
                  static_cast<int64_t>(llvm::divideCeil(element.getIntOrFloatBitWidth(), 8));
  return builder.getDictionaryAttr(
      {builder.getNamedAttr("communicator", builder.getI64IntegerAttr(static_cast<int64_t>(op.getCommunicator()))),
       builder.getNamedAttr("kind", builder.getStringAttr(stringifyCollectiveKind(op.getKind()))),
       builder.getNamedAttr("dtype", TypeAttr::get(element)),
       builder.getNamedAttr("bytes", builder.getI64IntegerAttr(bytes)),
       builder.getNamedAttr(
           "reduction", builder.getI64IntegerAttr(op.getReduction() ? static_cast<int64_t>(*op.getReduction()) : -1))});
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
// Indices, launch
//===----------------------------------------------------------------------===//

LogicalResult CheckIndexOp::verify() {
  int64_t low = getLow(), size = getSize();
  if (low > size) // C1
    return emitOpError("expects a range from a number up, not [") << low << ", " << size << ")";
  return success();
}

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

Operation *GpuLaunchOp::lookupKernel() { return SymbolTable::lookupNearestSymbolFrom(*this, getKernelAttr()); }

LogicalResult GpuLaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(*this, getKernelAttr());
  if (!kernel || !kernel->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName())) // C1
    return emitOpError("expects ") << getKernelAttr() << " to be a function with "
                                   << NVVM::NVVMDialect::getKernelFuncAttrName();
  auto pointer = LLVM::LLVMPointerType::get(getContext(), /*addressSpace=*/1);
  SmallVector<Type> expected; // C2
  for (Type type : getKernelOperands().getTypes())
    expected.push_back(isa<MemRefType>(type) ? Type(pointer) : type);
  if (getCheck())
    llvm::append_values(expected, Type(IntegerType::get(getContext(), 64)), Type(pointer));
  if (ArrayRef(expected) != kernel.getArgumentTypes())
    return emitOpError("expects ") << getKernelAttr() << " to have the arguments (" << expected << "), not ("
                                   << kernel.getArgumentTypes() << ")";
  for (StringRef name : {NVVM::NVVMDialect::getReqntidAttrName(), StringRef(kSharedBytesAttr)}) // C3
    if (!kernel->hasAttr(name))
      return emitOpError("expects ") << getKernelAttr() << " to have the attribute " << name;
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

static LogicalResult verifyQueryIndex(Operation *op, Value buffer) {
  if (buffer && !typeOf(buffer).getLayout().isIdentity()) // C3
    return op->emitOpError("expects query_index to be contiguous, not ") << buffer.getType();
  return success();
}

LogicalResult AttentionOp::verify() {
  for (auto [buffer, name] :
       {std::pair(getQuery(), "query"), {getKey(), "key"}, {getValue(), "value"}, {getResult(), "result"}})
    if (failed(verifyRows(*this, buffer, name)))
      return failure();
  if (failed(verifyQueryIndex(*this, getQueryIndex())))
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
  if (failed(verifyQueryIndex(*this, getQueryIndex())))
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
  if (getOffset() && typeOf(getOffset()).getDimSize(0) != 1) // C3
    return emitOpError("expects an offset of one element, not ") << getOffset().getType();
  return verifyComputeType(*this, getGradient(), "gradient");
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

static LogicalResult verifySlot(Operation *op, int32_t slot) {
  if (slot < 0 || slot >= DROVER_MAX_IN_FLIGHT)
    return op->emitOpError("expects a slot from 0 to ") << DROVER_MAX_IN_FLIGHT - 1 << ", not " << slot;
  return success();
}

/// C1: contiguous from the start of the view on.
static LogicalResult verifyContiguous(Operation *op, Value buffer, StringRef name) {
  MemRefType type = typeOf(buffer);
  if (!type.hasStaticShape())
    return op->emitOpError("expects ") << name << " to have a static shape, not " << type;
  int64_t expected = 1;
  SmallVector<int64_t> strides = stridesOf(buffer);
  for (size_t i = strides.size(); i-- > 0; expected *= type.getDimSize(i))
    if (type.getDimSize(i) != 1 && strides[i] != expected)
      return op->emitOpError("expects ") << name << " to be contiguous, not " << type;
  return success();
}

LogicalResult CollectiveStartOp::verify() {
  MemRefType in = typeOf(getIn()), out = typeOf(getOut());
  if (failed(verifyContiguous(*this, getIn(), "in")) || failed(verifyContiguous(*this, getOut(), "out")))
    return failure();
  Type element = in.getElementType();
  if (element != out.getElementType())
    return emitOpError("expects buffers of one element type, not ") << element << " and " << out.getElementType();
  bool gather = getKind() == CollectiveKind::AllGather, scatter = getKind() == CollectiveKind::ReduceScatter;
  bool shift = getKind() == CollectiveKind::Shift, moves = gather || shift;
  if (!moves && !element.isF32() && !element.isBF16() && !element.isF64() && !element.isInteger(64))
    return emitOpError("expects a reduction of f32, bf16, f64 or i64, not ") << element;
  if (failed(verifySlot(*this, getSlot()))) // C2
    return failure();
  int64_t ranks = getRanks(), outer = getOuter(), local = getLocal(), inner = getInner(); // C3
  if (ranks <= 0 || outer <= 0 || local <= 0 || inner <= 0)
    return emitOpError("expects positive sizes, not ")
           << ranks << " ranks of " << outer << " x " << local << " x " << inner;
  int64_t part = outer * local * inner, wantIn = scatter ? part * ranks : part, wantOut = gather ? part * ranks : part;
  if (in.getNumElements() != wantIn || out.getNumElements() != wantOut)
    return emitOpError("expects buffers of ") << wantIn << " and " << wantOut << " elements, not "
                                              << in.getNumElements() << " and " << out.getNumElements();
  if ((!shift && gather == getReduction().has_value()) || (moves && getOp() != Reduction::Sum)) // C4
    return emitOpError(moves ? "expects no reduction" : "expects the id of the reduction");
  if (getTwoChunk() && (local % 2 || (!gather && !scatter))) // C5
    return emitOpError("expects two_chunk on an even part of an all_gather or a reduce_scatter, not on ")
           << local << " of " << stringifyCollectiveKind(getKind());
  return success();
}

LogicalResult CollectiveWaitOp::verify() { return verifySlot(*this, getSlot()); }
