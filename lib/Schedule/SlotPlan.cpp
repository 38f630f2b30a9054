//===- SlotPlan.cpp - slots of a stage's microbatches ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "SlotPlan.h"
#include <algorithm>

using namespace drover::schedule;

SlotPlan::SlotPlan(const StepProgram &step, const Batch &batch, const std::vector<ChunkAccess> &accesses,
                   const std::vector<const GlobalItem *> &items)
    : step(step), accesses(accesses), microbatches(static_cast<size_t>(batch.microbatches)) {
  auto chunks = static_cast<uint32_t>(step.chunks.size());
  forwardRow.resize(chunks);
  backwardRow.resize(chunks);
  for (uint32_t c = 0; c < chunks; ++c) {
    bool passes = passesThrough(step.chunks[c]);
    forwardRow[c] = passes && c > 0 ? forwardRow[c - 1] : c;
    uint32_t mirrored = chunks - 1 - c;
    passes = passesThrough(step.chunks[mirrored]);
    backwardRow[mirrored] = passes && c > 0 ? backwardRow[mirrored + 1] : mirrored;
  }

  requestOf.assign(NumClasses * (step.chunks.size() + 1) * microbatches, -1);
  for (const GlobalItem *item : items)
    for (Space space : kSpaces) {
      int64_t bytes = bytesOf(space, step.chunks[item->chunk]);
      bool used = accesses[item->chunk][static_cast<size_t>(item->phase)].uses(space);
      if (!used || bytes == 0)
        continue;
      auto [slotClass, row] = classOf(space, item->chunk);
      int32_t &request = requestOf[indexOf(slotClass, row, item->microbatch)];
      if (request < 0) {
        request = static_cast<int32_t>(requests.size());
        requests.push_back({bytes, item->ordinal, item->ordinal, 0});
        classes.push_back(slotClass);
      }
      // Outputs are read when all is done.
      requests[request].last = slotClass == Outputs ? items.back()->ordinal : item->ordinal;
    }
}

std::pair<SlotPlan::Class, uint32_t> SlotPlan::classOf(Space space, uint32_t chunk) const {
  switch (space) {
  case Space::Input:
    return {Inputs, 0};
  case Space::Output:
    return {Outputs, 0};
  case Space::Stash:
    return {Stash, chunk};
  case Space::Kept:
    return {Kept, chunk};
  case Space::Handed:
    return {Handed, chunk};
  case Space::Y:
    return {ForwardBoundary, forwardRow[chunk]};
  case Space::X:
    return {ForwardBoundary, forwardRow[chunk - 1]};
  case Space::DX:
    return {BackwardBoundary, backwardRow[chunk]};
  default:
    return {BackwardBoundary, backwardRow[chunk + 1]}; // dy
  }
}

/// 0 for what is not of this plan.
int64_t SlotPlan::bytesOf(Space space, const StepChunk &chunk) const {
  bool oneStage = step.grid.pp == 1;
  switch (space) {
  case Space::Input:
    return step.inputBytes;
  case Space::Output:
    return step.outputBytes;
  case Space::Stash:
    return chunk.stashBytes;
  case Space::Kept:
    return chunk.keptBytes;
  case Space::Handed:
    return chunk.handedBytes;
  case Space::X:
    return oneStage ? chunk.xBytes : 0;
  case Space::Y:
    return oneStage ? chunk.yBytes : 0;
  case Space::DY:
    return oneStage ? chunk.dyBytes : 0;
  default:
    return oneStage ? chunk.dxBytes : 0;
  }
}

void SlotPlan::place(Memory &memory, int64_t &base) {
  auto peakOf = [&](std::initializer_list<Class> which) {
    std::vector<SlotRequest> chosen;
    for (size_t i = 0; i < requests.size(); ++i)
      if (std::find(which.begin(), which.end(), classes[i]) != which.end())
        chosen.push_back(requests[i]);
    return peakBytes(chosen);
  };
  memory.inputs = peakOf({Inputs});
  memory.stash = peakOf({Stash, Kept, Handed});
  memory.boundary = peakOf({ForwardBoundary, BackwardBoundary});
  int64_t bytes = placeSlots(requests);
  for (SlotRequest &request : requests)
    request.offset += base;
  base += bytes;
}

SlotPlan::Slot SlotPlan::find(Space space, const GlobalItem &item) const {
  if (!accesses[item.chunk][static_cast<size_t>(item.phase)].uses(space) ||
      bytesOf(space, step.chunks[item.chunk]) == 0)
    return {};
  auto [slotClass, row] = classOf(space, item.chunk);
  const SlotRequest &request = requests[requestOf[indexOf(slotClass, row, item.microbatch)]];
  return {request.offset, request.first == item.ordinal, request.last == item.ordinal};
}

uint32_t BoundaryPools::take(Space kind, int64_t bytes) {
  std::deque<uint32_t> &free = freeSlots[{kind, bytes}];
  if (static_cast<int64_t>(free.size()) > spare) {
    uint32_t slot = free.front();
    free.pop_front();
    return slot;
  }
  slots.push_back({end, hazards.makeResource()});
  end = alignTo(end + bytes, kSlotAlignment);
  return static_cast<uint32_t>(slots.size() - 1);
}
