//===- SlotPlan.h - slots of a stage's microbatches -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_SCHEDULE_SLOTPLAN_H
#define DROVER_LIB_SCHEDULE_SLOTPLAN_H

#include "Hazards.h"
#include "drover/Schedule/Access.h"
#include "drover/Schedule/GlobalOrder.h"
#include "drover/Schedule/SlotAllocator.h"
#include <deque>
#include <map>

namespace drover::schedule {

/// Slots that only phases touch: they live from item to item of one stage, and the compute stream's order is all that
/// their reuse needs. Boundaries between chunks are among them where the pipeline has one stage: a chunk's y is the
/// next one's x, and its dy the next one's dx.
class SlotPlan {
public:
  SlotPlan(const StepProgram &step, const Batch &batch, const std::vector<ChunkAccess> &accesses,
           const std::vector<const GlobalItem *> &items);

  /// Places all from `base` on; advances it. Fills the categories of memory.
  void place(Memory &memory, int64_t &base);

  struct Slot {
    int64_t offset = -1; // -1: the phase does not use the space
    bool isFirst = false, isLast = false;
  };
  /// The slot of an item in a space of this plan.
  Slot find(Space space, const GlobalItem &item) const;

  static constexpr Space kSpaces[] = {Space::Input, Space::Output, Space::Stash, Space::Kept, Space::Handed,
                                      Space::X,     Space::Y,      Space::DY,    Space::DX};

private:
  enum Class { Inputs, Outputs, Stash, Kept, Handed, ForwardBoundary, BackwardBoundary, NumClasses };
  std::pair<Class, uint32_t> classOf(Space space, uint32_t chunk) const;
  int64_t bytesOf(Space space, const StepChunk &chunk) const;
  size_t indexOf(Class slotClass, uint32_t row, uint32_t microbatch) const {
    return (size_t{slotClass} * (step.chunks.size() + 1) + row) * microbatches + microbatch;
  }

  const StepProgram &step;
  const std::vector<ChunkAccess> &accesses;
  size_t microbatches;
  /// By chunk: the boundary that is its y, and the one that is its dx; behind chunks that pass on, an earlier one's.
  std::vector<uint32_t> forwardRow, backwardRow;
  std::vector<int32_t> requestOf; // by `indexOf`
  std::vector<SlotRequest> requests;
  std::vector<Class> classes; // of requests
};

/// Equal slots for boundary tensors of one kind, on one stage of several: the one that was given back first is used
/// first, and not before `spare` others are free too. An access that must wait for the slot's last reader then waits
/// for one that is done long since.
class BoundaryPools {
public:
  BoundaryPools(HazardTracker &hazards, int64_t spare) : hazards(hazards), spare(spare) {}

  struct Slot {
    int64_t offset;
    HazardTracker::Resource resource;
  };

  /// Slots begin at `base`.
  void start(int64_t base) { begin = end = base; }
  uint32_t take(Space kind, int64_t bytes);
  void giveBack(Space kind, int64_t bytes, uint32_t slot) { freeSlots[{kind, bytes}].push_back(slot); }
  const Slot &operator[](uint32_t slot) const { return slots[slot]; }
  int64_t offset() const { return begin; }
  int64_t bytes() const { return end - begin; }

private:
  HazardTracker &hazards;
  int64_t spare;
  int64_t begin = 0, end = 0;
  std::vector<Slot> slots;
  std::map<std::pair<Space, int64_t>, std::deque<uint32_t>> freeSlots;
};

} // namespace drover::schedule

#endif // DROVER_LIB_SCHEDULE_SLOTPLAN_H
