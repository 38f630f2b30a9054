//===- Hazards.h - waits that accesses to slots demand ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// What must be complete before an action may start follows from what it reads and writes. Of that, only what neither
// the order of streams nor another wait implies becomes a wait: then every wait matters.
//
// Happens-before: the actions of a stream run one after the other; an action starts after those it waits for are
// complete; a receive completes after its send has started; a collective completes after every member has started it.
// That a send is complete is known on its own stage only. Kept as vector clocks: per stage and stream the number of
// actions (by place in the stage's list) that are known to be complete.
#ifndef DROVER_LIB_SCHEDULE_HAZARDS_H
#define DROVER_LIB_SCHEDULE_HAZARDS_H

#include "drover/rt/abi.h"
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace drover::schedule {

class HazardTracker {
public:
  explicit HazardTracker(std::size_t stages);

  /// Something that actions of one stage read and write: a slot.
  using Resource = uint32_t;
  Resource makeResource();

  /// An action that is being added. Actions are added in the order of the global sequence.
  class Pending {
  public:
    uint32_t stage = 0, stream = 0, index = 0; // index: place in the stage's list

  private:
    friend class HazardTracker;
    struct Use {
      Resource resource;
      bool writes;
    };
    std::vector<Use> uses;
    std::array<int64_t, DROVER_NUM_STREAMS> latest; // by stream: the place that must be complete, or -1
    std::array<uint32_t, DROVER_NUM_STREAMS> latestClock;
    std::vector<uint32_t> start; // clock
  };

  Pending begin(uint32_t stage, uint32_t stream, uint32_t index);
  void read(Pending &action, Resource resource);
  void write(Pending &action, Resource resource);
  /// The action writes memory that `resource` has held.
  void replace(Pending &action, Resource resource);

  /// All accesses are said: appends the waits that are not implied.
  void schedule(Pending &action, std::vector<uint32_t> &waits);

  /// All that happens together with the action is scheduled. `joined`: actions whose start it completes after.
  void finish(Pending &action, const std::vector<const Pending *> &joined = {});
  /// The same for the members of an operation of several stages: each completes after all have started.
  void finishTogether(std::vector<Pending> &actions);

private:
  struct Access {
    int64_t index = -1;
    uint32_t clock = 0;
  };
  struct ResourceState {
    Access writer;
    uint32_t writerStream = 0;
    std::array<Access, DROVER_NUM_STREAMS> readers;
  };

  void demand(Pending &action, uint32_t stream, const Access &access);
  void demandAll(Pending &action, const ResourceState &state);
  void join(std::vector<uint32_t> &clock, uint32_t other) const;
  uint32_t *clockOf(uint32_t clock) { return clocks.data() + std::size_t{clock} * width; }
  const uint32_t *clockOf(uint32_t clock) const { return clocks.data() + std::size_t{clock} * width; }
  uint32_t takeClock();
  void set(Access &access, int64_t index, uint32_t clock);
  void clear(Access &access);
  std::size_t entry(uint32_t stage, uint32_t stream) const { return std::size_t{stage} * DROVER_NUM_STREAMS + stream; }

  std::size_t width; // stages * streams
  std::vector<ResourceState> resources;
  std::vector<Access> last; // by stage and stream
  // Clocks of the ends of actions that may still be waited for, counted by the accesses that name them.
  std::vector<uint32_t> clocks;
  std::vector<uint32_t> references;
  std::vector<uint32_t> freeClocks;
};

} // namespace drover::schedule

#endif // DROVER_LIB_SCHEDULE_HAZARDS_H
