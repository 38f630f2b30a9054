//===- SafetensorsTest.cpp - the format's rules, and files that break them ===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/safetensors.h"
#include "../TestFiles.h"
#include "drover/rt/atomic_file.h"
#include <csignal>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

std::string makeFile(const std::string &header, const std::string &buffer) {
  return bytesOf(uint64_t(header.size())) + header + buffer;
}
std::string entry(const std::string &name, const std::string &dtype, const std::string &shape, int begin, int end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

class SafetensorsTest : public ::testing::Test {
protected:
  std::map<std::string, StoredTensor> read(const std::string &content) {
    file = std::make_unique<SafetensorsFile>(folder.write("a.safetensors", content));
    return file->tensors();
  }
  void refuses(const std::string &content, const std::string &message) {
    expectError([&] { read(content); }, message);
  }
  TemporaryFolder folder;
  std::unique_ptr<SafetensorsFile> file;
};

TEST_F(SafetensorsTest, WhatIsWrittenIsReadBack) {
  std::vector<float> a = {1, 2, 3, 4, 5, 6};
  std::vector<uint16_t> b = {0x3f80};
  std::string path = folder.path("w.safetensors");
  writeSafetensors(path, {{"b", DROVER_BF16, {}, b.data()}, {"a", DROVER_F32, {2, 3}, a.data()}});
  SafetensorsFile written(path);
  ASSERT_EQ(written.tensors().size(), 2u);
  EXPECT_EQ(written.tensors().at("a").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(written.tensors().at("a").data, a.data(), 24), 0);
  EXPECT_EQ(written.tensors().at("b").dtype, "BF16");
  std::string bytes = readFile(path);
  uint64_t headerBytes;
  std::memcpy(&headerBytes, bytes.data(), 8);
  EXPECT_EQ(headerBytes % 8, 0u);
  for (const auto &file : std::filesystem::directory_iterator(folder.path("")))
    EXPECT_EQ(file.path().filename(), "w.safetensors"); // no temporary file is left
}

TEST_F(SafetensorsTest, PaddingMetadataEmptyAndScalarTensorsAreAllowed) {
  auto tensors = read(makeFile("{\"__metadata__\":{\"format\":\"pt\"}," + entry("s", "F32", "[]", 0, 4) + "," +
                                   entry("e", "I64", "[0,5]", 4, 4) + "," + entry("f", "F4", "[2,2]", 4, 6) + "}    ",
                               "abcdef"));
  EXPECT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors.at("s").bytes, 4u);
  EXPECT_EQ(read(makeFile("{}", "")).size(), 0u);
}

TEST_F(SafetensorsTest, DamagedHeadersAreRefused) {
  refuses("", "0 bytes, a safetensors file has at least 8");
  refuses(bytesOf(uint64_t(100000001)) + "{}", "header of 100000001 bytes, at most 100000000 are allowed");
  refuses(bytesOf(UINT64_MAX) + "{}", "at most 100000000 are allowed");
  refuses(bytesOf(uint64_t(3)) + "{}", "header of 3 bytes in a file of 10");
  refuses(makeFile("", ""), "the header does not begin with '{'");
  refuses(makeFile(" {}", ""), "the header does not begin with '{'");
  refuses(makeFile("{\"a\":", ""), "invalid JSON");
  refuses(makeFile("{\"\xff\":1}", ""), "invalid JSON");
  refuses(makeFile("{}x", ""), "invalid JSON");
  refuses(makeFile("{\"a\":1e999}", ""), "invalid JSON");
  refuses(makeFile("{\"a\":3}", ""), "a.safetensors.a: expected an object");
  refuses(makeFile("{\"__metadata__\":{\"a\":3}}", ""), "__metadata__.a: expected a string");
}

TEST_F(SafetensorsTest, AttacksAreRefusedWithoutEffort) {
  refuses(makeFile("{\"a\":" + std::string(1000000, '['), ""), "JSON nested deeper than 3 levels");
  refuses(makeFile("{\"a\":" + std::string(50, '{'), ""), "a.safetensors: ");
  refuses(makeFile("{" + entry("a", "F32", "[1]", 0, 4) + "," + entry("a", "F32", "[1]", 0, 4) + "}", "abcd"),
          "duplicate key 'a'");
  refuses(makeFile("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", "abcd"),
          "duplicate key 'dtype'");
  refuses(makeFile("{" + entry("a", "F32", "[4294967296,4294967296,4294967296]", 0, 4) + "}", "abcd"),
          "a.shape: expected a shape that 64 bits can count");
  refuses(makeFile("{" + entry("a", "F32", "[9223372036854775808]", 0, 4) + "}", "abcd"), "a.shape[0]: expected");
}

TEST_F(SafetensorsTest, TensorsThatDoNotCoverTheBufferAreRefused) {
  std::string a = entry("a", "F32", "[1]", 0, 4);
  refuses(makeFile("{" + a + "}", "abcdefgh"), "the tensors end at byte 4 of the buffer, the file at 8");
  refuses(makeFile("{" + a + "," + entry("b", "F32", "[1]", 8, 12) + "}", std::string(12, 'x')),
          "tensor 'b' begins at byte 8 of the buffer, after a hole, expected 4");
  refuses(makeFile("{" + a + "," + entry("b", "F32", "[1]", 2, 6) + "}", "abcdef"),
          "tensor 'b' begins at byte 2 of the buffer, inside of the one before, expected 4");
  refuses(makeFile("{" + a + "}", "abc"), "a.data_offsets: expected an end of at most 3, not 4");
  refuses(makeFile("{" + entry("a", "F32", "[2]", 0, 4) + "}", "abcd"),
          "a.data_offsets: expected 8 bytes for F32 of shape [2], not 4");
  refuses(makeFile("{" + entry("a", "F32", "[0]", 4, 0) + "}", "abcd"), "a.data_offsets: expected [begin, end]");
  refuses(makeFile("{" + entry("a", "F32", "[-1]", 0, 4) + "}", "abcd"), "a.shape[0]: expected an integer from 0");
  refuses(makeFile("{" + entry("a", "F32", "[1.5]", 0, 4) + "}", "abcd"), "a.shape[0]: expected an integer");
  refuses(makeFile("{" + entry("a", "FP32", "[1]", 0, 4) + "}", "abcd"), "expected a dtype of the format, not 'FP32'");
  refuses(makeFile("{" + entry("a", "F4", "[3]", 0, 1) + "}", "a"), "a.data_offsets: expected 1 bytes");
  refuses(makeFile("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", "abcd"), "a: no 'data_offsets'");
  refuses(makeFile("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", "abcd"),
          "a.x: expected only dtype, shape and data_offsets");
}

TEST_F(SafetensorsTest, ShardsHaveAnIndex) {
  std::vector<float> values(100, 3);
  std::vector<TensorToStore> tensors;
  for (const char *name : {"c", "a", "b"})
    tensors.push_back({name, DROVER_F32, {25}, values.data()});
  writeTensors(folder.path("out"), tensors, 200);
  nlohmann::json index = nlohmann::json::parse(readFile(folder.path("out/model.safetensors.index.json")));
  EXPECT_EQ(index["metadata"]["total_size"], 300);
  EXPECT_EQ(index["weight_map"]["a"], "model-00001-of-00002.safetensors");
  EXPECT_EQ(index["weight_map"]["c"], "model-00002-of-00002.safetensors");
  TensorFiles files(folder.path("out/model.safetensors.index.json"));
  EXPECT_EQ(files.tensors().size(), 3u);
  EXPECT_EQ(std::memcmp(files.tensors().at("c").data, values.data(), 100), 0);
}

TEST_F(SafetensorsTest, DamagedIndicesAreRefused) {
  float value = 1;
  writeSafetensors(folder.path("s.safetensors"), {{"a", DROVER_F32, {}, &value}});
  auto refusesIndex = [&](const std::string &text, const std::string &message) {
    expectError([&] { TensorFiles files(folder.write("i.json", text)); }, message);
  };
  refusesIndex("{\"weight_map\":{\"b\":\"s.safetensors\"}}", "tensor 'b' is not in ");
  refusesIndex("{\"weight_map\":{\"a\":\"../s.safetensors\"}}", "expected a file beside the index");
  refusesIndex("{\"weight_map\":{\"a\":\"/etc/passwd\"}}", "expected a file beside the index");
  refusesIndex("{\"weight_map\":{\"a\":\"none.safetensors\"}}", "none.safetensors: cannot open");
  refusesIndex("{\"weight_map\":{\"a\":1}}", "weight_map.a: expected a string");
  refusesIndex("{\"weights\":{}}", "no 'weight_map'");
  refusesIndex("", "invalid JSON");
}

TEST_F(SafetensorsTest, AFullDiskIsAnErrorAndLeavesTheOldFile) {
  std::string path = folder.write("w.safetensors", "old");
  std::vector<float> values(1 << 16);
  rlimit old;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = {1 << 12, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    writeSafetensors(path, {{"a", DROVER_F32, {1 << 16}, values.data()}});
  } catch (const Error &error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, previous);
  EXPECT_NE(message.find("w.safetensors: cannot write: File too large"), std::string::npos) << message;
  EXPECT_EQ(readFile(path), "old");
  int64_t count = 0;
  for (const auto &file : std::filesystem::directory_iterator(folder.path("")))
    count += !file.path().empty();
  EXPECT_EQ(count, 1);
}

TEST_F(SafetensorsTest, AFolderThatIsNotThereIsAnError) {
  float value = 1;
  expectError([&] { writeSafetensors(folder.path("none/w.safetensors"), {{"a", DROVER_F32, {}, &value}}); },
              "none/w.safetensors: cannot create: No such file or directory");
  folder.write("file", "");
  expectError([&] { writeTensors(folder.path("file/out"), {{"a", DROVER_F32, {}, &value}}); },
              "file/out: cannot create the folder");
}

/// Byte-wise and structural mutations of a good file: an Error or a consistent view, never a crash.
TEST_F(SafetensorsTest, MutatedFilesNeverCrash) {
  std::string good = makeFile("{\"__metadata__\":{\"k\":\"v\"}," + entry("a", "F32", "[2,2]", 0, 16) + "," +
                                  entry("b", "BF16", "[4]", 16, 24) + "}",
                              std::string(24, '\1'));
  int64_t accepted = readMutants(good, "0123456789{}[]\",:", 2500, 11, [&](const std::string &bad) {
    uint64_t sum = 0; // every byte of the view can be read
    for (const auto &[name, tensor] : read(bad))
      for (uint64_t i = 0; i < tensor.bytes; ++i)
        sum += tensor.data[i];
    EXPECT_LT(sum, UINT64_MAX);
  });
  EXPECT_GT(accepted, 0);
}

} // namespace
