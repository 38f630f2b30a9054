//===- ThreadPoolTest.cpp - loops over index ranges -----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>

using drover::rt::ThreadPool;

namespace {

TEST(ThreadPool, EveryIndexRunsOnce) {
  for (int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t count : {0, 1, 2, 3, 63, 64, 65, 1000}) {
      for (int64_t grain : {0, 1, 7, 64, 5000}) {
        std::vector<int> hits(count, 0);
        pool.parallelFor(count, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            ++hits[i];
        });
        EXPECT_EQ(std::count(hits.begin(), hits.end(), 1), count) << threads << " threads, count " << count;
      }
    }
  }
}

TEST(ThreadPool, BlocksHaveAtLeastTheGrain) {
  ThreadPool pool(4);
  std::mutex mutex;
  std::vector<int64_t> sizes;
  pool.parallelFor(1000, 30, [&](int64_t begin, int64_t end) {
    std::lock_guard<std::mutex> lock(mutex);
    sizes.push_back(end - begin);
  });
  std::sort(sizes.begin(), sizes.end());
  ASSERT_GT(sizes.size(), 4u);
  EXPECT_GE(sizes[1], 30) << "only the last block may be shorter";
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), int64_t(0)), 1000);
}

TEST(ThreadPool, ManyShortLoopsInARow) {
  ThreadPool pool(3);
  int64_t total = 0;
  for (int round = 0; round < 20000; ++round) {
    std::atomic<int64_t> sum{0};
    pool.parallelFor(9, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        sum.fetch_add(i, std::memory_order_relaxed);
    });
    total += sum.load();
  }
  EXPECT_EQ(total, 20000 * 36);
}

TEST(ThreadPool, WorkersThatSleepWakeUp) {
  ThreadPool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    // Each of the two blocks waits for the other: one thread alone would not get past the first.
    std::atomic<int> arrived{0};
    pool.parallelFor(2, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        arrived.fetch_add(1);
      while (arrived.load() < 2)
        std::this_thread::yield();
    });
    EXPECT_EQ(arrived.load(), 2);
  }
}

TEST(ThreadPool, NestedLoopsRunOnTheirThread) {
  ThreadPool pool(3);
  std::vector<int> hits(8 * 100, 0);
  pool.parallelFor(8, 1, [&](int64_t begin, int64_t end) {
    const std::thread::id self = std::this_thread::get_id();
    for (int64_t i = begin; i < end; ++i)
      pool.parallelFor(100, 1, [&](int64_t first, int64_t last) {
        EXPECT_EQ(std::this_thread::get_id(), self);
        for (int64_t j = first; j < last; ++j)
          ++hits[i * 100 + j];
      });
  });
  EXPECT_EQ(std::count(hits.begin(), hits.end(), 1), 800);
}

TEST(ThreadPool, LoopsFromSeveralThreadsDoNotMix) {
  ThreadPool pool(2);
  std::vector<std::thread> callers;
  std::atomic<int64_t> total{0};
  for (int caller = 0; caller < 3; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round)
        pool.parallelFor(50, 1, [&](int64_t begin, int64_t end) { total.fetch_add(end - begin); });
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(total.load(), 3 * 500 * 50);
}

struct Fill {
  static void run(int64_t begin, int64_t end, void *const *operands) {
    for (int64_t i = begin; i < end; ++i)
      static_cast<int64_t *>(operands[0])[i] = i * i;
  }
};

TEST(ThreadPool, CompiledKernelsRunOverTheRange) {
  drover_pool pool(2);
  for (drover_pool *used : {&pool, static_cast<drover_pool *>(nullptr)}) {
    drover_call call = {used, 0, 0, 0, nullptr, nullptr, nullptr};
    std::vector<int64_t> values(777, -1);
    void *operands[] = {values.data()};
    drover_rt_parallel_for(&call, Fill::run, 777, 10, operands);
    for (int64_t i = 0; i < 777; ++i)
      ASSERT_EQ(values[i], i * i);
    drover_rt_parallel_for(&call, Fill::run, 0, 10, operands);
  }
}

} // namespace
