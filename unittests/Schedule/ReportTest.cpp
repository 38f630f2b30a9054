//===- ReportTest.cpp - the report of check -------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/Report.h"
#include "ToyModel.h"
#include "drover/Schedule/Check.h"
#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

using namespace drover::schedule;
using namespace drover::schedule::test;

namespace {

TEST(Report, eachBatchHasItsOwnFaults) {
  Result<StepProgram> step = buildStepProgram(makeToyModel(2), makePlan(1, {1, 2, 12}));
  ASSERT_TRUE(step) << step.error();
  step->batches[0].stages[0].arenaBytes = 0; // its name begins those of batch 12
  std::vector<std::string> faults = checkStepProgram(*step);
  ASSERT_FALSE(faults.empty());
  nlohmann::json batches = nlohmann::json::parse(reportJson(*step, faults))["batches"];
  EXPECT_EQ(batches[0]["proof"], nlohmann::json(faults));
  EXPECT_EQ(batches[1]["proof"], "ok");
  EXPECT_EQ(batches[2]["proof"], "ok");
}

TEST(Report, aFaultOfTheProgramIsOneOfEveryBatch) {
  Result<StepProgram> step = buildStepProgram(makeToyModel(2), makePlan(1, {1, 2}));
  ASSERT_TRUE(step) << step.error();
  step->lossChunk = -1;
  std::vector<std::string> faults = checkStepProgram(*step);
  ASSERT_EQ(faults.size(), 1u);
  nlohmann::json batches = nlohmann::json::parse(reportJson(*step, faults))["batches"];
  ASSERT_EQ(batches.size(), 2u);
  for (const nlohmann::json &batch : batches)
    EXPECT_EQ(batch["proof"], nlohmann::json(faults));
}

} // namespace
