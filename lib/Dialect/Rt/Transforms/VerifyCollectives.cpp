//===- VerifyCollectives.cpp - the collectives of lowered bodies ----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Dialect/Rt/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include <limits>
#include <map>

using namespace mlir;

namespace drover::rt {
#define GEN_PASS_DEF_RTVERIFYCOLLECTIVES
#include "drover/Dialect/Rt/Transforms/Passes.h.inc"

namespace {
/// Bytes of an argument's memory; without a root, of any.
struct Range {
  Value root;
  int64_t begin = 0, end = 0;

  bool overlaps(const Range &other) const {
    return !root || !other.root || (root == other.root && begin < other.end && other.begin < end);
  }
};

struct Access {
  Range range;
  bool isWrite;
};
} // namespace

/// Of a size that is not known, all that there may be.
static int64_t bytesOf(MemRefType type) {
  if (!type.hasStaticShape())
    return std::numeric_limits<int64_t>::max();
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// Where a buffer lies; all of its root where that is not known, and anywhere where it is one of several.
static Range rangeOf(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  Operation *op = buffer.getDefiningOp();
  if (!op) {
    bool isOwn = isa<FunctionOpInterface>(buffer.getParentBlock()->getParentOp());
    return {isOwn ? buffer : Value(), 0, bytesOf(type)};
  }
  if (auto view = dyn_cast<memref::ViewOp>(op)) {
    Range source = rangeOf(view.getSource());
    APInt shift;
    if (type.hasStaticShape() && matchPattern(view.getByteShift(), m_ConstantInt(&shift)))
      return {source.root, source.begin + shift.getSExtValue(), source.begin + shift.getSExtValue() + bytesOf(type)};
    return source;
  }
  if (auto cast = dyn_cast<ViewLikeOpInterface>(op))
    return rangeOf(cast.getViewSource());
  bool isNew = op->getNumRegions() == 0 && llvm::none_of(op->getOperandTypes(), llvm::IsaPred<MemRefType>);
  return {isNew ? buffer : Value(), 0, bytesOf(type)};
}

/// Whether a function stores into an argument, through whatever views of it.
static bool isWritten(Value buffer) {
  return llvm::any_of(buffer.getUsers(), [&](Operation *user) {
    if (auto view = dyn_cast<ViewLikeOpInterface>(user))
      return llvm::any_of(user->getResults(), [](Value result) { return isWritten(result); });
    auto effects = dyn_cast<MemoryEffectOpInterface>(user);
    if (!effects)
      return !isPure(user);
    return effects.getEffectOnValue<MemoryEffects::Write>(buffer).has_value() ||
           (user->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || isa<CallOpInterface>(user));
  });
}

/// What an operation reads and writes of the body's memory. Library calls write what they name behind `into`, and their
/// workspace; anything that is not known here may write all of its buffers.
static SmallVector<Access> accessesOf(Operation *op, SymbolTable &symbols) {
  if (isa<ViewLikeOpInterface>(op))
    return {};
  SmallVector<Value> written;
  bool isKnown = true;
  if (auto start = dyn_cast<CollectiveStartOp>(op)) {
    written = {start.getOut()};
  } else if (auto matmul = dyn_cast<MatmulOp>(op)) {
    written = {matmul.getResult()};
  } else if (auto attention = dyn_cast<AttentionOp>(op)) {
    written = {attention.getResult(), attention.getLogSumExp(), attention.getWorkspace()};
  } else if (auto grad = dyn_cast<AttentionGradOp>(op)) {
    written = {grad.getQueryGrad(), grad.getKeyGrad(), grad.getValueGrad(), grad.getWorkspace()};
  } else if (auto embedding = dyn_cast<EmbeddingGradOp>(op)) {
    written = {embedding.getTable()};
  } else if (auto launch = dyn_cast<LaunchOp>(op)) {
    auto kernel = symbols.lookup<func::FuncOp>(launch.getKernel());
    for (auto [index, operand] : llvm::enumerate(launch.getKernelOperands())) // behind the two bounds of the range
      if (isa<MemRefType>(operand.getType()) && (!kernel || isWritten(kernel.getArgument(index + 2))))
        written.push_back(operand);
  } else if (auto effects = dyn_cast<MemoryEffectOpInterface>(op)) {
    for (Value operand : op->getOperands())
      if (isa<MemRefType>(operand.getType()) && effects.getEffectOnValue<MemoryEffects::Write>(operand))
        written.push_back(operand);
  } else {
    isKnown = false;
  }
  SmallVector<Access> accesses;
  for (Value operand : op->getOperands())
    if (isa<MemRefType>(operand.getType()))
      accesses.push_back({rangeOf(operand), !isKnown || llvm::is_contained(written, operand)});
  return accesses;
}

namespace {
/// Walks one body in its order.
class BodyVerifier {
public:
  BodyVerifier(func::FuncOp body, SymbolTable &symbols) : body(body), symbols(symbols) {}

  LogicalResult run();
  int64_t numStarts() const { return static_cast<int64_t>(started.size()); }

private:
  LogicalResult start(CollectiveStartOp op);
  LogicalResult wait(CollectiveWaitOp op);
  LogicalResult verifyAccesses(Operation *op);
  LogicalResult verifyList();

  func::FuncOp body;
  SymbolTable &symbols;
  std::map<uint32_t, CollectiveStartOp> inFlight; // by slot
  SmallVector<CollectiveStartOp> started;
};
} // namespace

/// C2.
LogicalResult BodyVerifier::start(CollectiveStartOp op) {
  if (!inFlight.insert({op.getSlot(), op}).second)
    return op.emitOpError("expects slot ") << op.getSlot() << " to be free, its collective is not waited for";
  started.push_back(op);
  return success();
}

/// C2.
LogicalResult BodyVerifier::wait(CollectiveWaitOp op) {
  if (inFlight.erase(op.getSlot()) == 0)
    return op.emitOpError("expects a collective in flight in slot ") << op.getSlot();
  return success();
}

/// C4, of what stands in an operation's regions too.
LogicalResult BodyVerifier::verifyAccesses(Operation *op) {
  if (inFlight.empty())
    return success();
  for (Region &region : op->getRegions())
    for (Operation &nested : region.getOps())
      if (failed(verifyAccesses(&nested)))
        return failure();
  for (const Access &access : accessesOf(op, symbols))
    for (auto &[slot, flying] : inFlight) {
      bool touchesOut = access.range.overlaps(rangeOf(flying.getOut()));
      if (!touchesOut && !(access.isWrite && access.range.overlaps(rangeOf(flying.getIn()))))
        continue;
      InFlightDiagnostic diagnostic = op->emitOpError(access.isWrite ? "writes" : "reads")
                                      << " the " << (touchesOut ? "result" : "operand")
                                      << " of the collective in flight in slot " << slot;
      diagnostic.attachNote(flying.getLoc()) << "it is started here";
      return failure();
    }
  return success();
}

/// C3.
LogicalResult BodyVerifier::verifyList() {
  auto list = body->getAttrOfType<ArrayAttr>(RtDialect::kCollectivesAttr);
  size_t expected = list ? list.size() : 0;
  for (size_t i = 0; i < std::min(expected, started.size()); ++i)
    if (Attribute actual = describeCollective(started[i]); actual != list[i])
      return started[i].emitOpError("is collective ")
             << i << " of the body, " << actual << ", where '" << RtDialect::kCollectivesAttr << "' has " << list[i];
  if (expected != started.size())
    return body.emitOpError("starts ") << started.size() << " collectives, '" << RtDialect::kCollectivesAttr << "' has "
                                       << expected;
  return success();
}

LogicalResult BodyVerifier::run() {
  Block &block = body.getBody().front();
  // C1.
  WalkResult nested = body.walk([&](Operation *op) {
    if (!isa<CollectiveStartOp, CollectiveWaitOp>(op) || op->getBlock() == &block)
      return WalkResult::advance();
    op->emitOpError("expects to stand in the block of its body");
    return WalkResult::interrupt();
  });
  if (nested.wasInterrupted())
    return failure();
  for (Operation &op : block) {
    // A wait ends the accesses of what is in flight; all else comes under them.
    if (auto waitOp = dyn_cast<CollectiveWaitOp>(op)) {
      if (failed(wait(waitOp)))
        return failure();
      continue;
    }
    if (failed(verifyAccesses(&op)))
      return failure();
    if (auto startOp = dyn_cast<CollectiveStartOp>(op); startOp && failed(start(startOp)))
      return failure();
  }
  if (!inFlight.empty())
    return inFlight.begin()->second.emitOpError("expects a wait for slot ") << inFlight.begin()->first;
  return verifyList();
}

namespace {
struct RtVerifyCollectives : impl::RtVerifyCollectivesBase<RtVerifyCollectives> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto body : getOperation().getOps<func::FuncOp>()) {
      if (!body->hasAttr(RtDialect::kBodyAttr) || body.isExternal())
        continue;
      BodyVerifier verifier(body, symbols);
      if (failed(verifier.run()))
        return signalPassFailure();
      numCollectives += verifier.numStarts();
    }
    markAllAnalysesPreserved();
  }
};
} // namespace

} // namespace drover::rt
