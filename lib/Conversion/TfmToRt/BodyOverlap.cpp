//===- BodyOverlap.cpp - collectives under way while others compute -------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A collective starts where its operand is there, and is waited for where its result is first read. Collectives keep
// the order of their operations: every rank of a group issues them in one order (docs/communication.md).
//===----------------------------------------------------------------------===//
#include "BodyPlan.h"
#include "Collectives.h"
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

void BodyPlan::advanceCollectives() {
  size_t next = 0; // behind the collective before
  for (size_t index = 0; index < units.size(); ++index) {
    if (units[index].kind != UnitKind::Collective)
      continue;
    size_t place = std::min(index, std::max(next, earliestPlace(units[index], index)));
    std::rotate(units.begin() + place, units.begin() + index, units.begin() + index + 1);
    if (place != index)
      numberUnits();
    next = place + 1;
  }
}

/// Waits stand before the first reader, or at the end. Where more would be under way than the runtime has slots for,
/// the oldest is waited for.
void BodyPlan::placeWaits() {
  for (auto [index, unit] : llvm::enumerate(units)) {
    if (unit.kind != UnitKind::Collective)
      continue;
    unit.waitBefore = units.size();
    for (const ReadBy &read : readsOf(unit.ops.front()->getResult(0)))
      if (read.user && unitIndex.contains(read.user))
        unit.waitBefore = std::min(unit.waitBefore, unitIndex[read.user]);
  }
  std::array<Unit *, DROVER_MAX_IN_FLIGHT> flying = {};
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
