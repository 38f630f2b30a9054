//===- PartsTest.cpp - parts of cut tensors, and sums ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "comm/Parts.h"
#include "../TestFiles.h"
#include <cmath>

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

TEST(Parts, CoverTheWholeOnce) {
  for (int members : {1, 2, 3, 4})
    for (bool twoChunk : {false, true})
      for (int64_t local : {2, 4, 6}) {
        TensorCut cut = {3, local, 5, twoChunk};
        std::vector<int> hits(size_t(cut.elements() * members));
        for (int member = 0; member < members; ++member) {
          // In ranges that do not fit rows or chunks.
          for (int64_t begin = 0; begin < cut.elements(); begin += 7)
            forEachRun(cut, members, member, begin, std::min(begin + 7, cut.elements()),
                       [&](int64_t whole, int64_t part, int64_t count) {
                         EXPECT_GE(count, 1);
                         for (int64_t i = 0; i < count; ++i)
                           ++hits[size_t(whole + i)];
                       });
        }
        EXPECT_EQ(std::count(hits.begin(), hits.end(), 1), int64_t(hits.size()));
      }
}

TEST(Parts, TwoChunksAreTheFirstAndItsMirror) {
  std::vector<int64_t> starts;
  forEachRun({1, 6, 2, true}, 4, 1, 0, 12, [&](int64_t whole, int64_t part, int64_t count) {
    EXPECT_EQ(count, 6);
    starts.push_back(whole);
  });
  EXPECT_EQ(starts, (std::vector<int64_t>{1 * 6, 6 * 6})); // chunks 1 and 2n - 1 - 1 = 6, of 3 rows of 2
}

/// A sum whose value depends on its order.
TEST(Parts, SumsRunFromTheFirst) {
  float large = 16777216, one = 1, minus = -16777216, result = 0;
  reduceInOrder(DROVER_F32, ReduceOp::Sum, {&large, &one, &minus}, 1, {&result});
  EXPECT_EQ(result, 0);
  reduceInOrder(DROVER_F32, ReduceOp::Sum, {&large, &minus, &one}, 1, {&result});
  EXPECT_EQ(result, 1);
}

TEST(Parts, BfloatIsRoundedOnce) {
  // 1 + 3 * 2^-9 = 1.005859375 rounds to 1.0078125; rounding after each addition would stay at 1.
  uint16_t one = floatToBfloat(1), small = floatToBfloat(0x1p-9f), result;
  reduceInOrder(DROVER_BF16, ReduceOp::Sum, {&one, &small, &small, &small}, 1, {&result});
  EXPECT_EQ(bfloatToFloat(result), 1.0078125f);
}

TEST(Parts, ANanStaysInAMaximum) {
  float nan = std::nanf(""), one = 1, two = 2, result = 0;
  for (const std::vector<const void *> &sources :
       {std::vector<const void *>{&nan, &one, &two}, {&one, &nan, &two}, {&one, &two, &nan}}) {
    reduceInOrder(DROVER_F32, ReduceOp::Max, sources, 1, {&result});
    EXPECT_TRUE(std::isnan(result));
  }
}

TEST(Parts, IntegersWrap) {
  int64_t largest = INT64_MAX, one = 1, result = 0;
  reduceInOrder(DROVER_I64, ReduceOp::Sum, {&largest, &one}, 1, {&result});
  EXPECT_EQ(result, INT64_MIN);
}

TEST(Parts, OtherTypesHaveNoSums) {
  int8_t value = 0;
  expectError([&] { reduceInOrder(DROVER_I8, ReduceOp::Sum, {&value}, 1, {&value}); },
              "no sums of i8, expected f32, bf16, f64 or i64");
}

TEST(Parts, SentBytesAreTheRings) {
  EXPECT_EQ(sentBytes(OperationKind::AllGather, 4000, 4), 3000);
  EXPECT_EQ(sentBytes(OperationKind::ReduceScatter, 4000, 4), 3000);
  EXPECT_EQ(sentBytes(OperationKind::AllReduce, 4000, 4), 6000);
  EXPECT_EQ(sentBytes(OperationKind::Send, 4000, 2), 4000);
}

} // namespace
