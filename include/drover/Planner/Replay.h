//===- Replay.h - a layout's step in time -----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The step program without its places in memory: what the search replays for every layout that it looks at. The order,
// the waits for data and those for slots are the ones that lib/Schedule gives the executable.
#ifndef DROVER_PLANNER_REPLAY_H
#define DROVER_PLANNER_REPLAY_H

#include "drover/Schedule/Plan.h"
#include <array>

namespace drover::planner {

class ReplayProgram;
struct ReplayCosts;
struct ReplayTimes;

/// Runs the program: what `schedule::replayStep` gives for the step program of the same layout. Linear, some
/// nanoseconds an item.
void replay(const ReplayProgram &program, const ReplayCosts &costs, ReplayTimes &times);

/// What a plan's chunks hold, as far as the order of gathers and reductions depends on it.
struct ChunkShape {
  std::vector<int64_t> layers;   // by place in the pipeline
  std::vector<int64_t> elements; // of a rank's part of the chunk's own parameters
  int64_t tiedElements = 0;      // of a table that the first and the last chunk share, where they are two
};

/// Seconds, or any unit.
struct ReplayCosts {
  std::vector<std::array<double, 3>> phases; // by chunk: forward, backward, weight gradient
  /// By the stage that sends: a boundary tensor forward, and its gradient backward. Empty: free.
  std::vector<std::array<double, 2>> transfers;
  /// By chunk, then one for what is tied. Empty: free.
  std::vector<double> gathers, reductions;
};

/// When everything ends. Memory is reused from replay to replay.
struct ReplayTimes {
  double makespan = 0;
  std::vector<double> computeEnd; // by stage: of its last phase
  std::vector<double> reduceEnd;  // by stage: of its last reduction; 0 where it has none
  /// [0] is 0; of item i the phase ends at [2i+1] and its transfer at [2i+2]; then the ends of events.
  std::vector<double> ends;
  std::vector<double> lanes, laneCosts; // of the replay itself
};

/// The work of one pipeline for one global batch, in the global order of lib/Schedule.
class ReplayProgram {
public:
  enum Lane : uint8_t { Compute, ForwardSend, ForwardReceive, BackwardSend, BackwardReceive, Gather, Reduce, NumLanes };

  /// A phase of a chunk for one microbatch, and the transfer of what it makes. Waits are places in ReplayTimes::ends.
  struct Item {
    uint32_t wait = 0;        // for what it reads
    uint32_t slotWait = 0;    // for the slot of what it makes
    uint32_t sendWait = 0;    // for what is sent: its own end, or the arrival of what passes through
    uint32_t receiveWait = 0; // for the slot at the receiver
    uint16_t cost = 0;        // chunk * 3 + phase
    // Lanes, numbered through all stages; those of no stage where nothing is sent.
    uint16_t compute = 0, send = 0, receive = 0;

    uint32_t chunk() const { return cost / 3u; }
    schedule::Phase phase() const { return static_cast<schedule::Phase>(cost % 3u); }
    uint32_t stage() const { return compute / NumLanes; }
  };

  /// Between items: before item `before`, a gather or reduction of `bucket` (a chunk, or all chunks' number for what
  /// is tied), or a stage's wait for one.
  struct Event {
    enum Kind : uint8_t { Gather, Reduce, Join } kind = Gather;
    uint32_t before = 0;
    uint32_t bucket = 0;
    std::array<uint16_t, 2> stages{}; // the same one twice, or the two holders of what is tied
    std::array<uint32_t, 2> waits{};
  };

  /// Expects a plan that `checkPlan` accepts, with `microbatch` set; chunks in `shape` number pp * chunks.
  static schedule::Result<ReplayProgram> build(const schedule::Plan &plan, int64_t microbatches,
                                               const ChunkShape &shape);

  const std::vector<Item> &getItems() const { return items; }
  const std::vector<Event> &getEvents() const { return events; }
  const std::vector<int64_t> &getGroups() const { return groups; }
  uint32_t microbatchOf(size_t item) const { return microbatches[item]; }
  int64_t stages() const { return numStages; }
  int64_t chunks() const { return numChunks; }
  bool isSplit() const { return split; }

  /// Slots for boundary tensors that a stage has, of each kind: x, y, dy, dx.
  const std::array<int64_t, 4> &boundarySlots(int64_t stage) const { return slots[stage]; }
  /// Accumulators and gathered parameters that come and go: the most elements alive at once, and what their places
  /// take.
  struct Dynamic {
    int64_t accumulatorElements = 0, parameterElements = 0;
    int64_t accumulatorSpace = 0, parameterSpace = 0;
  };
  const Dynamic &dynamicOf(int64_t stage) const { return dynamic[stage]; }

private:
  friend class ReplayBuilder;
  friend void replay(const ReplayProgram &program, const ReplayCosts &costs, ReplayTimes &times);

  std::vector<Item> items;
  std::vector<Event> events;
  std::vector<uint32_t> microbatches; // by item
  std::vector<int64_t> groups;
  std::vector<std::array<int64_t, 4>> slots;
  std::vector<Dynamic> dynamic;
  int64_t numStages = 0, numChunks = 0;
  bool split = false;
};

} // namespace drover::planner

#endif // DROVER_PLANNER_REPLAY_H
