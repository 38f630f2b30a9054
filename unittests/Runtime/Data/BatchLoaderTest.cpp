//===- BatchLoaderTest.cpp - inputs of a microbatch -----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "../TestFiles.h"
#include "../ToyProgram.h"
#include "drover/rt/batch_loader.h"
#include "drover/rt/npy.h"

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

/// A program with positions and documents over 17 tokens: 4 sequences of 4. Token 6 separates.
class BatchLoaderTest : public ::testing::Test {
protected:
  BatchLoaderTest() {
    toy.positionsInput = true;
    toy.mask = "documents";
    options.data =
        folder.write("t.u16", bytesOf(std::vector<uint16_t>{0, 6, 1, 2, 3, 4, 6, 6, 5, 0, 1, 6, 2, 3, 4, 5, 1}));
    options.documentSeparator = 6;
  }

  struct Inputs {
    std::vector<int64_t> tokens, labels, positions;
    std::vector<int32_t> documents;
  };
  Inputs fill(int64_t consumed, int64_t microbatch) {
    ToyProgram built(toy);
    Program program(built.program());
    BatchLoader loader(program, options);
    std::vector<uint8_t> slot(256);
    loader.fill(slot.data(), consumed, microbatch);
    auto at = [&](size_t offset) {
      std::vector<int64_t> values(8);
      std::memcpy(values.data(), slot.data() + offset, 64);
      return values;
    };
    Inputs inputs{at(0), at(64), at(128), std::vector<int32_t>(8)};
    std::memcpy(inputs.documents.data(), slot.data() + 192, 32);
    return inputs;
  }
  int64_t count(int64_t consumed, int64_t microbatches) {
    ToyProgram built(toy);
    Program program(built.program());
    return BatchLoader(program, options).countLabels(consumed, microbatches);
  }
  void refuses(const std::string &message) {
    expectError([&] { fill(0, 0); }, message);
  }

  TemporaryFolder folder;
  ToyOptions toy;
  TrainOptions options;
};

TEST_F(BatchLoaderTest, LabelsAreTheTokensShiftedByOne) {
  Inputs inputs = fill(0, 0);
  EXPECT_EQ(inputs.tokens, (std::vector<int64_t>{0, 6, 1, 2, 3, 4, 6, 6}));
  EXPECT_EQ(inputs.labels, (std::vector<int64_t>{6, 1, 2, 3, 4, 6, 6, 5}));
  EXPECT_EQ(count(0, 2), 16);
}

TEST_F(BatchLoaderTest, StepsGoOnAndWrapAround) {
  EXPECT_EQ(fill(0, 1).tokens, (std::vector<int64_t>{5, 0, 1, 6, 2, 3, 4, 5}));
  EXPECT_EQ(fill(3, 0).tokens, (std::vector<int64_t>{2, 3, 4, 5, 0, 6, 1, 2}));
  EXPECT_EQ(fill(4, 0).tokens, fill(0, 0).tokens);
}

TEST_F(BatchLoaderTest, ASeparatorBelongsToTheDocumentThatItEnds) {
  Inputs inputs = fill(0, 0);
  EXPECT_EQ(inputs.documents, (std::vector<int32_t>{0, 0, 1, 1, 0, 0, 0, 1}));
  EXPECT_EQ(inputs.positions, (std::vector<int64_t>{0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST_F(BatchLoaderTest, PositionsRestartAfterASeparator) {
  options.resetPositions = true;
  EXPECT_EQ(fill(0, 0).positions, (std::vector<int64_t>{0, 1, 0, 1, 0, 1, 2, 0}));
}

TEST_F(BatchLoaderTest, IgnoredLabelsAreMinusOneAndDoNotCount) {
  options.ignoreLabels = {2, 5};
  EXPECT_EQ(fill(0, 0).labels, (std::vector<int64_t>{6, 1, -1, 3, 4, 6, 6, -1}));
  EXPECT_EQ(count(0, 1), 6);
}

TEST_F(BatchLoaderTest, TheFirstLabelOfADocumentCanBeMasked) {
  options.maskAfterSeparator = true;
  EXPECT_EQ(fill(0, 0).labels, (std::vector<int64_t>{6, -1, 2, 3, 4, 6, -1, -1}));
}

TEST_F(BatchLoaderTest, InputsCanComeFromFiles) {
  std::vector<int64_t> positions = {9, 8, 7, 6, 5, 4, 3, 2};
  writeNpy(folder.path("p.npy"), DROVER_I64, {2, 4}, positions.data());
  options.inputs = {{"position_ids", folder.path("p.npy")}};
  EXPECT_EQ(fill(0, 1).positions, positions);
  writeNpy(folder.path("p.npy"), DROVER_I64, {4, 2}, positions.data());
  refuses("p.npy: shape [4, 2], input 'position_ids' expects [2, 4]");
  options.inputs = {{"cache", "x.npy"}};
  refuses("--input=cache=x.npy: the program has no such input; expected one of 'position_ids'");
  options.inputs = {{"input_ids", "x.npy"}};
  refuses("--input=input_ids=x.npy: comes from --data; expected one of 'position_ids'");
  toy.positionsInput = false;
  refuses("--input=input_ids=x.npy: comes from --data; no input takes values");
}

TEST_F(BatchLoaderTest, OptionsThatDoNotFitTheProgramAreErrors) {
  options.documentSeparator.reset();
  refuses("the program was compiled with --mask=documents, expected --document-separator=TOKEN");
  toy.mask = "model";
  toy.positionsInput = false;
  options.documentSeparator = 6;
  refuses("--document-separator=6: has no effect");
  options.resetPositions = true;
  refuses("--reset-positions: the program has no input for positions");
  options.documentSeparator.reset();
  options.resetPositions = false;
  options.ignoreLabels = {7};
  refuses("token id 7 of --ignore-label or --document-separator, expected ids from 0 to 6");
}

TEST_F(BatchLoaderTest, DataThatDoesNotFitIsRefusedBeforeTraining) {
  options.data = folder.write("s.u16", bytesOf(std::vector<uint16_t>{0, 1, 2, 3}));
  refuses("s.u16: 4 tokens, a sequence needs 5");
  options.data = folder.write("v.u16", bytesOf(std::vector<uint16_t>{0, 1, 2, 3, 7}));
  refuses("v.u16: token id 7 at byte 8, expected ids from 0 to 6");
}

} // namespace
