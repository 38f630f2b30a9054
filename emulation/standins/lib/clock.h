//===- clock.h - vector clocks of streams and host threads ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_STANDINS_CLOCK_H
#define DROVER_STANDINS_CLOCK_H

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace drover::standin {

/// What is known to have happened: of each actor (a stream or a thread of the host) its first so many steps.
class Clock {
public:
  uint64_t at(uint32_t actor) const {
    auto found = find(actor);
    return found != entries.end() && found->first == actor ? found->second : 0;
  }

  void set(uint32_t actor, uint64_t time) {
    auto found = entries.begin() + (find(actor) - entries.begin());
    if (found != entries.end() && found->first == actor)
      found->second = time;
    else
      entries.insert(found, {actor, time});
  }

  void join(const Clock &other) {
    for (const auto &[actor, time] : other.entries)
      if (time > at(actor))
        set(actor, time);
  }

private:
  using Entries = std::vector<std::pair<uint32_t, uint64_t>>;
  Entries::const_iterator find(uint32_t actor) const {
    return std::lower_bound(entries.begin(), entries.end(), actor,
                            [](const auto &entry, uint32_t key) { return entry.first < key; });
  }

  Entries entries; // ascending
};

} // namespace drover::standin

#endif // DROVER_STANDINS_CLOCK_H
