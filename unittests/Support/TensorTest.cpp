//===- TensorTest.cpp - host tensors and .npy files -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Support/Npy.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace drover;
using namespace llvm;

namespace {

double roundedByApFloat(double value, const fltSemantics &semantics) {
  APFloat number(value);
  bool losesInfo;
  number.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

TEST(Rounding, IsThatOfApFloat) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> mantissa(-2, 2);
  std::uniform_int_distribution<int> exponent(-160, 140);
  std::vector<double> values = {0.0,      -0.0,     INFINITY,        -INFINITY, 65504,    65519.99, 65520,
                                1e39,     0x1p-24,  0x1p-25,         0x1.8p-25, 0x1p-133, 0x1p-134, 0x1.000001p-134,
                                0x1.01p0, 0x1.03p0, 0x1.0100000001p0};
  for (int i = 0; i < 20000; ++i)
    values.push_back(std::ldexp(mantissa(random), exponent(random) / (i % 2 ? 1 : 8)));
  for (double value : values) {
    EXPECT_EQ(roundTo(value, ElementKind::F16), roundedByApFloat(value, APFloat::IEEEhalf())) << value;
    EXPECT_EQ(roundTo(value, ElementKind::BF16), roundedByApFloat(value, APFloat::BFloat())) << value;
    EXPECT_EQ(roundTo(value, ElementKind::F32), roundedByApFloat(value, APFloat::IEEEsingle())) << value;
  }
  EXPECT_TRUE(std::isnan(roundTo(NAN, ElementKind::BF16)));
}

TEST(Rounding, IntegersWrap) {
  EXPECT_EQ(wrapTo(200, ElementKind::I8), -56);
  EXPECT_EQ(wrapTo(3, ElementKind::I1), 1);
  EXPECT_EQ(wrapTo(int64_t{1} << 40, ElementKind::I32), 0);
  EXPECT_EQ(wrapTo(INT64_MIN, ElementKind::I64), INT64_MIN);
}

TEST(Shapes, AbsurdSizesAreNoShape) {
  EXPECT_EQ(countElements({2, 3, 4}), 24);
  EXPECT_EQ(countElements({}), 1);
  EXPECT_EQ(countElements({5, 0, 7}), 0);
  EXPECT_EQ(countElements({5, -1}), -1);
  EXPECT_EQ(countElements({0, -1}), -1);
  EXPECT_EQ(countElements({INT64_MAX, 2}), -1);
  EXPECT_EQ(countElements({INT64_MAX, 4, 0}), 0);
  EXPECT_EQ(countElements({10, 10}, 99), -1);
  EXPECT_EQ(countElements({10, 10}, 100), 100);
}

class NpyFile : public testing::Test {
protected:
  SmallString<128> path;
  void SetUp() override { ASSERT_FALSE(sys::fs::createTemporaryFile("drover", "npy", path)); }
  void TearDown() override { sys::fs::remove(path); }

  void write(StringRef bytes) {
    std::error_code error;
    raw_fd_ostream(path, error) << bytes;
    ASSERT_FALSE(error);
  }
  std::string failure() {
    Expected<Tensor> tensor = readNpy(path);
    return tensor ? "" : toString(tensor.takeError());
  }
};

TEST_F(NpyFile, EveryKindComesBack) {
  for (ElementKind kind : {ElementKind::I1, ElementKind::I8, ElementKind::I16, ElementKind::I32, ElementKind::I64,
                           ElementKind::F16, ElementKind::BF16, ElementKind::F32, ElementKind::F64}) {
    for (const std::vector<int64_t> &shape : std::vector<std::vector<int64_t>>{{}, {3}, {2, 0, 5}, {2, 3, 4}}) {
      Tensor tensor(kind, shape);
      for (int64_t i = 0; i < tensor.size(); ++i)
        tensor.setDouble(i,
                         kind == ElementKind::I1 ? i % 2 : (isFloat(kind) ? roundTo(i * 0.37 - 2, kind) : i * 5 - 9));
      Error error = writeNpy(path, tensor);
      ASSERT_FALSE(bool(error)) << toString(std::move(error));
      Expected<Tensor> back = readNpy(path);
      ASSERT_TRUE(bool(back)) << toString(back.takeError());
      EXPECT_EQ(back->kind, kind == ElementKind::BF16 ? ElementKind::F32 : kind);
      EXPECT_EQ(back->shape, tensor.shape);
      EXPECT_EQ(back->floats, tensor.floats);
      EXPECT_EQ(back->ints, tensor.ints);
    }
  }
}

std::string npy(StringRef descr, StringRef shape, StringRef data, StringRef order = "False") {
  std::string header = ("{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n").str();
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size());
  text += '\0';
  return text + header + data.str();
}

TEST_F(NpyFile, UnsignedIntegersWiden) {
  write(npy("|u1", "(2,)", StringRef("\xff\x01", 2)));
  Expected<Tensor> tensor = readNpy(path);
  ASSERT_TRUE(bool(tensor));
  EXPECT_EQ(tensor->kind, ElementKind::I16);
  EXPECT_EQ(tensor->ints, (std::vector<int64_t>{255, 1}));
}

TEST_F(NpyFile, MalformedFilesAreErrors) {
  write("no array");
  EXPECT_NE(failure().find("no magic number"), std::string::npos);
  write(StringRef("\x93NUMPY\x01\x00\xff\xff{   ", 14));
  EXPECT_NE(failure().find("the header is cut off"), std::string::npos);
  write(npy(">f4", "(1,)", "abcd"));
  EXPECT_NE(failure().find("element type '>f4'"), std::string::npos);
  write(npy("<f4", "(2,)", "abcd"));
  EXPECT_NE(failure().find("expected 2 elements, has 4 bytes"), std::string::npos);
  write(npy("<f4", "(4611686018427387904, 4)", "abcd"));
  EXPECT_NE(failure().find("expected -1 elements"), std::string::npos);
  write(npy("<f4", "(-1,)", "abcd"));
  EXPECT_NE(failure().find("no shape"), std::string::npos);
  write(npy("<f4", "(1, 1)", "abcd", "True"));
  EXPECT_NE(failure().find("expected C order"), std::string::npos);
  write(npy("<u8", "(1,)", StringRef("\xff\xff\xff\xff\xff\xff\xff\xff", 8)));
  EXPECT_NE(failure().find("exceeds a signed 64-bit integer"), std::string::npos);
}

} // namespace
