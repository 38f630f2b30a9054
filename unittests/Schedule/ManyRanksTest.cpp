//===- ManyRanksTest.cpp - step programs of pipelines and shards ----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ToyModel.h"
#include "drover/Schedule/Access.h"
#include "drover/Schedule/Check.h"
#include "drover/Schedule/ReplayStep.h"
#include "drover/Schedule/Verify.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <map>

using namespace drover::schedule;
using namespace drover::schedule::test;

namespace {

Plan makeGrid(int64_t pp, int64_t chunks, int64_t microbatches, int64_t dp = 1) {
  Plan plan = makePlan(chunks, {microbatches * dp});
  plan.pp = pp;
  plan.dp = dp;
  return plan;
}

size_t countOf(const StepProgram &step, const Stage &stage, int kind) {
  size_t count = 0;
  for (uint64_t i = 0; i < stage.numActions; ++i)
    count += step.actions[stage.firstAction + i].kind == kind;
  return count;
}

StepProgram build(const MicrobatchProgram &program, const Plan &plan, const BuildOptions &options = {}) {
  Result<StepProgram> step = buildStepProgram(program, plan, options);
  EXPECT_TRUE(step) << step.error();
  return step ? *step : StepProgram();
}

TEST(ManyRanks, everyLayoutIsProven) {
  MicrobatchProgram program = makeToyModel(5);
  for (int64_t pp : {1, 2, 3, 4})
    for (int64_t chunks : {1, 2, 3})
      for (int64_t microbatches : {1, 2, 3, 4, 7, 8})
        for (int64_t dp : {1, 2})
          for (int64_t zero : {0, 1, 2, 3})
            for (const char *reduceEvery : {"step", "run"})
              for (bool bfs : {false, true}) {
                Plan plan = makeGrid(pp, chunks, microbatches, dp);
                plan.zero = zero;
                plan.reduceEvery = reduceEvery;
                if (bfs)
                  plan.kind = ScheduleKind::BreadthFirst;
                Result<StepProgram> step = buildStepProgram(program, plan);
                if (!step && zero == 0 && dp > 1 && plan.reduceEvery == "run")
                  continue;
                ASSERT_TRUE(step) << step.error();
                std::vector<std::string> faults = verifyStepProgram(program, *step);
                for (const std::string &fault : checkStepProgram(*step))
                  faults.push_back("check: " + fault);
                ASSERT_TRUE(faults.empty())
                    << "pp " << pp << " chunks " << chunks << " microbatches " << microbatches << " dp " << dp
                    << " zero " << zero << " every " << reduceEvery << ": " << faults.front();
              }
}

TEST(ManyRanks, forwardTaskRunsOverAPipeline) {
  MicrobatchProgram program = makeToyModel(3, /*train=*/false);
  StepProgram step = build(program, makeGrid(2, 2, 1));
  EXPECT_TRUE(verifyStepProgram(program, step).empty());
  EXPECT_EQ(step.communicators.size(), 2u) << "forward edges alone";
  for (const Stage &stage : step.batches[0].stages)
    EXPECT_EQ(countOf(step, stage, DROVER_GATHER), 0u);
}

TEST(ManyRanks, everyWaitMatters) {
  MicrobatchProgram program = makeToyModel(6);
  size_t waits = 0;
  struct Layout {
    int64_t pp, chunks, microbatches, dp, zero, run;
    const char *reduceEvery;
  };
  for (const Layout &layout :
       {Layout{2, 1, 4, 1, 2, 2, "step"}, Layout{2, 2, 6, 2, 2, 3, "run"}, Layout{2, 2, 4, 2, 3, 2, "step"},
        Layout{4, 1, 6, 2, 1, 4, "step"}, Layout{3, 2, 7, 1, 2, 3, "step"}, Layout{2, 3, 8, 2, 0, 8, "step"}}) {
    Plan plan = makeGrid(layout.pp, layout.chunks, layout.microbatches, layout.dp);
    plan.zero = layout.zero;
    plan.run = {layout.run};
    plan.reduceEvery = layout.reduceEvery;
    StepProgram step = build(program, plan);
    std::vector<std::string> faults = checkStepProgram(step);
    ASSERT_TRUE(faults.empty()) << faults.front();
    for (size_t s = 0; s < step.batches[0].stages.size(); ++s) {
      Stage &stage = step.batches[0].stages[s];
      for (uint64_t i = 0; i < stage.numActions; ++i) {
        drover_action &action = step.actions[stage.firstAction + i];
        for (uint32_t w = 0; w < action.num_waits; ++w) {
          // The last one takes the place of the one that goes.
          std::swap(stage.waits[action.first_wait + w], stage.waits[action.first_wait + action.num_waits - 1]);
          --action.num_waits;
          EXPECT_FALSE(checkStepProgram(step).empty())
              << "pp " << layout.pp << " chunks " << layout.chunks << " zero " << layout.zero << ": stage " << s
              << ", action " << i << " of kind " << int(action.kind) << " without its wait for action "
              << stage.waits[action.first_wait + action.num_waits];
          ++action.num_waits;
          std::swap(stage.waits[action.first_wait + w], stage.waits[action.first_wait + action.num_waits - 1]);
          ++waits;
        }
      }
    }
  }
  EXPECT_GT(waits, 400u);
}

TEST(ManyRanks, theProofIsLinearInActionsAndTheSameForAnyRanksOfAStage) {
  MicrobatchProgram program = makeToyModel(126);
  auto workOf = [&](int64_t microbatches, int64_t dp) {
    StepProgram step = build(program, makeGrid(16, 8, microbatches, dp));
    CheckWork work;
    std::vector<std::string> faults = checkStepProgram(step, 1, &work);
    EXPECT_TRUE(faults.empty()) << faults.front();
    double actions = static_cast<double>(step.actions.size());
    return std::pair(static_cast<double>(work.edges) / actions, static_cast<double>(work.ranges) / actions);
  };
  auto [edges, ranges] = workOf(64, 2);
  EXPECT_LT(edges, 8);
  EXPECT_LT(ranges, 8);
  EXPECT_EQ(workOf(64, 128), std::pair(edges, ranges));
  auto [edgesOfMany, rangesOfMany] = workOf(256, 2);
  EXPECT_NEAR(edgesOfMany, edges, 0.05 * edges);
  EXPECT_NEAR(rangesOfMany, ranges, 0.05 * ranges);
}

/// Forwards whose backward is still to come, at most, on a stage.
int64_t peakInFlight(const StepProgram &step, const Stage &stage) {
  int64_t live = 0, peak = 0;
  for (uint64_t i = 0; i < stage.numActions; ++i)
    if (const drover_action &action = step.actions[stage.firstAction + i]; action.kind == DROVER_RUN) {
      live += action.phase == 0 ? 1 : action.phase == 1 ? -1 : 0;
      peak = std::max(peak, live);
    }
  return peak;
}

/// Published peaks: 1F1B and ZB-H1 min(M, p - r) (arXiv 2104.04473, section 2.2; 2401.10241, table 2); several chunks
/// min(M v, 2 (p - 1 - r) + (v - 1) N + 1), N the largest group (warm-up of arXiv 2104.04473 with Llama 3's N).
int64_t publishedPeak(const Plan &plan, const Batch &batch, int64_t stage) {
  int64_t behind = plan.pp - 1 - stage;
  if (plan.chunks == 1)
    return std::min(batch.microbatches, behind + 1);
  return std::min(batch.microbatches * plan.chunks, 2 * behind + (plan.chunks - 1) * batch.groups.front() + 1);
}

/// Bytes that a stage between the first and the last keeps at most. ZB-H1, M >= p: (p - r) M_B + r M_W (arXiv
/// 2401.10241, table 2; p - r microbatches from forward to backward, r from there to their weight gradient); below p
/// the same over the microbatch whose backward runs. That one's hand-over is on top, since it is written while the
/// stash is read.
int64_t publishedStash(const Plan &plan, const Batch &batch, const StepChunk &chunk, int64_t stage) {
  if (plan.schedule() != ScheduleKind::ZeroBubbleH1)
    return publishedPeak(plan, batch, stage) * chunk.stashBytes;
  int64_t forBackward = chunk.stashBytes + chunk.keptBytes, forWeights = chunk.keptBytes + chunk.handedBytes;
  if (batch.microbatches >= plan.pp)
    return (plan.pp - stage) * forBackward + stage * forWeights + chunk.handedBytes;
  int64_t peak = 0;
  for (int64_t m = 0; m < batch.microbatches; ++m)
    peak = std::max(peak, (std::min(batch.microbatches, m + plan.pp - stage) - m) * forBackward +
                              std::min(m, stage) * forWeights + chunk.handedBytes);
  return peak;
}

/// Builds a program with a layer a chunk and holds bubble and peaks against the closed forms.
void checkClosedForms(const Plan &plan) {
  static std::map<std::pair<int64_t, bool>, MicrobatchProgram> models;
  bool isSplit = plan.schedule() == ScheduleKind::ZeroBubbleH1;
  auto [model, isNew] = models.try_emplace({plan.pp * plan.chunks, isSplit});
  if (isNew)
    model->second = makeToyModel(static_cast<int32_t>(plan.pp * plan.chunks), /*train=*/true, isSplit);
  StepProgram step = build(model->second, plan);
  ASSERT_EQ(step.batches.size(), 1u);
  const Batch &batch = step.batches[0];
  SCOPED_TRACE(std::string(nameOf(plan.schedule())) + " PP" + std::to_string(plan.pp) + " V" +
               std::to_string(plan.chunks) + " M" + std::to_string(batch.microbatches) + " groups of " +
               std::to_string(batch.groups.front()));
  double expected = expectedBubbleRatio(plan.schedule(), plan.pp, plan.chunks, batch.microbatches);
  ASSERT_NEAR(bubbleRatio(step, batch), expected, 1e-9);
  // Slots impose waits; they cost nothing where communication is free.
  ASSERT_NEAR(replayStep(step, batch, evenCosts(step)).bubbleRatio(), expected, 1e-9);
  for (int64_t stage = 0; stage < plan.pp; ++stage) {
    int64_t peak = publishedPeak(plan, batch, stage);
    ASSERT_EQ(peakInFlight(step, batch.stages[stage]), peak) << "stage " << stage;
    // Between the embedding's stage and the head's all chunks have one size: no slot is more than what is alive.
    if (stage > 0 && stage + 1 < plan.pp)
      ASSERT_EQ(batch.stages[stage].memory.stash, publishedStash(plan, batch, step.chunks[stage], stage))
          << "stage " << stage;
  }
}

TEST(ManyRanks, bubblesAndPeaksOfBuiltProgramsMeetTheClosedForms) {
  int64_t cases = 0;
  for (int64_t pp = 1; pp <= 6; ++pp)
    for (int64_t chunks = 1; chunks <= 4; ++chunks)
      for (int64_t microbatches = 1; microbatches <= 20; ++microbatches) {
        for (int64_t run = std::min(pp, microbatches); run <= microbatches; run += std::max<int64_t>(1, pp / 2)) {
          Plan plan = makeGrid(pp, chunks, microbatches);
          plan.run = {run};
          checkClosedForms(plan);
          ++cases;
        }
        Plan plan = makeGrid(pp, chunks, microbatches);
        plan.kind = ScheduleKind::BreadthFirst;
        checkClosedForms(plan);
        ++cases;
      }
  for (int64_t pp = 1; pp <= 10; ++pp)
    for (int64_t microbatches = 1; microbatches <= 30; ++microbatches) {
      Plan plan = makeGrid(pp, 1, microbatches);
      plan.kind = ScheduleKind::ZeroBubbleH1;
      checkClosedForms(plan);
      ++cases;
    }
  EXPECT_GT(cases, 3000);
}

TEST(ManyRanks, chunksThatPassThroughCountInTheBubbleRatio) {
  MicrobatchProgram program = makeToyModel(2);
  Plan plan = makeGrid(2, 3, 4);
  plan.layersPerChunk = {1, 0, 0, 1, 0, 0};
  StepProgram step = build(program, plan);
  EXPECT_NEAR(bubbleRatio(step, step.batches[0]), expectedBubbleRatio(plan.schedule(), 2, 3, 4), 1e-9);
  // By FLOPs each stage has one layer, stage 1 the head besides: it starts a forward late and ends a backward early.
  EXPECT_GT(bubbleRatioWeighted(step, step.batches[0]), 0);
}

TEST(ManyRanks, equalChunksHaveEqualBubblesByFlops) {
  MicrobatchProgram program = makeToyModel(4);
  program.bodies[2].flops = program.bodies[3].flops = 0; // the head
  StepProgram step = build(program, makeGrid(4, 1, 8));
  EXPECT_NEAR(bubbleRatioWeighted(step, step.batches[0]), 3.0 / 8, 1e-9);
}

/// Layers whose stash is alive at once, at most, by stage.
std::vector<int64_t> peakLayers(const StepProgram &step) {
  std::vector<int64_t> peaks;
  for (const Stage &stage : step.batches[0].stages) {
    int64_t live = 0, peak = 0;
    for (uint64_t i = 0; i < stage.numActions; ++i) {
      const drover_action &action = step.actions[stage.firstAction + i];
      if (action.kind != DROVER_RUN)
        continue;
      auto layers = static_cast<int64_t>(std::count_if(step.chunks[action.chunk].phases[0].begin(),
                                                       step.chunks[action.chunk].phases[0].end(),
                                                       [](const StepCall &call) { return call.layer >= 0; }));
      if (action.phase == 0)
        live += layers;
      peak = std::max(peak, live);
      if (action.phase == 1)
        live -= layers;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

Plan makeLlama3Plan(int64_t microbatches) {
  Plan plan = makeGrid(16, 8, microbatches);
  plan.layersPerChunk.assign(128, 1);
  plan.layersPerChunk.front() = plan.layersPerChunk.back() = 0;
  return plan;
}

TEST(ManyRanks, llama3LayoutPeaksOnItsSecondStage) {
  MicrobatchProgram program = makeToyModel(126);
  StepProgram step = build(program, makeLlama3Plan(64));
  std::vector<int64_t> peaks = peakLayers(step);
  EXPECT_EQ(peaks[0], 112);
  EXPECT_EQ(peaks[1], 141);
  EXPECT_EQ(peaks[15], 113);
  EXPECT_EQ(*std::max_element(peaks.begin(), peaks.end()), 141);
  // The slots are no more than that.
  EXPECT_EQ(step.batches[0].stages[1].memory.stash, 141 * 832);
  EXPECT_EQ(peakLayers(build(program, makeLlama3Plan(16)))[1], 128);
}

TEST(ManyRanks, llama3StepIsBuiltInLinearTime) {
  MicrobatchProgram program = makeToyModel(126);
  StepProgram small = build(program, makeLlama3Plan(64)), large = build(program, makeLlama3Plan(256));
  EXPECT_LT(large.actions.size(), 4 * small.actions.size() + 10000);
  // Memory does not grow with microbatches, but for how slots of several sizes fit together.
  for (size_t stage = 0; stage < 16; ++stage)
    EXPECT_LT(static_cast<double>(large.batches[0].stages[stage].arenaBytes),
              1.01 * static_cast<double>(small.batches[0].stages[stage].arenaBytes));
}

/// Time of a step where a transfer takes a part of a forward, relative to one with a slot for every boundary tensor.
double timeAgainstUnbounded(int64_t run, double transfer, int64_t spareSlots) {
  MicrobatchProgram program = makeToyModel(32);
  Plan plan = makeGrid(8, 4, 32);
  plan.run = {run};
  auto makespan = [&](int64_t spare) {
    StepProgram step = build(program, plan, {spare});
    StepCosts costs = evenCosts(step);
    costs.transfer = transfer;
    return replayStep(step, step.batches[0], costs).makespan;
  };
  return makespan(spareSlots) / makespan(1 << 20);
}

TEST(ManyRanks, oneSpareSlotLosesNothingToUnboundedOnes) {
  for (int64_t run : {8, 12, 16, 32})
    for (double transfer : {0.1, 0.3}) {
      EXPECT_LT(timeAgainstUnbounded(run, transfer, 1), 1.001) << "run " << run << ", transfer " << transfer;
      if (run > 8)
        EXPECT_GT(timeAgainstUnbounded(run, transfer, 0), 1.01) << "the spare slot is what it takes";
    }
}

TEST(ManyRanks, emptyChunksPassOnInOneSlotAndStashNothing) {
  MicrobatchProgram program = makeToyModel(2);
  Plan plan = makeGrid(2, 3, 2);
  plan.layersPerChunk = {1, 0, 0, 1, 0, 0};
  StepProgram step = build(program, plan);
  EXPECT_TRUE(passesThrough(step.chunks[1]));
  EXPECT_EQ(step.chunks[1].stashBytes, 0);
  EXPECT_EQ(step.chunks[2].xBytes, step.chunks[0].yBytes);
  EXPECT_EQ(step.chunks[2].yBytes, step.chunks[2].xBytes);
  EXPECT_TRUE(verifyStepProgram(program, step).empty());
  EXPECT_TRUE(checkStepProgram(step).empty());
}

TEST(ManyRanks, tableOfTwoStagesIsGatheredFirstAndReducedBehindItsLastHolder) {
  MicrobatchProgram program = makeToyModel(2);
  StepProgram step = build(program, makeGrid(2, 1, 4));
  const Communicator &tie = step.communicators.back();
  EXPECT_TRUE(tie.isTie);
  EXPECT_EQ(tie.stages, (std::vector<int32_t>{0, 1}));
  const Batch &batch = step.batches[0];
  std::vector<uint32_t> reductions;
  for (const Stage &stage : batch.stages) {
    EXPECT_EQ(step.actions[stage.firstAction].kind, DROVER_COUNT);
    EXPECT_EQ(step.actions[stage.firstAction + 1].kind, DROVER_GATHER);
    EXPECT_EQ(step.actions[stage.firstAction + 1].peer, tie.id);
    for (uint64_t i = 0; i < stage.numActions; ++i)
      if (step.actions[stage.firstAction + i].kind == DROVER_REDUCE)
        reductions.push_back(step.actions[stage.firstAction + i].sequence);
  }
  ASSERT_EQ(reductions.size(), 2u);
  EXPECT_EQ(reductions[0], reductions[1]) << "one element of the sequence";
  // Only the owner has optimizer state, takes the norm and updates.
  EXPECT_GE(batch.stages[0].buckets[2][Space::Master], 0);
  EXPECT_EQ(batch.stages[1].buckets[2][Space::Master], -1);
  EXPECT_EQ(countOf(step, batch.stages[0], DROVER_UPDATE), 2u);
  EXPECT_EQ(countOf(step, batch.stages[1], DROVER_UPDATE), 1u);
}

TEST(ManyRanks, lastingSpacesKeepTheirPlacesInEveryBatch) {
  MicrobatchProgram program = makeToyModel(4);
  for (int64_t zero : {0, 1, 2, 3}) {
    Plan plan = makeGrid(2, 2, 2, 2);
    plan.zero = zero;
    plan.globalBatches = {4, 16};
    StepProgram step = build(program, plan);
    for (size_t stage = 0; stage < 2; ++stage)
      for (size_t b = 0; b < step.buckets.size(); ++b)
        for (Space space : {Space::Parameter, Space::Master, Space::Moment1, Space::Moment2})
          EXPECT_EQ(step.batches[0].stages[stage].buckets[b][space], step.batches[1].stages[stage].buckets[b][space]);
  }
}

TEST(ManyRanks, collectivesDoNotGrowWithMicrobatchesUnlessEveryRunIsReduced) {
  MicrobatchProgram program = makeToyModel(4);
  auto counts = [&](int64_t microbatches, const char *reduceEvery, int64_t zero) {
    Plan plan = makeGrid(2, 2, microbatches, 2);
    plan.reduceEvery = reduceEvery;
    plan.zero = zero;
    StepProgram step = build(program, plan);
    const Stage &stage = step.batches[0].stages[0];
    return std::make_pair(countOf(step, stage, DROVER_GATHER), countOf(step, stage, DROVER_REDUCE));
  };
  EXPECT_EQ(counts(2, "step", 2), counts(16, "step", 2));
  EXPECT_EQ(counts(2, "step", 1), counts(2, "step", 2));
  EXPECT_GT(counts(16, "run", 2).second, counts(16, "step", 2).second);
  EXPECT_GT(counts(16, "step", 3).first, counts(16, "step", 2).first);
}

TEST(ManyRanks, accumulatorsOfZeroTwoComeAndGo) {
  MicrobatchProgram program = makeToyModel(16);
  auto gradients = [&](int64_t zero, const char *reduceEvery, int64_t microbatches) {
    Plan plan = makeGrid(2, 8, microbatches, 2);
    plan.zero = zero;
    plan.reduceEvery = reduceEvery;
    return build(program, plan).batches[0].stages[0].memory.gradients;
  };
  // One group: two chunks' accumulators are alive; several: all of them, unless every run is reduced.
  EXPECT_LT(gradients(2, "step", 2), gradients(1, "step", 2));
  EXPECT_LT(gradients(2, "step", 2), gradients(2, "step", 8));
  EXPECT_LT(gradients(2, "run", 8), gradients(2, "step", 8));
}

TEST(ManyRanks, zeroBubbleProgramsAreProvenAndMeetTheirClosedForm) {
  MicrobatchProgram program = makeToyModel(8, /*train=*/true, /*split=*/true);
  for (int64_t pp = 1; pp <= 6; ++pp)
    for (int64_t microbatches : {1, 2, 3, 5, 8, 13})
      for (int64_t dp : {1, 2}) {
        Plan plan = makeGrid(pp, 1, microbatches, dp);
        plan.kind = ScheduleKind::ZeroBubbleH1;
        StepProgram step = build(program, plan);
        ASSERT_EQ(step.batches.size(), 1u);
        std::vector<std::string> faults = verifyStepProgram(program, step);
        for (const std::string &fault : checkStepProgram(step))
          faults.push_back("check: " + fault);
        ASSERT_TRUE(faults.empty()) << "pp " << pp << " microbatches " << microbatches << ": " << faults.front();
        EXPECT_NEAR(bubbleRatio(step, step.batches[0]),
                    expectedBubbleRatio(ScheduleKind::ZeroBubbleH1, pp, 1, microbatches), 1e-9)
            << "pp " << pp << " microbatches " << microbatches;
      }
}

TEST(ManyRanks, splitBackwardsAndTheirScheduleGoTogether) {
  EXPECT_NE(buildStepProgram(makeToyModel(2, true, true), makeGrid(2, 1, 2)).error().find("split ones are for zb-h1"),
            std::string::npos);
}

} // namespace
