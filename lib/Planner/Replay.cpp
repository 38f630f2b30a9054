//===- Replay.cpp - a layout's step in time -------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Planner/Replay.h"
#include <algorithm>

using namespace drover::planner;

namespace {

using Item = ReplayProgram::Item;
using Event = ReplayProgram::Event;

/// The hot loop: no branches, since what an item does not do costs nothing on a lane of no stage.
void runItems(const Item *first, const Item *last, size_t place, const double *phases, const double *transfers,
              double *lanes, double *ends) {
  for (; first != last; ++first, place += 2) {
    const Item &item = *first;
    double start = std::max(lanes[item.compute], std::max(ends[item.wait], ends[item.slotWait]));
    ends[place + 1] = lanes[item.compute] = start + phases[item.cost];
    double ready = std::max(ends[item.sendWait], ends[item.receiveWait]);
    double sent = std::max(ready, std::max(lanes[item.send], lanes[item.receive])) + transfers[item.send];
    ends[place + 2] = lanes[item.send] = lanes[item.receive] = sent;
  }
}

void runEvent(const Event &event, const ReplayCosts &costs, double *lanes, const double *ends, double &end) {
  bool isGather = event.kind == Event::Gather;
  if (event.kind == Event::Join) {
    double &compute = lanes[size_t{event.stages[0]} * ReplayProgram::NumLanes];
    end = compute = std::max(compute, ends[event.waits[0]]);
    return;
  }
  const std::vector<double> &list = isGather ? costs.gathers : costs.reductions;
  double start = 0;
  for (size_t i = 0; i < 2; ++i)
    start = std::max({start, ends[event.waits[i]],
                      lanes[size_t{event.stages[i]} * ReplayProgram::NumLanes +
                            (isGather ? ReplayProgram::Gather : ReplayProgram::Reduce)]});
  end = start + (list.empty() ? 0 : list[event.bucket]);
  for (uint16_t stage : event.stages)
    lanes[size_t{stage} * ReplayProgram::NumLanes + (isGather ? ReplayProgram::Gather : ReplayProgram::Reduce)] = end;
}

} // namespace

void drover::planner::replay(const ReplayProgram &program, const ReplayCosts &costs, ReplayTimes &times) {
  auto stages = static_cast<size_t>(program.numStages);
  // One lane more than the stages have is for what is not sent.
  times.lanes.assign(stages * ReplayProgram::NumLanes + 1, 0);
  times.laneCosts.assign(times.lanes.size(), 0);
  for (size_t stage = 0; stage < costs.transfers.size(); ++stage) {
    times.laneCosts[stage * ReplayProgram::NumLanes + ReplayProgram::ForwardSend] = costs.transfers[stage][0];
    times.laneCosts[stage * ReplayProgram::NumLanes + ReplayProgram::BackwardSend] = costs.transfers[stage][1];
  }
  const std::vector<Item> &items = program.items;
  times.ends.resize(1 + 2 * items.size() + program.events.size());
  times.ends[0] = 0;
  const double *phases = costs.phases.front().data();
  size_t done = 0, eventPlace = 1 + 2 * items.size();
  for (const Event &event : program.events) {
    runItems(items.data() + done, items.data() + event.before, 2 * done, phases, times.laneCosts.data(),
             times.lanes.data(), times.ends.data());
    done = event.before;
    runEvent(event, costs, times.lanes.data(), times.ends.data(), times.ends[eventPlace++]);
  }
  runItems(items.data() + done, items.data() + items.size(), 2 * done, phases, times.laneCosts.data(),
           times.lanes.data(), times.ends.data());

  times.makespan = *std::max_element(times.lanes.begin(), times.lanes.end());
  times.computeEnd.resize(stages);
  times.reduceEnd.resize(stages);
  for (size_t stage = 0; stage < stages; ++stage) {
    times.computeEnd[stage] = times.lanes[stage * ReplayProgram::NumLanes];
    times.reduceEnd[stage] = times.lanes[stage * ReplayProgram::NumLanes + ReplayProgram::Reduce];
  }
}
