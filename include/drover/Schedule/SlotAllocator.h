//===- SlotAllocator.h - places for ranges of life --------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_SCHEDULE_SLOTALLOCATOR_H
#define DROVER_SCHEDULE_SLOTALLOCATOR_H

#include <cstdint>
#include <vector>

namespace drover::schedule {

/// Memory that is live from time `first` to time `last`, both included.
struct SlotRequest {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
  int64_t offset = 0; // the answer
};

/// Gives every request an offset such that no two that are live at one time overlap. Returns the bytes in use.
/// Largest first, each at the lowest offset that is free throughout its life; equal sizes in order of time, so that
/// a class of equal slots is coloured with the least number.
int64_t placeSlots(std::vector<SlotRequest> &requests);

/// The largest sum of bytes live at one time.
int64_t peakBytes(const std::vector<SlotRequest> &requests);

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_SLOTALLOCATOR_H
