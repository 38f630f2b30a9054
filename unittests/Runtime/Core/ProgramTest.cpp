//===- ProgramTest.cpp - damaged programs are refused ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/program.h"
#include "../TestFiles.h"
#include "../ToyProgram.h"
#include "drover/rt/executable.h"

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

void refuses(const std::string &from, const std::string &to, const std::string &message) {
  ToyProgram toy;
  toy.replace(from, to);
  expectError([&] { Program program(toy.program()); }, message);
}

TEST(Program, ReadsEverything) {
  ToyOptions options;
  options.globalBatches = {4, 8};
  Program program(ToyProgram(options).program());
  EXPECT_TRUE(program.isTraining());
  EXPECT_EQ(program.sequenceLength(), 4);
  EXPECT_EQ(program.microbatchSize(), 2);
  EXPECT_EQ(program.vocabulary, 7);
  EXPECT_EQ(program.batches.size(), 2u);
  EXPECT_EQ(program.findBatch(8)->microbatches, 4);
  EXPECT_EQ(program.findBatch(2), nullptr);
  EXPECT_EQ(program.batchesText(), "4, 8");
  EXPECT_EQ(program.hash.size(), 16u);
  // Operands of a bucket are in elements in the metadata and in bytes here.
  EXPECT_EQ(program.chunks[0].phases[0][0].operands[2].offset, 64 * 4);
}

TEST(Program, HashFollowsMetadataAndActions) {
  ToyProgram toy;
  std::string hash = Program(toy.program()).hash;
  toy.actions[0].sequence = 77;
  EXPECT_NE(Program(toy.program()).hash, hash);
}

TEST(Program, MissingOrWronglyTypedMetadataIsLocated) {
  refuses("\"format\": 2", "\"format\": 3", "program metadata: format 3, this runtime reads format 2");
  refuses("\"update_body\": 3", "\"update_body\": \"x\"", "program metadata.update_body: expected an integer");
  refuses("\"decay\": true, \"trainable\"", "\"decay\": 1, \"trainable\"",
          "program metadata.buckets[0].sections[0].decay: expected true or false");
  refuses("\"cp\": 1", "\"cp\": 0", "program metadata.grid.cp: expected an integer from 1 to 1048576");
  refuses("\"std\": 0.5", "\"value\": 0.5", "program metadata.parameters[0].init: no 'std'");
  refuses("\"kind\": \"normal\"", "\"kind\": \"uniform\"", "expected normal or constant, not 'uniform'");
  refuses("\"vocabulary\": 7", "\"vocab\": 7", "program metadata: no 'vocabulary'");
  refuses("[0, 0], [1, 0]", "[17, 0], [1, 0]", "expected [space below 17, offset]");
  refuses("\"master\"", "\"mater\"", "expected the name of a space");
  refuses("\"dtype\": \"i64\"", "\"dtype\": \"int64\"",
          "expected f32, bf16, f16, f64, i64, i32, i8 or i1, not 'int64'");
  refuses("{\"format\"", "{format", "program metadata: not valid JSON");
  refuses("\"shape\": [7, 7]", "\"shape\": [4294967296, 4294967296]", "expected a shape with fewer elements");
}

TEST(Program, ReferencesOutOfRangeAreRefused) {
  refuses("\"body\": 1,", "\"body\": 9,", "program: call of body 9 of 6");
  refuses("\"norm_body\": 4", "\"norm_body\": 8", "program: update, norm, cast or add body 8 of 6");
  refuses("\"bucket\": 0, \"offset\": 64", "\"bucket\": 3, \"offset\": 64", "parameter 'model.bias': bucket 3 of 1");
  refuses("\"offset\": 64, \"decay\"", "\"offset\": 90, \"decay\"",
          "elements 90 to 97 are in no section of bucket 0 for such a parameter");
  refuses("\"offset\": 64, \"role\"", "\"offset\": 250, \"role\"", "input 'labels' ends beyond its space");
  refuses("\"name\": \"model.bias\"", "\"name\": \"model.table.weight\"", "is there twice");
  refuses("\"num_actions\": 6", "\"num_actions\": 7", "end beyond the 6 there are");
  refuses("8, 1984", "4, 1984", "program: batch 4, stage 0: no scratch slot for body 'logits' (action 0)");
  refuses("\"first\": 64, \"elements\": 32", "\"first\": 64, \"elements\": 64",
          "the sections of bucket 0 end at element 128 of 96");
  refuses("\"first\": 64, ", "\"first\": 32, ", "a section of bucket 0 begins at element 32, expected 64");
  refuses("\"shape\": [7, 7]", "\"shape\": [7, 7], \"local_shape\": [4, 7]",
          "parameter 'model.table.weight': its cuts do not make [4, 7] of [7, 7]");
}

TEST(Program, OtherTasksAndLayoutsAreRefused) {
  refuses("\"task\": \"train\"", "\"task\": \"serve\"", "program: task 'serve', expected train or forward");
  refuses("\"pp\": 1", "\"pp\": 2", "program: loss_chunk -1 of 1");
  refuses("\"optimizer\": \"adamw\"", "\"optimizer\": \"lion\"", "optimizer 'lion', expected adamw or sgd");
  refuses("\"compute_dtype\": \"f32\"", "\"compute_dtype\": \"f16\"", "compute dtype f16, expected f32 or bf16");
  refuses("\"role\": \"tokens\"", "\"role\": \"other\"", "training needs an input of role tokens");
  ToyProgram toy;
  drover_program program = toy.program();
  program.version = 9;
  expectError([&] { Program loaded(program); }, "program of version 9, this runtime runs version 2");
}

TEST(Program, DamagedActionsAreRefused) {
  struct Case {
    size_t action;
    void (*damage)(drover_action &);
    const char *message;
  };
  for (const Case &c :
       {Case{0, [](drover_action &a) { a.chunk = 1; }, "chunk 1 of 1 (action 0)"},
        Case{0, [](drover_action &a) { a.binding = 4; }, "binding 4 of 1"},
        Case{1, [](drover_action &a) { a.phase = 2; }, "phase 2, microbatch 0 of 2 (action 1)"},
        Case{1, [](drover_action &a) { a.microbatch = 2; }, "microbatch 2 of 2"},
        Case{1, [](drover_action &a) { a.kind = DROVER_SEND; },
             "a message on communicator 0, which is no edge of the stage (action 1)"},
        Case{1, [](drover_action &a) { a.num_waits = 1; }, "waits beyond the 0 there are (action 1)"},
        Case{1, [](drover_action &a) { a.stream = 9; }, "kind 0 on stream 9 (action 1)"},
        Case{4, [](drover_action &a) { a.kind = DROVER_UPDATE; }, "update of bucket 0 before its norm"}}) {
    ToyProgram toy;
    c.damage(toy.actions[c.action]);
    expectError([&] { Program program(toy.program()); }, c.message);
  }
}

TEST(Executable, ReportsErrorsByStatus) {
  ToyProgram toy;
  auto run = [&](std::vector<const char *> arguments) {
    arguments.insert(arguments.begin(), "train");
    return runExecutable(toy.program(), int(arguments.size()), arguments.data());
  };
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_NE(::testing::internal::GetCapturedStdout().find("usage: train"), std::string::npos);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run({"--data=/nonexistent", "--steps=1"}), 1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "error: /nonexistent: cannot open: No such file or directory\n");
}

} // namespace
