//===- ReplayTest.cpp - replays against step programs ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Planner/Replay.h"
#include "ToyModel.h"
#include "drover/Schedule/ReplayStep.h"
#include "gtest/gtest.h"
#include <numeric>

using namespace drover;
using namespace drover::planner;
using namespace drover::schedule::test;

namespace {

struct Layout {
  const char *name;
  int32_t layers;
  schedule::ScheduleKind kind;
  int64_t tp, pp, dp, chunks, microbatches;
  std::vector<int64_t> run;
  int64_t zero;
  const char *reduceEvery, *computeType;
  std::vector<int64_t> layersPerChunk;
};

schedule::Plan planOf(const Layout &layout) {
  schedule::Plan plan = makePlan(layout.chunks, {layout.microbatches * layout.dp});
  plan.tp = layout.tp;
  plan.pp = layout.pp;
  plan.dp = layout.dp;
  plan.kind = layout.kind;
  plan.run = layout.run;
  plan.zero = layout.zero;
  plan.reduceEvery = layout.reduceEvery;
  plan.computeType = layout.computeType;
  plan.layersPerChunk = layout.layersPerChunk.empty() ? schedule::spreadLayers(layout.layers, layout.pp * layout.chunks)
                                                      : layout.layersPerChunk;
  return plan;
}

/// The shape that the toy model's chunks have in a step program.
ChunkShape shapeOf(const schedule::StepProgram &step) {
  ChunkShape shape;
  shape.layers = step.plan.layersPerChunk;
  for (size_t c = 0; c < step.chunks.size(); ++c)
    shape.elements.push_back(step.buckets[c].elements);
  if (step.buckets.size() > step.chunks.size())
    shape.tiedElements = step.buckets.back().elements;
  else if (step.chunks.size() == 1)
    shape.tiedElements = 0;
  return shape;
}

schedule::StepProgram buildStep(const Layout &layout) {
  schedule::MicrobatchProgram program =
      makeToyModel(layout.layers, true, layout.kind == schedule::ScheduleKind::ZeroBubbleH1);
  if (std::string(layout.computeType) == "bf16") {
    program.computeType = schedule::DType::BF16;
    program.castBody = program.updateBody;
  }
  if (layout.tp > 1)
    for (schedule::Parameter &parameter : program.parameters)
      if (!parameter.decay)
        parameter.sum = schedule::GridAxis::Tp;
  schedule::Result<schedule::StepProgram> step = schedule::buildStepProgram(program, planOf(layout));
  EXPECT_TRUE(step) << layout.name << ": " << step.error();
  return std::move(*step);
}

ReplayProgram buildReplay(const schedule::StepProgram &step) {
  schedule::Result<ReplayProgram> program =
      ReplayProgram::build(step.plan, step.batches[0].microbatches, shapeOf(step));
  EXPECT_TRUE(program) << program.error();
  return std::move(*program);
}

/// Costs without any pattern that a wrong replay could share.
struct BothCosts {
  schedule::StepCosts step;
  ReplayCosts replay;
};
BothCosts makeCosts(const schedule::StepProgram &step, double transfer, double exchange, bool uneven) {
  BothCosts costs;
  unsigned seed = 7;
  auto next = [&] { return 0.5 + (seed = seed * 1103515245u + 12345u) / 4294967296.0; };
  for (size_t c = 0; c < step.chunks.size(); ++c) {
    bool passes = step.chunks[c].phases[0].empty() && step.chunks[c].phases[1].empty();
    std::array<double, 3> phases = {1, 1.5, 0.5};
    for (double &phase : phases)
      phase = passes ? 0 : uneven ? phase * next() : phase;
    costs.step.phases.push_back(phases);
  }
  costs.replay.phases = costs.step.phases;
  costs.step.transfer = transfer;
  costs.replay.transfers.assign(static_cast<size_t>(step.grid.pp), {transfer, transfer});
  for (size_t b = 0; b < step.buckets.size(); ++b) {
    costs.step.gathers.push_back(exchange * next());
    costs.step.reductions.push_back(2 * exchange * next());
  }
  costs.replay.gathers = costs.step.gathers;
  costs.replay.reductions = costs.step.reductions;
  return costs;
}

using Kind = schedule::ScheduleKind;
const Layout kLayouts[] = {
    {"one rank", 3, Kind::OneForwardOneBackward, 1, 1, 1, 1, 3, {}, 2, "step", "f32", {}},
    {"one stage, chunks", 6, Kind::Interleaved, 1, 1, 2, 3, 4, {}, 2, "step", "f32", {}},
    {"1f1b", 8, Kind::OneForwardOneBackward, 1, 4, 1, 1, 9, {}, 2, "step", "f32", {}},
    {"1f1b few", 8, Kind::OneForwardOneBackward, 1, 4, 2, 1, 2, {}, 1, "step", "f32", {}},
    {"interleaved", 16, Kind::Interleaved, 1, 4, 2, 4, 8, {}, 2, "step", "bf16", {}},
    {"interleaved uneven", 13, Kind::Interleaved, 1, 4, 2, 3, 8, {}, 1, "step", "f32", {}},
    {"passes through", 4, Kind::Interleaved, 1, 4, 1, 2, 8, {}, 2, "step", "f32", {}},
    {"passes through in the middle",
     6,
     Kind::Interleaved,
     1,
     4,
     2,
     2,
     9,
     {5},
     2,
     "step",
     "f32",
     {1, 2, 0, 0, 1, 1, 0, 1}},
    {"llama 3's ends",
     14,
     Kind::Interleaved,
     2,
     4,
     2,
     4,
     16,
     {8},
     2,
     "step",
     "bf16",
     {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}},
    {"groups of two sizes", 8, Kind::Interleaved, 1, 4, 2, 2, 11, {6, 5}, 2, "run", "f32", {}},
    {"zero 3 groups", 8, Kind::Interleaved, 1, 4, 2, 2, 12, {4}, 3, "step", "bf16", {}},
    {"zero 3 every run", 16, Kind::Interleaved, 1, 4, 2, 4, 12, {4}, 3, "run", "bf16", {}},
    {"zero 2 every run", 16, Kind::Interleaved, 1, 4, 2, 4, 12, {6}, 2, "run", "bf16", {}},
    {"zero 1 every run", 16, Kind::Interleaved, 1, 4, 2, 4, 12, {6}, 1, "run", "bf16", {}},
    {"zero 0", 16, Kind::Interleaved, 1, 4, 2, 4, 8, {}, 0, "step", "bf16", {}},
    {"breadth first", 16, Kind::BreadthFirst, 1, 4, 2, 4, 8, {}, 3, "step", "f32", {}},
    {"zero bubble", 8, Kind::ZeroBubbleH1, 1, 4, 2, 1, 9, {}, 2, "step", "f32", {}},
    {"zero bubble few", 8, Kind::ZeroBubbleH1, 1, 8, 1, 1, 3, {}, 2, "step", "f32", {}},
    {"tensor parallel sums only", 8, Kind::Interleaved, 2, 2, 1, 2, 4, {}, 2, "step", "f32", {}},
};

TEST(Replay, equalsTheStepProgramsReplay) {
  for (const Layout &layout : kLayouts) {
    schedule::StepProgram step = buildStep(layout);
    ReplayProgram program = buildReplay(step);
    for (double transfer : {0.0, 0.1, 0.7, 2.0})
      for (double exchange : {0.0, 0.3, 3.0})
        for (bool uneven : {false, true}) {
          BothCosts costs = makeCosts(step, transfer, exchange, uneven);
          schedule::StepReplay expected = schedule::replayStep(step, step.batches[0], costs.step);
          ReplayTimes times;
          replay(program, costs.replay, times);
          EXPECT_NEAR(times.makespan, expected.makespan, 1e-9 * expected.makespan)
              << layout.name << ", transfer " << transfer << ", exchange " << exchange << ", uneven " << uneven;
        }
  }
}

TEST(Replay, hasTheSlotsOfTheStepProgram) {
  for (const Layout &layout : kLayouts) {
    if (layout.pp == 1)
      continue;
    schedule::StepProgram step = buildStep(layout);
    ReplayProgram program = buildReplay(step);
    for (int64_t stage = 0; stage < layout.pp; ++stage) {
      const std::array<int64_t, 4> &slots = program.boundarySlots(stage);
      int64_t slotBytes = 448; // 400, aligned; 800 for each of x and y where two tensors cross a boundary
      EXPECT_EQ(std::accumulate(slots.begin(), slots.end(), int64_t{0}) * slotBytes,
                step.batches[0].stages[stage].memory.boundary)
          << layout.name << ", stage " << stage;
    }
  }
}

TEST(Replay, givesTheClosedFormsOfTheBubble) {
  for (Kind kind : {Kind::OneForwardOneBackward, Kind::Interleaved, Kind::BreadthFirst, Kind::ZeroBubbleH1})
    for (int64_t ranks : {2, 4, 8})
      for (int64_t chunks : {1, 3})
        for (int64_t microbatches : {2, 4, 9, 24}) {
          bool oneChunk = kind == Kind::OneForwardOneBackward || kind == Kind::ZeroBubbleH1;
          if (oneChunk && chunks > 1)
            continue;
          schedule::Plan plan = makePlan(chunks, {microbatches});
          plan.pp = ranks;
          plan.kind = kind;
          plan.layersPerChunk.assign(static_cast<size_t>(ranks * chunks), 1);
          ChunkShape shape{plan.layersPerChunk, std::vector<int64_t>(plan.layersPerChunk.size(), 64), 0};
          schedule::Result<ReplayProgram> program = ReplayProgram::build(plan, microbatches, shape);
          ASSERT_TRUE(program) << program.error();
          bool split = program->isSplit();
          ReplayCosts costs;
          costs.phases.assign(plan.layersPerChunk.size(), {1.0, split ? 1.0 : 2.0, 1.0});
          ReplayTimes times;
          replay(*program, costs, times);
          double work = 3.0 * static_cast<double>(chunks * microbatches);
          EXPECT_NEAR(times.makespan / work - 1, schedule::expectedBubbleRatio(kind, ranks, chunks, microbatches), 1e-9)
              << nameOf(kind) << " PP" << ranks << " V" << chunks << " M" << microbatches;
        }
}

TEST(Replay, refusesGroupsThatDeadlock) {
  schedule::Plan plan = makePlan(2, {8});
  plan.pp = 4;
  plan.run = {2};
  ChunkShape shape{std::vector<int64_t>(8, 1), std::vector<int64_t>(8, 64), 0};
  schedule::Result<ReplayProgram> program = ReplayProgram::build(plan, 8, shape);
  ASSERT_FALSE(program);
  EXPECT_NE(program.error().find("run 2 is below min(pp, microbatches) = 4"), std::string::npos) << program.error();
}

TEST(Replay, eachItemWaitsForWhatComesBefore) {
  for (const Layout &layout : kLayouts) {
    ReplayProgram program = buildReplay(buildStep(layout));
    size_t items = program.getItems().size();
    for (size_t i = 0; i < items; ++i)
      for (uint32_t wait :
           {program.getItems()[i].wait, program.getItems()[i].slotWait, program.getItems()[i].receiveWait})
        EXPECT_LE(wait, 2 * i) << layout.name;
  }
}

} // namespace
