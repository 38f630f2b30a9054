//===- SlotAllocator.cpp - places for ranges of life ----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "SlotAllocator.h"
#include "drover/Schedule/Types.h"
#include <algorithm>
#include <map>
#include <numeric>

using namespace drover::schedule;

int64_t drover::schedule::placeSlots(std::vector<SlotRequest> &requests) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) {
    const SlotRequest &a = requests[i], &b = requests[j];
    return std::make_tuple(-a.bytes, a.first, a.last, i) < std::make_tuple(-b.bytes, b.first, b.last, j);
  });

  int64_t total = 0;
  std::vector<size_t> placed; // by offset
  for (size_t i : order) {
    SlotRequest &request = requests[i];
    request.offset = 0;
    if (request.bytes == 0)
      continue;
    for (size_t j : placed) {
      const SlotRequest &other = requests[j];
      if (other.first > request.last || other.last < request.first)
        continue;
      if (other.offset >= request.offset + request.bytes)
        break;
      request.offset = std::max(request.offset, alignTo(other.offset + other.bytes, kSlotAlignment));
    }
    total = std::max(total, request.offset + request.bytes);
    auto after = std::upper_bound(placed.begin(), placed.end(), request.offset,
                                  [&](int64_t offset, size_t j) { return offset < requests[j].offset; });
    placed.insert(after, i);
  }
  return alignTo(total, kSlotAlignment);
}

int64_t drover::schedule::peakBytes(const std::vector<SlotRequest> &requests) {
  std::map<int64_t, int64_t> changes;
  for (const SlotRequest &request : requests) {
    changes[request.first] += request.bytes;
    changes[request.last + 1] -= request.bytes;
  }
  int64_t live = 0, peak = 0;
  for (auto [time, change] : changes)
    peak = std::max(peak, live += change);
  return peak;
}
