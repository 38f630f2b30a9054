//===- MeasureKernels.cpp - seconds of kernels on busy cores --------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Every core does the same thing at once, as ranks do: what they share (caches, memory, clocks) is in the figures. Time
// is the thread's processor time, which other load disturbs little.
#include "Measure.h"
#include "drover/rt/memory_report.h"
#include "drover/rt/thread_pool.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <functional>
#include <limits>
#include <unistd.h>

namespace drover::rt {

namespace {

using Json = nlohmann::ordered_json;

double processorSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::vector<float> numbers(int64_t size) {
  std::vector<float> values(static_cast<size_t>(size));
  uint32_t state = 1;
  for (float &value : values)
    value = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / (1 << 23) - 1.0f;
  return values;
}

std::vector<uint16_t> halves(const std::vector<float> &values) {
  std::vector<uint16_t> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits;
    std::memcpy(&bits, &values[i], sizeof(bits));
    result[i] = static_cast<uint16_t>(bits >> 16);
  }
  return result;
}

/// What each core is given to do; made on the core's thread.
struct CoreWork {
  drover_pool pool{1};
  int32_t coordinates[DROVER_NUM_AXES] = {};
  drover_call call = {&pool, 0, 0, 0, coordinates, nullptr, nullptr};
};

class KernelMeasurer {
public:
  explicit KernelMeasurer(const MeasureOptions &options) : options(options) {}

  Json run() { return {{"matmuls", matmuls()}, {"attention", attention()}, {"passes", passes()}, {"calls", calls()}}; }

private:
  /// The best time of each core, by core. `make` is called on the core's thread and returns what is timed.
  std::vector<double> onAllCores(const std::function<std::function<void()>(CoreWork &)> &make) const {
    constexpr double kShortest = 2e-4; // of a turn, far above what the clock costs
    std::vector<double> best(static_cast<size_t>(options.cores), std::numeric_limits<double>::infinity());
    auto core = [&](double &seconds) {
      CoreWork work;
      std::function<void()> act = make(work);
      double start = processorSeconds();
      act();
      int64_t calls = std::max<int64_t>(1, std::llround(kShortest / std::max(1e-9, processorSeconds() - start)));
      for (int turn = 0; turn < options.turns; ++turn) {
        start = processorSeconds();
        for (int64_t i = 0; i < calls; ++i)
          act();
        seconds = std::min(seconds, (processorSeconds() - start) / static_cast<double>(calls));
      }
    };
    std::vector<std::thread> threads;
    for (double &seconds : best)
      threads.emplace_back(core, std::ref(seconds));
    for (std::thread &thread : threads)
      thread.join();
    return best;
  }

  static double mean(const std::vector<double> &values) {
    double sum = 0;
    for (double value : values)
      sum += value;
    return sum / static_cast<double>(values.size());
  }

  Json matmuls() const {
    constexpr int64_t kFaces[][2] = {{16, 512}, {64, 64}, {64, 512}, {256, 256}, {256, 1024}, {512, 512}, {1024, 64}};
    constexpr int64_t kInner[] = {16, 32, 64, 128, 256, 512, 1024};
    Json rows = Json::array();
    for (int32_t dtype : {DROVER_F32, DROVER_BF16})
      for (const auto &[m, n] : kFaces)
        for (int64_t k : kInner)
          rows.push_back({{"dtype", dtype == DROVER_F32 ? "f32" : "bf16"},
                          {"m", m},
                          {"n", n},
                          {"k", k},
                          {"seconds", matmulSeconds(dtype, m, n, k)}});
    return rows;
  }

  /// The mean of the three ways in which a step multiplies: forward, gradient of the input, gradient of the weight.
  double matmulSeconds(int32_t dtype, int64_t m, int64_t n, int64_t k) const {
    double sum = 0;
    for (int way = 0; way < 3; ++way) {
      bool transA = way == 2, transB = way == 0;
      drover_matmul desc = {};
      desc.dtype_ab = dtype;
      desc.dtype_c = way == 2 ? DROVER_F32 : dtype;
      desc.trans_a = transA, desc.trans_b = transB;
      desc.store = way == 2 ? DROVER_ADD : DROVER_OVERWRITE;
      desc.m = m, desc.n = n, desc.k = k;
      desc.lda = transA ? m : k, desc.ldb = transB ? k : n, desc.ldc = n;
      desc.batch = 1;
      sum += mean(onAllCores([&](CoreWork &work) -> std::function<void()> {
        auto a = std::make_shared<std::vector<float>>(numbers(m * k)),
             b = std::make_shared<std::vector<float>>(numbers(k * n));
        auto a16 = std::make_shared<std::vector<uint16_t>>(halves(*a)),
             b16 = std::make_shared<std::vector<uint16_t>>(halves(*b));
        auto c = std::make_shared<std::vector<float>>(m * n);
        return [=, &work] {
          if (dtype == DROVER_F32)
            drover_rt_matmul(&work.call, &desc, a->data(), b->data(), c->data());
          else
            drover_rt_matmul(&work.call, &desc, a16->data(), b16->data(), c->data());
        };
      }));
    }
    return sum / 3;
  }

  Json attention() const {
    Json rows = Json::array();
    for (int64_t headSize : {64, 72})
      for (int64_t length : {32, 64, 128, 256, 512, 1024})
        for (bool backward : {false, true})
          rows.push_back({{"dtype", "f32"},
                          {"backward", backward},
                          {"length", length},
                          {"heads", kHeads},
                          {"head_size", headSize},
                          {"seconds", attentionSeconds(length, headSize, backward)}});
    return rows;
  }

  double attentionSeconds(int64_t length, int64_t headSize, bool backward) const {
    drover_attention desc = {};
    desc.dtype = desc.dtype_kv_grad = DROVER_F32;
    desc.causal = 1;
    desc.batch = 1;
    desc.queries = desc.keys = length;
    desc.heads = kHeads;
    desc.kv_heads = kHeads;
    desc.head_size = desc.value_head_size = headSize;
    desc.query_stride = desc.key_stride = desc.value_stride = desc.result_stride = kHeads * headSize;
    desc.gradient_stride = desc.query_grad_stride = desc.key_grad_stride = desc.value_grad_stride = kHeads * headSize;
    desc.scale = 1 / std::sqrt(static_cast<double>(headSize));
    return mean(onAllCores([&](CoreWork &work) -> std::function<void()> {
      int64_t elements = length * kHeads * headSize;
      auto source = std::make_shared<std::vector<float>>(numbers(elements));
      auto results = std::make_shared<std::vector<float>>(4 * elements);
      auto logSumExp = std::make_shared<std::vector<float>>(length * kHeads);
      auto workspace = std::make_shared<std::vector<char>>(drover_attention_workspace(&desc));
      const float *in = source->data();
      float *out = results->data();
      return [=, &work] {
        (void)source, (void)results;
        if (backward)
          drover_rt_attention_grad(&work.call, &desc, in, in, in, in, logSumExp->data(), in, nullptr, nullptr, nullptr,
                                   nullptr, out, out + elements, out + 2 * elements, workspace->data());
        else
          drover_rt_attention(&work.call, &desc, in, in, in, nullptr, nullptr, nullptr, nullptr, out, logSumExp->data(),
                              workspace->data());
      };
    }));
  }

  /// Passes over tensors far larger than caches: two read, one written; and one copied.
  Json passes() const {
    constexpr int64_t kElements = 4 << 20;
    double sum = mean(onAllCores([&](CoreWork &) -> std::function<void()> {
      auto data = std::make_shared<std::vector<float>>(numbers(3 * kElements));
      return [data] {
        float *a = data->data(), *b = a + kElements, *c = b + kElements;
        for (int64_t i = 0; i < kElements; ++i)
          c[i] = a[i] + b[i];
        asm volatile("" ::"r"(c) : "memory");
      };
    }));
    double copy = mean(onAllCores([&](CoreWork &) -> std::function<void()> {
      auto data = std::make_shared<std::vector<float>>(numbers(2 * kElements));
      return [data] {
        std::memcpy(data->data() + kElements, data->data(), kElements * sizeof(float));
        asm volatile("" ::"r"(data->data()) : "memory");
      };
    }));
    auto bytes = static_cast<double>(kElements * static_cast<int64_t>(sizeof(float)));
    return {{{"what", "sum"}, {"bytes", 3 * bytes}, {"seconds", sum}},
            {{"what", "copy"}, {"bytes", 2 * bytes}, {"seconds", copy}}};
  }

  /// What a loop costs that does nothing, on a rank of one thread.
  Json calls() const {
    double empty = mean(onAllCores([&](CoreWork &work) -> std::function<void()> {
      return [&work] { drover_rt_parallel_for(&work.call, [](int64_t, int64_t, void *const *) {}, 1, 1, nullptr); };
    }));
    // How far cores differ: the same product on each.
    drover_matmul desc = {};
    desc.m = desc.n = desc.k = desc.lda = desc.ldb = desc.ldc = 512;
    desc.batch = 1;
    std::vector<double> each = onAllCores([&](CoreWork &work) -> std::function<void()> {
      auto data = std::make_shared<std::vector<float>>(numbers(3 * 512 * 512));
      return [=, &work] {
        float *a = data->data();
        drover_rt_matmul(&work.call, &desc, a, a + 512 * 512, a + 2 * 512 * 512);
      };
    });
    return {{"empty", empty}, {"same_on_each_core", each}};
  }

  static constexpr int64_t kHeads = 4;
  const MeasureOptions &options;
};

} // namespace

Json measureKernels(const MeasureOptions &options) {
  // Before anything large is allocated: what a process of the runtime holds.
  int64_t context = residentBytes();
  auto pages = [](int name) {
    return static_cast<int64_t>(sysconf(name)) * static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  };
  Json result = {
      {"cores", options.cores},
      {"memory", {{"total", pages(_SC_PHYS_PAGES)}, {"available", pages(_SC_AVPHYS_PAGES)}, {"context", context}}}};
  result.update(KernelMeasurer(options).run());
  return result;
}

} // namespace drover::rt
