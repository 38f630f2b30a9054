//===- NumbersTest.cpp - random numbers, hashes, schedules, conversions ---===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/dtype.h"
#include "drover/rt/optimizer.h"
#include "drover/rt/philox.h"
#include "drover/rt/sha256.h"
#include "drover/rt/text.h"
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

using namespace drover::rt;

namespace {

// The known answers that come with Random123 (Salmon et al. 2011) for philox4x32 with 10 rounds.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, NormalsDoNotDependOnTheCut) {
  std::vector<float> whole(1001), parts(1001);
  fillNormal(3, "w", 0.02, 0, 1001, whole.data());
  for (int64_t first = 0; first < 1001; first += 7)
    fillNormal(3, "w", 0.02, first, std::min<int64_t>(7, 1001 - first), parts.data() + first);
  EXPECT_EQ(whole, parts);
}

TEST(Philox, NormalsHaveTheirMoments) {
  constexpr int64_t count = 200000;
  std::vector<float> values(count), other(count);
  fillNormal(1, "model.layers.0.weight", 0.5, 0, count, values.data());
  fillNormal(1, "model.layers.1.weight", 0.5, 0, count, other.data());
  double sum = 0, squares = 0, fourth = 0, product = 0;
  for (int64_t i = 0; i < count; ++i) {
    double x = values[size_t(i)] / 0.5;
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    product += x * other[size_t(i)] / 0.5;
  }
  double sigma = 1 / std::sqrt(double(count)); // standard error of the mean
  EXPECT_NEAR(sum / count, 0, 5 * sigma);
  EXPECT_NEAR(squares / count, 1, 5 * sigma * std::sqrt(2));
  EXPECT_NEAR(fourth / count, 3, 5 * sigma * std::sqrt(96));
  EXPECT_NEAR(product / count, 0, 5 * sigma);
}

TEST(Philox, SeedAndNameAndUseChangeTheNumbers) {
  float a, b, c;
  fillNormal(1, "w", 1, 0, 1, &a);
  fillNormal(2, "w", 1, 0, 1, &b);
  fillNormal(1, "v", 1, 0, 1, &c);
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
  EXPECT_NE(philoxKey(1, RandomUse::InitialWeights), philoxKey(1, RandomUse::DataOrder));
}

class Sha256Code : public ::testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    if (!compress())
      GTEST_SKIP() << "this CPU has no SHA instructions";
  }
  static Sha256Blocks compress() { return GetParam() ? sha256Instructions() : sha256Portable; }
  /// The digest of a text that comes in parts of `part` bytes.
  static std::string digest(const std::string &text, size_t part) {
    Sha256 hash(compress());
    for (size_t i = 0; i < text.size(); i += part)
      hash.update(text.data() + i, std::min(part, text.size() - i));
    return hash.finish();
  }
};
INSTANTIATE_TEST_SUITE_P(All, Sha256Code, ::testing::Bool(),
                         [](const auto &info) { return info.param ? "Instructions" : "Portable"; });

// FIPS 180-4 examples and the empty message; a million a's: the third example of FIPS 180-2.
TEST_P(Sha256Code, KnownAnswers) {
  const size_t whole = SIZE_MAX / 2;
  EXPECT_EQ(digest("", whole), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc", whole), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", whole),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1000000, 'a'), whole),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_P(Sha256Code, EveryLengthAndEveryCutGiveThePortableDigestOfTheWhole) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += char(i * 7);
    Sha256 portable(sha256Portable);
    portable.update(text.data(), text.size());
    const std::string expected = portable.finish();
    for (size_t part : {1, 3, 63, 64, 65, 128, 300})
      EXPECT_EQ(digest(text, part), expected) << text.size() << " bytes in parts of " << part;
  }
}

TEST(Sha256, OneCallGivesTheDigestOfTheWhole) {
  EXPECT_EQ(sha256("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(LearningRate, WarmsUpThenFollowsACosine) {
  OptimizerSettings s = {};
  s.learningRate = 1e-3;
  s.minLearningRate = 1e-4;
  s.warmupSteps = 5;
  s.steps = 20;
  EXPECT_DOUBLE_EQ(learningRateOf(s, 1), 2e-4);
  EXPECT_DOUBLE_EQ(learningRateOf(s, 5), 1e-3);
  EXPECT_NEAR(learningRateOf(s, 6), 0.0009901664203302125, 1e-18); // PyTorch's run of the same schedule
  EXPECT_NEAR(learningRateOf(s, 10), 0.0007750000000000001, 1e-18);
  EXPECT_DOUBLE_EQ(learningRateOf(s, 20), 1e-4);
  s.warmupSteps = 0;
  EXPECT_LT(learningRateOf(s, 1), 1e-3);
  s.warmupSteps = 40; // longer than the run
  EXPECT_DOUBLE_EQ(learningRateOf(s, 20), 5e-4);
}

TEST(Clipping, IsOffAtZeroAndNeverScalesUp) {
  OptimizerSettings s = {};
  EXPECT_EQ(clipCoefficient(s, 100), 1);
  s.gradientClip = 1;
  EXPECT_EQ(clipCoefficient(s, 0.5), 1);
  EXPECT_EQ(clipCoefficient(s, 4), 1 / (4 + 1e-6));
}

TEST(DType, BfloatRoundsToNearestEven) {
  EXPECT_EQ(floatToBfloat(1.0f), 0x3f80);
  EXPECT_EQ(floatToBfloat(bitsToFloat(0x3f808000)), 0x3f80); // a tie goes to the even neighbour
  EXPECT_EQ(floatToBfloat(bitsToFloat(0x3f818000)), 0x3f82);
  EXPECT_EQ(floatToBfloat(bitsToFloat(0x3f808001)), 0x3f81);
  EXPECT_EQ(floatToBfloat(3.4e38f), 0x7f80); // rounds to infinity
  EXPECT_TRUE(std::isnan(bfloatToFloat(floatToBfloat(bitsToFloat(0x7f800001)))));
}

TEST(DType, HalvesOfEveryKind) {
  EXPECT_EQ(halfToFloat(0x3c00), 1);
  EXPECT_EQ(halfToFloat(0xc000), -2);
  EXPECT_EQ(halfToFloat(0x7bff), 65504);
  EXPECT_EQ(halfToFloat(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(halfToFloat(0x83ff), -std::ldexp(1023.0f, -24));
  EXPECT_EQ(halfToFloat(0x0400), std::ldexp(1.0f, -14));
  EXPECT_EQ(halfToFloat(0xfc00), -INFINITY);
  EXPECT_TRUE(std::isnan(halfToFloat(0x7e00)));
}

TEST(Text, NearestNameHasALimit) {
  EXPECT_EQ(nearestName("stpes", {"seed", "steps"}), "steps");
  EXPECT_EQ(nearestName("colour", {"seed", "steps"}), "");
}

TEST(Text, BytesAndDurations) {
  EXPECT_EQ(formatBytes(12), "12 B");
  EXPECT_EQ(formatBytes(3 << 20), "3.0 MiB");
  EXPECT_EQ(formatDuration(3723), "1:02:03");
  EXPECT_EQ(formatDuration(59.6), "1:00");
}

} // namespace
