//===- Hazards.cpp - waits that accesses to slots demand ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Hazards.h"
#include <algorithm>
#include <cassert>

using namespace drover::schedule;

HazardTracker::HazardTracker(size_t stages) : width(stages * DROVER_NUM_STREAMS), last(width) {}

HazardTracker::Resource HazardTracker::makeResource() {
  resources.emplace_back();
  return static_cast<Resource>(resources.size() - 1);
}

uint32_t HazardTracker::takeClock() {
  if (freeClocks.empty()) {
    freeClocks.push_back(static_cast<uint32_t>(references.size()));
    references.push_back(0);
    clocks.resize(clocks.size() + width);
  }
  uint32_t clock = freeClocks.back();
  freeClocks.pop_back();
  return clock;
}

void HazardTracker::clear(Access &access) {
  if (access.index >= 0 && --references[access.clock] == 0)
    freeClocks.push_back(access.clock);
  access.index = -1;
}

void HazardTracker::set(Access &access, int64_t index, uint32_t clock) {
  ++references[clock];
  clear(access);
  access = {index, clock};
}

HazardTracker::Pending HazardTracker::begin(uint32_t stage, uint32_t stream, uint32_t index) {
  Pending action;
  action.stage = stage;
  action.stream = stream;
  action.index = index;
  action.latest.fill(-1);
  action.latestClock.fill(0);
  return action;
}

void HazardTracker::demand(Pending &action, uint32_t stream, const Access &access) {
  if (access.index <= action.latest[stream])
    return;
  action.latest[stream] = access.index;
  action.latestClock[stream] = access.clock;
}

void HazardTracker::demandAll(Pending &action, const ResourceState &state) {
  demand(action, state.writerStream, state.writer);
  for (uint32_t stream = 0; stream < DROVER_NUM_STREAMS; ++stream)
    demand(action, stream, state.readers[stream]);
}

void HazardTracker::read(Pending &action, Resource resource) {
  const ResourceState &state = resources[resource];
  demand(action, state.writerStream, state.writer);
  action.uses.push_back({resource, false});
}

void HazardTracker::write(Pending &action, Resource resource) {
  demandAll(action, resources[resource]);
  action.uses.push_back({resource, true});
}

void HazardTracker::replace(Pending &action, Resource resource) { demandAll(action, resources[resource]); }

void HazardTracker::join(std::vector<uint32_t> &clock, uint32_t other) const {
  const uint32_t *from = clockOf(other);
  for (size_t i = 0; i < width; ++i)
    clock[i] = std::max(clock[i], from[i]);
}

void HazardTracker::schedule(Pending &action, std::vector<uint32_t> &waits) {
  action.start.assign(width, 0);
  if (const Access &before = last[entry(action.stage, action.stream)]; before.index >= 0)
    join(action.start, before.clock);
  auto isKnown = [&](const uint32_t *clock, uint32_t stream) {
    return clock[entry(action.stage, stream)] > action.latest[stream];
  };
  // What happens before cannot be mutual: implied waits may be left out together.
  std::array<bool, DROVER_NUM_STREAMS> needed{};
  for (uint32_t stream = 0; stream < DROVER_NUM_STREAMS; ++stream) {
    if (action.latest[stream] < 0 || isKnown(action.start.data(), stream))
      continue;
    needed[stream] = true;
    for (uint32_t other = 0; other < DROVER_NUM_STREAMS && needed[stream]; ++other)
      if (other != stream && action.latest[other] >= 0 && isKnown(clockOf(action.latestClock[other]), stream))
        needed[stream] = false;
  }
  for (uint32_t stream = 0; stream < DROVER_NUM_STREAMS; ++stream)
    if (needed[stream]) {
      waits.push_back(static_cast<uint32_t>(action.latest[stream]));
      join(action.start, action.latestClock[stream]);
    }
}

void HazardTracker::finishTogether(std::vector<Pending> &actions) {
  std::vector<const Pending *> members;
  for (const Pending &action : actions)
    members.push_back(&action);
  for (Pending &action : actions)
    finish(action, members);
}

void HazardTracker::finish(Pending &action, const std::vector<const Pending *> &joined) {
  uint32_t clock = takeClock();
  uint32_t *end = clockOf(clock);
  std::copy(action.start.begin(), action.start.end(), end);
  for (const Pending *other : joined)
    for (size_t i = 0; i < width; ++i)
      end[i] = std::max(end[i], other->start[i]);
  end[entry(action.stage, action.stream)] = action.index + 1;
  set(last[entry(action.stage, action.stream)], action.index, clock);
  for (const Pending::Use &use : action.uses) {
    ResourceState &state = resources[use.resource];
    if (!use.writes) {
      set(state.readers[action.stream], action.index, clock);
      continue;
    }
    for (Access &reader : state.readers)
      clear(reader);
    set(state.writer, action.index, clock);
    state.writerStream = action.stream;
  }
}
