//===- Timeline.cpp - what a pipeline's lanes do, when --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Planner/Timeline.h"
#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

using namespace drover;
using namespace drover::planner;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char *kKinds[] = {"forward", "backward", "weight gradient", "message", "gather",
                                  "reduce",  "wait",     "optimizer"};
constexpr const char *kLanes[ReplayProgram::NumLanes] = {
    "compute", "forward send", "forward receive", "backward send", "backward receive", "gather", "reduce"};

TimelineSpan::Kind kindOf(schedule::Phase phase) {
  return phase == schedule::Phase::Forward    ? TimelineSpan::Forward
         : phase == schedule::Phase::Backward ? TimelineSpan::Backward
                                              : TimelineSpan::WeightGradient;
}

class TimelineBuilder {
public:
  explicit TimelineBuilder(const DetailedPlan &plan) : plan(plan), numStages(plan.program.stages()) {
    replay(plan.program, plan.costs.replay, times);
  }

  std::vector<TimelineSpan> build() {
    const std::vector<ReplayProgram::Item> &items = plan.program.getItems();
    for (size_t i = 0; i < items.size(); ++i)
      addItem(items[i], i);
    const std::vector<ReplayProgram::Event> &events = plan.program.getEvents();
    for (size_t i = 0; i < events.size(); ++i)
      addEvent(events[i], times.ends[1 + 2 * items.size() + i]);
    double end = plan.ranked.projection.stepSeconds, optimizer = end - plan.costs.optimizer;
    for (int64_t stage = 0; stage < numStages; ++stage) {
      add({TimelineSpan::Wait, static_cast<uint16_t>(stage), ReplayProgram::Compute, 0, 0, times.makespan, optimizer});
      add({TimelineSpan::Optimizer, static_cast<uint16_t>(stage), ReplayProgram::Compute, 0, 0, optimizer, end});
    }
    std::sort(spans.begin(), spans.end(), [](const TimelineSpan &a, const TimelineSpan &b) {
      return std::tie(a.stage, a.lane, a.start, a.end) < std::tie(b.stage, b.lane, b.start, b.end);
    });
    return std::move(spans);
  }

private:
  void add(const TimelineSpan &span) {
    if (span.end > span.start)
      spans.push_back(span);
  }

  void addItem(const ReplayProgram::Item &item, size_t i) {
    auto stage = static_cast<uint16_t>(item.stage());
    uint32_t chunk = item.chunk(), microbatch = plan.program.microbatchOf(i);
    double end = times.ends[2 * i + 1];
    double seconds = plan.costs.replay.phases[chunk][static_cast<size_t>(item.phase())];
    add({kindOf(item.phase()), stage, ReplayProgram::Compute, chunk, microbatch, end - seconds, end});
    // A message takes a lane of both ends for the same time.
    for (uint16_t lane : {item.send, item.receive}) {
      if (lane / ReplayProgram::NumLanes >= numStages)
        continue;
      double sent = times.ends[2 * i + 2];
      add({TimelineSpan::Message, static_cast<uint16_t>(lane / ReplayProgram::NumLanes),
           static_cast<uint8_t>(lane % ReplayProgram::NumLanes), chunk, microbatch, sent - times.laneCosts[item.send],
           sent});
    }
  }

  void addEvent(const ReplayProgram::Event &event, double end) {
    if (event.kind == ReplayProgram::Event::Join)
      return;
    bool gathers = event.kind == ReplayProgram::Event::Gather;
    const std::vector<double> &list = gathers ? plan.costs.replay.gathers : plan.costs.replay.reductions;
    double start = end - (list.empty() ? 0 : list[event.bucket]);
    uint8_t lane = gathers ? ReplayProgram::Gather : ReplayProgram::Reduce;
    for (size_t i = 0; i < 2; ++i)
      if (i == 0 || event.stages[1] != event.stages[0])
        add({gathers ? TimelineSpan::Gather : TimelineSpan::Reduce, event.stages[i], lane, event.bucket, 0, start,
             end});
  }

  const DetailedPlan &plan;
  int64_t numStages;
  ReplayTimes times;
  std::vector<TimelineSpan> spans;
};

std::string labelOf(const TimelineSpan &span) {
  switch (span.kind) {
  case TimelineSpan::Forward:
  case TimelineSpan::Backward:
  case TimelineSpan::WeightGradient:
  case TimelineSpan::Message:
    return std::string(nameOf(span.kind)) + " c" + std::to_string(span.chunk) + " m" + std::to_string(span.microbatch);
  case TimelineSpan::Gather:
  case TimelineSpan::Reduce:
    return std::string(nameOf(span.kind)) + " c" + std::to_string(span.chunk);
  case TimelineSpan::Wait:
    return "wait for the slowest device";
  case TimelineSpan::Optimizer:
    break;
  }
  return nameOf(span.kind);
}
} // namespace

const char *planner::nameOf(TimelineSpan::Kind kind) { return kKinds[kind]; }

std::vector<TimelineSpan> planner::timelineOf(const DetailedPlan &plan) { return TimelineBuilder(plan).build(); }

std::string planner::traceJson(const DetailedPlan &plan) {
  Json events = Json::array();
  auto name = [&](const char *what, int64_t stage, int64_t lane, const std::string &text) {
    events.push_back({{"ph", "M"}, {"name", what}, {"pid", stage}, {"tid", lane}, {"args", {{"name", text}}}});
  };
  std::vector<TimelineSpan> spans = timelineOf(plan);
  int64_t stage = -1, lane = -1;
  for (const TimelineSpan &span : spans) {
    if (span.stage != stage)
      name("process_name", span.stage, 0, "stage " + std::to_string(span.stage));
    if (span.stage != stage || span.lane != lane)
      name("thread_name", span.stage, span.lane, kLanes[span.lane]);
    stage = span.stage, lane = span.lane;
    events.push_back({{"ph", "X"},
                      {"name", labelOf(span)},
                      {"cat", nameOf(span.kind)},
                      {"pid", span.stage},
                      {"tid", span.lane},
                      {"ts", span.start * 1e6},
                      {"dur", (span.end - span.start) * 1e6}});
  }
  Json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return trace.dump() + "\n";
}
