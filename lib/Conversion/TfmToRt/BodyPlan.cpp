//===- BodyPlan.cpp - which ops share a kernel, in which order --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "BodyPlan.h"
#include "Collectives.h"
#include "LibraryCalls.h"
#include "Rings.h"
#include "SpecialKernels.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

/// Ops of one kernel: more would spill registers without saving traffic.
static constexpr size_t kMaxFused = 48;
/// Marks a copy into a result's memory, which must come last.
static constexpr StringLiteral kCopyAttr = "rt.copy";

static int64_t inplaceArgument(func::FuncOp func, unsigned result) {
  auto attr = func.getResultAttrOfType<IntegerAttr>(result, "tfm.inplace");
  return attr ? attr.getInt() : -1;
}

LogicalResult BodyPlan::run() {
  joinPads(func);
  // Dead ops would keep their operands alive.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(func.getBody().front())))
    if (isOpTriviallyDead(&op) && !isCollective(&op) && !isRing(&op)) // every rank of a group calls alike
      op.erase();
  insertCopies();
  // A result that cannot be computed in its argument's memory gets a copy, and the plan is made again.
  for (bool again = true; again;) {
    again = false;
    views = Views();
    workspaceBytes = 0;
    units.clear();
    slots.clear();
    sinks.clear();
    added.clear();
    absorbed.clear();
    aliases.clear();
    order.clear();
    unitIndex.clear();
    for (auto [i, op] : llvm::enumerate(func.getBody().front()))
      order[&op] = i;
    absorb();
    placeConcats();
    if (failed(materializeOperands()))
      return failure();
    schedule();
    hoist();
    advanceCollectives();
    if (overlaps)
      overlapMatmuls();
    placeWaits();
    if (failed(buildPrograms()) || failed(assignSlots(again)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// What needs no code of its own
//===----------------------------------------------------------------------===//

/// A copy of `value` that is returned in its stead.
static void insertCopy(Operation *terminator, unsigned result) {
  OpBuilder builder(terminator);
  Value value = terminator->getOperand(result);
  auto copy = tfm::ReshapeOp::create(builder, terminator->getLoc(), value.getType(), value, AffineMapAttr());
  copy->setAttr(kCopyAttr, builder.getUnitAttr());
  terminator->setOperand(result, copy.getResult());
}

/// Results that no op computes into their own memory: arguments, views, constants, values returned twice.
void BodyPlan::insertCopies() {
  Operation *terminator = func.getBody().front().getTerminator();
  llvm::DenseSet<Value> taken;
  for (OpOperand &operand : terminator->getOpOperands()) {
    unsigned result = operand.getOperandNumber();
    int64_t inplace = inplaceArgument(func, result);
    if (auto argument = dyn_cast<BlockArgument>(operand.get()); argument && argument.getArgNumber() == inplace)
      continue;
    View view = views.of(operand.get());
    Operation *op = view.root.getDefiningOp();
    if (!op || isa<arith::ConstantOp>(op) || isInline(op) || !isWhole(view) || !taken.insert(view.root).second)
      insertCopy(terminator, result);
  }
}

void BodyPlan::absorb() {
  for (Operation &op : func.getBody().front()) {
    auto accumulate = dyn_cast<tfm::AccumulateOp>(op);
    if (!accumulate || !accumulate.getValue().hasOneUse() || !accumulate.getAccumulator().hasOneUse() ||
        !isa<BlockArgument>(accumulate.getAccumulator()))
      continue;
    auto value = dyn_cast<OpResult>(accumulate.getValue());
    if (!value || value.getType() != accumulate.getAccumulator().getType())
      continue;
    Operation *producer = value.getOwner();
    bool library = isa<tfm::LinearWeightGradOp, tfm::EmbeddingGradOp>(producer) && isLibraryCall(producer);
    bool columns = rowDomain(producer, views) && resultRole(value, views) == Role::Column;
    if (!library && !columns)
      continue;
    sinks[value] = accumulate;
    absorbed[accumulate] = producer;
  }
  // a + matmul: the library adds to a's memory where a dies here. Of two matmuls the later one is added.
  for (Operation &op : func.getBody().front()) {
    auto addition = dyn_cast<arith::AddFOp>(op);
    if (!addition || !elementTypeOf(addition.getResult()).isF32())
      continue;
    auto addable = [&](Value value) {
      Operation *producer = value.getDefiningOp();
      return producer && value.hasOneUse() && isMatmul(producer) && isLibraryCall(producer);
    };
    auto overwritable = [&](Value value) {
      Operation *producer = value.getDefiningOp();
      return producer && value.hasOneUse() && !isa<arith::ConstantOp>(producer) && !isInline(producer) &&
             !views.isView(value) && !absorbed.contains(producer);
    };
    Value lhs = addition.getLhs(), rhs = addition.getRhs();
    if (addable(lhs) && (!addable(rhs) || order[rhs.getDefiningOp()] < order[lhs.getDefiningOp()]))
      std::swap(lhs, rhs);
    if (!addable(rhs) || !overwritable(lhs))
      continue;
    added[addition] = rhs.getDefiningOp();
    absorbed[rhs.getDefiningOp()] = addition;
    aliases[addition.getResult()] = lhs;
  }
  // What is reduced whole is reduced in place where nobody else reads it.
  for (auto reduce : func.getBody().front().getOps<shard::AllReduceOp>()) {
    Value input = reduce.getInput();
    Operation *producer = input.getDefiningOp();
    if (producer && input.hasOneUse() && !isa<arith::ConstantOp>(producer) && !isInline(producer) &&
        !views.isView(input) && !absorbed.contains(producer))
      aliases[reduce.getResult()] = input;
  }
}

/// Library calls whose result may have strides between rows.
static bool writesRows(Value value, bool lastAxis) {
  Operation *producer = value.getDefiningOp();
  if (!isLibraryCall(producer) || isa<tfm::EmbeddingGradOp>(producer))
    return false;
  if (auto attention = dyn_cast<tfm::AttentionOp>(producer); attention && value == attention.getLogSumExp())
    return false;
  return lastAxis;
}

/// Parts of a concatenation are computed in their place of the whole.
void BodyPlan::placeConcats() {
  for (Operation &op : func.getBody().front()) {
    auto concat = dyn_cast<tfm::ConcatOp>(op);
    if (!concat)
      continue;
    ArrayRef<int64_t> shape = shapeOf(concat.getResult());
    int64_t axis = concat.getAxis(), offset = 0;
    bool last = axis + 1 == static_cast<int64_t>(shape.size());
    if (!last && product(shape.take_front(axis)) != 1)
      continue;
    Sizes strides = contiguousStrides(shape);
    for (Value input : concat.getInputs()) {
      View part{concat.getResult(), offset * strides[axis], Sizes(shapeOf(input)), strides};
      offset += shapeOf(input)[axis];
      Operation *producer = input.getDefiningOp();
      bool writes = producer && !views.isPlaced(input) && !aliases.contains(input) && !absorbed.contains(producer) &&
                    !isInline(producer) && !views.isView(input) &&
                    !isa<tfm::GatherOp, tfm::ReshapeOp, arith::ConstantOp>(producer) &&
                    (rowDomain(producer, views) || writesRows(input, last) || isa<tfm::RopeOp>(producer));
      if (auto result = dyn_cast<OpResult>(input); writes && rowDomain(producer, views))
        writes = resultRole(result, views) == Role::Element;
      bool readable = llvm::all_of(input.getUses(), [&](OpOperand &use) {
        Operation *user = use.getOwner();
        return user == concat || (!isa<tfm::ConcatOp>(user) && rowDomain(user, views) && !isa<tfm::ReshapeOp>(user) &&
                                  !aliases.contains(user->getResult(0)));
      });
      if (writes && readable && llvm::count(concat.getInputs(), input) == 1)
        views.place(input, part);
    }
  }
}

LogicalResult BodyPlan::materializeOperands() {
  auto contiguous = [](const View &view) { return ArrayRef(view.strides) == ArrayRef(contiguousStrides(view.shape)); };
  for (Operation &op : func.getBody().front()) {
    if (isa<func::ReturnOp>(op)) {
      for (Value operand : op.getOperands())
        if (auto copy = operand.getDefiningOp(); copy && copy->hasAttr(kCopyAttr))
          views.materialize(operand);
      continue;
    }
    if (views.isView(op.getResult(0)) || isa<arith::ConstantOp>(op) || isInline(&op))
      continue;
    bool isShard = isCollective(&op) || isa<shard::AllSliceOp>(op);
    if (failed(verifyLibraryCall(&op, target)) || (isShard && failed(verifyShardOp(&op))) ||
        (isRing(&op) && failed(verifyRing(&op))))
      return failure();
    if (op.hasAttr(kCopyAttr))
      views.materialize(op.getResult(0));
    for (OpOperand &operand : op.getOpOperands()) {
      View view = views.of(operand.get());
      bool isConstant =
          view.root.getDefiningOp() && isInline(view.root.getDefiningOp()) && !views.isMaterialized(view.root);
      bool fits = true;
      if (isLibraryCall(&op)) {
        fits = !isConstant && operandFits(&op, operand.getOperandNumber(), view);
      } else if (isShard) {
        fits = !isConstant && contiguous(view);
      } else if (isRing(&op)) {
        fits = !isConstant && ringOperandFits(&op, operand.getOperandNumber(), view);
      } else if (isSpecialKernel(&op)) {
        fits = !isConstant && (!isMatmul(&op) || operandFits(&op, operand.getOperandNumber(), view));
      } else if (auto gather = dyn_cast<tfm::GatherOp>(op)) {
        fits = !isConstant;
        if (operand.getOperandNumber() == 0) {
          Sizes shape(ArrayRef(view.shape).drop_front(gather.getAxis() + 1));
          Sizes strides(ArrayRef(view.strides).drop_front(gather.getAxis() + 1));
          collapse(shape, strides);
          fits &= shape.size() <= 1;
        }
      } else if (isa<tfm::EmbeddingOp, tfm::LogitsSumOp>(op)) {
        fits = !isConstant || operandRole(operand, views) == Role::Uniform;
      } else if (operandRole(operand, views) == Role::Other && isa<tfm::AdamWOp, tfm::SgdOp>(op)) {
        fits = !isConstant && contiguous(view);
      }
      if (!fits)
        views.materialize(operand.get());
    }
    if (!isLibraryCall(&op) && !isSpecialKernel(&op) && !isCollective(&op) && !rowDomain(&op, views))
      return op.emitOpError("is not supported by the host target");
  }
  return success();
}

bool BodyPlan::isPlacedConcat(Operation *op) const {
  auto concat = dyn_cast<tfm::ConcatOp>(op);
  return concat && llvm::all_of(concat.getInputs(), [&](Value input) { return views.isPlaced(input); });
}

bool BodyPlan::hasUnit(Operation *op) const {
  if (isa<func::ReturnOp>(op) || absorbed.contains(op) || isPlacedConcat(op))
    return false;
  Value result = op->getResult(0);
  if (views.isMaterialized(result))
    return true;
  return !isa<arith::ConstantOp>(op) && !isInline(op) && !views.isView(result);
}

//===----------------------------------------------------------------------===//
// Reads, through views
//===----------------------------------------------------------------------===//

void BodyPlan::collectReads(Value value, SmallVectorImpl<ReadBy> &reads) const {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<func::ReturnOp>(user)) {
      reads.push_back({&use, nullptr});
      continue;
    }
    if (views.isView(user->getResult(0)) || (isPlacedConcat(user))) {
      collectReads(user->getResult(0), reads);
      continue;
    }
    // What stands for an absorbed op reads in its place; an accumulator is read by the producer of the sum.
    while (Operation *stand = absorbed.lookup(user))
      user = stand;
    reads.push_back({&use, user});
  }
}

SmallVector<ReadBy> BodyPlan::readsOf(Value value) const {
  SmallVector<ReadBy> reads;
  collectReads(value, reads);
  return reads;
}

bool BodyPlan::canFuse(OpOperand &operand, Domain domain) const {
  View view = views.withoutPlacement(operand.get());
  auto result = dyn_cast<OpResult>(view.root);
  if (!result)
    return false;
  Role role = operandRole(operand, views), from = resultRole(result, views);
  if (role == Role::Other || role == Role::Uniform || role == Role::Column || from == Role::Column)
    return false;
  return accessOf(view, role, domain.cols).isIdentity(domain.rows, domain.cols, from == Role::Row);
}

//===----------------------------------------------------------------------===//
// Units and their order
//===----------------------------------------------------------------------===//

Unit *BodyPlan::unitOf(Operation *op) {
  auto it = unitIndex.find(op);
  return it == unitIndex.end() ? nullptr : &units[it->second];
}

/// Units are made from the last to the first, so that of two at one position the later made one runs first.
static bool runsBefore(const Unit &a, const Unit &b) {
  return std::pair(a.position, -static_cast<int64_t>(a.number)) <
         std::pair(b.position, -static_cast<int64_t>(b.number));
}

/// From the last op to the first: a producer joins the kernel of its earliest reader, which delays it and keeps its
/// value in registers, or makes a unit at its own place.
void BodyPlan::schedule() {
  for (Operation &op : llvm::reverse(func.getBody().front())) {
    if (!hasUnit(&op))
      continue;
    bool library = isLibraryCall(&op) || added.contains(&op), special = !library && isSpecialKernel(&op);
    bool collective = isCollective(&op);
    std::optional<Domain> domain;
    if (!library && !collective)
      domain = rowDomain(&op, views);
    if (domain)
      special = false;
    Unit *firstReader = nullptr;
    for (Value result : op.getResults())
      for (const ReadBy &read : readsOf(result))
        if (Unit *unit = read.user ? unitOf(read.user) : nullptr)
          if (!firstReader || runsBefore(*unit, *firstReader))
            firstReader = unit;
    Unit *earliest = nullptr;
    if (domain && !views.isMaterialized(op.getResult(0))) {
      earliest = firstReader;
      if (earliest &&
          (earliest->kind != UnitKind::Rows || !(earliest->domain == *domain) || earliest->ops.size() >= kMaxFused))
        earliest = nullptr;
      for (Value result : op.getResults())
        for (const ReadBy &read : readsOf(result))
          if (earliest && read.user && unitOf(read.user) == earliest && !canFuse(*read.operand, *domain))
            earliest = nullptr;
    }
    if (earliest) {
      earliest->ops.insert(earliest->ops.begin(), &op);
      unitIndex[&op] = unitIndex[earliest->ops.back()];
      continue;
    }
    Unit unit{library      ? UnitKind::Library
              : special    ? UnitKind::Special
              : collective ? UnitKind::Collective
                           : UnitKind::Rows};
    unit.ops = {&op};
    unit.number = units.size();
    unit.position = order[&op];
    // A kernel runs just before its earliest reader: what it recomputes lives shortly, and a kernel on the same
    // operands may by then be able to join it.
    if (unit.kind == UnitKind::Rows && firstReader)
      unit.position = firstReader->position;
    if (domain)
      unit.domain = *domain;
    units.push_back(std::move(unit));
    unitIndex[&op] = units.size() - 1;
  }
  llvm::sort(units, runsBefore);
  numberUnits();
}

void BodyPlan::numberUnits() {
  for (auto [i, unit] : llvm::enumerate(units))
    for (Operation *op : unit.ops)
      unitIndex[op] = i;
}

/// The operands of a unit that other units compute, with those units' places; none where a unit that comes later may
/// write a part of one, or where one is communicated and would be waited for earlier.
std::optional<SmallVector<std::pair<OpOperand *, size_t>>> BodyPlan::computedOperands(size_t index) {
  SmallVector<std::pair<OpOperand *, size_t>> operands;
  for (Operation *op : units[index].ops)
    for (OpOperand &operand : op->getOpOperands()) {
      Operation *root = views.of(operand.get()).root.getDefiningOp();
      while (root && absorbed.contains(root))
        root = absorbed.lookup(root);
      if (root && (isPlacedConcat(root) || isCollective(root)))
        return std::nullopt;
      auto it = root ? unitIndex.find(root) : unitIndex.end();
      if (it != unitIndex.end() && it->second != index)
        operands.push_back({&operand, it->second});
    }
  return operands;
}

/// True where both units read a whole tensor of their domain.
bool BodyPlan::shareAnOperand(const Unit &a, const Unit &b) {
  llvm::DenseSet<Value> roots;
  auto visit = [&](const Unit &unit, function_ref<bool(Value)> found) {
    for (Operation *op : unit.ops)
      for (Value operand : op->getOperands())
        if (Value root = views.of(operand).root; product(shapeOf(root)) == unit.domain.rows * unit.domain.cols)
          if (found(root))
            return true;
    return false;
  };
  visit(a, [&](Value root) { return roots.insert(root), false; });
  return visit(b, [&](Value root) { return roots.contains(root); });
}

/// A kernel moves into an earlier one that computes what it reads, or reads what it reads, where all its operands are
/// there by then: column sums beside the kernel that computes their operand, an activation beside its gradient.
void BodyPlan::hoist() {
  auto mayHold = [&](const Unit &unit) {
    return unit.kind == UnitKind::Rows && !unit.ops.empty() && !unit.ops.back()->hasAttr(kCopyAttr) &&
           !views.isMaterialized(unit.ops.back()->getResult(0));
  };
  for (size_t later = 0; later < units.size(); ++later) {
    Unit &unit = units[later];
    if (!mayHold(unit))
      continue;
    auto operands = computedOperands(later);
    if (!operands)
      continue;
    size_t first = 0; // the unit that computes the last of the operands
    for (auto [operand, index] : *operands)
      first = std::max(first, index);
    for (size_t target = first; target < later; ++target) {
      Unit &earlier = units[target];
      if (!mayHold(earlier) || !(earlier.domain == unit.domain) || earlier.ops.size() + unit.ops.size() > kMaxFused)
        continue;
      bool computes = false, fits = true;
      for (auto [operand, index] : *operands)
        if (index == target) {
          computes = true;
          fits &= canFuse(*operand, unit.domain);
        }
      if (!fits || (!computes && !shareAnOperand(earlier, unit)))
        continue;
      for (Operation *op : unit.ops)
        unitIndex[op] = target;
      earlier.ops.append(unit.ops);
      llvm::sort(earlier.ops, [&](Operation *a, Operation *b) { return order[a] < order[b]; });
      unit.ops.clear();
      break;
    }
  }
  llvm::erase_if(units, [](const Unit &unit) { return unit.ops.empty(); });
  numberUnits();
}

LogicalResult BodyPlan::buildPrograms() {
  for (Unit &unit : units) {
    if (unit.kind != UnitKind::Rows)
      continue;
    unit.program.domain = unit.domain;
    RowProgramBuilder builder(unit.program, views, func.getContext());
    for (Operation *op : unit.ops)
      if (failed(builder.add(op)))
        return failure();
    // Sinks: what other units, or the caller, read.
    for (Operation *op : unit.ops)
      for (OpResult result : op->getResults()) {
        Role role = resultRole(result, views);
        bool leaves =
            sinks.contains(result) || views.isPlaced(result) ||
            llvm::any_of(readsOf(result), [&](const ReadBy &read) { return !read.user || unitOf(read.user) != &unit; });
        if (!leaves)
          continue;
        NodeId node = builder.values().lookup(result);
        if (role == Role::Column)
          builder.columnSum(node, result, sinks.lookup(result));
        else
          builder.store(node, result, role);
      }
  }
  return success();
}
