//===- CheckTest.cpp - what the proof must report -------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/Check.h"
#include "DataMutations.h"
#include "ToyModel.h"
#include "drover/Schedule/Verify.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <map>

using namespace drover::schedule;
using namespace drover::schedule::test;

namespace {

struct Layout {
  int64_t pp, chunks, dp, microbatches;
  std::vector<int64_t> run;
  int64_t zero;
  const char *reduceEvery;
  ScheduleKind kind;
};

void PrintTo(const Layout &layout, std::ostream *os) {
  *os << "pp " << layout.pp << ", chunks " << layout.chunks << ", dp " << layout.dp << ", microbatches "
      << layout.microbatches << ", zero " << layout.zero << ", reduce every " << layout.reduceEvery << ", "
      << nameOf(layout.kind);
}

class CheckTest : public testing::TestWithParam<Layout> {
protected:
  void SetUp() override {
    const Layout &layout = GetParam();
    Plan plan = makePlan(layout.chunks, {layout.microbatches * layout.dp});
    plan.pp = layout.pp;
    plan.dp = layout.dp;
    plan.run = layout.run;
    plan.zero = layout.zero;
    plan.reduceEvery = layout.reduceEvery;
    plan.kind = layout.kind;
    program = makeToyModel(8, /*train=*/true, /*split=*/layout.kind == ScheduleKind::ZeroBubbleH1);
    Result<StepProgram> result = buildStepProgram(program, plan);
    ASSERT_TRUE(result) << result.error();
    step = *result;
  }

  bool isReported(const StepProgram &mutant) { return !checkStepProgram(mutant).empty(); }
  std::string at(Place place) {
    const drover_action &action = actionAt(step, place);
    return "stage " + std::to_string(place.stage) + ", action " + std::to_string(place.index) + ", kind " +
           std::to_string(action.kind) + ", chunk " + std::to_string(action.chunk) + ", phase " +
           std::to_string(action.phase) + ", microbatch " + std::to_string(action.microbatch);
  }

  MicrobatchProgram program;
  StepProgram step;
};

TEST_P(CheckTest, theProgramIsProven) {
  std::vector<std::string> faults = checkStepProgram(step);
  EXPECT_TRUE(faults.empty()) << faults.front();
}

TEST_P(CheckTest, everyDroppedActionIsReported) {
  for (Place place : allPlaces(step)) {
    // FREE says what is true anyway: nothing reads its slots any more.
    if (actionAt(step, place).kind == DROVER_FREE)
      continue;
    EXPECT_TRUE(isReported(dropAction(step, place))) << at(place);
  }
}

TEST_P(CheckTest, everyDoubledActionIsReported) {
  for (Place place : allPlaces(step)) {
    uint8_t kind = actionAt(step, place).kind;
    // A second gather of the same masters into the same slot changes no value.
    if (kind == DROVER_FREE || (kind == DROVER_GATHER && actionAt(step, place).peer == 0))
      continue;
    EXPECT_TRUE(isReported(doubleAction(step, place))) << at(place);
  }
}

TEST_P(CheckTest, everyDroppedWaitIsReported) {
  size_t waits = 0;
  for (Place place : allPlaces(step))
    for (uint32_t w = 0; w < actionAt(step, place).num_waits; ++w, ++waits)
      EXPECT_TRUE(isReported(dropWait(step, place, w)))
          << at(place) << " waits for action "
          << step.batches[0].stages[place.stage].waits[actionAt(step, place).first_wait + w];
  if (GetParam().pp > 1)
    EXPECT_GT(waits, 0u);
}

TEST_P(CheckTest, everyRetargetedActionIsReported) {
  for (Place place : allPlaces(step)) {
    const drover_action &action = actionAt(step, place);
    bool isMessage = action.kind == DROVER_SEND || action.kind == DROVER_RECEIVE;
    if (isMessage || action.kind == DROVER_RUN) {
      StepProgram mutant = step;
      actionAt(mutant, place).microbatch = (action.microbatch + 1) % static_cast<uint32_t>(GetParam().microbatches);
      EXPECT_TRUE(GetParam().microbatches == 1 || isReported(mutant)) << at(place) << ": another microbatch";
    }
    if (isMessage)
      for (const Communicator &other : step.communicators) {
        if (other.id == action.peer)
          continue;
        StepProgram mutant = step;
        actionAt(mutant, place).peer = other.id;
        EXPECT_TRUE(isReported(mutant)) << at(place) << ": communicator " << other.id;
      }
  }
}

// On all holders at once, so that the operations still match.
TEST_P(CheckTest, aTiedBucketThatIsNotExchangedIsReported) {
  for (uint32_t b = 0; b < step.buckets.size(); ++b)
    for (uint8_t kind : {DROVER_GATHER, DROVER_REDUCE}) {
      StepProgram mutant = step;
      bool isChanged = false;
      for (drover_action &action : mutant.actions)
        if (action.kind == kind && action.chunk == b && action.peer != 0)
          action.peer = 0, isChanged = true;
      EXPECT_EQ(isReported(mutant), isChanged) << "bucket " << b;
      EXPECT_TRUE(isChanged || step.stagesOf(step.buckets[b]).size() < 2) << "bucket " << b;
    }
}

/// Two messages of one stream change places.
TEST_P(CheckTest, everyReorderedMessageIsReported) {
  for (Place place : allPlaces(step)) {
    const drover_action &action = actionAt(step, place);
    if (action.kind != DROVER_SEND && action.kind != DROVER_RECEIVE)
      continue;
    for (uint64_t next = place.index + 1; next < step.batches[0].stages[place.stage].numActions; ++next) {
      const drover_action &other = actionAt(step, {place.stage, next});
      if (other.stream != action.stream)
        continue;
      StepProgram mutant = step;
      std::swap(actionAt(mutant, place), actionAt(mutant, {place.stage, next}));
      // On several edges the order of one stream is free as long as nothing waits in a circle.
      if (other.peer == action.peer)
        EXPECT_TRUE(isReported(mutant)) << at(place) << " and action " << next;
      break;
    }
  }
}

/// Why wrong data of a kind may change nothing.
const std::map<std::string, const char *> harmlessData = {
    {"overlap gradient on parameter", "the parameters are read for the last time before the reduction"},
    {"overlap parameter on accumulator", "the parameters are read for the last time before the first contribution"},
    {"reorder call", "weight gradients of two layers, neither of which reads the other"},
    {"retarget owner", "the first and the last chunk are one stage's"},
    {"shift gradient", "what lies behind is dead by then"},
    {"shift parameter", "what lies behind does not yet live"},
    {"shift scalar", "what lies behind does not live at that time"},
    {"shift scratch", "what lies behind does not live at that time"}};

TEST_P(CheckTest, everyWrongPlaceAndOtherDataIsReported) {
  size_t mutants = 0, tried = 0, unreported = 0, stride = step.actions.size() > 200 ? 5 : 1;
  forEachDataMutant(step, [&](const Mutant &mutant) {
    if (mutants++ % stride)
      return;
    ++tried;
    // Compile asks both.
    if (isReported(mutant.step) || !verifyStepProgram(program, mutant.step, 1).empty())
      return;
    ++unreported;
    std::string what = std::string(mutant.mutation) + " " + mutant.target;
    EXPECT_TRUE(harmlessData.count(what)) << what << " at " << at(mutant.place);
  });
  EXPECT_GT(tried, 300u);
  EXPECT_LT(unreported, tried / 20);
}

/// What `check` sees alone, without the microbatch program.
TEST_P(CheckTest, optimizerStateThatIsNotApartIsReported) {
  size_t overlaps = 0;
  forEachDataMutant(step, [&](const Mutant &mutant) {
    bool isState =
        mutant.target.find("master") != std::string::npos || mutant.target.find("moment") != std::string::npos;
    if (!isState)
      return;
    ++overlaps;
    EXPECT_TRUE(isReported(mutant.step)) << mutant.mutation << " " << mutant.target << " at " << at(mutant.place);
  });
  EXPECT_GT(overlaps, 10u);
}

TEST_P(CheckTest, anotherChunkOfTheLossIsReported) {
  for (int32_t chunk = -1; chunk < static_cast<int32_t>(step.chunks.size()); ++chunk) {
    StepProgram mutant = step;
    mutant.lossChunk = chunk;
    EXPECT_EQ(isReported(mutant), chunk != step.lossChunk) << "chunk " << chunk;
  }
}

TEST_P(CheckTest, stateThatMovesBetweenBatchesIsReported) {
  StepProgram mutant = step;
  mutant.batches.push_back(step.batches.front());
  ASSERT_FALSE(isReported(mutant));
  for (Binding &places : mutant.batches.back().stages.front().buckets)
    std::swap(places[Space::Moment1], places[Space::Moment2]);
  for (Binding &places : mutant.batches.back().stages.front().bindings)
    std::swap(places[Space::Moment1], places[Space::Moment2]);
  EXPECT_TRUE(isReported(mutant));
}

INSTANTIATE_TEST_SUITE_P(Layouts, CheckTest,
                         testing::Values(Layout{1, 1, 1, 2, {}, 2, "step", ScheduleKind::OneForwardOneBackward},
                                         Layout{1, 2, 2, 3, {}, 2, "step", ScheduleKind::Interleaved},
                                         Layout{2, 1, 1, 4, {}, 2, "step", ScheduleKind::OneForwardOneBackward},
                                         Layout{2, 2, 2, 4, {}, 2, "step", ScheduleKind::Interleaved},
                                         Layout{2, 2, 2, 6, {3}, 1, "step", ScheduleKind::Interleaved},
                                         Layout{4, 2, 1, 3, {}, 0, "step", ScheduleKind::Interleaved},
                                         Layout{2, 2, 2, 4, {}, 3, "step", ScheduleKind::Interleaved},
                                         Layout{2, 2, 2, 4, {2}, 2, "run", ScheduleKind::Interleaved},
                                         Layout{4, 2, 1, 8, {}, 2, "step", ScheduleKind::BreadthFirst},
                                         Layout{1, 1, 2, 3, {}, 2, "step", ScheduleKind::ZeroBubbleH1},
                                         Layout{2, 2, 2, 4, {}, 0, "step", ScheduleKind::Interleaved},
                                         Layout{2, 1, 2, 4, {}, 3, "step", ScheduleKind::ZeroBubbleH1},
                                         Layout{2, 1, 2, 4, {}, 0, "step", ScheduleKind::ZeroBubbleH1},
                                         Layout{4, 1, 2, 6, {}, 2, "step", ScheduleKind::ZeroBubbleH1}));

} // namespace
