//===- RankSurveyTest.cpp - the plans of all ranks fit together -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "../TestFiles.h"
#include "GridProgram.h"
#include "drover/rt/rank_survey.h"

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

GridProgram sixteenRanks() {
  GridOptions options;
  options.plan.tp = options.plan.cp = options.plan.pp = options.plan.dp = 2;
  return GridProgram(options);
}

TEST(RankSurvey, CountsTheGroupsOfEachCommunicator) {
  GridProgram toy = sixteenRanks();
  RankSurvey survey = surveyRanks(Program(toy.program()));
  EXPECT_EQ(survey.ranks, 16);
  EXPECT_EQ(survey.kinds.at(DROVER_COMM_WORLD).groups, 1);
  EXPECT_EQ(survey.kinds.at(DROVER_COMM_TP).groups, 8);
  EXPECT_EQ(survey.kinds.at(DROVER_COMM_FSDP).groups, 4);
  EXPECT_EQ(survey.kinds.at(DROVER_COMM_FSDP).members, 4);
  EXPECT_EQ(survey.kinds.at(DROVER_COMM_FIRST_LISTED).groups, 8) << "an edge of each pipeline";
  EXPECT_NE(describe(survey).find("communicator 5 (fsdp): 4 disjoint groups of 4"), std::string::npos);
}

/// The message for plans of which `change` alters that of rank 5.
void expectFault(void (*change)(RankPlan &), const std::string &message) {
  GridProgram toy = sixteenRanks();
  Program program(toy.program());
  expectError(
      [&] {
        surveyRanks(program, [&](int64_t rank) {
          RankPlan plan(program, rank);
          if (rank == 5)
            change(plan);
          return plan;
        });
      },
      message);
}

GroupPlan &groupOf(RankPlan &plan, int32_t id) {
  for (GroupPlan &group : plan.groups)
    if (group.id == id)
      return group;
  throw std::logic_error("no such group");
}

TEST(RankSurvey, RanksThatDisagreeAreNamed) {
  expectFault([](RankPlan &plan) { groupOf(plan, DROVER_COMM_TP).members = {6, 7}; },
              "communicator 1 (tp): rank 5 is no member of the group it is told");
  expectFault([](RankPlan &plan) { groupOf(plan, DROVER_COMM_TP).members = {4, 5, 6}; },
              "communicator 1 (tp): ranks 5 and 4 are told different members");
  expectFault([](RankPlan &plan) { groupOf(plan, DROVER_COMM_TP).members = {5, 6}; },
              "communicator 1 (tp): rank 5 is in the groups of ranks 4 and 5");
  expectFault([](RankPlan &plan) { plan.groups.erase(plan.groups.begin() + 1); },
              "communicator 1 (tp): rank 5 is in no group");
  expectFault([](RankPlan &plan) { std::swap(plan.groups[0], plan.groups[1]); },
              "rank 5 creates its groups out of the order of their ids");
  expectFault([](RankPlan &plan) { plan.fsdpIndex = (plan.fsdpIndex + 1) % plan.fsdpSize; }, "rank 5 has shard ");
}

} // namespace
