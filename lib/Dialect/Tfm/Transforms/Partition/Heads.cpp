//===- Heads.cpp - the grid and how heads lie on it -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Heads.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace drover::tfm {

int64_t paddedKvHeads(int64_t kvHeads, int64_t tp) {
  while (kvHeads % tp != 0 && tp % kvHeads != 0)
    ++kvHeads;
  return kvHeads;
}

FailureOr<Grid> chooseGrid(ModuleOp module, int64_t tp, int64_t cp, int64_t dp) {
  Grid grid;
  grid.setSize(Axis::Tp, tp);
  grid.setSize(Axis::Cp, cp);
  grid.setSize(Axis::Dp, dp);
  int64_t kv = tp;
  Operation *first = nullptr;
  WalkResult result = module.walk([&](AttentionOp attention) {
    int64_t heads = paddedKvHeads(attention.getNumKvHeads(), tp);
    if (heads >= tp)
      return WalkResult::advance();
    if (first && heads != kv) {
      attention.emitOpError("expects as many kv heads as another attention where both have fewer than tp (")
          << tp << "): this has " << heads << ", the other " << kv;
      return WalkResult::interrupt();
    }
    first = attention;
    kv = heads;
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  if (first) {
    grid.setSplit(true);
    grid.setSize(Axis::Tp, 1);
    grid.setSize(Axis::Kv, kv);
    grid.setSize(Axis::Replica, tp / kv);
  }
  return grid;
}

namespace {
/// A part of a projection's outputs.
struct Part {
  int64_t offset = 0;
  PaddedSegment segment{};
  bool isKeyOrValue = false;
};

/// Follows outputs to what they become.
class OutputRoles {
public:
  explicit OutputRoles(const Grid &grid) : tp(grid.product(grid.tensorAxes())) {}

  /// The parts of the last dimension; nothing where `value` is only a width.
  std::optional<SmallVector<Part>> partsOf(Value value) {
    SmallVector<Part> slices;
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (auto attention = dyn_cast<AttentionOp>(user); attention && use.getOperandNumber() < 3)
        return SmallVector<Part>{partOfHeads(attention, use.getOperandNumber())};
      if (auto slice = dyn_cast<SliceOp>(user)) {
        if (!addSlice(slice, slices))
          return std::nullopt;
        continue;
      }
      if (auto reshape = dyn_cast<ReshapeOp>(user))
        if (std::optional<Part> groups = partOfGroups(reshape))
          return SmallVector<Part>{*groups};
      if (use.getOperandNumber() == 0 && passesOn(user))
        if (std::optional<SmallVector<Part>> parts = partsOf(user->getResult(0)))
          return parts;
    }
    if (slices.empty())
      return std::nullopt;
    return tile(slices, cast<RankedTensorType>(value.getType()).getShape().back());
  }

  Part width(int64_t size) const { return {0, {size, 1, 1, static_cast<int64_t>(llvm::alignTo(size, tp))}, false}; }

private:
  /// Ops whose results' channels are their first operand's.
  static bool passesOn(Operation *op) {
    return isa<BiasAddOp, RopeOp, RmsNormOp, LayerNormOp, ReshapeOp, arith::TruncFOp, arith::ExtFOp, arith::AddFOp,
               arith::MulFOp>(op);
  }

  Part partOfHeads(AttentionOp attention, unsigned operand) const {
    int64_t kvHeads = attention.getNumKvHeads(), total = paddedKvHeads(kvHeads, tp);
    int64_t size = cast<RankedTensorType>(attention.getOperand(operand).getType()).getShape().back();
    if (operand > 0)
      return {0, {kvHeads, size / kvHeads, size / kvHeads, total}, true};
    int64_t group = attention.getNumHeads() / kvHeads, head = size / static_cast<int64_t>(attention.getNumHeads());
    int64_t replicas = total < tp ? tp / total : 1;
    return {0, {kvHeads, group * head, static_cast<int64_t>(llvm::alignTo(group, replicas)) * head, total}, false};
  }

  /// The attention that a value's channels go to.
  static AttentionOp attentionOf(Value value) {
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (auto attention = dyn_cast<AttentionOp>(user); attention && use.getOperandNumber() < 3)
        return attention;
      if (use.getOperandNumber() == 0 && (passesOn(user) || isa<SliceOp>(user)))
        if (AttentionOp attention = attentionOf(user->getResult(0)))
          return attention;
    }
    return {};
  }

  /// Channels that are packed head by head: [kv heads, what a head and its group have of q, k and v], which slices of
  /// the inner dimensions take apart.
  std::optional<Part> partOfGroups(ReshapeOp reshape) const {
    ArrayRef<int64_t> from = reshape.getInput().getType().getShape(), to = reshape.getType().getShape();
    if (to.size() <= from.size() || from.drop_back() != to.take_front(from.size() - 1) ||
        llvm::none_of(reshape->getUsers(), llvm::IsaPred<SliceOp>))
      return std::nullopt;
    int64_t groups = to[from.size() - 1], size = from.back() / groups;
    AttentionOp attention = attentionOf(reshape.getResult());
    if (!attention || static_cast<int64_t>(attention.getNumKvHeads()) != groups)
      return std::nullopt;
    return Part{0, {groups, size, size, paddedKvHeads(groups, tp)}, true};
  }

  /// Appends what a slice of the last dimension takes; false for a slice that takes anything else.
  bool addSlice(SliceOp slice, SmallVectorImpl<Part> &parts) {
    ArrayRef<int64_t> from = slice.getInput().getType().getShape(), to = slice.getType().getShape();
    if (from.drop_back() != to.drop_back() || slice.getStrides().back() != 1)
      return false;
    std::optional<SmallVector<Part>> own = partsOf(slice.getResult());
    if (!own)
      own = SmallVector<Part>{width(to.back())};
    if (own->size() != 1)
      return false;
    own->front().offset = slice.getOffsets().back();
    parts.push_back(own->front());
    return true;
  }

  /// Parts side by side that cover a dimension.
  static std::optional<SmallVector<Part>> tile(SmallVector<Part> &parts, int64_t size) {
    llvm::sort(parts, [](const Part &a, const Part &b) { return a.offset < b.offset; });
    // A part may be taken twice.
    parts.erase(llvm::unique(parts, [](const Part &a, const Part &b) { return a.offset == b.offset; }), parts.end());
    int64_t end = 0;
    for (const Part &part : parts) {
      if (part.offset != end)
        return std::nullopt;
      end += part.segment.validSize();
    }
    return end == size ? std::optional(parts) : std::nullopt;
  }

  int64_t tp;
};
} // namespace

OutputLayout layoutOfOutputs(Value value, const Grid &grid) {
  OutputRoles roles(grid);
  SmallVector<Part> parts = roles.partsOf(value).value_or(
      SmallVector<Part>{roles.width(cast<RankedTensorType>(value.getType()).getShape().back())});
  OutputLayout layout;
  llvm::append_range(layout.axes, grid.tensorAxes());
  // Kv heads are whole on every replica, and with them all that lies beside them.
  if (llvm::any_of(parts, [](const Part &part) { return part.isKeyOrValue; }))
    llvm::erase(layout.axes, Axis::Replica);
  SmallVector<PaddedSegment> segments;
  bool isPadded = false;
  for (const Part &part : parts) {
    segments.push_back(part.segment);
    isPadded |= part.segment.validSize() != part.segment.paddedSize();
  }
  // Even where no axis is left, as with one kv head: the queries among the parts are cut later.
  if (!grid.tensorAxes().empty() && (segments.size() > 1 || isPadded))
    layout.segments = SegmentsAttr::get(value.getContext(), segments);
  return layout;
}

} // namespace drover::tfm
