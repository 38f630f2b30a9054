//===- NpyTest.cpp - NumPy array files ------------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/npy.h"
#include "../TestFiles.h"
#include <cmath>

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

std::string makeNpy(const std::string &header, const std::string &data, int major = 1) {
  std::string length = major == 1 ? bytesOf(uint16_t(header.size())) : bytesOf(uint32_t(header.size()));
  return std::string("\x93NUMPY") + char(major) + std::string(1, '\0') + length + header + data;
}
std::string header(const std::string &descr, const std::string &shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
}

class NpyTest : public ::testing::Test {
protected:
  template <typename T> std::vector<T> read(const std::string &content, DType type) {
    NpyFile file(folder.write("a.npy", content));
    int64_t count = 1;
    for (int64_t size : file.shape())
      count *= size;
    std::vector<T> values(static_cast<size_t>(count));
    file.read(type, values.data());
    return values;
  }
  void refuses(const std::string &content, DType type, const std::string &message) {
    expectError([&] { read<int64_t>(content, type); }, message);
  }
  TemporaryFolder folder;
};

TEST_F(NpyTest, WhatIsWrittenIsReadBack) {
  std::vector<float> values = {1.5f, -2, 3e38f, 0, 1e-40f, 6};
  writeNpy(folder.path("w.npy"), DROVER_F32, {2, 3}, values.data());
  NpyFile file(folder.path("w.npy"));
  EXPECT_EQ(file.shape(), (std::vector<int64_t>{2, 3}));
  std::vector<float> read(6);
  file.read(DROVER_F32, read.data());
  EXPECT_EQ(read, values);
  EXPECT_EQ(readFile(folder.path("w.npy")).find('\n') % 64, 63u); // the data is aligned
}

TEST_F(NpyTest, ScalarsEmptyArraysAndFormatTwo) {
  EXPECT_EQ(read<float>(makeNpy(header("<f4", "()"), bytesOf(2.5f)), DROVER_F32), std::vector<float>{2.5f});
  EXPECT_TRUE(read<float>(makeNpy(header("<f4", "(0, 3)"), ""), DROVER_F32).empty());
  EXPECT_EQ(read<float>(makeNpy(header("<f4", "(1,)"), bytesOf(7.0f), 2), DROVER_F32), std::vector<float>{7});
}

TEST_F(NpyTest, LosslessConversions) {
  std::string i64 = makeNpy(header("<i8", "(3,)"), bytesOf(std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(read<int32_t>(i64, DROVER_I32), (std::vector<int32_t>{0, 1, 1}));
  EXPECT_EQ(read<uint8_t>(i64, DROVER_I1), (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_EQ(read<float>(i64, DROVER_F32), (std::vector<float>{0, 1, 1}));
  EXPECT_EQ(read<uint16_t>(i64, DROVER_BF16), (std::vector<uint16_t>{0, 0x3f80, 0x3f80}));
  std::string flags = makeNpy(header("|b1", "(2,)"), std::string("\x01\x00", 2));
  EXPECT_EQ(read<int64_t>(flags, DROVER_I64), (std::vector<int64_t>{1, 0}));
  std::string f64 = makeNpy(header("<f8", "(2,)"), bytesOf(std::vector<double>{0.5, -INFINITY}));
  EXPECT_EQ(read<float>(f64, DROVER_F32), (std::vector<float>{0.5f, -INFINITY}));
  std::string f16 = makeNpy(header("<f2", "(1,)"), bytesOf(uint16_t(0x3c00)));
  EXPECT_EQ(read<float>(f16, DROVER_F32), std::vector<float>{1});
  EXPECT_EQ(read<int64_t>(f16, DROVER_I64), std::vector<int64_t>{1});
}

TEST_F(NpyTest, LossyConversionsAreErrors) {
  std::string big = makeNpy(header("<i8", "(2,)"), bytesOf(std::vector<int64_t>{1, int64_t(1) << 40}));
  refuses(big, DROVER_I32, "element 1 has a value that i32 does not hold exactly");
  refuses(big, DROVER_I1, "element 1 has a value that i1 does not hold exactly");
  refuses(makeNpy(header("<i8", "(1,)"), bytesOf((int64_t(1) << 24) + 1)), DROVER_F32, "f32 does not hold exactly");
  refuses(makeNpy(header("<i8", "(1,)"), bytesOf(INT64_MIN)), DROVER_F32, "f32 does not hold exactly");
  refuses(makeNpy(header("<f8", "(1,)"), bytesOf(0.1)), DROVER_F32, "f32 does not hold exactly");
  refuses(makeNpy(header("<f8", "(1,)"), bytesOf(1e300)), DROVER_F32, "f32 does not hold exactly");
  refuses(makeNpy(header("<f4", "(1,)"), bytesOf(0.5f)), DROVER_I64, "i64 does not hold exactly");
  refuses(makeNpy(header("<f4", "(1,)"), bytesOf(float(NAN))), DROVER_I64, "i64 does not hold exactly");
  refuses(makeNpy(header("<u8", "(1,)"), bytesOf(UINT64_MAX)), DROVER_I64, "i64 does not hold exactly");
}

TEST_F(NpyTest, DamagedFilesAreRefused) {
  std::string data(16, '\0');
  refuses("", DROVER_F32, "no .npy file");
  refuses("\x93NUMPX\x01", DROVER_F32, "no .npy file");
  refuses(makeNpy(header("<f4", "(4,)"), data, 4), DROVER_F32, ".npy format 4, expected 1 to 3");
  refuses(makeNpy(header("<f4", "(4,)"), data.substr(1)), DROVER_F32, "15 bytes of data, shape [4] needs 16");
  refuses(makeNpy(header("<f4", "(3,)"), data), DROVER_F32, "16 bytes of data, shape [3] needs 12");
  refuses(makeNpy(header(">f4", "(4,)"), data), DROVER_F32, "element type '>f4', expected little-endian");
  refuses(makeNpy(header("<c8", "(2,)"), data), DROVER_F32, "element type '<c8'");
  refuses(makeNpy(header("|O", "(2,)"), data), DROVER_F32, "element type '|O'");
  refuses(makeNpy("{'descr': '<f4', 'fortran_order': True, 'shape': (4,), }", data), DROVER_F32,
          "Fortran order, expected C order");
  refuses(makeNpy("{'descr': '<f4', 'shape': (4,), }", data), DROVER_F32, "expected descr, fortran_order and shape");
  refuses(makeNpy("{'x': '<f4'}", data), DROVER_F32, "not 'x'");
  refuses(makeNpy(header("<f4", "(-4,)"), data), DROVER_F32, "expected a size that memory can hold");
  refuses(makeNpy(header("<f4", "(4294967296, 4294967296)"), data), DROVER_F32, "expected a size that memory can hold");
  refuses(makeNpy("[]", data), DROVER_F32, "expected '{'");
  std::string tooLong = makeNpy(header("<f4", "(4,)"), data);
  tooLong[8] = '\xff';
  tooLong[9] = '\xff';
  refuses(tooLong, DROVER_F32, "header of 65535 bytes in a file of");
}

TEST_F(NpyTest, MutatedFilesNeverCrash) {
  std::string good = makeNpy(header("<f4", "(2, 2)"), std::string(16, '\1'));
  int64_t accepted =
      readMutants(good, "0123456789'{}(),:<", 2000, 7, [&](const std::string &bad) { read<double>(bad, DROVER_F64); });
  EXPECT_GT(accepted, 0); // changed data is still data
}

} // namespace
