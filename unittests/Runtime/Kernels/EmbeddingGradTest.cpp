//===- EmbeddingGradTest.cpp - gradient of a table lookup -----------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TestData.h"

#include "drover/rt/thread_pool.h"

#include <gtest/gtest.h>

using namespace drover::rt::test;

namespace {

template <typename Id> void sweep(int32_t idType) {
  std::mt19937 random(11);
  drover_pool pools[3] = {drover_pool(1), drover_pool(2), drover_pool(3)};
  for (int round = 0; round < 60; ++round) {
    const int64_t positions = pick(random, {0, 1, 7, 100, 300}), width = pick(random, {1, 7, 64, 255, 257, 600});
    const int64_t rows = pick(random, {1, 3, 50, 400});
    const int32_t dtype = random() % 2, store = random() % 3, accumulate = random() % 2;
    std::vector<Id> ids(positions);
    for (Id &id : ids)
      id = random() % rows;
    Tensor gradient(dtype, positions * width), table(DROVER_F32, rows * width);
    gradient.randomize(random);
    table.randomize(random);

    // In f32 and in position order, so that equality is exact.
    const bool add = store == DROVER_ADD || (store == DROVER_ACCUMULATE && accumulate);
    Tensor expected(DROVER_F32, rows * width);
    for (int64_t p = 0; p < positions; ++p)
      for (int64_t c = 0; c < width; ++c) {
        const int64_t at = ids[p] * width + c;
        expected.set(at, float(expected[at]) + float(gradient[p * width + c]));
      }
    for (int64_t i = 0; add && i < rows * width; ++i)
      expected.set(i, float(table[i]) + float(expected[i]));

    for (drover_pool &pool : pools) {
      Tensor result = table;
      drover_call call = {&pool, 0, accumulate, 0, nullptr, nullptr, nullptr};
      drover_rt_embedding_grad(&call, ids.data(), idType, positions, nullptr, gradient.data(), dtype, width, rows,
                               static_cast<float *>(result.data()), store);
      for (int64_t i = 0; i < rows * width; ++i)
        ASSERT_EQ(result[i], expected[i]) << "round " << round << " at " << i;
    }
  }
}

TEST(EmbeddingGrad, SumsInPositionOrderI64) { sweep<int64_t>(DROVER_I64); }
TEST(EmbeddingGrad, SumsInPositionOrderI32) { sweep<int32_t>(DROVER_I32); }

TEST(EmbeddingGrad, PartsOfATableSkipTheIdsOfOthers) {
  const int64_t ids[5] = {0, 7, 3, -1, 4};
  const float gradient[5] = {1, 2, 4, 8, 16};
  drover_call call = {nullptr, 0, 0, 0, nullptr, nullptr, nullptr};
  std::vector<float> whole;
  for (int64_t offset = 0; offset < 8; offset += 4) {
    float part[4] = {};
    drover_rt_embedding_grad(&call, ids, DROVER_I64, 5, &offset, gradient, DROVER_F32, 1, 4, part, DROVER_OVERWRITE);
    whole.insert(whole.end(), part, part + 4);
  }
  EXPECT_EQ(whole, (std::vector<float>{1, 0, 0, 4, 16, 0, 0, 2}));
}

TEST(EmbeddingGradDeathTest, IdsOutsideTheTableAreFatal) {
  const float gradient[2] = {1, 2};
  float table[3] = {};
  drover_call call = {nullptr, 0, 0, 0, nullptr, nullptr, nullptr};
  const auto run = [&](int64_t id) {
    const int64_t ids[2] = {0, id};
    drover_rt_embedding_grad(&call, ids, DROVER_I64, 2, nullptr, gradient, DROVER_F32, 1, 3, table, DROVER_OVERWRITE);
  };
  run(2);
  EXPECT_EQ(table[2], 2);
  EXPECT_DEATH(run(3), "id 3 at position 1, the table has 3 rows");
  EXPECT_DEATH(run(-1), "id -1 at position 1");
}

} // namespace
