//===- TfmToRt.cpp - bodies to kernels and calls on memrefs -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Conversion/TfmToRt/TfmToRt.h"
#include "BodyPlan.h"
#include "Collectives.h"
#include "CudnnConditions.h"
#include "Emitter.h"
#include "GpuAttention.h"
#include "LibraryCalls.h"
#include "SpecialKernels.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

namespace drover {
#define GEN_PASS_DEF_CONVERTTFMTORT
#include "drover/Conversion/TfmToRt/Passes.h.inc"
} // namespace drover

static constexpr StringLiteral kBodyAttr = "tfm.body", kMicrobatchAttr = "tfm.microbatch";

/// The flat memref of a tensor's memory.
static MemRefType flatType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  int64_t count = tensor.hasStaticShape() ? tensor.getNumElements() : ShapedType::kDynamic;
  return MemRefType::get({count}, storageType(tensor.getElementType()));
}

//===----------------------------------------------------------------------===//
// What a body may hold
//===----------------------------------------------------------------------===//

static LogicalResult verifyType(Operation *op, Type type, bool flat) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return op->emitOpError("expects ranked tensors in a body, not ") << type;
  if (!tensor.getElementType().isIntOrFloat())
    return op->emitOpError("expects elements that are integers or floats, not ") << tensor.getElementType();
  if (tensor.hasStaticShape()) {
    if (tensor.getNumElements() == 0)
      return op->emitOpError("expects sizes that are not zero, not ") << type;
    return success();
  }
  if (!flat || tensor.getRank() != 1)
    return op->emitOpError("expects static sizes, not ") << type << "; only update and norm bodies are flat";
  return success();
}

static LogicalResult verifyBody(func::FuncOp func) {
  auto kind = func->getAttrOfType<StringAttr>(kBodyAttr);
  bool flat = kind && (kind == "update" || kind == "norm");
  if (!func.getBody().hasOneBlock())
    return func.emitOpError("expects a body of one block");
  for (Type type : func.getArgumentTypes())
    if (failed(verifyType(func, type, flat)))
      return failure();
  for (Operation &op : func.getBody().front()) {
    if (isa<func::ReturnOp>(op))
      continue;
    if (isa<func::CallOp>(op) || op.getNumRegions() != 0 || op.getNumResults() == 0)
      return op.emitOpError("is not supported in a body");
    for (Type type : op.getResultTypes())
      if (failed(verifyType(&op, type, flat)))
        return failure();
  }
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    auto inplace = func.getResultAttrOfType<IntegerAttr>(i, "tfm.inplace");
    if (!inplace)
      continue;
    int64_t argument = inplace.getInt();
    if (argument < 0 || argument >= func.getNumArguments() ||
        func.getArgumentTypes()[argument] != func.getResultTypes()[i])
      return func.emitOpError("expects tfm.inplace of result ")
             << i << " to name an argument of type " << func.getResultTypes()[i] << ", not argument " << argument;
  }
  return success();
}

/// Constants that an importer keeps as resources become plain data of the object file.
static LogicalResult readConstants(func::FuncOp func) {
  for (auto constant : func.getOps<arith::ConstantOp>()) {
    if (isa<DenseElementsAttr>(constant.getValue()))
      continue;
    auto resource = dyn_cast<DenseResourceElementsAttr>(constant.getValue());
    AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
    auto type = cast<ShapedType>(constant.getType());
    int64_t bytes = type.getNumElements() * bytesOf(type.getElementType());
    if (!blob || type.getElementType().isInteger(1) || static_cast<int64_t>(blob->getData().size()) != bytes)
      return constant.emitOpError("expects dense elements or a resource of ") << bytes << " bytes";
    constant.setValueAttr(DenseElementsAttr::getFromRawBuffer(type, blob->getData()));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// One body
//===----------------------------------------------------------------------===//

namespace {
class BodyLowering {
public:
  BodyLowering(ModuleOp module, func::FuncOp func, Target target, unsigned lanes, bool overlaps)
      : module(module), func(func), target(target), plan(func, target, overlaps), lanes(lanes) {}
  LogicalResult run();

private:
  func::FuncOp createFunction();
  Value buffer(Value root);
  Value makeBuffer(Value root);
  Value workspaceView(int64_t offset, MemRefType type);
  Value globalConstant(arith::ConstantOp op);
  void emitUnit(Unit &unit);
  void emitWaits(size_t index);
  LogicalResult verifyConstants();
  bool isWide();

  ModuleOp module;
  func::FuncOp func;
  Target target;
  BodyPlan plan;
  unsigned lanes;
  BodyEmitter *emitter = nullptr;
  llvm::SmallVector<int64_t> resultArguments; // the new argument of each result that is not in place
  Value workspace;
  llvm::DenseMap<Value, Value> buffers;
};
} // namespace

func::FuncOp BodyLowering::createFunction() {
  OpBuilder builder(func);
  SmallVector<Type> types;
  for (Type type : func.getArgumentTypes())
    types.push_back(flatType(type));
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    resultArguments.push_back(types.size());
    if (!func.getResultAttr(i, "tfm.inplace"))
      types.push_back(flatType(func.getResultTypes()[i]));
  }
  types.push_back(MemRefType::get({plan.workspaceBytes}, builder.getI8Type()));
  types.push_back(rt::CallType::get(builder.getContext()));
  auto lowered = func::FuncOp::create(builder, func.getLoc(), func.getName(), builder.getFunctionType(types, {}));
  uint64_t flops = 0, bytes = 0;
  func.walk([&](tfm::CostOpInterface op) {
    flops += op.getFlops();
    bytes += op.getBytes();
  });
  if (Attribute kind = func->getAttr(kBodyAttr))
    lowered->setAttr(kBodyAttr, kind);
  lowered->setAttr(rt::RtDialect::kBodyAttr, builder.getUnitAttr());
  lowered->setAttr(rt::RtDialect::kWorkspaceAttr, builder.getI64IntegerAttr(plan.workspaceBytes));
  lowered->setAttr(rt::RtDialect::kFlopsAttr, builder.getI64IntegerAttr(flops));
  lowered->setAttr(rt::RtDialect::kBytesAttr, builder.getI64IntegerAttr(bytes));
  return lowered;
}

Value BodyLowering::workspaceView(int64_t offset, MemRefType type) {
  return memref::ViewOp::create(emitter->body, type, workspace, emitter->index(offset), ValueRange());
}

Value BodyLowering::globalConstant(arith::ConstantOp op) {
  auto data = cast<DenseElementsAttr>(op.getValue());
  MemRefType type = flatType(op.getType());
  if (data.getElementType().isInteger(1))
    data = data.mapValues(type.getElementType(), [](const APInt &value) { return value.zext(8); });
  data = data.reshape(RankedTensorType::get(type.getShape(), type.getElementType()));
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  std::string name = emitter->name + "_constant_" + std::to_string(buffers.size());
  memref::GlobalOp::create(builder, op.getLoc(), name, builder.getStringAttr("private"), type, data, /*constant=*/true,
                           builder.getI64IntegerAttr(64));
  return memref::GetGlobalOp::create(emitter->body, type, name);
}

Value BodyLowering::makeBuffer(Value root) {
  if (auto constant = root.getDefiningOp<arith::ConstantOp>(); constant && !isInline(constant))
    return globalConstant(constant);
  Slot slot = plan.slots.lookup(plan.storageRoot(root));
  switch (slot.place) {
  case Place::Argument:
    return emitter->function.getArgument(slot.index);
  case Place::Result:
    return emitter->function.getArgument(resultArguments[slot.index]);
  default:
    return workspaceView(slot.index, flatType(root.getType()));
  }
}

Value BodyLowering::buffer(Value root) {
  // Views dominate all later units, because units follow each other in one block.
  Value &value = buffers[root];
  return value ? value : value = makeBuffer(root);
}

/// What a unit's kernels are named after: its first op that is more than arithmetic.
static std::string nameOf(const Unit &unit) {
  for (Operation *op : unit.ops)
    if (isa<tfm::TfmDialect>(op->getDialect()) &&
        !isa<tfm::AccumulateOp, tfm::BroadcastOp, tfm::ReshapeOp, tfm::SliceOp, tfm::TransposeOp>(op))
      return op->getName().stripDialect().str();
  return unit.ops.front()->getName().stripDialect().str();
}

void BodyLowering::emitUnit(Unit &unit) {
  emitter->body.setLoc(unit.ops.back()->getLoc());
  emitter->unitName = nameOf(unit);
  Operation *op = unit.ops.front();
  llvm::DenseMap<unsigned, Value> scratch;
  emitter->scratch = [&](unsigned number) {
    Value &view = scratch[number];
    if (view)
      return view;
    MemRefType type;
    if (unit.kind == UnitKind::Library) {
      type = MemRefType::get({libraryScratchBytes(op, target)[number]}, emitter->body.getI8Type());
    } else if (unit.kind == UnitKind::Rows) {
      unsigned i = 0;
      for (const Sink &sink : unit.program.sinks)
        if (sink.columnSum && i++ == number) {
          Type element = unit.program.nodes[sink.node].type;
          type = MemRefType::get({columnSumBytes(unit.program, sink, target) / bytesOf(element)}, element);
        }
    } else if (unit.kind == UnitKind::Special) {
      auto [element, count] = specialScratch(op, target)[number];
      type = MemRefType::get({count}, element);
    }
    return view = workspaceView(unit.scratch[number], type);
  };
  if (unit.kind == UnitKind::Rows)
    return emitRowKernel(*emitter, unit.program);
  if (unit.kind == UnitKind::Special)
    return emitSpecialKernel(*emitter, plan.views, op);
  if (unit.kind == UnitKind::Collective)
    return emitCollectiveStart(*emitter, plan.views, op, unit.flight);
  Value result = op->getResult(0);
  if (Operation *matmul = plan.addedMatmul(op))
    return emitLibraryCall(*emitter, plan.views, matmul, plan.views.of(result), rt::Store::Add);
  if (tfm::AccumulateOp accumulate = plan.sink(result))
    return emitLibraryCall(*emitter, plan.views, op, plan.views.of(accumulate.getAccumulator()), rt::Store::Accumulate);
  emitLibraryCall(*emitter, plan.views, op, plan.views.of(result), rt::Store::Overwrite);
}

/// Of the collectives that unit `index` needs, or that it needs a slot of.
void BodyLowering::emitWaits(size_t index) {
  for (const Unit &unit : ArrayRef(plan.units).take_front(index))
    if (unit.kind == UnitKind::Collective && unit.waitBefore == index) {
      emitter->body.setLoc(unit.ops.front()->getLoc());
      rt::CollectiveWaitOp::create(emitter->body, emitter->call, unit.flight);
    }
}

/// Data of the host's object is no device memory: kernels carry their own, library calls cannot read it.
LogicalResult BodyLowering::verifyConstants() {
  for (const Unit &unit : plan.units)
    for (Operation *op : unit.ops)
      for (Value operand : op->getOperands())
        if (target == Target::Cuda && (unit.kind == UnitKind::Library || unit.kind == UnitKind::Collective) &&
            isa_and_nonnull<arith::ConstantOp>(plan.views.of(operand).root.getDefiningOp()) &&
            !plan.views.isMaterialized(plan.views.of(operand).root))
          return op->emitOpError("reads constant data, which the cuda target has in kernels only");
  return success();
}

/// Whether some position in a buffer does not fit 32 bits.
bool BodyLowering::isWide() {
  auto large = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && (!tensor.hasStaticShape() || tensor.getNumElements() >= int64_t(1) << 30);
  };
  if (llvm::any_of(func.getArgumentTypes(), large))
    return true;
  for (Operation &op : func.getBody().front())
    if (llvm::any_of(op.getResultTypes(), large))
      return true;
  return false;
}

LogicalResult BodyLowering::run() {
  if (failed(verifyBody(func)) || failed(readConstants(func)) || failed(plan.run()) || failed(verifyConstants()))
    return failure();
  func::FuncOp lowered = createFunction();
  Block *block = lowered.addEntryBlock();
  BodyEmitter bodyEmitter(module, lowered, func.getName(), target, lanes);
  bodyEmitter.isWide = isWide();
  emitter = &bodyEmitter;
  emitter->body.setInsertionPointToEnd(block);
  emitter->call = block->getArguments().back();
  emitter->buffer = [this](Value root) { return buffer(root); };
  workspace = block->getArgument(block->getNumArguments() - 2);
  for (size_t index = 0; index <= plan.units.size(); ++index) {
    emitWaits(index);
    if (index < plan.units.size())
      emitUnit(plan.units[index]);
  }
  func::ReturnOp::create(emitter->body);
  SmallVector<Attribute> collectives;
  for (auto start : block->getOps<rt::CollectiveStartOp>())
    collectives.push_back(rt::describeCollective(start));
  if (!collectives.empty())
    lowered->setAttr(rt::RtDialect::kCollectivesAttr, emitter->body.getArrayAttr(collectives));
  func.erase();
  lowered.setPrivate();
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Constants that kernels of the GPU have copied.
static void dropHostConstants(ModuleOp module) {
  llvm::DenseSet<StringRef> used;
  module.walk([&](memref::GetGlobalOp op) {
    if (op->use_empty())
      op.erase();
    else
      used.insert(op.getName());
  });
  for (auto global : llvm::make_early_inc_range(module.getOps<memref::GlobalOp>()))
    if (!used.contains(global.getSymName()))
      global.erase();
}

namespace {
struct ConvertTfmToRt : drover::impl::ConvertTfmToRtBase<ConvertTfmToRt> {
  using ConvertTfmToRtBase::ConvertTfmToRtBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (tpOverlap != "none" && tpOverlap != "bulk") {
      module.emitError("tp-overlap is none or bulk, not '") << tpOverlap << "'";
      return signalPassFailure();
    }
    if (target != "host" && target != "cuda") {
      module.emitError("target is host or cuda, not '") << target << "'";
      return signalPassFailure();
    }
    if (attention != "generated" && attention != "wgmma" && attention != "cudnn") {
      module.emitError("attention is generated, wgmma or cudnn, not '") << attention << "'";
      return signalPassFailure();
    }
    Target kind = target == "cuda" ? Target::Cuda : Target::Host;
    SmallVector<func::FuncOp> bodies;
    for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (func->hasAttr(kMicrobatchAttr))
        func.erase();
      else if (func->hasAttr(kBodyAttr) && !func.isExternal())
        bodies.push_back(func);
    }
    for (func::FuncOp func : bodies) {
      if (kind == Target::Cuda && attention == "wgmma")
        markWarpgroupAttention(func);
      if (kind == Target::Cuda && attention == "cudnn")
        markCudnnAttention(func);
      if (failed(BodyLowering(module, func, kind, lanes, tpOverlap == "bulk").run()))
        return signalPassFailure();
      ++numBodies;
    }
    // The grid has served: what the bodies communicate is in their collectives.
    for (auto grid : llvm::make_early_inc_range(module.getOps<shard::GridOp>()))
      grid.erase();
    if (kind == Target::Cuda)
      dropHostConstants(module);
    module.walk([&](Operation *op) { numKernels += isa<rt::LaunchOp, rt::GpuLaunchOp>(op); });
  }
};
} // namespace
