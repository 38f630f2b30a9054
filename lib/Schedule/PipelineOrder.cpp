//===- PipelineOrder.cpp - order of work in a pipeline --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/PipelineOrder.h"
#include <algorithm>
#include <cassert>

using namespace drover::schedule;

namespace {
constexpr std::pair<ScheduleKind, const char *> kKinds[] = {{ScheduleKind::OneForwardOneBackward, "1f1b"},
                                                            {ScheduleKind::Interleaved, "interleaved"},
                                                            {ScheduleKind::BreadthFirst, "bfs"},
                                                            {ScheduleKind::ZeroBubbleH1, "zb-h1"}};

/// Forward chunks that a rank runs before its first backward. With one chunk, 1F1B's warm-up (interleaved's would
/// keep nearly twice the microbatches in flight); with several, that of arXiv 2104.04473 with the largest group for
/// PP (Llama 3, arXiv 2407.21783 section 3.3.2).
int64_t warmUp(int64_t ranks, int64_t chunks, const std::vector<int64_t> &groups, int64_t rank) {
  int64_t behind = ranks - 1 - rank;
  return chunks == 1 ? behind : 2 * behind + (chunks - 1) * groups.front();
}
} // namespace

const char *drover::schedule::nameOf(ScheduleKind kind) {
  for (auto [candidate, name] : kKinds)
    if (candidate == kind)
      return name;
  assert(false && "unknown schedule");
  return "";
}

std::optional<ScheduleKind> drover::schedule::parseScheduleKind(const std::string &name) {
  for (auto [kind, candidate] : kKinds)
    if (name == candidate)
      return kind;
  return std::nullopt;
}

std::vector<int64_t> drover::schedule::splitIntoGroups(int64_t microbatches, int64_t run, int64_t ranks) {
  int64_t count = std::max<int64_t>(1, std::min((microbatches + run - 1) / run, microbatches / ranks));
  std::vector<int64_t> groups;
  for (int64_t i = 0; i < count; ++i)
    groups.push_back(microbatches / count + (i < microbatches % count));
  return groups;
}

std::vector<WorkItem> drover::schedule::orderOfRank(ScheduleKind kind, int64_t ranks, int64_t chunks,
                                                    const std::vector<int64_t> &groups, int64_t rank) {
  // Within a group a rank runs its chunks one after the other, each for all microbatches of the group; backward
  // phases visit the chunks in reverse.
  std::vector<WorkItem> forwards, backwards, order;
  uint32_t base = 0;
  for (int64_t size : groups) {
    for (int64_t v = 0; v < chunks; ++v)
      for (int64_t m = 0; m < size; ++m) {
        forwards.push_back({Phase::Forward, static_cast<uint32_t>(v), static_cast<uint32_t>(base + m)});
        backwards.push_back({Phase::Backward, static_cast<uint32_t>(chunks - 1 - v), static_cast<uint32_t>(base + m)});
      }
    base += static_cast<uint32_t>(size);
  }

  size_t total = forwards.size();
  size_t warm = std::min<size_t>(total, warmUp(ranks, chunks, groups, rank));
  bool split = kind == ScheduleKind::ZeroBubbleH1;
  assert((!split || chunks == 1) && "zb-h1 has one chunk a rank");
  order.assign(forwards.begin(), forwards.begin() + warm);
  size_t weights = 0;
  auto pushWeight = [&] {
    WorkItem item = backwards[weights++];
    item.phase = Phase::WeightGradient;
    order.push_back(item);
  };
  for (size_t i = 0; i < total; ++i) {
    if (warm + i < total)
      order.push_back(forwards[warm + i]);
    order.push_back(backwards[i]);
    // ZB-H1 (arXiv 2401.10241): rank r delays weight gradients by r microbatches, which fills its cool-down.
    if (split && i + 1 - weights > static_cast<size_t>(rank))
      pushWeight();
  }
  while (split && weights < total)
    pushWeight();
  return order;
}

Replay drover::schedule::replayOrders(int64_t ranks, int64_t chunks, int64_t microbatches,
                                      const std::vector<std::vector<WorkItem>> &orders, const PhaseCosts &costs) {
  int64_t places = ranks * chunks;
  // End times by (place in the pipeline, microbatch); negative while unknown.
  std::vector<double> forwardEnd(places * microbatches, -1), backwardEnd(places * microbatches, -1);
  std::vector<size_t> next(ranks, 0);
  std::vector<double> clock(ranks, 0), work(ranks, 0);
  auto weigh = [&](int64_t place) { return costs.chunkWeights.empty() ? 1.0 : costs.chunkWeights[place]; };

  Replay replay;
  size_t done = 0, total = 0;
  for (const std::vector<WorkItem> &order : orders) {
    total += order.size();
    replay.ends.emplace_back().reserve(order.size());
  }
  for (bool progress = true; done < total && progress;) {
    progress = false;
    for (int64_t rank = 0; rank < ranks; ++rank)
      while (next[rank] < orders[rank].size()) {
        const WorkItem &item = orders[rank][next[rank]];
        int64_t place = item.chunk * ranks + rank;
        int64_t cell = place * microbatches + item.microbatch;
        double ready = 0, cost = 0;
        switch (item.phase) {
        case Phase::Forward:
          ready = place == 0 ? 0 : forwardEnd[cell - microbatches];
          cost = costs.forward;
          break;
        case Phase::Backward:
          ready = place == places - 1 ? forwardEnd[cell] : backwardEnd[cell + microbatches];
          cost = costs.backward;
          break;
        case Phase::WeightGradient:
          ready = backwardEnd[cell];
          cost = costs.weightGradient;
          break;
        }
        if (ready < 0)
          break;
        cost *= weigh(place);
        clock[rank] = std::max(clock[rank], ready) + cost;
        work[rank] += cost;
        replay.ends[rank].push_back(clock[rank]);
        if (item.phase == Phase::Forward)
          forwardEnd[cell] = clock[rank];
        else if (item.phase == Phase::Backward)
          backwardEnd[cell] = clock[rank];
        ++next[rank];
        ++done;
        progress = true;
      }
  }

  replay.deadlock = done < total;
  replay.makespan = *std::max_element(clock.begin(), clock.end());
  replay.busiest = *std::max_element(work.begin(), work.end());
  for (const std::vector<WorkItem> &order : orders) {
    bool split = std::any_of(order.begin(), order.end(),
                             [](const WorkItem &item) { return item.phase == Phase::WeightGradient; });
    Phase last = split ? Phase::WeightGradient : Phase::Backward;
    int64_t live = 0, peak = 0;
    for (const WorkItem &item : order) {
      live += item.phase == Phase::Forward ? 1 : item.phase == last ? -1 : 0;
      peak = std::max(peak, live);
    }
    replay.peakInFlight.push_back(peak);
  }
  return replay;
}

double drover::schedule::expectedBubbleRatio(ScheduleKind kind, int64_t ranks, int64_t chunks, int64_t microbatches) {
  double fill = static_cast<double>(ranks - 1),
         missing = static_cast<double>(std::max<int64_t>(0, ranks - microbatches));
  if (kind == ScheduleKind::ZeroBubbleH1)
    return (fill + missing) / (3.0 * microbatches);
  return (fill + missing * (chunks - 1)) / (static_cast<double>(chunks) * microbatches);
}

int64_t drover::schedule::expectedPeakInFlight(ScheduleKind kind, int64_t ranks, int64_t chunks,
                                               const std::vector<int64_t> &groups, int64_t rank) {
  int64_t microbatches = 0;
  for (int64_t size : groups)
    microbatches += size;
  if (kind == ScheduleKind::ZeroBubbleH1)
    return std::min(microbatches, ranks);
  return std::min(microbatches * chunks, warmUp(ranks, chunks, groups, rank) + 1);
}
