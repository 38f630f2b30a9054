//===- MatmulTest.cpp - products of matrices ------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Tables.h"
#include "TestData.h"

#include "drover/rt/thread_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <sstream>

using namespace drover::rt::test;

namespace {

struct Case {
  drover_matmul d;
  int32_t accumulate = 0;
  Tensor a, b, c;

  /// The padding of leading dimensions and strides holds a value that a wrong read or write would carry on.
  Case(int32_t dtypeAB, int32_t dtypeC, bool transA, bool transB, int32_t store, int64_t m, int64_t n, int64_t k,
       int64_t batch, int64_t padding, std::mt19937 &random) {
    const int64_t lda = (transA ? m : k) + padding, ldb = (transB ? k : n) + padding, ldc = n + padding;
    const int64_t rowsA = transA ? k : m, rowsB = transB ? n : k;
    d = {dtypeAB,
         dtypeC,
         transA,
         transB,
         store,
         0,
         m,
         n,
         k,
         lda,
         ldb,
         ldc,
         batch,
         rowsA * lda + padding,
         rowsB * ldb + padding,
         m * ldc + padding};
    a = Tensor(dtypeAB, batch * d.stride_a);
    b = Tensor(dtypeAB, batch * d.stride_b);
    c = Tensor(dtypeC, batch * d.stride_c);
    a.randomize(random);
    b.randomize(random);
    c.randomize(random);
  }

  std::string name() const {
    std::ostringstream out;
    out << "m " << d.m << " n " << d.n << " k " << d.k << " batch " << d.batch << " types " << d.dtype_ab << d.dtype_c
        << " transposed " << d.trans_a << d.trans_b << " store " << d.store << " accumulate " << accumulate;
    return out.str();
  }

  Tensor run(drover_pool *pool) const {
    Tensor result = c;
    drover_call call = {pool, 0, accumulate, 0, nullptr, nullptr, nullptr};
    drover_rt_matmul(&call, &d, a.data(), b.data(), result.data());
    return result;
  }

  void check(const Tensor &result) const {
    const bool add = d.store == DROVER_ADD || (d.store == DROVER_ACCUMULATE && accumulate);
    std::vector<bool> written(c.size(), false);
    for (int64_t p = 0; p < d.batch; ++p)
      for (int64_t i = 0; i < d.m; ++i)
        for (int64_t j = 0; j < d.n; ++j) {
          double sum = 0, magnitude = 0;
          for (int64_t q = 0; q < d.k; ++q) {
            const double x = a[p * d.stride_a + (d.trans_a ? q * d.lda + i : i * d.lda + q)];
            const double y = b[p * d.stride_b + (d.trans_b ? j * d.ldb + q : q * d.ldb + j)];
            sum += x * y;
            magnitude += std::fabs(x * y);
          }
          const int64_t at = p * d.stride_c + i * d.ldc + j;
          written[at] = true;
          if (add)
            sum += c[at];
          const double tolerance = magnitude * 1e-6 + 1e-6 + (d.dtype_c == DROVER_BF16 ? std::fabs(sum) / 250 : 0);
          ASSERT_NEAR(result[at], sum, tolerance) << name() << " at " << p << ", " << i << ", " << j;
        }
    for (int64_t i = 0; i < c.size(); ++i)
      if (!written[i]) {
        ASSERT_EQ(result[i], c[i]) << name() << ": wrote outside of C";
      }
  }
};

class Matmul : public WithTable {};

TEST_P(Matmul, AgreesWithDoubleOverShapesAndOptions) {
  std::mt19937 random(1);
  drover_pool pool(2);
  for (int round = 0; round < 250; ++round) {
    const auto size = [&] { return pick(random, {0, 1, 2, 3, 5, 6, 7, 8, 15, 16, 17, 31, 33, 48, 64, 97, 100}); };
    const int64_t k = round % 10 == 0 ? pick(random, {255, 256, 257, 500, 700}) : size();
    Case test(random() % 2, random() % 2, random() % 2, random() % 2, random() % 3, size(), size(), k,
              pick(random, {1, 1, 1, 2, 3, 5}), pick(random, {0, 0, 1, 5}), random);
    test.accumulate = random() % 2;
    test.check(test.run(random() % 4 ? &pool : nullptr));
    if (HasFatalFailure())
      return;
  }
}

TEST_P(Matmul, ThreadsAndRunsAgreeBitwise) {
  std::mt19937 random(2);
  drover_pool pools[3] = {drover_pool(1), drover_pool(2), drover_pool(3)};
  for (int round = 0; round < 24; ++round) {
    Case test(random() % 2, random() % 2, random() % 2, random() % 2, random() % 3, pick(random, {1, 100, 257, 384}),
              pick(random, {1, 48, 130, 300}), pick(random, {3, 64, 400, 650}), pick(random, {1, 3}), 0, random);
    const Tensor serial = test.run(nullptr);
    for (drover_pool &pool : pools)
      for (int run = 0; run < 2; ++run)
        EXPECT_TRUE(test.run(&pool).sameBits(serial)) << test.name() << " with " << pool.threads() << " threads";
  }
}

TEST_P(Matmul, WideResultsAreCutIntoChunks) {
  // More columns than a packed chunk has, and a depth at which only a few columns fit.
  std::mt19937 random(3);
  drover_pool pool(2);
  for (auto [m, n, k] : {std::array<int64_t, 3>{3, 4300, 7}, {2, 70, 33000}})
    for (int32_t dtype : {DROVER_F32, DROVER_BF16}) {
      Case test(dtype, dtype, false, true, DROVER_OVERWRITE, m, n, k, 1, 0, random);
      test.check(test.run(&pool));
    }
}

TEST_P(Matmul, NoDepthOverwritesWithZeroOrKeeps) {
  std::mt19937 random(4);
  for (int32_t dtype : {DROVER_F32, DROVER_BF16}) {
    Case overwrite(dtype, dtype, false, false, DROVER_OVERWRITE, 3, 5, 0, 2, 1, random);
    overwrite.check(overwrite.run(nullptr));
    Case add(dtype, dtype, false, false, DROVER_ADD, 3, 5, 0, 2, 1, random);
    EXPECT_TRUE(add.run(nullptr).sameBits(add.c));
  }
}

TEST_P(Matmul, Bf16ResultIsRoundedOnceToNearestEven) {
  // Three depth blocks whose partial sums would each round away: 1 + 2^-9 + 2^-9 is a tie between 1 and 1 + 2^-7 only
  // when all of it is summed first.
  const int64_t k = 900;
  std::mt19937 random(5);
  Case test(DROVER_BF16, DROVER_BF16, false, true, DROVER_OVERWRITE, 1, 1, k, 1, 0, random);
  test.a.fill(1.0f);
  test.b.fill(0.0f);
  test.b.set(0, 1.0f);
  test.b.set(400, std::ldexp(1.0f, -9));
  test.b.set(899, std::ldexp(1.0f, -9));
  EXPECT_EQ(test.run(nullptr)[0], 1.0) << "the tie goes to even";
  test.b.set(700, std::ldexp(1.0f, -20));
  EXPECT_EQ(test.run(nullptr)[0], 1.0 + std::ldexp(1.0, -7));
  test.b.set(0, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(std::isnan(test.run(nullptr)[0]));
}

TEST_P(Matmul, InfinitiesAndNaNsStayInTheirRowsAndColumns) {
  std::mt19937 random(6);
  Case test(DROVER_F32, DROVER_F32, false, false, DROVER_OVERWRITE, 20, 40, 30, 1, 0, random);
  test.a.set(7 * 30 + 3, std::numeric_limits<float>::infinity());
  test.b.set(5 * 40 + 33, std::numeric_limits<float>::quiet_NaN());
  const Tensor result = test.run(nullptr);
  for (int64_t i = 0; i < 20; ++i)
    for (int64_t j = 0; j < 40; ++j)
      EXPECT_EQ(std::isfinite(result[i * 40 + j]), i != 7 && j != 33) << i << ", " << j;
}

TEST(MatmulDeathTest, OtherElementTypesAreFatal) {
  std::mt19937 random(7);
  Case test(DROVER_F32, DROVER_F32, false, false, DROVER_OVERWRITE, 1, 1, 1, 1, 0, random);
  test.d.dtype_ab = DROVER_F64;
  EXPECT_DEATH(test.run(nullptr), "matmul of element type 3");
}

INSTANTIATE_TEST_SUITE_P(Tables, Matmul, testing::Values(&drover::rt::tileKernelsAvx2, &drover::rt::tileKernelsWide),
                         tableName);

} // namespace
