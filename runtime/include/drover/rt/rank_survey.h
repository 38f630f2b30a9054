//===- rank_survey.h - the plans of all ranks of a program ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_RANK_SURVEY_H
#define DROVER_RT_RANK_SURVEY_H

#include "drover/rt/rank_plan.h"
#include <functional>

namespace drover::rt {

/// The groups of one communicator id.
struct GroupKind {
  std::string name;
  int64_t groups = 0, members = 0; // members of a group
};

struct RankSurvey {
  int64_t ranks = 0;
  std::map<int32_t, GroupKind> kinds; // by communicator id
  int64_t planBytes = 0;              // of the rank that has most: its groups, and its stage's list with places
  int64_t memoryBytes = 0;            // of the rank that has most: arena and workspace
  double seconds = 0, slowest = 0;    // for all ranks; for one
};

/// Builds the plan of every rank as a run does, and checks that the ranks agree about their groups: of each id the
/// groups are disjoint, hold every rank of the stages that the id is for, are told one list by all members, have one
/// size and number their members' shards without gaps. Throws Error.
RankSurvey surveyRanks(const Program &program);
/// With plans from elsewhere.
RankSurvey surveyRanks(const Program &program, const std::function<RankPlan(int64_t rank)> &planOf);

/// For people.
std::string describe(const RankSurvey &survey);

} // namespace drover::rt

#endif // DROVER_RT_RANK_SURVEY_H
