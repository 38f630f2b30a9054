//===- ParameterStoreTest.cpp - where parameters come from ----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "../TestFiles.h"
#include "../ToyProgram.h"
#include "drover/rt/parameter_store.h"
#include "drover/rt/safetensors.h"
#include "drover/rt/sha256.h"

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

constexpr int64_t tableElements = 49, biasElements = 7;

class ParameterStoreTest : public ::testing::Test {
protected:
  /// The bucket after initialization: table, bias.
  std::pair<std::vector<float>, std::vector<float>> load(const InitOptions &init) {
    ToyProgram built(toy);
    Program program(built.program());
    std::vector<float> bucket(96, -99);
    initializeParameters(program, {}, init, {{{reinterpret_cast<uint8_t *>(bucket.data()), {0, 96}}}, DROVER_F32});
    EXPECT_EQ(bucket[tableElements], -99); // nothing outside is touched
    return {{bucket.begin(), bucket.begin() + tableElements},
            {bucket.begin() + 64, bucket.begin() + 64 + biasElements}};
  }
  void refuses(const InitOptions &init, const std::string &message) {
    expectError([&] { load(init); }, message);
  }
  std::string write(const std::vector<TensorToStore> &tensors) {
    std::string path = folder.path("w.safetensors");
    writeSafetensors(path, tensors);
    return path;
  }
  TensorToStore tableTensor(const std::string &name = "model.table.weight") const {
    return {name, DROVER_F32, {7, 7}, table.data()};
  }
  TensorToStore biasTensor(const std::string &name = "model.bias") const {
    return {name, DROVER_F32, {7}, bias.data()};
  }

  /// A model file of a header, the table and the bias, that the program's sources describe.
  void makeModel(bool transposed, double plus) {
    std::vector<float> stored = table, storedBias = bias;
    if (transposed)
      for (int64_t i = 0; i < 7; ++i)
        for (int64_t j = 0; j < 7; ++j)
          stored[size_t(j * 7 + i)] = table[size_t(i * 7 + j)];
    for (float &value : storedBias)
      value += float(plus);
    std::string content = "head" + bytesOf(stored);
    toy.modelFile = folder.write("model.onnx", content);
    folder.write("model.data", bytesOf(storedBias));
    toy.modelSha256 = sha256(content.data(), content.size());
    toy.tableSource =
        concat("{\"file\": \"model.onnx\", \"offset\": 4, \"bytes\": 196, \"dtype\": \"f32\", \"transposed\": ",
               transposed ? "true" : "false", ", \"plus\": 0.0}");
    toy.biasSource =
        concat("{\"file\": \"model.data\", \"offset\": 0, \"bytes\": 28, \"dtype\": \"f32\", \"transposed\": "
               "false, \"plus\": ",
               plus, "}");
  }

  ParameterStoreTest() {
    for (int64_t i = 0; i < tableElements; ++i)
      table.push_back(float(i) * 0.25f);
    for (int64_t i = 0; i < biasElements; ++i)
      bias.push_back(-float(i));
  }

  TemporaryFolder folder;
  ToyOptions toy;
  std::vector<float> table, bias;
};

TEST_F(ParameterStoreTest, RandomFollowsSeedAndKind) {
  auto [a, bias1] = load({"random", "", 1});
  auto [b, bias2] = load({"", "", 1}); // a program without sources starts from random
  auto [c, bias3] = load({"random", "", 2});
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  EXPECT_EQ(bias1, std::vector<float>(7, 0.25f));
}

TEST_F(ParameterStoreTest, ModelFileIsReadAsTheModelHasIt) {
  for (bool transposed : {false, true}) {
    makeModel(transposed, 1);
    auto [t, b] = load({"", "", 1});
    EXPECT_EQ(t, table) << transposed;
    EXPECT_EQ(b, bias);
  }
}

TEST_F(ParameterStoreTest, MovedModelFilesNeedTheirNewPath) {
  makeModel(false, 0);
  std::filesystem::create_directory(folder.path("new"));
  for (const char *name : {"model.onnx", "model.data"})
    std::filesystem::rename(folder.path(name), folder.path("new/") + name);
  refuses({"model", "", 1}, "model.onnx: cannot open: No such file or directory; where the model file has moved, give "
                            "--model=PATH");
  std::filesystem::rename(folder.path("new/model.onnx"), folder.path("new/renamed.onnx"));
  EXPECT_EQ(load({"model", folder.path("new/renamed.onnx"), 1}).first, table);
}

TEST_F(ParameterStoreTest, ChangedModelFilesAreRefused) {
  makeModel(false, 0);
  std::string content = readFile(toy.modelFile);
  content[0] = 'X';
  folder.write("model.onnx", content);
  refuses({"model", "", 1}, "not the file that the program was compiled from (its SHA-256 differs)");
  makeModel(false, 0);
  folder.write("model.data", std::string(27, 'x'));
  refuses({"model", "", 1}, "model.data: parameter 'model.bias' needs 28 bytes at 0, the file has 27");
}

TEST_F(ParameterStoreTest, AProgramWithoutWeightsSaysSo) {
  refuses({"model", "", 1}, "--init=model: the model that was compiled has no weights");
  refuses({"random", "x.onnx", 1}, "--model=x.onnx: expected --init=model with it");
  refuses({"weights.bin", "", 1},
          "--init=weights.bin: expected model, random, FILE.safetensors, INDEX.json or the folder of one");
}

TEST_F(ParameterStoreTest, CheckpointsOfEveryFloatTypeAreRead) {
  std::vector<double> wide(table.begin(), table.end());
  std::vector<uint16_t> narrow;
  for (float value : bias)
    narrow.push_back(floatToBfloat(value));
  auto [t, b] = load({write({{"model.table.weight", DROVER_F64, {7, 7}, wide.data()},
                             {"model.bias", DROVER_BF16, {7}, narrow.data()}}),
                      "", 1});
  EXPECT_EQ(t, table);
  EXPECT_EQ(b, bias);
  std::vector<uint16_t> halves(7, 0x3800);
  EXPECT_EQ(load({write({tableTensor(), {"model.bias", DROVER_F16, {7}, halves.data()}}), "", 1}).second,
            std::vector<float>(7, 0.5f));
}

TEST_F(ParameterStoreTest, AllFaultsOfACheckpointAreInOneMessage) {
  std::vector<float> longBias(8);
  refuses({write({{"model.bias", DROVER_F32, {8}, longBias.data()}, biasTensor("extra.one"), biasTensor("extra.two")}),
           "", 1},
          "does not fit the model's parameters: 1 missing: 'model.table.weight'; 2 unexpected: 'extra.one', "
          "'extra.two'; 1 of another shape or dtype: 'model.bias: [8] for [7]'");
  std::vector<int64_t> ids(7);
  refuses({write({tableTensor(), {"model.bias", DROVER_I64, {7}, ids.data()}}), "", 1}, "'model.bias: I64 for f32'");
}

TEST_F(ParameterStoreTest, ATiedTensorMayBeThereWhenItIsEqual) {
  EXPECT_EQ(load({write({tableTensor(), tableTensor("head.weight"), biasTensor()}), "", 1}).first, table);
  EXPECT_EQ(load({write({tableTensor("head.weight"), biasTensor()}), "", 1}).first, table);
  std::vector<float> other(tableElements, 1);
  refuses({write({tableTensor(), {"head.weight", DROVER_F32, {7, 7}, other.data()}, biasTensor()}), "", 1},
          "1 tied, but with different values: 'head.weight and model.table.weight'");
}

TEST_F(ParameterStoreTest, BaseModelsLackThePrefixAndHaveBuffers) {
  EXPECT_EQ(load({write({tableTensor("table.weight"), biasTensor("bias"), biasTensor("h.0.attn.bias"),
                         biasTensor("layers.0.rotary_emb.inv_freq")}),
                  "", 1})
                .first,
            table);
}

TEST_F(ParameterStoreTest, ShardsAreReadThroughTheirIndex) {
  writeTensors(folder.path("out"), {tableTensor(), biasTensor()}, 1);
  auto [t, b] = load({folder.path("out/model.safetensors.index.json"), "", 1});
  EXPECT_EQ(t, table);
  EXPECT_EQ(b, bias);
  EXPECT_EQ(load({folder.path("out"), "", 1}).first, table); // as --save-weights wrote it
  std::filesystem::create_directory(folder.path("empty"));
  refuses({folder.path("empty"), "", 1},
          "empty: expected model.safetensors.index.json or model.safetensors in the folder");
}

TEST_F(ParameterStoreTest, ForwardProgramsHoldTheComputeType) {
  toy.forward = true;
  toy.bfloat = true;
  ToyProgram built(toy);
  Program program(built.program());
  std::vector<uint16_t> bucket(96);
  table[1] = 1.00390625f; // halfway between two bf16 values
  initializeParameters(program, {}, {write({tableTensor(), biasTensor()}), "", 1},
                       {{{reinterpret_cast<uint8_t *>(bucket.data()), {0, 96}}}, DROVER_BF16});
  EXPECT_EQ(bucket[1], 0x3f80);
  EXPECT_EQ(bfloatToFloat(bucket[4]), 1.0f);
}

} // namespace
