//===- GpuKernel.cpp - kernels of a GPU -------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GpuKernel.h"
#include "Collectives.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

static constexpr unsigned kGlobal = 1, kShared = 3; // address spaces
static constexpr StringLiteral kSharedName = "shared";
/// What a pointer is aligned to: operands are to 64 bytes, workspace is cut at multiples of that.
static constexpr int64_t kAlignment = 16;
/// The most shared memory that a kernel may have of its own; beyond it the launch gives all.
static constexpr int64_t kOwnSharedBytes = 48 * 1024;

std::unique_ptr<KernelBuilder> lower::createGpuKernel(BodyEmitter &emitter) {
  return std::make_unique<GpuKernel>(emitter);
}

GpuKernel::GpuKernel(BodyEmitter &emitter)
    : KernelBuilder(emitter, IntegerType::get(emitter.module.getContext(), emitter.isWide ? 64 : 32)) {
  MLIRContext *context = emitter.module.getContext();
  globalPointer = LLVM::LLVMPointerType::get(context, kGlobal);
  sharedPointer = LLVM::LLVMPointerType::get(context, kShared);
  b.setInsertionPoint(emitter.function);
  std::string name = emitter.name + "_kernel_" + std::to_string(emitter.numKernels++);
  auto kernelModule = gpu::GPUModuleOp::create(b, name);
  b.setInsertionPointToStart(kernelModule.getBody());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {});
  auto kernel = LLVM::LLVMFuncOp::create(b, name, type);
  kernel->setAttr(rt::RtDialect::kKernelNameAttr, b.getStringAttr(emitter.unitName));
  b.setInsertionPointToEnd(kernel.addEntryBlock(b));
  module = kernelModule;
  function = kernel;
  auto ret = LLVM::ReturnOp::create(b, ValueRange());
  b.setInsertionPoint(ret);
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

Value GpuKernel::argument(Value bodyValue) {
  auto type = cast<MemRefType>(bodyValue.getType());
  Place place;
  if (auto argument = dyn_cast<BlockArgument>(bodyValue)) {
    place = {0, argument.getArgNumber()};
  } else if (auto view = bodyValue.getDefiningOp<memref::ViewOp>()) {
    APInt offset;
    bool isConstant = matchPattern(view.getByteShift(), m_ConstantInt(&offset));
    assert(isConstant && "workspace is planned at constant offsets");
    (void)isConstant;
    place = {1, offset.getSExtValue()};
  } else {
    Value &constant = constants[bodyValue];
    if (!constant) {
      auto name = cast<memref::GetGlobalOp>(bodyValue.getDefiningOp()).getName();
      auto global = emitter.module.lookupSymbol<memref::GlobalOp>(name);
      constant = constantData(cast<DenseElementsAttr>(*global.getInitialValue()));
    }
    return constant;
  }
  // Values at one place are one argument: pointers promise that no other leads to the same memory.
  Pointer &pointer = pointers[place];
  int64_t bytes = type.hasStaticShape() ? type.getNumElements() * bytesOf(type.getElementType()) : 0;
  if (!pointer.operand || bytes > pointer.bytes) {
    pointer.operand = bodyValue;
    pointer.bytes = bytes;
  }
  if (!pointer.argument)
    pointer.argument = entry().insertArgument(pointers.size() - 1, globalPointer, b.getLoc());
  return pointer.argument;
}

/// An i64 that the host computes before the launch.
Value GpuKernel::number(Value hostValue) {
  for (auto [value, argument] : numbers)
    if (value == hostValue)
      return argument;
  BlockArgument argument = entry().insertArgument(pointers.size() + numbers.size(), b.getI64Type(), b.getLoc());
  numbers.push_back({hostValue, argument});
  return argument;
}

Value GpuKernel::constantData(DenseElementsAttr data) {
  auto globals = module->getRegion(0).getOps<LLVM::GlobalOp>();
  std::string name = "data_" + std::to_string(llvm::range_size(globals));
  for (auto global : globals)
    if (global.getValueOrNull() == Attribute(data))
      name = global.getSymName().str();
  OpBuilder::InsertionGuard guard(b);
  if (!SymbolTable::lookupSymbolIn(module, name)) {
    b.setInsertionPointToStart(&module->getRegion(0).front());
    auto type = LLVM::LLVMArrayType::get(data.getElementType(), data.getNumElements());
    LLVM::GlobalOp::create(b, type, /*isConstant=*/true, LLVM::Linkage::Internal, name, data, kAlignment, kGlobal);
  }
  b.setInsertionPointToStart(&entry());
  return LLVM::AddressOfOp::create(b, globalPointer, name);
}

Value GpuKernel::table(ArrayRef<float> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, b.getF32Type());
  return constantData(DenseElementsAttr::get(type, values));
}

/// The op of the body that reads the call; one serves all kernels of the body.
template <typename Op> static Value callField(BodyEmitter &emitter, Type type) {
  for (Operation *user : emitter.call.getUsers())
    if (auto op = dyn_cast<Op>(user))
      return op->getResult(0);
  OpBuilder::InsertionGuard guard(emitter.body);
  emitter.body.setInsertionPointToStart(&emitter.function.getBody().front());
  return Op::create(emitter.body, type, emitter.call);
}

/// One conversion to i64 of a value of the body, next to it.
static Value asI64(BodyEmitter &emitter, Value value) {
  Type i64 = emitter.body.getI64Type();
  for (Operation *user : value.getUsers())
    if (isa<arith::IndexCastOp, arith::ExtUIOp>(user) && user->getResult(0).getType() == i64)
      return user->getResult(0);
  OpBuilder::InsertionGuard guard(emitter.body);
  emitter.body.setInsertionPointAfterValue(value);
  if (isa<IndexType>(value.getType()))
    return arith::IndexCastOp::create(emitter.body, i64, value);
  return arith::ExtUIOp::create(emitter.body, i64, value);
}

Value GpuKernel::callSize() {
  return toIndex(number(asI64(emitter, callField<rt::CallSizeOp>(emitter, b.getIndexType()))));
}

Value GpuKernel::callAccumulates() {
  Value flag = number(asI64(emitter, callField<rt::CallAccumulatesOp>(emitter, b.getI1Type())));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, flag, constant(b.getI64Type(), 0));
}

Value GpuKernel::rankIndex(const Axes &axes) { return toIndex(number(linearIndex(emitter.body, emitter.call, axes))); }

//===----------------------------------------------------------------------===//
// Blocks and threads
//===----------------------------------------------------------------------===//

template <typename Op> Value GpuKernel::readRegister() {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&entry());
  return toIndex(Op::create(b, b.getI32Type()));
}

Value GpuKernel::thread() { return threadIndex ? threadIndex : threadIndex = readRegister<NVVM::ThreadIdXOp>(); }

Value GpuKernel::block() { return blockIndex ? blockIndex : blockIndex = readRegister<NVVM::BlockIdXOp>(); }

void GpuKernel::barrier() { NVVM::Barrier0Op::create(b); }

void GpuKernel::warpBarrier() { NVVM::SyncWarpOp::create(b, arith::ConstantOp::create(b, b.getI32IntegerAttr(-1))); }

void GpuKernel::when(Value condition, function_ref<void()> build) {
  if (!condition)
    return build();
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  build();
}

Value GpuKernel::either(Value condition, Value otherwise, function_ref<Value(Value)> build) {
  auto branch = scf::IfOp::create(b, otherwise.getType(), condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, build(otherwise));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, otherwise);
  return branch.getResult(0);
}

Value GpuKernel::lessThan(Value a, Value x) { return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, a, x); }

Value GpuKernel::isZero(Value value) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, value, constant(value.getType(), 0));
}

void GpuKernel::indices(function_ref<void(Value)> build) {
  Value i = add(scale(block(), kThreads), thread());
  // The number of indices is known at the launch: its argument comes then.
  indexCount = arith::ConstantOp::create(b, b.getIntegerAttr(indexType, 0));
  when(lessThan(i, indexCount), [&] { build(i); });
}

void GpuKernel::launch(Value count, int64_t) {
  APInt known;
  if (matchPattern(count, m_ConstantInt(&known))) {
    indexCount.setValueAttr(b.getIntegerAttr(indexType, known.getSExtValue()));
    return launchBlocks((known.getSExtValue() + kThreads - 1) / kThreads, kThreads);
  }
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(indexCount);
    indexCount.replaceAllUsesWith(toIndex(number(asI64(emitter, count))));
    indexCount.erase();
  }
  ImplicitLocOpBuilder &body = emitter.body;
  Value padded = arith::AddIOp::create(body, count, emitter.index(kThreads - 1));
  Value blocks = arith::DivUIOp::create(body, padded, emitter.index(kThreads));
  launchBlocks(blocks, kThreads);
}

void GpuKernel::setOnlyForHopper() {
  Attribute target = NVVM::NVVMTargetAttr::get(b.getContext(), /*optLevel=*/3, "nvptx64-nvidia-cuda", "sm_90a");
  cast<gpu::GPUModuleOp>(module).setTargetsAttr(b.getArrayAttr(target));
}

void GpuKernel::setResidentBlocks(int64_t blocks) {
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), b.getI32IntegerAttr(static_cast<int32_t>(blocks)));
}

void GpuKernel::launchBlocks(Value blocks, int64_t threads) {
  allowContraction(function);
  if (sharedBytes > 0) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&module->getRegion(0).front());
    bool isGiven = sharedBytes > kOwnSharedBytes; // by the launch
    auto type = LLVM::LLVMArrayType::get(b.getI8Type(), isGiven ? 0 : sharedBytes);
    LLVM::GlobalOp::create(b, type, /*isConstant=*/false, isGiven ? LLVM::Linkage::External : LLVM::Linkage::Internal,
                           kSharedName, Attribute(), sharedAlignment, kShared);
  }
  auto size = b.getDenseI32ArrayAttr({static_cast<int32_t>(threads), 1, 1});
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(), size);
  function->setAttr(rt::GpuLaunchOp::kSharedBytesAttr, b.getI64IntegerAttr(sharedBytes));
  auto kernel = cast<LLVM::LLVMFuncOp>(function);
  kernel.setFunctionType(LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                                     llvm::to_vector(entry().getArgumentTypes())));
  setArgumentAttributes();
  SmallVector<Value> operands;
  for (auto &[place, pointer] : pointers)
    operands.push_back(pointer.operand);
  for (auto [value, argument] : numbers)
    operands.push_back(value);
  StringAttr name = kernel.getSymNameAttr();
  auto symbol = SymbolRefAttr::get(name, {FlatSymbolRefAttr::get(name)}); // the module's name, too
  rt::GpuLaunchOp::create(emitter.body, emitter.call, symbol, blocks, operands,
                          check.empty() ? StringAttr() : b.getStringAttr(check));
}

void GpuKernel::setArgumentAttributes() {
  SmallVector<Attribute> attributes;
  auto describe = [&](int64_t bytes, bool written) {
    NamedAttrList list;
    list.set(LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    list.set(LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(kAlignment));
    if (bytes > 0)
      list.set(LLVM::LLVMDialect::getDereferenceableAttrName(), b.getI64IntegerAttr(bytes));
    if (!written)
      list.set(LLVM::LLVMDialect::getReadonlyAttrName(), b.getUnitAttr());
    attributes.push_back(list.getDictionary(b.getContext()));
  };
  for (auto &[place, pointer] : pointers)
    describe(pointer.bytes, pointer.written);
  attributes.append(numbers.size(), b.getDictionaryAttr({}));
  if (!check.empty()) {
    attributes.push_back(b.getDictionaryAttr({}));
    describe(16, true);
  }
  cast<LLVM::LLVMFuncOp>(function).setArgAttrsAttr(b.getArrayAttr(attributes));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value GpuKernel::globalAddress(Value buffer, Value at, Type element) {
  return LLVM::GEPOp::create(b, buffer.getType(), element, buffer, ValueRange(at));
}

static int64_t alignmentOf(Type element, int64_t aligned) {
  return std::min<int64_t>(kAlignment, aligned * bytesOf(element));
}

Value GpuKernel::loadStored(Value buffer, Value at, Type type, int64_t aligned) {
  Type element = getElementTypeOrSelf(type);
  return LLVM::LoadOp::create(b, type, globalAddress(buffer, at, element), alignmentOf(element, aligned));
}

void GpuKernel::storeStored(Value value, Value buffer, Value at, int64_t aligned) {
  for (auto &[place, pointer] : pointers)
    pointer.written |= pointer.argument == buffer;
  Type element = getElementTypeOrSelf(value.getType());
  LLVM::StoreOp::create(b, value, globalAddress(buffer, at, element), alignmentOf(element, aligned));
}

Value GpuKernel::widenFloat(Value stored) {
  return arith::ExtFOp::create(b, withElement(stored.getType(), b.getF32Type()), stored);
}

Value GpuKernel::narrowFloat(Value value, Type type, bool) {
  return arith::TruncFOp::create(b, withElement(value.getType(), type), value);
}

Value GpuKernel::round(Value value, Type narrow) { return widenFloat(narrowFloat(value, narrow, false)); }

/// The first index out of range of a launch goes to the error words; index 0 is read in its place.
Value GpuKernel::checkIndex(Value index, int64_t low, int64_t size, StringRef opName) {
  Type i64 = b.getI64Type();
  auto constant64 = [&](int64_t value) { return arith::ConstantOp::create(b, b.getI64IntegerAttr(value)); };
  if (check.empty()) {
    check = emitter.name + ": " + opName.str();
    checkNumber = entry().addArgument(i64, b.getLoc());
    errorWords = entry().addArgument(globalPointer, b.getLoc());
  }
  // One unsigned comparison: what is below the range wraps to above it.
  Value above = arith::SubIOp::create(b, index, constant64(low));
  Value outside = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, above, constant64(size - low));
  Value zero = constant64(0);
  when(outside, [&] {
    auto monotonic = LLVM::AtomicOrdering::monotonic;
    Value exchanged = LLVM::AtomicCmpXchgOp::create(b, errorWords, zero, checkNumber, monotonic, monotonic);
    Value isFirst = LLVM::ExtractValueOp::create(b, exchanged, ArrayRef<int64_t>{1});
    when(isFirst, [&] {
      Value second = globalAddress(errorWords, arith::ConstantOp::create(b, b.getI32IntegerAttr(1)), i64);
      LLVM::StoreOp::create(b, index, second);
    });
  });
  return arith::SelectOp::create(b, outside, zero, index);
}

//===----------------------------------------------------------------------===//
// Threads together
//===----------------------------------------------------------------------===//

Value GpuKernel::shuffle32(Value value, int64_t distance) {
  auto number = [&](int64_t n) { return arith::ConstantOp::create(b, b.getI32IntegerAttr(static_cast<int32_t>(n))); };
  return NVVM::ShflOp::create(b, value.getType(), number(-1), value, number(distance), number(kWarp - 1),
                              NVVM::ShflKind::bfly, UnitAttr());
}

Value GpuKernel::exchange(Value value, int64_t distance) {
  Type type = value.getType();
  if (type.getIntOrFloatBitWidth() == 32)
    return shuffle32(value, distance);
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  Value bits = type == i64 ? value : arith::BitcastOp::create(b, i64, value).getResult();
  Value shift = arith::ConstantOp::create(b, b.getI64IntegerAttr(32));
  Value low = shuffle32(arith::TruncIOp::create(b, i32, bits), distance);
  Value high = shuffle32(arith::TruncIOp::create(b, i32, arith::ShRUIOp::create(b, bits, shift)), distance);
  Value joined = arith::OrIOp::create(b, arith::ExtUIOp::create(b, i64, low),
                                      arith::ShLIOp::create(b, arith::ExtUIOp::create(b, i64, high), shift));
  return type == i64 ? joined : arith::BitcastOp::create(b, type, joined).getResult();
}

Value GpuKernel::ballot(Value predicate) {
  Value all = arith::ConstantOp::create(b, b.getI32IntegerAttr(-1));
  return NVVM::VoteSyncOp::create(b, b.getI32Type(), all, predicate, NVVM::VoteSyncKind::ballot);
}

int64_t GpuKernel::allocateShared(int64_t bytes, int64_t alignment) {
  int64_t offset = llvm::alignTo(sharedBytes, alignment);
  sharedBytes = offset + llvm::alignTo(bytes, kAlignment);
  sharedAlignment = std::max(sharedAlignment, alignment);
  return offset;
}

Value GpuKernel::sharedAddress(Value offset) {
  Value base = LLVM::AddressOfOp::create(b, sharedPointer, kSharedName);
  return LLVM::GEPOp::create(b, sharedPointer, b.getI8Type(), base, ValueRange(offset));
}

Value GpuKernel::exp2(Value x) {
  auto name = b.getStringAttr("llvm.nvvm.ex2.approx.ftz.f32");
  return LLVM::CallIntrinsicOp::create(b, b.getF32Type(), name, ValueRange(x)).getResult(0);
}

/// Element `at` of an array in shared memory.
Value GpuKernel::sharedSlot(int64_t offset, Value at, Type type) {
  Value base = LLVM::AddressOfOp::create(b, sharedPointer, kSharedName);
  Value start =
      LLVM::GEPOp::create(b, sharedPointer, b.getI8Type(), base, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
  return LLVM::GEPOp::create(b, sharedPointer, type, start, ValueRange(at));
}

SmallVector<Value> GpuKernel::reduce(ValueRange values, ArrayRef<RowReduction> kinds, int64_t group) {
  SmallVector<Value> totals = llvm::to_vector(values);
  for (int64_t distance = std::min(group, kWarp) / 2; distance > 0; distance /= 2)
    for (auto [total, kind] : llvm::zip(totals, kinds))
      total = combine(total, exchange(total, distance), kind);
  if (group <= kWarp)
    return totals;
  // Over the warps through shared memory, of which each reduction has a part of its own.
  int64_t warps = group / kWarp;
  Value warpSize = index(kWarp), warp = arith::DivUIOp::create(b, thread(), warpSize);
  Value lane = arith::RemUIOp::create(b, thread(), warpSize);
  SmallVector<int64_t> offsets;
  for (Value total : totals)
    offsets.push_back(allocateShared(warps * bytesOf(total.getType())));
  when(isZero(lane), [&] {
    for (auto [total, offset] : llvm::zip(totals, offsets))
      LLVM::StoreOp::create(b, total, sharedSlot(offset, warp, total.getType()));
  });
  barrier();
  for (auto [total, kind, offset] : llvm::zip(totals, kinds, offsets)) {
    Type type = total.getType();
    Value sum;
    for (int64_t i = 0; i < warps; ++i) {
      Value next = LLVM::LoadOp::create(b, type, sharedSlot(offset, index(i), type));
      sum = sum ? combine(sum, next, kind) : next;
    }
    total = sum;
  }
  return totals;
}
