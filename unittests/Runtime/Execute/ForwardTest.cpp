//===- ForwardTest.cpp - the forward task ---------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "../TestFiles.h"
#include "../ToyProgram.h"
#include "drover/rt/executable.h"
#include "drover/rt/npy.h"
#include "drover/rt/safetensors.h"

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

class ForwardTest : public ::testing::Test {
protected:
  ForwardTest() {
    toy.forward = true;
    for (int i = 0; i < 49; ++i)
      table.push_back(float(i));
    writeSafetensors(folder.path("w.safetensors"), {{"model.table.weight", DROVER_F32, {7, 7}, table.data()},
                                                    {"model.bias", DROVER_F32, {7}, bias.data()}});
    options.init = folder.path("w.safetensors");
    options.outputDir = folder.path("out");
    options.flightRecorder = folder.path("flight.json");
    options.threads = 2;
  }
  void giveIds(const std::vector<int32_t> &ids, const std::vector<int64_t> &shape = {2, 4}) {
    writeNpy(folder.path("ids.npy"), DROVER_I32, shape, ids.data());
    options.inputs = {{"input_ids", folder.path("ids.npy")}};
  }
  void run() {
    ToyProgram built(toy);
    Program program(built.program());
    forward(program, options);
  }
  TemporaryFolder folder;
  ToyOptions toy;
  ForwardOptions options;
  std::vector<float> table, bias = {0, 0, 0, 0, 0, 0, 0.5f};
};

TEST_F(ForwardTest, WritesOneFileForEachOutput) {
  giveIds({0, 1, 2, 3, 4, 5, 6, 0});
  run();
  NpyFile logits(folder.path("out/logits.npy"));
  EXPECT_EQ(logits.shape(), (std::vector<int64_t>{2, 4, 7}));
  std::vector<float> values(56);
  logits.read(DROVER_F32, values.data());
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ(values[6], 6.5f);
  EXPECT_EQ(values[7 * 6 + 6], 48.5f);
}

TEST_F(ForwardTest, PositionsThatAreNotGivenCountUp) {
  giveIds({0, 0, 0, 0, 0, 0, 0, 0});
  toy.positionsInput = true;
  run();
  EXPECT_TRUE(std::filesystem::exists(folder.path("out/logits.npy")));
}

TEST_F(ForwardTest, InputsThatDoNotFitAreErrors) {
  expectError([&] { run(); }, "input 'input_ids' has no values, expected --input input_ids=FILE.npy of shape [2, 4]");
  giveIds({0, 0, 0, 0, 0, 0, 0, 0}, {4, 2});
  expectError([&] { run(); }, "ids.npy: shape [4, 2], input 'input_ids' expects [2, 4]");
  giveIds({0, 0, 0, 0, 0, 9, 0, 0});
  expectError([&] { run(); }, "input 'input_ids': token id 9 at element 5, expected ids from 0 to 6");
  options.inputs.emplace_back("ids", "x.npy");
  expectError([&] { run(); }, "--input ids=x.npy: the model has no such input, expected 'input_ids'");
  options.inputs = {{"input_ids", folder.path("none.npy")}};
  try {
    run();
    ADD_FAILURE() << "expected an error";
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), (folder.path("none.npy") + ": cannot open: No such file or directory").c_str());
  }
  EXPECT_FALSE(std::filesystem::exists(options.flightRecorder));
  options.ranks = 4;
  expectError([&] { run(); }, "--ranks=4: the program was compiled for 1");
}

TEST_F(ForwardTest, AFolderThatCannotBeMadeIsAnErrorBeforeTheRun) {
  options.outputDir = folder.path("none/deep");
  expectError([&] { run(); }, "none/deep: cannot create the folder: No such file or directory");
}

TEST_F(ForwardTest, TraceIsWritten) {
  giveIds({0, 1, 2, 3, 4, 5, 6, 0});
  options.trace = folder.path("t.json");
  run();
  EXPECT_NE(readFile(options.trace).find("\"logits\""), std::string::npos);
}

} // namespace
