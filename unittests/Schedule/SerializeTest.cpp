//===- SerializeTest.cpp - metadata round trip ----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/Serialize.h"
#include "ToyModel.h"
#include "gtest/gtest.h"

using namespace drover::schedule;
using namespace drover::schedule::test;

namespace {

TEST(Serialize, readingGivesWhatWasWritten) {
  MicrobatchProgram program = makeToyModel(3);
  program.parameters[0].aliases = {"lm_head.weight"};
  program.parameters[1].source = Source{"model.onnx", 64, 400, DType::F32, true, 1.0};
  Result<StepProgram> step = buildStepProgram(program, makePlan(2, {2, 4}));
  ASSERT_TRUE(step) << step.error();
  step->model = {"model.onnx", "00ff", "onnx"};
  std::string text = serializeMetadata(*step);
  Result<StepProgram> again = readMetadata(text, step->actions);
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(serializeMetadata(*again), text);
  EXPECT_EQ(printStepProgram(*again), printStepProgram(*step));
}

TEST(Serialize, damagedMetadataIsAnError) {
  Result<StepProgram> step = buildStepProgram(makeToyModel(1), makePlan(1, {1}));
  ASSERT_TRUE(step);
  std::string text = serializeMetadata(*step);
  EXPECT_FALSE(readMetadata(text.substr(0, text.size() / 2), {}));
  EXPECT_FALSE(readMetadata("[]", {}));
  for (const char *field : {"\"format\"", "\"plan\"", "\"parameters\"", "\"phases\"", "\"operands\"", "\"bindings\""}) {
    std::string damaged = text;
    damaged.replace(damaged.find(field) + 1, 1, "?");
    EXPECT_FALSE(readMetadata(damaged, {})) << field;
  }
}

TEST(Serialize, planRoundTrips) {
  Plan plan = makePlan(2, {8, 16});
  plan.run = {4};
  plan.layersPerChunk = {1, 3};
  plan.freeze = "embed.*";
  plan.zero = 1;
  Result<Plan> again = readPlan(serializePlan(plan));
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(serializePlan(*again), serializePlan(plan));
  Result<Plan> nested = readPlan("{\"plan\": {\"chunks\": 2, \"global_batch\": 4}, \"step_time_s\": 1.5}");
  ASSERT_TRUE(nested);
  EXPECT_EQ(nested->chunks, 2);
  EXPECT_EQ(nested->globalBatches, std::vector<int64_t>{4});
  EXPECT_FALSE(readPlan("{\"chunks\": \"two\"}"));
  EXPECT_FALSE(readPlan("{\"schedule\": \"gpipe\"}"));
  EXPECT_EQ(readPlan("{\"micro_batch\": 2}").error().find("unknown field 'micro_batch': expected attention, chunks, "),
            0u);
}

TEST(Serialize, namesThatAreNotUtf8DoNotThrow) {
  MicrobatchProgram program = makeToyModel(1);
  program.parameters[0].name = "bad\xff";
  Result<StepProgram> step = buildStepProgram(program, makePlan(1, {1}));
  ASSERT_TRUE(step);
  EXPECT_FALSE(serializeMetadata(*step).empty());
}

} // namespace
