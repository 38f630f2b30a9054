//===- PipelineOrder.h - order of work in a pipeline ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Which chunk and microbatch each pipeline rank works on, in which order: pure functions of
// (PP, V, groups of microbatches). Costs, slots and communication come later.
#ifndef DROVER_SCHEDULE_PIPELINEORDER_H
#define DROVER_SCHEDULE_PIPELINEORDER_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace drover::schedule {

enum class ScheduleKind { OneForwardOneBackward, Interleaved, BreadthFirst, ZeroBubbleH1 };

const char *nameOf(ScheduleKind kind);
std::optional<ScheduleKind> parseScheduleKind(const std::string &name);

/// Phases of a chunk, numbered as in drover_action.
enum class Phase : uint16_t { Forward = 0, Backward = 1, WeightGradient = 2 };

/// One phase of a rank's v-th chunk for one microbatch.
struct WorkItem {
  Phase phase;
  uint32_t chunk; // 0 .. V-1 on this rank; its place in the pipeline is chunk * PP + rank
  uint32_t microbatch;
};

inline bool operator==(const WorkItem &a, const WorkItem &b) {
  return a.phase == b.phase && a.chunk == b.chunk && a.microbatch == b.microbatch;
}

/// Near-equal groups, largest first: k = max(1, min(ceil(M/N), floor(M/PP))) of them.
std::vector<int64_t> splitIntoGroups(int64_t microbatches, int64_t run, int64_t ranks);

/// The order of one rank. Groups must each hold at least PP microbatches unless there is one only, the largest
/// first (a warm-up taken from a smaller group deadlocks).
std::vector<WorkItem> orderOfRank(ScheduleKind kind, int64_t ranks, int64_t chunks, const std::vector<int64_t> &groups,
                                  int64_t rank);

/// Time of a phase of a chunk, by its place in the pipeline.
struct PhaseCosts {
  double forward = 1, backward = 2, weightGradient = 0;
  std::vector<double> chunkWeights; // empty: every chunk weighs 1
};

struct Replay {
  bool deadlock = false;
  double makespan = 0;
  double busiest = 0;                    // work of the busiest rank
  std::vector<std::vector<double>> ends; // by rank and item
  std::vector<int64_t> peakInFlight;     // by rank: forwards whose last gradient phase is still to come
  double bubbleRatio() const { return (makespan - busiest) / busiest; }
};

/// Runs the ranks' orders against each other with free communication.
Replay replayOrders(int64_t ranks, int64_t chunks, int64_t microbatches,
                    const std::vector<std::vector<WorkItem>> &orders, const PhaseCosts &costs);

/// Closed forms of DESIGN section 3: what `replayOrders` must give with even chunks.
double expectedBubbleRatio(ScheduleKind kind, int64_t ranks, int64_t chunks, int64_t microbatches);
int64_t expectedPeakInFlight(ScheduleKind kind, int64_t ranks, int64_t chunks, const std::vector<int64_t> &groups,
                             int64_t rank);

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_PIPELINEORDER_H
