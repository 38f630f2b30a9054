//===- MutantTest.cpp - wrong programs are reported or equal --------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A part of what mutate-programs does in full (docs/proof.md).
#include "MutantLayouts.h"
#include "MutantRuns.h"

using namespace drover::rt::test;

namespace {

MutantCounts sumOf(const MutantTable &table) {
  MutantCounts sum;
  for (const auto &[key, counts] : table)
    sum.add(counts);
  return sum;
}

TEST(Mutants, OnAllRanksAreReportedOrEqual) {
  for (const GridOptions &layout : mutantLayouts()) {
    MutantCounts counts = sumOf(MutantRuns(layout).everywhere(5));
    EXPECT_TRUE(counts.faults.empty()) << counts.faults.front();
    EXPECT_EQ(counts.mutants, counts.reported + counts.verified + counts.refused + counts.equal);
    EXPECT_GT(counts.reported, counts.mutants / 2);
  }
}

TEST(Mutants, OnOneRankAreReportedAndEndAtADeadlineWithoutThat) {
  MutantCounts counts = sumOf(MutantRuns(mutantLayouts().front()).onOneRank(23));
  EXPECT_TRUE(counts.faults.empty()) << counts.faults.front();
  EXPECT_EQ(counts.mutants, counts.reported + counts.refused);
  EXPECT_GT(counts.ended, 0) << "hangs that ended";
}

} // namespace
