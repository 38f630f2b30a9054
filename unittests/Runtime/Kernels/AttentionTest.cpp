//===- AttentionTest.cpp - attention and its gradient ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "AttentionReference.h"
#include "Tables.h"

#include "drover/rt/kernels.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

using namespace drover::rt::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// |result - expected| within `relative` of the element and the tensor's typical size; operands are of size 1 and
/// cancel to zero here and there, hence the absolute part.
void expectClose(const Tensor &result, const std::vector<double> &expected, double relative, const std::string &what) {
  double squares = 0;
  for (double value : expected)
    squares += std::isfinite(value) ? value * value : 0;
  const double typical = std::sqrt(squares / std::max<size_t>(expected.size(), 1));
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == -infinity) {
      ASSERT_EQ(result[i], -infinity) << what << " at " << i;
      continue;
    }
    ASSERT_NEAR(result[i], expected[i], relative * (std::fabs(expected[i]) + typical) + 1e-5) << what << " at " << i;
  }
}

void check(const AttentionCase &test, const AttentionResults &results) {
  const ReferenceResults expected = test.reference(results);
  // bf16: one rounding of each result (2^-9 relative); the rest is f32.
  const double forward = test.d.dtype == DROVER_BF16 ? 5e-3 : 2e-5;
  const double keys = test.d.dtype_kv_grad == DROVER_BF16 ? 5e-3 : 5e-5;
  const double queries = test.d.dtype == DROVER_BF16 ? 5e-3 : 5e-5;
  expectClose(results.result, expected.result, forward, test.name() + " result");
  expectClose(results.logSumExp, expected.logSumExp, 2e-5, test.name() + " log_sum_exp");
  expectClose(results.queryGrad, expected.queryGrad, queries, test.name() + " query_grad");
  expectClose(results.keyGrad, expected.keyGrad, keys, test.name() + " key_grad");
  expectClose(results.valueGrad, expected.valueGrad, keys, test.name() + " value_grad");
}

class Attention : public WithTable {};

TEST_P(Attention, AgreesWithDoubleOverShapesAndOptions) {
  std::mt19937 random(21);
  drover_pool pool(2);
  for (int round = 0; round < 120; ++round) {
    AttentionCase test(random);
    check(test, test.run(random() % 4 ? &pool : nullptr));
    if (HasFatalFailure())
      return;
  }
}

TEST_P(Attention, LongSequencesCrossTiles) {
  std::mt19937 random(22);
  drover_pool pool(2);
  for (int causal : {0, 1, 2})
    for (int64_t window : {0, 100}) {
      AttentionCase test(random, /*plain=*/true);
      test.resize(1, 300, causal == 1 ? 300 : 333, 4, 2, 40, 24, random);
      test.d.causal = causal;
      test.d.window = window;
      check(test, test.run(&pool));
    }
}

TEST_P(Attention, TwoChunksOfTheQueriesAreThoseRowsOfAll) {
  // Each of three ranks has chunks r and 5 - r of 50 queries: tiles of queries cross from one chunk to the other.
  std::mt19937 random(30);
  drover_pool pool(2);
  for (int64_t window : {0, 70}) {
    AttentionCase whole(random, /*plain=*/true);
    whole.d.causal = 1;
    whole.d.window = window;
    whole.resize(1, 300, 300, 4, 2, 24, 16, random);
    const AttentionResults expected = whole.run(&pool);
    std::vector<double> keyGrad(expected.keyGrad.size()), valueGrad(expected.valueGrad.size());
    for (int64_t rank = 0; rank < 3; ++rank) {
      AttentionCase part = whole;
      part.d.queries = 100;
      const int64_t width = 4 * 24, valueWidth = 4 * 16;
      part.query = Tensor(DROVER_F32, 100 * width);
      part.gradient = Tensor(DROVER_F32, 100 * valueWidth);
      for (int64_t i = 0; i < 100; ++i) {
        const int64_t row = i < 50 ? rank * 50 + i : (5 - rank) * 50 + i - 50;
        part.queryIndex.push_back(row);
        for (int64_t c = 0; c < width; ++c)
          part.query.set(i * width + c, whole.query[row * width + c]);
        for (int64_t c = 0; c < valueWidth; ++c)
          part.gradient.set(i * valueWidth + c, whole.gradient[row * valueWidth + c]);
      }
      const AttentionResults results = part.run(&pool);
      check(part, results);
      for (int64_t i = 0; i < 100 * valueWidth; ++i)
        ASSERT_NEAR(results.result[i], expected.result[part.queryIndex[i / valueWidth] * valueWidth + i % valueWidth],
                    1e-5);
      for (int64_t i = 0; i < results.keyGrad.size(); ++i)
        keyGrad[i] += results.keyGrad[i];
      for (int64_t i = 0; i < results.valueGrad.size(); ++i)
        valueGrad[i] += results.valueGrad[i];
    }
    expectClose(expected.keyGrad, keyGrad, 5e-5, "key_grad");
    expectClose(expected.valueGrad, valueGrad, 5e-5, "value_grad");
  }
}

TEST_P(Attention, ThreadsAndRunsAgreeBitwise) {
  std::mt19937 random(23);
  drover_pool pools[3] = {drover_pool(1), drover_pool(2), drover_pool(3)};
  for (int round = 0; round < 12; ++round) {
    AttentionCase test(random);
    // One or three pairs of batch and kv head: some pools walk them in one pass, some in two.
    test.resize(1, 150, 150, 6, round % 2 ? 3 : 1, 24, 16, random);
    const AttentionResults serial = test.run(nullptr);
    for (drover_pool &pool : pools)
      for (int run = 0; run < 2; ++run)
        EXPECT_TRUE(test.run(&pool).sameBits(serial)) << test.name() << " with " << pool.threads() << " threads";
  }
}

TEST_P(Attention, RowsWithNothingToAttendToAreZero) {
  std::mt19937 random(24);
  for (int32_t dtype : {DROVER_F32, DROVER_BF16}) {
    AttentionCase test(random, /*plain=*/true);
    test.d.dtype = test.d.dtype_kv_grad = dtype;
    // Bottom-right with more queries than keys: the first 70 queries see nothing.
    test.resize(2, 100, 30, 4, 2, 16, 16, random);
    test.d.causal = 2;
    const AttentionResults results = test.run(nullptr);
    check(test, results);
    for (int64_t i = 0; i < 70 * 4 * 16; ++i) {
      ASSERT_EQ(results.result[i], 0);
      ASSERT_EQ(results.queryGrad[i], 0);
    }
    ASSERT_EQ(results.logSumExp[0], -infinity);
  }
}

TEST_P(Attention, ExcludedKeysMayHoldAnything) {
  // Keys past the causal end and whole tiles of other documents are not read into a result.
  std::mt19937 random(25);
  AttentionCase test(random, /*plain=*/true);
  test.resize(1, 64, 64, 2, 1, 16, 16, random);
  test.d.causal = 1;
  const AttentionResults before = test.run(nullptr);
  for (int64_t c = 0; c < 16; ++c) {
    test.key.set(63 * test.d.key_stride + c, std::numeric_limits<float>::infinity());
  }
  const AttentionResults after = test.run(nullptr);
  for (int64_t i = 0; i < 63 * 2 * 16; ++i)
    ASSERT_EQ(after.result[i], before.result[i]);
}

TEST_P(Attention, NaNsReachTheirRowsOnly) {
  std::mt19937 random(26);
  AttentionCase test(random, /*plain=*/true);
  test.resize(1, 40, 40, 2, 2, 16, 16, random);
  test.d.causal = 1;
  test.query.set(5 * test.d.query_stride + 3, std::numeric_limits<float>::quiet_NaN());
  const AttentionResults results = test.run(nullptr);
  for (int64_t i = 0; i < 40; ++i)
    for (int64_t c = 0; c < 32; ++c)
      EXPECT_EQ(std::isnan(results.result[i * 32 + c]), i == 5 && c < 16) << i << ", " << c;
  EXPECT_TRUE(std::isnan(results.logSumExp[5]));
}

TEST_P(Attention, LargeScoresDoNotOverflow) {
  std::mt19937 random(27);
  AttentionCase test(random, /*plain=*/true);
  test.resize(1, 20, 20, 1, 1, 8, 8, random);
  test.query.fill(30.0f);
  test.key.fill(-30.0f);
  test.d.scale = 1.0; // every score is -7200
  const AttentionResults results = test.run(nullptr);
  expectClose(results.result, test.reference(results).result, 2e-5, "result");
  EXPECT_NEAR(results.logSumExp[0], -7200 + std::log(20.0), 1e-2);
  for (const Tensor *gradient : {&results.queryGrad, &results.keyGrad, &results.valueGrad})
    for (int64_t i = 0; i < gradient->size(); ++i)
      ASSERT_TRUE(std::isfinite((*gradient)[i]));
}

TEST_P(Attention, MemoryIsLinearInTheLengths) {
  int64_t bytes[2] = {0, 0};
  for (int step : {0, 1}) {
    const int64_t length = 4096 << step;
    // Fresh threads, so that what they hold is what this length needs.
    std::thread([&] {
      const int64_t before = drover::rt::kernelScratchBytes();
      std::mt19937 random(28);
      AttentionCase test(random, /*plain=*/true);
      test.resize(1, length, length, 2, 1, 16, 16, random);
      test.d.causal = 1;
      test.d.window = 64;
      drover_pool pool(2);
      test.run(&pool);
      bytes[step] = drover::rt::kernelScratchBytes() - before + drover_attention_workspace(&test.d);
    }).join();
  }
  EXPECT_GT(bytes[0], 0);
  EXPECT_LE(bytes[1], 2.2 * bytes[0]);
  // Far from a matrix of scores.
  EXPECT_LT(bytes[1], 8192 * 1024);
}

TEST(AttentionDeathTest, HeadsThatDoNotDivideAreFatal) {
  std::mt19937 random(29);
  AttentionCase test(random, /*plain=*/true);
  test.d.heads = 4;
  test.d.kv_heads = 3;
  EXPECT_DEATH(test.run(nullptr), "3 kv heads do not divide 4 heads");
}

INSTANTIATE_TEST_SUITE_P(Tables, Attention, testing::Values(&drover::rt::tileKernelsAvx2, &drover::rt::tileKernelsWide),
                         tableName);

} // namespace
