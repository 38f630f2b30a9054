//===- SlotAllocator.cpp - places for ranges of life ----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/SlotAllocator.h"
#include "drover/Schedule/Types.h"
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

using namespace drover::schedule;

namespace {

/// Quadratic in the number of requests.
int64_t placeFew(std::vector<SlotRequest> &requests) {
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

/// Requests of one size that are never live together, in order of time.
struct Column {
  int64_t bytes, last;
  std::vector<size_t> members;
};

/// The least number of columns for each size: a request goes to one that is free, the earliest first.
std::vector<Column> makeColumns(const std::vector<SlotRequest> &requests) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) {
    return std::make_pair(requests[i].first, i) < std::make_pair(requests[j].first, j);
  });
  std::vector<Column> columns;
  std::map<int64_t, std::set<std::pair<int64_t, size_t>>> bySize; // size -> (end, column)
  for (size_t i : order) {
    const SlotRequest &request = requests[i];
    auto &ends = bySize[request.bytes];
    size_t column = columns.size();
    if (!ends.empty() && ends.begin()->first < request.first) {
      column = ends.begin()->second;
      ends.erase(ends.begin());
    } else {
      columns.push_back({request.bytes, 0, {}});
    }
    columns[column].members.push_back(i);
    columns[column].last = request.last;
    ends.insert({request.last, column});
  }
  return columns;
}

} // namespace

int64_t drover::schedule::placeSlots(std::vector<SlotRequest> &requests) {
  constexpr size_t kFew = 1024;
  if (requests.size() <= kFew)
    return placeFew(requests);
  // With many microbatches the same few slots are used over and over: place those.
  std::vector<Column> columns = makeColumns(requests);
  std::vector<SlotRequest> slots;
  for (const Column &column : columns)
    slots.push_back({column.bytes, requests[column.members.front()].first, column.last, 0});
  int64_t total = placeFew(slots);
  for (size_t i = 0; i < columns.size(); ++i)
    for (size_t member : columns[i].members)
      requests[member].offset = slots[i].offset;
  return total;
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
