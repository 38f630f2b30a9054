//===- TilesTest.cpp - the instruction-set dependent layer ----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Tables.h"
#include "TestData.h"

#include <gtest/gtest.h>

#include <limits>

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

class Tiles : public testing::TestWithParam<const TileKernels *> {};

/// exp of a row of non-positive scores, through a softmax whose maximum is already 0.
std::vector<float> exponentials(const TileKernels &tiles, std::vector<float> scores) {
  const int32_t size = scores.size();
  float maximum = 0, sum = 0;
  tiles.softmaxRow({scores.data(), nullptr, 0, size, size, 1.0f, 0.0f}, maximum, sum);
  return scores;
}

TEST_P(Tiles, ExponentialIsWithinTwoUlp) {
  std::mt19937 random(31);
  std::uniform_real_distribution<float> range(-87.0f, 0.0f), near(-1.0f, 0.0f);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> scores(512);
    for (float &score : scores)
      score = round % 2 ? range(random) : near(random);
    const std::vector<float> results = exponentials(*GetParam(), scores);
    for (size_t i = 0; i < scores.size(); ++i) {
      const double exact = std::exp(static_cast<double>(scores[i]));
      const double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
      ASSERT_LE(std::fabs(results[i] - exact), 2 * ulp) << scores[i];
    }
  }
}

TEST_P(Tiles, ExponentialOfSpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> scores(32, -1.0f);
  scores[0] = -infinity;
  scores[1] = -100.0f;
  scores[2] = 0.0f;
  scores[3] = -0.0f;
  scores[4] = none;
  const std::vector<float> results = exponentials(*GetParam(), scores);
  EXPECT_EQ(results[0], 0.0f);
  EXPECT_EQ(results[1], 0.0f);
  EXPECT_EQ(results[2], 1.0f);
  EXPECT_EQ(results[3], 1.0f);
  EXPECT_TRUE(std::isnan(results[4]));
}

TEST_P(Tiles, SoftcapIsTheHyperbolicTangent) {
  std::mt19937 random(32);
  std::normal_distribution<float> normal(0.0f, 4.0f);
  std::vector<float> scores(512), raw;
  for (float &score : scores)
    score = normal(random);
  raw = scores;
  float maximum = 0, sum = 0;
  GetParam()->softmaxRow({scores.data(), nullptr, 0, 512, 512, 1.0f, 3.0f}, maximum, sum);
  for (size_t i = 0; i < scores.size(); ++i)
    ASSERT_NEAR(scores[i], std::exp(3.0 * std::tanh(raw[i] / 3.0) - maximum), 2e-6) << raw[i];
}

TEST_P(Tiles, NarrowingRoundsToNearestEven) {
  std::mt19937 random(33);
  std::vector<float> values(999);
  for (float &value : values) {
    // Any bits, half of them a tie.
    const uint32_t bits = random() % 2 ? (random() << 16 | 0x8000) : random();
    std::memcpy(&value, &bits, 4);
  }
  std::vector<uint16_t> results(values.size());
  GetParam()->narrow(values.data(), values.size(), results.data(), DROVER_BF16);
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(results[i], floatToBf16(values[i])) << i;
}

TEST_P(Tiles, SelfCheckAccepts) { EXPECT_TRUE(agreesWith(*GetParam(), tileKernelsAvx2)); }

TEST_P(Tiles, SelfCheckSeesEachFunctionFail) {
  TileKernels broken = *GetParam();
  broken.gemm = [](const TileGemm &) {};
  EXPECT_FALSE(agreesWith(broken, tileKernelsAvx2));
  broken = *GetParam();
  broken.dot = [](const float *, const float *, int64_t) { return 0.0f; };
  EXPECT_FALSE(agreesWith(broken, tileKernelsAvx2));
  broken = *GetParam();
  broken.narrow = [](const float *, int64_t, void *, int) {};
  EXPECT_FALSE(agreesWith(broken, tileKernelsAvx2));
  broken = *GetParam();
  broken.softmaxRow = [](const ScoreRow &, float &, float &) { return 1.0f; };
  EXPECT_FALSE(agreesWith(broken, tileKernelsAvx2));
  broken = *GetParam();
  broken.softmaxGradRow = [](const ScoreRow &, float, float, float *) {};
  EXPECT_FALSE(agreesWith(broken, tileKernelsAvx2));
  broken = *GetParam();
  if (broken.gemmPairs) {
    broken.gemmPairs = [](const TileGemm &) {};
    EXPECT_FALSE(agreesWith(broken, tileKernelsAvx2));
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, Tiles, testing::Values(&tileKernelsAvx2, &tileKernelsWide), tableName);

} // namespace
