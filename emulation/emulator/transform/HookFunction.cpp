//===- HookFunction.cpp - operations become calls of the emulator -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "HookKernels.h"
#include "Origin.h"
#include "RegistersInFlight.h"
#include "hooks.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace drover;

namespace {
/// NVVM's names of special registers and approximations, and what stands for them.
struct RegisterName {
  StringRef name;
  drover_emu_register which;
};
constexpr RegisterName registers[] = {
    {"tid.x", DROVER_EMU_TID_X},       {"tid.y", DROVER_EMU_TID_Y},       {"tid.z", DROVER_EMU_TID_Z},
    {"ntid.x", DROVER_EMU_NTID_X},     {"ntid.y", DROVER_EMU_NTID_Y},     {"ntid.z", DROVER_EMU_NTID_Z},
    {"ctaid.x", DROVER_EMU_CTAID_X},   {"ctaid.y", DROVER_EMU_CTAID_Y},   {"ctaid.z", DROVER_EMU_CTAID_Z},
    {"nctaid.x", DROVER_EMU_NCTAID_X}, {"nctaid.y", DROVER_EMU_NCTAID_Y}, {"nctaid.z", DROVER_EMU_NCTAID_Z},
    {"laneid", DROVER_EMU_LANEID},     {"warpid", DROVER_EMU_WARPID},     {"nwarpid", DROVER_EMU_NWARPID},
    {"warpsize", DROVER_EMU_WARPSIZE},
};

/// The emulator's number of one of NVVM's kinds.
template <typename Kind, size_t count>
std::optional<uint32_t> numberOf(const std::pair<Kind, uint32_t> (&numbers)[count], Kind kind) {
  for (auto [nvvm, ours] : numbers)
    if (nvvm == kind)
      return ours;
  return std::nullopt;
}

struct FunctionName {
  StringRef intrinsic, function;
};
constexpr FunctionName functions[] = {
    {"ex2.approx", "drover_emu_ex2"},
    {"ex2.approx.ftz", "drover_emu_ex2_ftz"},
    {"lg2.approx", "drover_emu_lg2"},
    {"lg2.approx.ftz", "drover_emu_lg2_ftz"},
    {"rcp.approx", "drover_emu_rcp"},
    {"rcp.approx.ftz", "drover_emu_rcp_ftz"},
    {"rsqrt.approx", "drover_emu_rsqrt"},
    {"rsqrt.approx.ftz", "drover_emu_rsqrt_ftz"},
    {"sqrt.approx", "drover_emu_sqrt"},
    {"sqrt.approx.ftz", "drover_emu_sqrt_ftz"},
    {"sin.approx", "drover_emu_sin"},
    {"cos.approx", "drover_emu_cos"},
    {"tanh.approx", "drover_emu_tanh"},
    {"fma.rn", "__nv_fmaf"},
    {"fmax", "__nv_fmaxf"},
    {"fmin", "__nv_fminf"},
};

/// Floating-point operations of one thread at an operation: those of a product of a warp are all lanes'.
int64_t flopsOf(Operation *op) {
  if (auto mma = dyn_cast<NVVM::MmaOp>(op)) {
    NVVM::MMAShapeAttr shape = mma.getShape();
    return 2 * shape.getM() * shape.getN() * shape.getK() / 32;
  }
  if (auto product = dyn_cast<NVVM::WgmmaMmaAsyncOp>(op)) {
    NVVM::MMAShapeAttr shape = product.getShape();
    return 2 * shape.getM() * shape.getN() * shape.getK() / 128;
  }
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
    return call.getIntrin().starts_with("llvm.nvvm.") && call->getNumResults() == 1 &&
           isa<FloatType>(call->getResult(0).getType());
  if (!isa<LLVM::FAddOp, LLVM::FSubOp, LLVM::FMulOp, LLVM::FDivOp, LLVM::FMAOp, LLVM::FMulAddOp, LLVM::SqrtOp,
           LLVM::MaxNumOp, LLVM::MinNumOp, LLVM::MaximumOp, LLVM::MinimumOp>(op))
    return 0;
  auto vector = dyn_cast<VectorType>(op->getResult(0).getType());
  return (isa<LLVM::FMAOp, LLVM::FMulAddOp>(op) ? 2 : 1) * (vector ? vector.getNumElements() : 1);
}

/// Rewrites one function.
class Hooks {
public:
  Hooks(ModuleOp module, LLVM::LLVMFuncOp function, bool isKernel, emu::HookState &state)
      : module(module), function(function), isKernel(isKernel), state(state), b(function.getLoc(), module.getContext()),
        ptr(LLVM::LLVMPointerType::get(module.getContext())), i32(b.getI32Type()), f32(b.getF32Type()),
        i8(b.getI8Type()), none(LLVM::LLVMVoidType::get(module.getContext())) {}

  LogicalResult run() {
    SmallVector<Operation *> all;
    function.walk([&](Operation *op) { all.push_back(op); });
    countFlops();
    // Origins first: hooks put calls between a pointer and its uses.
    for (Operation *op : all)
      for (Value operand : op->getOperands())
        if (isa<LLVM::LLVMPointerType>(operand.getType()) && !origins.count(operand))
          origins[operand] = emu::findOrigin(operand, isKernel);
    for (Operation *op : all) {
      b.setLoc(op->getLoc());
      b.setInsertionPoint(op);
      if (failed(hook(op)))
        return failure();
    }
    return success();
  }

private:
  /// A block's are counted as it is entered.
  void countFlops() {
    for (Block &block : function.getBody()) {
      int64_t flops = 0;
      for (Operation &op : block)
        flops += flopsOf(&op);
      b.setInsertionPointToStart(&block);
      if (flops > 0)
        call("drover_emu_flops", none, {number(flops)});
    }
  }

  LogicalResult hook(Operation *op) {
    return TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](LLVM::LoadOp load) {
          return access(load, load.getAddrMutable(), load.getType(), load.getAlignment(), 0);
        })
        .Case([&](LLVM::StoreOp store) {
          return access(store, store.getAddrMutable(), store.getValue().getType(), store.getAlignment(),
                        DROVER_EMU_WRITE);
        })
        .Case([&](LLVM::AtomicRMWOp atomic) {
          return access(atomic, atomic.getPtrMutable(), atomic.getVal().getType(), std::nullopt,
                        DROVER_EMU_WRITE | DROVER_EMU_ATOMIC);
        })
        .Case([&](LLVM::AtomicCmpXchgOp atomic) {
          return access(atomic, atomic.getPtrMutable(), atomic.getVal().getType(), std::nullopt,
                        DROVER_EMU_WRITE | DROVER_EMU_ATOMIC);
        })
        .Case([&](LLVM::AddressOfOp address) { return hookAddress(address); })
        .Case([&](LLVM::CallIntrinsicOp call) { return hookIntrinsic(call); })
        .Case([&](LLVM::CallOp call) {
          std::optional<StringRef> callee = call.getCallee();
          auto target = callee ? module.lookupSymbol<LLVM::LLVMFuncOp>(*callee) : LLVM::LLVMFuncOp();
          if (!callee || !target || (target.isExternal() && !callee->starts_with("__nv_")))
            return refuse(op);
          return success();
        })
        .Case([&](LLVM::InlineAsmOp op) { return hookAsm(op); })
        .Case<LLVM::MemcpyOp, LLVM::MemcpyInlineOp, LLVM::MemmoveOp, LLVM::MemsetOp, LLVM::MaskedLoadOp,
              LLVM::MaskedStoreOp, LLVM::masked_gather, LLVM::masked_scatter>(
            [&](Operation *other) { return refuse(other); })
        .Default([&](Operation *other) {
          return other->getName().getDialectNamespace() == "nvvm" ? hookNvvm(other) : success();
        });
  }

  LogicalResult refuse(Operation *op) {
    return op->emitError("the emulator has no rule for this operation"), failure();
  }

  LogicalResult hookNvvm(Operation *op) {
    StringRef name = op->getName().stripDialect();
    if (name.consume_front("read.ptx.sreg."))
      for (const RegisterName &known : registers)
        if (known.name == name)
          return replace(op, call("drover_emu_special_register", i32, {number(known.which)}));
    return TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](NVVM::Barrier0Op) {
          call("drover_emu_barrier", none, {site(op)});
          return erase(op);
        })
        .Case([&](NVVM::BarrierOp barrier) -> LogicalResult {
          if (op->getNumOperands() || op->getNumResults())
            return refuse(op);
          call("drover_emu_barrier", none, {site(op)});
          return erase(op);
        })
        .Case([&](NVVM::SyncWarpOp sync) {
          call("drover_emu_warp_barrier", none, {sync.getMask(), site(op)});
          return erase(op);
        })
        .Case([&](NVVM::ShflOp shuffle) { return hookShuffle(shuffle); })
        .Case([&](NVVM::VoteSyncOp vote) { return hookVote(vote); })
        .Case([&](NVVM::ReduxOp redux) { return hookRedux(redux); })
        .Case([&](NVVM::MmaOp mma) { return hookMma(mma); })
        .Case([&](NVVM::LdMatrixOp load) { return hookLdMatrix(load); })
        .Case([&](NVVM::StMatrixOp store) { return hookStMatrix(store); })
        .Case([&](NVVM::CpAsyncOp copy) {
          Value copied = copy.getCpSize() ? copy.getCpSize() : number(copy.getSize());
          noteWidth(copy.getSize(), copy.getSize());
          call("drover_emu_cp_async", none,
               {generic(copy.getDst()), generic(copy.getSrc()), number(copy.getSize()), copied,
                number(origins.lookup(copy.getSrc()).argument), site(op)});
          return erase(op);
        })
        .Case([&](NVVM::CpAsyncCommitGroupOp) {
          call("drover_emu_cp_async_commit", none, {site(op)});
          return erase(op);
        })
        .Case([&](NVVM::CpAsyncWaitGroupOp wait) {
          call("drover_emu_cp_async_wait", none, {number(wait.getN()), site(op)});
          return erase(op);
        })
        .Case([&](NVVM::FenceProxyOp fence) -> LogicalResult {
          if (fence.getKind() != NVVM::ProxyKind::async_shared)
            return refuse(op);
          call("drover_emu_proxy_fence", none, {site(op)});
          return erase(op);
        })
        .Case([&](NVVM::WgmmaFenceAlignedOp) {
          call("drover_emu_wgmma_fence", none, {site(op)});
          return erase(op);
        })
        .Case([&](NVVM::WgmmaGroupSyncAlignedOp) {
          call("drover_emu_wgmma_commit", none, {site(op)});
          return erase(op);
        })
        .Case([&](NVVM::WgmmaWaitGroupSyncOp wait) {
          call("drover_emu_wgmma_wait", none, {number(wait.getGroup()), site(op)});
          return erase(op);
        })
        .Case([&](NVVM::WgmmaMmaAsyncOp product) { return hookWgmma(product); })
        .Case([&](NVVM::RcpApproxFtzF32Op rcp) { return replace(op, call("drover_emu_rcp_ftz", f32, {rcp.getArg()})); })
        .Default([&](Operation *other) { return refuse(other); });
  }

  template <typename Op>
  LogicalResult access(Op op, OpOperand &address, Type type, std::optional<uint64_t> alignment, uint32_t flags) {
    Value pointer = address.get();
    emu::Origin origin = origins.lookup(pointer);
    if (origin.kind == emu::Origin::Local || origin.kind == emu::Origin::Constant) {
      if (origin.kind == emu::Origin::Constant && (flags & DROVER_EMU_WRITE))
        return op.emitError("kernels may not write to globals outside shared memory");
      return success();
    }
    unsigned space = cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace();
    if (space == 3 || origin.kind == emu::Origin::Shared)
      flags |= DROVER_EMU_SHARED;
    else if (space == 1 || origin.kind == emu::Origin::Argument)
      flags |= DROVER_EMU_GLOBAL;
    uint64_t bytes = DataLayout(module).getTypeSize(type).getFixedValue();
    // Without an alignment the NVPTX back end assumes the natural one of the whole access, and vectorizes by it.
    uint64_t natural = std::min<uint64_t>(llvm::bit_floor(bytes), 16);
    uint64_t aligned = alignment && *alignment ? std::min<uint64_t>(*alignment, natural) : natural;
    noteWidth(bytes, aligned);
    Value checked =
        call("drover_emu_access", ptr,
             {generic(pointer), number(bytes), number(flags), number(aligned), number(origin.argument), site(op)});
    address.set(typed(checked, pointer.getType()));
    return success();
  }

  void noteWidth(uint64_t bytes, uint64_t alignment) {
    state.granule = std::min<uint32_t>(state.granule, llvm::countr_zero(bytes | alignment));
  }

  LogicalResult hookAddress(LLVM::AddressOfOp op) {
    auto type = cast<LLVM::LLVMPointerType>(op.getType());
    if (type.getAddressSpace() != 3)
      return success();
    return replace(op, typed(call("drover_emu_shared", ptr, {}), type));
  }

  LogicalResult hookIntrinsic(LLVM::CallIntrinsicOp op) {
    StringRef name = op.getIntrin();
    if (!name.consume_front("llvm.nvvm."))
      return success();
    if (!name.consume_back(".f32"))
      name.consume_back(".f");
    for (const FunctionName &known : functions)
      if (known.intrinsic == name && op->getNumResults() == 1 && op.getResult(0).getType() == f32)
        return replace(op, call(known.function, f32, SmallVector<Value>(op.getArgs())));
    return refuse(op);
  }

  LogicalResult hookShuffle(NVVM::ShflOp op) {
    constexpr std::pair<NVVM::ShflKind, uint32_t> kinds[] = {{NVVM::ShflKind::bfly, DROVER_EMU_SHUFFLE_BFLY},
                                                             {NVVM::ShflKind::up, DROVER_EMU_SHUFFLE_UP},
                                                             {NVVM::ShflKind::down, DROVER_EMU_SHUFFLE_DOWN},
                                                             {NVVM::ShflKind::idx, DROVER_EMU_SHUFFLE_IDX}};
    std::optional<uint32_t> kind = numberOf(kinds, op.getKind());
    if (!kind)
      return refuse(op);
    Type type = op.getVal().getType();
    bool withPredicate = op.getReturnValueAndIsValid().has_value();
    Value valid = withPredicate ? temporary(i8, 1) : LLVM::ZeroOp::create(b, ptr).getResult();
    Value result = call("drover_emu_shuffle", i32,
                        {op.getThreadMask(), cast32(op.getVal(), i32), op.getOffset(), op.getMaskAndClamp(),
                         number(*kind), valid, site(op)});
    result = cast32(result, type);
    if (!withPredicate)
      return replace(op, result);
    Value flag = LLVM::TruncOp::create(b, b.getI1Type(), LLVM::LoadOp::create(b, i8, valid));
    Value both = LLVM::PoisonOp::create(b, op.getType());
    both = LLVM::InsertValueOp::create(b, both, result, ArrayRef<int64_t>{0});
    return replace(op, LLVM::InsertValueOp::create(b, both, flag, ArrayRef<int64_t>{1}));
  }

  LogicalResult hookVote(NVVM::VoteSyncOp op) {
    constexpr std::pair<NVVM::VoteSyncKind, uint32_t> kinds[] = {{NVVM::VoteSyncKind::any, DROVER_EMU_VOTE_ANY},
                                                                 {NVVM::VoteSyncKind::all, DROVER_EMU_VOTE_ALL},
                                                                 {NVVM::VoteSyncKind::uni, DROVER_EMU_VOTE_UNI},
                                                                 {NVVM::VoteSyncKind::ballot, DROVER_EMU_VOTE_BALLOT}};
    std::optional<uint32_t> kind = numberOf(kinds, op.getKind());
    if (!kind)
      return refuse(op);
    Value predicate = LLVM::ZExtOp::create(b, i32, op.getPred());
    Value result = call("drover_emu_vote", i32, {op.getMask(), predicate, number(*kind), site(op)});
    if (op.getType() != i32)
      result = LLVM::TruncOp::create(b, op.getType(), result);
    return replace(op, result);
  }

  LogicalResult hookRedux(NVVM::ReduxOp op) {
    constexpr std::pair<NVVM::ReduxKind, uint32_t> kinds[] = {
        {NVVM::ReduxKind::ADD, DROVER_EMU_REDUX_ADD},   {NVVM::ReduxKind::MIN, DROVER_EMU_REDUX_MIN},
        {NVVM::ReduxKind::MAX, DROVER_EMU_REDUX_MAX},   {NVVM::ReduxKind::UMIN, DROVER_EMU_REDUX_UMIN},
        {NVVM::ReduxKind::UMAX, DROVER_EMU_REDUX_UMAX}, {NVVM::ReduxKind::AND, DROVER_EMU_REDUX_AND},
        {NVVM::ReduxKind::OR, DROVER_EMU_REDUX_OR},     {NVVM::ReduxKind::XOR, DROVER_EMU_REDUX_XOR}};
    std::optional<uint32_t> kind = numberOf(kinds, op.getKind());
    if (!kind || op.getType() != i32)
      return refuse(op);
    return replace(op, call("drover_emu_redux", i32, {op.getMaskAndClamp(), op.getVal(), number(*kind), site(op)}));
  }

  LogicalResult hookMma(NVVM::MmaOp op) {
    NVVM::MMAShapeAttr shape = op.getShape();
    auto bf16 = NVVM::MMATypes::bf16;
    if (shape.getM() != 16 || shape.getN() != 8 || shape.getK() != 16 || op.getMultiplicandAPtxType() != bf16 ||
        op.getMultiplicandBPtxType() != bf16 || op.getOperandA().size() != 4 || op.getOperandB().size() != 2 ||
        op.getOperandC().size() != 4)
      return op.emitError("the emulator knows mma.sync of bf16 with shape m16n8k16 and f32 accumulators only");
    Value d = temporary(f32, 4);
    call("drover_emu_mma_m16n8k16_bf16", none,
         {d, spill(op.getOperandA(), i32), spill(op.getOperandB(), i32), spill(op.getOperandC(), f32), site(op)});
    return replace(op, gather(d, f32, 4, op.getType()));
  }

  /// An asm without instructions returns its operands, which from there on are what they were before it.
  LogicalResult hookAsm(LLVM::InlineAsmOp op) {
    auto type = op->getNumResults() == 1 ? dyn_cast<LLVM::LLVMStructType>(op->getResult(0).getType()) : nullptr;
    if (!emu::isEmptyAsm(op) || !type || type.getBody().size() != op.getOperands().size() ||
        !llvm::all_of(op.getOperandTypes(), [&](Type operand) { return operand == f32; }))
      return refuse(op);
    Value registers = spill(op.getOperands(), f32);
    call("drover_emu_wgmma_settle", none, {registers, number(op.getOperands().size()), site(op)});
    return replace(op, gather(registers, f32, op.getOperands().size(), type));
  }

  LogicalResult hookWgmma(NVVM::WgmmaMmaAsyncOp op) {
    NVVM::MMAShapeAttr shape = op.getShape();
    auto bf16 = NVVM::WGMMATypes::bf16;
    if (shape.getM() != 64 || shape.getK() != 16 || op.getTypeA() != bf16 || op.getTypeB() != bf16 ||
        op.getTypeD() != NVVM::WGMMATypes::f32 || op.getScaleA() != NVVM::WGMMAScaleIn::one ||
        op.getScaleB() != NVVM::WGMMAScaleIn::one)
      return op.emitError("the emulator knows wgmma of bf16 with f32 accumulators only");
    if (failed(emu::verifyRegistersInFlight(op)))
      return failure();
    int64_t count = shape.getN() / 2;
    SmallVector<Value> registers;
    for (int64_t i = 0; i < count; ++i)
      registers.push_back(LLVM::ExtractValueOp::create(b, op.getInouts(), ArrayRef<int64_t>{i}));
    Value array = spill(registers, f32);
    int64_t flags = (op.getScaleD() == NVVM::WGMMAScaleOut::one ? DROVER_EMU_WGMMA_ADDS : 0) |
                    (op.getLayoutA() == NVVM::MMALayout::col ? DROVER_EMU_WGMMA_A_IS_M_MAJOR : 0) |
                    (op.getLayoutB() == NVVM::MMALayout::row ? DROVER_EMU_WGMMA_B_IS_N_MAJOR : 0);
    call("drover_emu_wgmma_bf16", none,
         {array, op.getDescriptorA(), op.getDescriptorB(), number(shape.getN()), number(flags), site(op)});
    return replace(op, gather(array, f32, count, op.getType()));
  }

  LogicalResult hookLdMatrix(NVVM::LdMatrixOp op) {
    if (op.getShape().getM() != 8 || op.getShape().getN() != 8 || op.getEltType() != NVVM::LdStMatrixEltType::B16)
      return refuse(op);
    Value out = temporary(i32, op.getNum());
    call("drover_emu_ldmatrix", none,
         {out, generic(op.getPtr()), number(op.getNum()), number(op.getLayout() == NVVM::MMALayout::col), site(op)});
    return replace(op, gather(out, i32, op.getNum(), op.getType()));
  }

  LogicalResult hookStMatrix(NVVM::StMatrixOp op) {
    if (op.getShape().getM() != 8 || op.getShape().getN() != 8 || op.getEltType() != NVVM::LdStMatrixEltType::B16)
      return refuse(op);
    call("drover_emu_stmatrix", none,
         {spill(op.getSources(), i32), generic(op.getPtr()), number(op.getSources().size()),
          number(op.getLayout() == NVVM::MMALayout::col), site(op)});
    return erase(op);
  }

  // Pieces.
  Value number(int64_t value) { return LLVM::ConstantOp::create(b, i32, b.getI32IntegerAttr(value)); }

  Value generic(Value pointer) {
    if (cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace() == 0)
      return pointer;
    return LLVM::AddrSpaceCastOp::create(b, ptr, pointer);
  }

  Value typed(Value pointer, Type type) {
    return pointer.getType() == type ? pointer : LLVM::AddrSpaceCastOp::create(b, type, pointer).getResult();
  }

  Value cast32(Value value, Type type) {
    return value.getType() == type ? value : LLVM::BitcastOp::create(b, type, value).getResult();
  }

  Value call(StringRef name, Type result, ArrayRef<Value> operands) {
    auto callee = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
    if (!callee) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(module.getBody());
      SmallVector<Type> types(ValueRange(operands).getTypes());
      callee = LLVM::LLVMFuncOp::create(b, name, LLVM::LLVMFunctionType::get(result, types));
    }
    auto op = LLVM::CallOp::create(b, callee, ValueRange(operands));
    return op->getNumResults() ? op->getResult(0) : Value();
  }

  /// Room on the thread's stack for `count` values.
  Value temporary(Type type, int64_t count) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.getBody().front());
    return LLVM::AllocaOp::create(b, ptr, type, number(count), /*alignment=*/16);
  }

  Value element(Value array, Type type, int64_t index) {
    return LLVM::GEPOp::create(b, ptr, type, array, ArrayRef<LLVM::GEPArg>{int32_t(index)});
  }

  Value spill(ValueRange values, Type type) {
    Value array = temporary(type, values.size());
    for (auto [i, value] : llvm::enumerate(values))
      LLVM::StoreOp::create(b, cast32(value, type), element(array, type, i));
    return array;
  }

  Value gather(Value array, Type type, int64_t count, Type result) {
    if (result == type)
      return LLVM::LoadOp::create(b, type, array);
    Value all = LLVM::PoisonOp::create(b, result);
    for (int64_t i = 0; i < count; ++i) {
      Value one = LLVM::LoadOp::create(b, type, element(array, type, i));
      all = LLVM::InsertValueOp::create(b, all, one, ArrayRef<int64_t>{i});
    }
    return all;
  }

  LogicalResult replace(Operation *op, Value value) {
    op->getResult(0).replaceAllUsesWith(value);
    return erase(op);
  }

  LogicalResult erase(Operation *op) {
    op->erase();
    return success();
  }

  /// The number under which messages find the operation and its place.
  Value site(Operation *op) {
    std::string text = op->getName().getStringRef().str();
    op->getLoc()->walk([&](Location location) {
      auto place = dyn_cast<FileLineColLoc>(location);
      if (!place)
        return WalkResult::advance();
      text += (" at " + llvm::sys::path::filename(place.getFilename().strref()) + ":" + Twine(place.getLine())).str();
      return WalkResult::interrupt();
    });
    state.sites.push_back(text);
    return number(state.sites.size() - 1);
  }

  ModuleOp module;
  LLVM::LLVMFuncOp function;
  bool isKernel;
  emu::HookState &state;
  ImplicitLocOpBuilder b;
  Type ptr, i32, f32, i8, none;
  llvm::DenseMap<Value, emu::Origin> origins;
};
} // namespace

LogicalResult emu::hookFunction(ModuleOp module, LLVM::LLVMFuncOp function, bool isKernel, HookState &state) {
  return Hooks(module, function, isKernel, state).run();
}
