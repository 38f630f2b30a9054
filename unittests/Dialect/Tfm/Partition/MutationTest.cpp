//===- MutationTest.cpp - a wrong distribution is reported ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A part of what mutate-types does (docs/proof.md): of every step other mutants.
//===----------------------------------------------------------------------===//
#include "MutantVerdicts.h"
#include <gtest/gtest.h>

namespace {

void judgeAll(bool follow, int64_t stride) {
  VerdictCounts total;
  int64_t first = 0;
  for (const MutatedStep &step : mutatedSteps())
    for (const auto &[key, counts] : judgeMutants(step, follow, stride, first++ % stride))
      total.add(counts);
  for (const std::string &fault : total.faults)
    ADD_FAILURE() << fault;
  EXPECT_GT(total.byTypes, 500);
  EXPECT_EQ(total.mutants, total.byOp + total.byTypes + total.equal);
}

TEST(PartitionMutations, AreReportedOrEqual) { judgeAll(/*follow=*/false, 97); }

TEST(PartitionMutations, WithTypesThatFollowAreReportedOrEqual) { judgeAll(/*follow=*/true, 13); }

} // namespace
