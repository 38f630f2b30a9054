//===- SharedCores.cpp - ranks that share the cores of a host -------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "SharedCores.h"
#include <algorithm>

using namespace drover::planner;

namespace {
using Event = ReplayProgram::Event;

/// Where the number of stages at work changes, and by how much.
class Activity {
public:
  void add(double end, double seconds) {
    if (!(seconds > 0))
      return;
    changes.emplace_back(end - seconds, 1);
    changes.emplace_back(end, -1);
  }

  double stretched(const CoreDemand &demand) {
    std::sort(changes.begin(), changes.end());
    double time = 0, last = 0;
    int active = 0;
    for (auto [when, change] : changes) {
      time += (when - last) * std::max(1.0, active * demand.ofStage / demand.cores);
      last = when;
      active += change;
    }
    return time;
  }

private:
  std::vector<std::pair<double, int>> changes;
};
} // namespace

double drover::planner::sharedMakespan(const ReplayProgram &program, const ReplayCosts &costs, const ReplayTimes &times,
                                       const CoreDemand &demand) {
  Activity activity;
  const std::vector<ReplayProgram::Item> &items = program.getItems();
  for (size_t i = 0; i < items.size(); ++i) {
    const ReplayProgram::Item &item = items[i];
    activity.add(times.ends[2 * i + 1], costs.phases[item.chunk()][static_cast<size_t>(item.phase())]);
    activity.add(times.ends[2 * i + 2], times.laneCosts[item.send]);
  }
  const std::vector<Event> &events = program.getEvents();
  for (size_t i = 0; i < events.size(); ++i) {
    const std::vector<double> &list = events[i].kind == Event::Gather ? costs.gathers : costs.reductions;
    if (events[i].kind != Event::Join && !list.empty())
      activity.add(times.ends[1 + 2 * items.size() + i], list[events[i].bucket]);
  }
  return activity.stretched(demand);
}
