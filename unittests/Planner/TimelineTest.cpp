//===- TimelineTest.cpp - what a pipeline's lanes do, when ----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Planner/Timeline.h"
#include "TestProblems.h"
#include "gtest/gtest.h"
#include <map>
#include <nlohmann/json.hpp>

using namespace drover;
using namespace drover::planner;

namespace {

DetailedPlan makePlan(schedule::ScheduleKind kind, int64_t chunks) {
  Problem problem = makeProblem(16);
  Layout layout;
  layout.plan = problem.rest;
  layout.plan.tp = 2, layout.plan.pp = 4, layout.plan.dp = 2;
  layout.plan.kind = kind;
  layout.plan.chunks = chunks;
  layout.plan.run = {4};
  layout.plan.microbatch = 1;
  layout.plan.sequenceLength = problem.sequence;
  layout.plan.globalBatches = {problem.globalBatch};
  layout.plan.layersPerChunk = schedule::spreadLayers(12, 4 * chunks);
  schedule::Result<DetailedPlan> plan = detail(problem, layout);
  EXPECT_TRUE(plan) << plan.error();
  return std::move(*plan);
}

constexpr schedule::ScheduleKind kInterleaved = schedule::ScheduleKind::Interleaved;

TEST(Timeline, lanesDoOneThingAtATime) {
  for (auto [kind, chunks] :
       {std::pair{kInterleaved, int64_t{3}}, {schedule::ScheduleKind::ZeroBubbleH1, int64_t{1}}}) {
    DetailedPlan plan = makePlan(kind, chunks);
    std::vector<TimelineSpan> spans = timelineOf(plan);
    for (size_t i = 1; i < spans.size(); ++i)
      if (spans[i].stage == spans[i - 1].stage && spans[i].lane == spans[i - 1].lane)
        EXPECT_GE(spans[i].start, spans[i - 1].end - 1e-12) << i;
  }
}

TEST(Timeline, hasEveryPhaseAndMessageAndEndsWithTheStep) {
  DetailedPlan plan = makePlan(kInterleaved, 3);
  std::map<TimelineSpan::Kind, int64_t> counts;
  double end = 0, compute = 0;
  for (const TimelineSpan &span : timelineOf(plan)) {
    ++counts[span.kind];
    end = std::max(end, span.end);
    if (span.kind <= TimelineSpan::WeightGradient && span.stage == 0)
      compute += span.end - span.start;
  }
  constexpr int64_t microbatches = 16, chunks = 12;
  EXPECT_EQ(counts[TimelineSpan::Forward], chunks * microbatches);
  EXPECT_EQ(counts[TimelineSpan::Backward], chunks * microbatches);
  // Both ends, both directions.
  EXPECT_EQ(counts[TimelineSpan::Message], 2 * 2 * (chunks - 1) * microbatches);
  EXPECT_EQ(counts[TimelineSpan::Optimizer], 4);
  EXPECT_GE(counts[TimelineSpan::Reduce], chunks);
  EXPECT_NEAR(end, plan.ranked.projection.stepSeconds, 1e-9);
  double work = 0;
  for (size_t c = 0; c < chunks; c += 4)
    work += microbatches * (plan.costs.replay.phases[c][0] + plan.costs.replay.phases[c][1]);
  EXPECT_NEAR(compute, work, 1e-9);
}

TEST(Timeline, traceIsWhatPerfettoReads) {
  DetailedPlan plan = makePlan(schedule::ScheduleKind::ZeroBubbleH1, 1);
  nlohmann::json trace = nlohmann::json::parse(traceJson(plan));
  std::map<std::string, int> categories;
  std::map<std::pair<int, int>, std::string> lanes;
  for (const nlohmann::json &event : trace["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name")
      lanes[{event["pid"], event["tid"]}] = event["args"]["name"];
    if (event["ph"] != "X")
      continue;
    ++categories[event["cat"]];
    EXPECT_GE(event["ts"].get<double>(), -1e-6);
    EXPECT_GT(event["dur"].get<double>(), 0);
    EXPECT_TRUE(lanes.count({event["pid"], event["tid"]}));
  }
  EXPECT_EQ(categories["forward"], 64);
  EXPECT_EQ(categories["weight gradient"], 64);
  EXPECT_EQ((lanes[{0, ReplayProgram::Compute}]), "compute");
  EXPECT_EQ((lanes[{1, ReplayProgram::ForwardReceive}]), "forward receive");
}

} // namespace
