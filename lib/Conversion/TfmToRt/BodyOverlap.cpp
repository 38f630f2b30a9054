//===- BodyOverlap.cpp - collectives under way while others compute -------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A collective starts where its operand is there, and is waited for where its result is first read; one of tensor
// parallelism only where that is asked for, and then a matmul that does not depend on it is put between the two. Every
// rank runs the same body, so that all ranks of a group issue its operations in one order (docs/communication.md).
//===----------------------------------------------------------------------===//
#include "BodyPlan.h"
#include "Collectives.h"
#include "LibraryCalls.h"
#include "Rings.h"
#include "drover/rt/abi.h"

using namespace mlir;
using namespace drover;
using namespace drover::lower;

/// The place behind the units that write what a collective sends; its own where that is not known.
size_t BodyPlan::earliestPlace(const Unit &unit, size_t index) {
  Value input = unit.ops.front()->getOperand(0);
  Operation *root = views.of(input).root.getDefiningOp();
  if (!root)
    return 0; // an argument
  while (Operation *stand = absorbed.lookup(root))
    root = stand;
  auto it = unitIndex.find(root);
  return it == unitIndex.end() ? index : it->second + 1;
}

/// True for a collective of tensor parallelism.
static bool isTensorCollective(const Unit &unit) {
  return unit.kind == UnitKind::Collective && communicatorOf(*shardAxes(unit.ops.front())) != rt::Communicator::Cp;
}

bool BodyPlan::isWaitedForAtOnce(const Unit &unit) const { return !overlaps && isTensorCollective(unit); }

void BodyPlan::advanceCollectives() {
  size_t next = 0; // behind the collective before
  for (size_t index = 0; index < units.size(); ++index) {
    if (units[index].kind != UnitKind::Collective)
      continue;
    size_t place = index;
    if (!isWaitedForAtOnce(units[index]))
      place = std::min(index, std::max(next, earliestPlace(units[index], index)));
    std::rotate(units.begin() + place, units.begin() + index, units.begin() + index + 1);
    if (place != index)
      numberUnits();
    next = place + 1;
  }
}

/// The unit that reads a collective's result first; their number where none does.
size_t BodyPlan::firstReader(const Unit &unit) {
  size_t first = units.size();
  for (const ReadBy &read : readsOf(unit.ops.front()->getResult(0)))
    if (read.user && unitIndex.contains(read.user))
      first = std::min(first, unitIndex[read.user]);
  return first;
}

/// Unit `index` and the units before it that it depends on.
llvm::BitVector BodyPlan::unitsBehind(size_t index) {
  llvm::BitVector behind(units.size());
  behind.set(index);
  auto isNeeded = [&](const ReadBy &read) {
    auto it = read.user ? unitIndex.find(read.user) : unitIndex.end();
    return it != unitIndex.end() && behind.test(it->second);
  };
  for (size_t earlier = index; earlier-- > 0;)
    for (Operation *op : units[earlier].ops)
      for (Value result : op->getResults())
        if (llvm::any_of(readsOf(result), isNeeded))
          behind.set(earlier);
  return behind;
}

/// Where no matmul runs while a collective of tensor parallelism is under way, the nearest one before it that it does
/// not depend on comes to stand behind its start: what the collective needs moves up before that matmul. Collectives
/// keep their order.
void BodyPlan::overlapMatmuls() {
  auto isMatmulUnit = [](const Unit &unit) {
    return unit.kind == UnitKind::Library && !isa<tfm::EmbeddingGradOp>(unit.ops.front());
  };
  SmallVector<Operation *> collectives;
  for (const Unit &unit : units)
    if (isTensorCollective(unit))
      collectives.push_back(unit.ops.front());
  for (Operation *op : collectives) {
    size_t index = unitIndex[op];
    auto between = ArrayRef(units).slice(index, firstReader(units[index]) - index);
    if (llvm::any_of(between, isMatmulUnit))
      continue;
    llvm::BitVector behind = unitsBehind(index);
    size_t matmul = index;
    auto isWanted = [&](size_t i) { return !behind.test(i) && isMatmulUnit(units[i]); };
    auto isOtherCollective = [&](size_t i) { return i != index && units[i].kind == UnitKind::Collective; };
    while (matmul > 0 && !isWanted(matmul) && !isOtherCollective(matmul))
      --matmul;
    if (!isWanted(matmul))
      continue;
    std::vector<Unit> first, rest;
    for (size_t i = matmul; i <= index; ++i)
      (behind.test(i) ? first : rest).push_back(std::move(units[i]));
    auto next = std::move(first.begin(), first.end(), units.begin() + matmul);
    std::move(rest.begin(), rest.end(), next);
    numberUnits();
  }
}

/// Waits stand before the first reader, or at the end. Where more would be under way than the runtime has slots for,
/// the oldest is waited for.
void BodyPlan::placeWaits() {
  for (auto [index, unit] : llvm::enumerate(units)) {
    if (unit.kind != UnitKind::Collective)
      continue;
    unit.waitBefore = isWaitedForAtOnce(unit) ? index + 1 : firstReader(unit);
  }
  // Rings have a slot of their own.
  bool hasRings = llvm::any_of(units, [](const Unit &unit) { return isRing(unit.ops.front()); });
  SmallVector<Unit *> flying(hasRings ? kRingSlot : DROVER_MAX_IN_FLIGHT, nullptr);
  for (auto [index, unit] : llvm::enumerate(units)) {
    for (Unit *&other : flying)
      if (other && other->waitBefore <= index)
        other = nullptr;
    if (unit.kind != UnitKind::Collective)
      continue;
    auto free = llvm::find(flying, nullptr);
    if (free == flying.end()) {
      free = std::min_element(flying.begin(), flying.end(),
                              [&](Unit *a, Unit *b) { return unitIndex[a->ops.front()] < unitIndex[b->ops.front()]; });
      (*free)->waitBefore = index;
    }
    *free = &unit;
    unit.flight = free - flying.begin();
  }
}
