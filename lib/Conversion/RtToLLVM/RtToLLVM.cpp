//===- RtToLLVM.cpp - the runtime's ABI -------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Conversion/RtToLLVM/RtToLLVM.h"
#include "../AttentionSizes.h"
#include "drover/Dialect/Rt/IR/Rt.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringMap.h"
#include <cstddef>

using namespace mlir;
using namespace drover;

namespace drover {
#define GEN_PASS_DEF_CONVERTRTTOLLVM
#include "drover/Conversion/RtToLLVM/Passes.h.inc"
} // namespace drover

static int32_t dtypeOf(Value buffer) {
  Type type = cast<MemRefType>(buffer.getType()).getElementType();
  if (type.isF32())
    return DROVER_F32;
  if (type.isBF16())
    return DROVER_BF16;
  if (type.isF16())
    return DROVER_F16;
  if (type.isF64())
    return DROVER_F64;
  if (type.isInteger(64))
    return DROVER_I64;
  if (type.isInteger(32))
    return DROVER_I32;
  return DROVER_I8;
}

namespace {
/// One function: its arguments become loads from the ABI's pointers, its rt ops calls.
class FunctionConversion {
public:
  FunctionConversion(func::FuncOp func, const LLVMTypeConverter &types, llvm::StringMap<std::string> &descriptors)
      : func(func), module(func->getParentOfType<ModuleOp>()), types(types), descriptors(descriptors),
        b(func.getLoc(), func.getContext()), ptr(LLVM::LLVMPointerType::get(func.getContext())) {}

  void run();

private:
  Value castTo(Type type, Value value) { return UnrealizedConversionCastOp::create(b, type, value).getResult(0); }
  Value loadPointer(Value array, int64_t index);
  Value memref(MemRefType type, Value pointer);
  Value pointer(Value buffer);
  Value pointerOrNull(Value buffer);
  Value i64(int64_t value) { return LLVM::ConstantOp::create(b, b.getI64Type(), b.getI64IntegerAttr(value)); }
  Value i32(int32_t value) { return LLVM::ConstantOp::create(b, b.getI32Type(), b.getI32IntegerAttr(value)); }
  Value callField(size_t offset, Type type);
  Value descriptor(StringRef bytes, DenseF32ArrayAttr slopes = {});
  template <typename T> Value descriptor(const T &desc) {
    return descriptor(StringRef(reinterpret_cast<const char *>(&desc), sizeof(T)));
  }
  void call(StringRef name, ValueRange operands);

  void convertSignature();
  void convert(rt::CheckIndexOp op);
  void convert(rt::LaunchOp op);
  void convert(rt::GpuLaunchOp op);
  Value gpuKernel(rt::GpuLaunchOp op);
  void convert(rt::MatmulOp op);
  void convert(rt::AttentionOp op);
  void convert(rt::AttentionGradOp op);
  void convert(rt::EmbeddingGradOp op);
  void convert(rt::CollectiveStartOp op);
  template <typename Op> drover_attention describe(Op op);

  func::FuncOp func;
  ModuleOp module;
  const LLVMTypeConverter &types;
  llvm::StringMap<std::string> &descriptors;
  ImplicitLocOpBuilder b;
  LLVM::LLVMPointerType ptr;
  Value callPointer;
};
} // namespace

//===----------------------------------------------------------------------===//
// Pointers and memrefs
//===----------------------------------------------------------------------===//

Value FunctionConversion::loadPointer(Value array, int64_t index) {
  Value address = LLVM::GEPOp::create(b, ptr, ptr, array, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
  return LLVM::LoadOp::create(b, ptr, address);
}

Value FunctionConversion::memref(MemRefType type, Value pointer) {
  // A flat body's memrefs have no size here: its kernels get it from the call.
  auto descriptor = MemRefDescriptor::poison(b, b.getLoc(), types.convertType(type));
  descriptor.setAllocatedPtr(b, b.getLoc(), pointer);
  descriptor.setAlignedPtr(b, b.getLoc(), pointer);
  descriptor.setConstantOffset(b, b.getLoc(), 0);
  descriptor.setConstantSize(b, b.getLoc(), 0, type.isDynamicDim(0) ? INT64_MAX : type.getDimSize(0));
  descriptor.setConstantStride(b, b.getLoc(), 0, 1);
  return castTo(type, descriptor);
}

Value FunctionConversion::pointer(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  MemRefDescriptor descriptor(castTo(types.convertType(type), buffer));
  return descriptor.bufferPtr(b, b.getLoc(), types, type);
}

Value FunctionConversion::pointerOrNull(Value buffer) {
  return buffer ? pointer(buffer) : LLVM::ZeroOp::create(b, ptr).getResult();
}

Value FunctionConversion::callField(size_t offset, Type type) {
  Value address =
      LLVM::GEPOp::create(b, ptr, b.getI8Type(), callPointer, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
  return LLVM::LoadOp::create(b, type, address);
}

/// A constant with the bytes of one of abi.h's structs; equal ones are shared. The alibi slopes are the only pointer
/// in them, and come last.
Value FunctionConversion::descriptor(StringRef bytes, DenseF32ArrayAttr slopes) {
  std::string key = bytes.str();
  if (slopes)
    key.append(reinterpret_cast<const char *>(slopes.asArrayRef().data()), slopes.size() * sizeof(float));
  std::string &name = descriptors[key];
  auto data = [&](StringRef raw) {
    return DenseElementsAttr::getFromRawBuffer(RankedTensorType::get({static_cast<int64_t>(raw.size())}, b.getI8Type()),
                                               ArrayRef(raw.data(), raw.size()));
  };
  auto array = [&](size_t size) { return LLVM::LLVMArrayType::get(b.getI8Type(), size); };
  if (name.empty()) {
    OpBuilder::InsertionGuard guard(b);
    name = "drover_descriptor_" + std::to_string(descriptors.size());
    b.setInsertionPointToStart(module.getBody());
    if (!slopes) {
      LLVM::GlobalOp::create(b, array(bytes.size()), /*isConstant=*/true, LLVM::Linkage::Internal, name, data(bytes),
                             8);
    } else {
      StringRef raw(reinterpret_cast<const char *>(slopes.asArrayRef().data()), slopes.size() * sizeof(float));
      std::string table = name + "_slopes";
      LLVM::GlobalOp::create(b, array(raw.size()), true, LLVM::Linkage::Internal, table, data(raw), 8);
      StringRef fields = bytes.drop_back(sizeof(void *));
      auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), {array(fields.size()), ptr});
      auto global = LLVM::GlobalOp::create(b, type, true, LLVM::Linkage::Internal, name, Attribute(), 8);
      b.createBlock(&global.getInitializerRegion());
      Value value = LLVM::PoisonOp::create(b, type);
      value = LLVM::InsertValueOp::create(b, value, LLVM::ConstantOp::create(b, array(fields.size()), data(fields)),
                                          ArrayRef<int64_t>{0});
      value = LLVM::InsertValueOp::create(b, value, LLVM::AddressOfOp::create(b, ptr, table), ArrayRef<int64_t>{1});
      LLVM::ReturnOp::create(b, value);
    }
  }
  return LLVM::AddressOfOp::create(b, ptr, name);
}

void FunctionConversion::call(StringRef name, ValueRange operands) {
  if (!module.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    func::FuncOp::create(b, name, b.getFunctionType(operands.getTypes(), {})).setPrivate();
  }
  func::CallOp::create(b, name, TypeRange(), operands);
}

//===----------------------------------------------------------------------===//
// Signatures
//===----------------------------------------------------------------------===//

void FunctionConversion::convertSignature() {
  Block &entry = func.getBody().front();
  bool kernel = func->hasAttr(rt::RtDialect::kKernelAttr);
  SmallVector<BlockArgument> old(entry.getArguments());
  SmallVector<Type> inputs =
      kernel ? SmallVector<Type>{b.getI64Type(), b.getI64Type(), ptr} : SmallVector<Type>{ptr, ptr, ptr};
  SmallVector<Value> arguments;
  for (Type type : inputs)
    arguments.push_back(entry.addArgument(type, func.getLoc()));
  b.setInsertionPointToStart(&entry);
  Value operands = arguments[kernel ? 2 : 0];
  unsigned number = 0;
  for (auto [i, argument] : llvm::enumerate(old)) {
    Value value;
    if (kernel && i < 2) {
      value = arith::IndexCastOp::create(b, b.getIndexType(), arguments[i]);
    } else if (isa<rt::CallType>(argument.getType())) {
      callPointer = kernel ? loadPointer(operands, number++) : arguments[2];
      continue; // readers are converted below
    } else {
      bool workspace = !kernel && i + 2 == old.size();
      Value pointer = workspace ? arguments[1] : loadPointer(operands, number++);
      value = memref(cast<MemRefType>(argument.getType()), pointer);
    }
    argument.replaceAllUsesWith(value);
  }
  func.setFunctionType(b.getFunctionType(inputs, {}));
  if (kernel)
    func->setAttr("llvm.linkage", LLVM::LinkageAttr::get(b.getContext(), LLVM::Linkage::Internal));
  else
    func.setPublic();
}

void FunctionConversion::run() {
  unsigned numOld = func.getNumArguments();
  convertSignature();
  SmallVector<Operation *> ops;
  func.walk([&](Operation *op) {
    if (isa_and_nonnull<rt::RtDialect>(op->getDialect()))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    b.setInsertionPoint(op);
    b.setLoc(op->getLoc());
    if (auto size = dyn_cast<rt::CallSizeOp>(op)) {
      Value value = callField(offsetof(drover_call, size), b.getI64Type());
      size.getResult().replaceAllUsesWith(arith::IndexCastOp::create(b, b.getIndexType(), value));
    } else if (auto flag = dyn_cast<rt::CallAccumulatesOp>(op)) {
      Value value = callField(offsetof(drover_call, accumulate), b.getI32Type());
      Value zero = LLVM::ConstantOp::create(b, b.getI32Type(), b.getI32IntegerAttr(0));
      flag.getResult().replaceAllUsesWith(LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, value, zero));
    } else if (auto check = dyn_cast<rt::CheckIndexOp>(op)) {
      convert(check);
    } else if (auto launch = dyn_cast<rt::LaunchOp>(op)) {
      convert(launch);
    } else if (auto gpuLaunch = dyn_cast<rt::GpuLaunchOp>(op)) {
      convert(gpuLaunch);
    } else if (auto matmul = dyn_cast<rt::MatmulOp>(op)) {
      convert(matmul);
    } else if (auto attention = dyn_cast<rt::AttentionOp>(op)) {
      convert(attention);
    } else if (auto gradient = dyn_cast<rt::AttentionGradOp>(op)) {
      convert(gradient);
    } else if (auto coordinate = dyn_cast<rt::CoordinateOp>(op)) {
      Value coordinates = callField(offsetof(drover_call, coordinates), ptr);
      Value address = LLVM::GEPOp::create(b, ptr, b.getI32Type(), coordinates,
                                          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(coordinate.getAxis())});
      Value value = LLVM::LoadOp::create(b, b.getI32Type(), address);
      coordinate.getResult().replaceAllUsesWith(arith::ExtSIOp::create(b, b.getI64Type(), value));
    } else if (auto start = dyn_cast<rt::CollectiveStartOp>(op)) {
      convert(start);
    } else if (auto wait = dyn_cast<rt::CollectiveWaitOp>(op)) {
      call("drover_rt_collective_wait", {callPointer, i32(wait.getSlot())});
    } else {
      convert(cast<rt::EmbeddingGradOp>(op));
    }
    op->erase();
  }
  func.getBody().front().eraseArguments(0, numOld);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void FunctionConversion::convert(rt::CheckIndexOp op) {
  int64_t low = op.getLow(), size = op.getSize();
  // One unsigned comparison: what is below the range wraps to above it.
  Value above = LLVM::SubOp::create(b, op.getIndex(), i64(low));
  Value outside = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, above, i64(size - low));
  auto branch = scf::IfOp::create(b, outside, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  std::string what = op.getWhat().str();
  call("drover_rt_index_error",
       {descriptor(StringRef(what.c_str(), what.size() + 1)), op.getIndex(), i64(low), i64(size)});
}

void FunctionConversion::convert(rt::LaunchOp op) {
  auto operands = op.getKernelOperands();
  Value array;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&func.getBody().front());
    array = LLVM::AllocaOp::create(b, ptr, ptr, i64(std::max<int64_t>(operands.size(), 1)), 8);
  }
  for (auto [i, operand] : llvm::enumerate(operands)) {
    Value value = isa<rt::CallType>(operand.getType()) ? callPointer : pointer(operand);
    Value address = LLVM::GEPOp::create(b, ptr, ptr, array, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
    LLVM::StoreOp::create(b, value, address);
  }
  auto type = b.getFunctionType({b.getI64Type(), b.getI64Type(), ptr}, {});
  Value kernel = castTo(ptr, func::ConstantOp::create(b, type, op.getKernelAttr()));
  Value count = arith::IndexCastOp::create(b, b.getI64Type(), op.getCount());
  call("drover_rt_parallel_for", {callPointer, kernel, count, i64(op.getGrain()), array});
}

/// A constant drover_gpu_kernel.
Value FunctionConversion::gpuKernel(rt::GpuLaunchOp op) {
  auto kernel = cast<LLVM::LLVMFuncOp>(op.lookupKernel());
  StringRef check = op.getCheck().value_or("");
  std::string &name = descriptors[("gpu kernel " + kernel.getSymName() + " " + check).str()];
  if (name.empty()) {
    name = "drover_gpu_kernel_" + std::to_string(descriptors.size());
    auto text = [&](StringRef value) -> std::string {
      std::string copy = value.str(); // with its terminating zero
      descriptor(StringRef(copy.c_str(), copy.size() + 1));
      return descriptors.lookup(StringRef(copy.c_str(), copy.size() + 1));
    };
    std::string nameText = text(kernel.getSymName()), checkText = op.getCheck() ? text(check) : "";
    int32_t threads = 1;
    for (int32_t size : kernel->getAttrOfType<DenseI32ArrayAttr>(NVVM::NVVMDialect::getReqntidAttrName()).asArrayRef())
      threads *= size;
    int32_t shared = kernel->getAttrOfType<IntegerAttr>(rt::GpuLaunchOp::kSharedBytesAttr).getInt();
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    Type word = b.getI32Type();
    auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), {ptr, ptr, word, word, word, word});
    auto global = LLVM::GlobalOp::create(b, type, true, LLVM::Linkage::Internal, name, Attribute(), 8);
    b.createBlock(&global.getInitializerRegion());
    Value value = LLVM::PoisonOp::create(b, type);
    auto insert = [&](Value field, int64_t index) {
      value = LLVM::InsertValueOp::create(b, value, field, ArrayRef<int64_t>{index});
    };
    insert(LLVM::AddressOfOp::create(b, ptr, nameText), 0);
    insert(op.getCheck() ? LLVM::AddressOfOp::create(b, ptr, checkText).getResult()
                         : LLVM::ZeroOp::create(b, ptr).getResult(),
           1);
    for (auto [index, number] : {std::pair<int64_t, int32_t>(2, threads),
                                 {3, shared},
                                 {4, static_cast<int32_t>(op.getKernelOperands().size())},
                                 {5, 0}})
      insert(i32(number), index);
    LLVM::ReturnOp::create(b, value);
  }
  return LLVM::AddressOfOp::create(b, ptr, name);
}

void FunctionConversion::convert(rt::GpuLaunchOp op) {
  auto operands = op.getKernelOperands();
  Value array, values;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&func.getBody().front());
    array = LLVM::AllocaOp::create(b, ptr, ptr, i64(operands.size() + 2), 8);
    values = LLVM::AllocaOp::create(b, ptr, b.getI64Type(), i64(std::max<int64_t>(operands.size(), 1)), 8);
  }
  for (auto [i, operand] : llvm::enumerate(operands)) {
    Value value = isa<MemRefType>(operand.getType()) ? pointer(operand) : Value(operand);
    SmallVector<LLVM::GEPArg, 1> index{static_cast<int32_t>(i)};
    Value place = LLVM::GEPOp::create(b, ptr, b.getI64Type(), values, index);
    LLVM::StoreOp::create(b, value, place);
    LLVM::StoreOp::create(b, place, LLVM::GEPOp::create(b, ptr, ptr, array, index));
  }
  Value blocks = arith::IndexCastOp::create(b, b.getI64Type(), op.getBlocks());
  call("drover_rt_gpu_launch", {callPointer, gpuKernel(op), blocks, array});
}

void FunctionConversion::convert(rt::MatmulOp op) {
  drover_matmul desc = {};
  auto lhs = cast<MemRefType>(op.getLhs().getType()), result = cast<MemRefType>(op.getResult().getType());
  int64_t rank = lhs.getRank();
  SmallVector<int64_t> a = rt::stridesOf(op.getLhs()), x = rt::stridesOf(op.getRhs()),
                       c = rt::stridesOf(op.getResult());
  desc.dtype_ab = dtypeOf(op.getLhs());
  desc.dtype_c = dtypeOf(op.getResult());
  desc.trans_a = op.getTransLhs();
  desc.trans_b = op.getTransRhs();
  desc.store = static_cast<int32_t>(op.getStore());
  desc.m = result.getDimSize(rank - 2);
  desc.n = result.getDimSize(rank - 1);
  desc.k = lhs.getDimSize(rank - (op.getTransLhs() ? 2 : 1));
  desc.lda = a[rank - 2];
  desc.ldb = x[rank - 2];
  desc.ldc = c[rank - 2];
  desc.batch = rank == 3 ? result.getDimSize(0) : 1;
  if (rank == 3) {
    desc.stride_a = a[0];
    desc.stride_b = x[0];
    desc.stride_c = c[0];
  }
  call("drover_rt_matmul",
       {callPointer, descriptor(desc), pointer(op.getLhs()), pointer(op.getRhs()), pointer(op.getResult())});
}

template <typename Op> drover_attention FunctionConversion::describe(Op op) {
  drover_attention desc = attentionSizes(op);
  auto shape = [](Value buffer) { return cast<MemRefType>(buffer.getType()).getShape(); };
  desc.dtype = dtypeOf(op.getQuery());
  desc.dtype_kv_grad = desc.dtype;
  desc.causal = static_cast<int32_t>(op.getCausal());
  desc.query_stride = rt::stridesOf(op.getQuery())[1];
  desc.key_stride = rt::stridesOf(op.getKey())[1];
  desc.value_stride = rt::stridesOf(op.getValue())[1];
  desc.result_stride = rt::stridesOf(op.getResult())[1];
  desc.window = op.getWindow().value_or(0);
  desc.scale = op.getScale().convertToDouble();
  desc.softcap = op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 0.0;
  if (Value mask = op.getMask()) {
    int32_t dtype = dtypeOf(mask);
    desc.mask_dtype = dtype == DROVER_I8 ? DROVER_I1 : dtype;
    SmallVector<int64_t> strides = rt::stridesOf(mask);
    auto stride = [&](unsigned i) { return shape(mask)[i] == 1 ? 0 : strides[i]; };
    desc.mask_batch_stride = stride(0);
    desc.mask_head_stride = stride(1);
    desc.mask_query_stride = stride(2);
  }
  if (Value mask = op.getKeyMask()) {
    desc.key_mask_dtype = dtypeOf(mask);
    desc.key_mask_batch_stride = shape(mask)[0] == 1 ? 0 : rt::stridesOf(mask)[0];
  }
  if (Value documents = op.getDocuments())
    desc.documents_dtype = dtypeOf(documents);
  return desc;
}

static StringRef bytesOf(const drover_attention &desc) {
  static_assert(offsetof(drover_attention, alibi_slopes) + sizeof(void *) == sizeof(drover_attention),
                "the descriptor's pointer comes last");
  return StringRef(reinterpret_cast<const char *>(&desc), sizeof(desc));
}

void FunctionConversion::convert(rt::AttentionOp op) {
  drover_attention desc = describe(op);
  call("drover_rt_attention",
       {callPointer, descriptor(bytesOf(desc), op.getAlibiSlopesAttr()), pointer(op.getQuery()), pointer(op.getKey()),
        pointer(op.getValue()), pointerOrNull(op.getMask()), pointerOrNull(op.getKeyMask()),
        pointerOrNull(op.getDocuments()), pointerOrNull(op.getQueryIndex()), pointer(op.getResult()),
        pointer(op.getLogSumExp()), pointer(op.getWorkspace())});
}

void FunctionConversion::convert(rt::AttentionGradOp op) {
  drover_attention desc = describe(op);
  desc.dtype_kv_grad = dtypeOf(op.getKeyGrad());
  desc.gradient_stride = rt::stridesOf(op.getGradient())[1];
  desc.query_grad_stride = rt::stridesOf(op.getQueryGrad())[1];
  desc.key_grad_stride = rt::stridesOf(op.getKeyGrad())[1];
  desc.value_grad_stride = rt::stridesOf(op.getValueGrad())[1];
  call("drover_rt_attention_grad",
       {callPointer, descriptor(bytesOf(desc), op.getAlibiSlopesAttr()), pointer(op.getQuery()), pointer(op.getKey()),
        pointer(op.getValue()), pointer(op.getResult()), pointer(op.getLogSumExp()), pointer(op.getGradient()),
        pointerOrNull(op.getMask()), pointerOrNull(op.getKeyMask()), pointerOrNull(op.getDocuments()),
        pointerOrNull(op.getQueryIndex()), pointer(op.getQueryGrad()), pointer(op.getKeyGrad()),
        pointer(op.getValueGrad()), pointer(op.getWorkspace())});
}

void FunctionConversion::convert(rt::EmbeddingGradOp op) {
  auto table = cast<MemRefType>(op.getTable().getType());
  call("drover_rt_embedding_grad",
       {callPointer, pointer(op.getIds()), i32(dtypeOf(op.getIds())),
        i64(cast<MemRefType>(op.getIds().getType()).getDimSize(0)), pointerOrNull(op.getOffset()),
        pointer(op.getGradient()), i32(dtypeOf(op.getGradient())), i64(table.getDimSize(1)), i64(table.getDimSize(0)),
        pointer(op.getTable()), i32(static_cast<int64_t>(op.getStore()))});
}

void FunctionConversion::convert(rt::CollectiveStartOp op) {
  drover_collective desc = {};
  desc.communicator = static_cast<int32_t>(op.getCommunicator());
  desc.kind = static_cast<int32_t>(op.getKind());
  desc.op = static_cast<int32_t>(op.getOp());
  desc.dtype = dtypeOf(op.getIn());
  desc.two_chunk = op.getTwoChunk();
  desc.reduction = op.getReduction() ? static_cast<int32_t>(*op.getReduction()) : -1;
  desc.outer = op.getOuter();
  desc.local = op.getLocal();
  desc.inner = op.getInner();
  call("drover_rt_collective_start",
       {callPointer, descriptor(desc), pointer(op.getIn()), pointer(op.getOut()), i32(op.getSlot())});
}

namespace {
struct ConvertRtToLLVM : drover::impl::ConvertRtToLLVMBase<ConvertRtToLLVM> {
  void runOnOperation() override {
    LLVMTypeConverter types(&getContext());
    llvm::StringMap<std::string> descriptors;
    for (auto func : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (func->hasAttr(rt::RtDialect::kBodyAttr) || func->hasAttr(rt::RtDialect::kKernelAttr))
        FunctionConversion(func, types, descriptors).run();
  }
};
} // namespace
