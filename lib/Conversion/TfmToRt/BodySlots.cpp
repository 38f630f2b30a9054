//===- BodySlots.cpp - where values live ------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "BodyPlan.h"
#include "Emitter.h"
#include "LibraryCalls.h"
#include "SpecialKernels.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

static constexpr int64_t kAlignment = 64;

static int64_t bytesOf(Value value) {
  return product(shapeOf(value)) * lower::bytesOf(storageType(elementTypeOf(value)));
}

Value BodyPlan::storageRoot(Value value) const {
  while (true) {
    if (views.isPlaced(value)) {
      value = views.of(value).root;
      continue;
    }
    auto it = aliases.find(value);
    if (it == aliases.end())
      return value;
    value = it->second;
  }
}

/// True where the unit may compute `value` over `old`, which it reads: element by element, each before it is written.
bool BodyPlan::mayOverwrite(const Unit &unit, Value value, Value old) const {
  if (unit.kind != UnitKind::Rows || unit.program.hasColumnSums())
    return false;
  const RowProgram &program = unit.program;
  unsigned lastPhase = program.numPhases() - 1;
  auto identity = [&](const Access &access) {
    return access.isIdentity(program.domain.rows, program.domain.cols, false) &&
           (access.colStride == 1 || program.domain.cols == 1);
  };
  bool stored = false;
  for (const Sink &sink : program.sinks)
    if (sink.value == value)
      stored = program.nodes[sink.node].phase == lastPhase && identity(sink.access);
  if (!stored || lower::bytesOf(storageType(elementTypeOf(value))) != lower::bytesOf(storageType(elementTypeOf(old))))
    return false;
  for (const Node &node : program.nodes)
    if (node.kind == NodeKind::Load && storageRoot(node.access.root) == storageRoot(old) &&
        (node.gatherStride || !identity(node.access)))
      return false;
  return true;
}

using Life = std::pair<int64_t, int64_t>; // first and last unit

/// An element-wise result takes the memory of an operand that dies in the same kernel.
void BodyPlan::reuseInPlace(llvm::DenseMap<Value, Life> &lives) {
  for (auto [index, unit] : llvm::enumerate(units)) {
    llvm::DenseSet<Value> taken;
    for (const Sink &sink : unit.program.sinks) {
      Value value = sink.value;
      if (unit.kind != UnitKind::Rows || sink.columnSum || storageRoot(value) != value || !lives.contains(value))
        continue;
      for (const Node &node : unit.program.nodes) {
        if (node.kind != NodeKind::Load)
          continue;
        Value old = storageRoot(node.access.root);
        if (old == value || !lives.contains(old) || lives[old].second != static_cast<int64_t>(index) ||
            lives[old].first == static_cast<int64_t>(index) || taken.contains(old) ||
            ::bytesOf(old) != ::bytesOf(value) || !mayOverwrite(unit, value, old))
          continue;
        taken.insert(old);
        aliases[value] = old;
        lives[old].second = lives[value].second;
        lives.erase(value);
        break;
      }
    }
  }
}

LogicalResult BodyPlan::assignSlots(bool &again) {
  Block &block = func.getBody().front();
  for (BlockArgument argument : block.getArguments())
    slots[argument] = {Place::Argument, argument.getArgNumber()};
  for (auto &[value, accumulate] : sinks)
    slots[accumulate.getResult()] = {Place::Argument, cast<BlockArgument>(accumulate.getAccumulator()).getArgNumber()};

  // A collective has its buffers until it is waited for.
  auto endOf = [&](int64_t unit) -> int64_t {
    return units[unit].kind == UnitKind::Collective ? units[unit].waitBefore - 1 : unit;
  };
  auto lastRead = [&](Value value) {
    int64_t last = -1;
    for (const ReadBy &read : readsOf(value))
      if (read.user && unitIndex.contains(read.user))
        last = std::max(last, endOf(unitIndex[read.user]));
    return last;
  };
  // Lives of the values that have memory, parts and in-place additions counted to their roots.
  llvm::DenseMap<Value, Life> lives;
  SmallVector<Value> roots; // in program order
  auto extend = [&](Value value, int64_t unit) {
    Value root = storageRoot(value);
    auto [it, inserted] = lives.try_emplace(root, Life{unit, unit});
    if (inserted)
      roots.push_back(root);
    it->second.first = std::min(it->second.first, unit);
    it->second.second = std::max({it->second.second, endOf(unit), lastRead(value)});
  };
  for (auto [index, unit] : llvm::enumerate(units)) {
    if (unit.kind == UnitKind::Rows) {
      for (const Sink &sink : unit.program.sinks)
        if (!sink.accumulate)
          extend(sink.value, index);
      continue;
    }
    for (Value result : unit.ops.front()->getResults())
      if (!sinks.contains(result))
        extend(result, index);
  }
  for (Value root : roots)
    if (isPlacedConcat(root.getDefiningOp()))
      lives[root].second = std::max(lives[root].second, lastRead(root));

  // Results are computed where they are wanted.
  Operation *terminator = block.getTerminator();
  for (OpOperand &operand : terminator->getOpOperands()) {
    auto inplace = func.getResultAttrOfType<IntegerAttr>(operand.getOperandNumber(), "tfm.inplace");
    Value root = storageRoot(views.of(operand.get()).root);
    if (isa<BlockArgument>(root) || !lives.contains(root))
      continue; // an argument that stays, or a sum that its producer accumulates
    if (!inplace) {
      slots[root] = {Place::Result, operand.getOperandNumber()};
      lives.erase(root);
      continue;
    }
    Value argument = block.getArgument(inplace.getInt());
    int64_t first = lives[root].first, last = lastRead(argument);
    if (last > first || (last == first && !mayOverwrite(units[first], root, argument))) {
      OpBuilder builder(terminator);
      auto copy = tfm::ReshapeOp::create(builder, terminator->getLoc(), operand.get().getType(), operand.get(),
                                         AffineMapAttr());
      copy->setAttr("rt.copy", builder.getUnitAttr());
      operand.set(copy.getResult());
      again = true;
      return success();
    }
    slots[root] = {Place::Argument, inplace.getInt()};
    lives.erase(root);
  }
  reuseInPlace(lives);

  // Colouring: largest first, each at the lowest offset that is free through its life.
  struct Interval {
    int64_t bytes, first, last;
    Value value;
    Unit *unit;
    size_t scratch, number;
  };
  SmallVector<Interval> intervals;
  for (Value root : roots) {
    auto it = lives.find(root);
    if (it == lives.end())
      continue;
    if (!cast<RankedTensorType>(root.getType()).hasStaticShape())
      return root.getDefiningOp()->emitOpError(
          "needs memory of a size that is known at run time only; a flat body keeps nothing but its results");
    intervals.push_back({::bytesOf(root), it->second.first, it->second.second, root, nullptr, 0, intervals.size()});
  }
  for (auto [index, unit] : llvm::enumerate(units)) {
    SmallVector<int64_t> sizes;
    if (unit.kind == UnitKind::Rows) {
      for (const Sink &sink : unit.program.sinks)
        if (sink.columnSum)
          sizes.push_back(columnSumBytes(unit.program, sink, target));
    } else if (unit.kind == UnitKind::Library) {
      sizes = libraryScratchBytes(unit.ops.front(), target);
    } else if (unit.kind == UnitKind::Special) {
      for (auto [type, count] : specialScratch(unit.ops.front(), target))
        sizes.push_back(lower::bytesOf(type) * count);
    }
    unit.scratch.assign(sizes.size(), 0);
    int64_t at = index;
    for (auto [i, bytes] : llvm::enumerate(sizes))
      intervals.push_back({bytes, at, at, {}, &unit, i, intervals.size()});
  }
  llvm::sort(intervals, [&](const Interval &a, const Interval &b) {
    return std::tuple(-a.bytes, a.first, a.number) < std::tuple(-b.bytes, b.first, b.number);
  });
  SmallVector<std::pair<Interval, int64_t>> placed; // with offsets
  for (const Interval &interval : intervals) {
    SmallVector<std::pair<int64_t, int64_t>> occupied;
    for (auto &[other, offset] : placed)
      if (other.first <= interval.last && interval.first <= other.last)
        occupied.push_back({offset, offset + other.bytes});
    llvm::sort(occupied);
    int64_t offset = 0;
    for (auto [from, to] : occupied) {
      if (offset + interval.bytes <= from)
        break;
      offset = std::max(offset, (to + kAlignment - 1) / kAlignment * kAlignment);
    }
    placed.push_back({interval, offset});
    workspaceBytes = std::max(workspaceBytes, offset + interval.bytes);
    if (interval.unit)
      interval.unit->scratch[interval.scratch] = offset;
    else
      slots[interval.value] = {Place::Workspace, offset};
  }
  workspaceBytes = (workspaceBytes + kAlignment - 1) / kAlignment * kAlignment;
  return success();
}
