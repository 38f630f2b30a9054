//===- kernels.cpp - GFLOP/s of the runtime's kernels ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Prints a table of matrix products (against single calls of oneDNN and OpenBLAS, where they were found at build time)
// and one of attention. With one thread the time is the thread's processor time, which other load disturbs little;
// with more it is wall time. Candidates take turns; the best turn of each counts.
// usage: kernel-benchmark [--threads=N] [--turns=N]
//===----------------------------------------------------------------------===//
#include "drover/rt/kernels.h"
#include "drover/rt/thread_pool.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#ifdef DROVER_BENCHMARK_ONEDNN
#include <oneapi/dnnl/dnnl.h>
extern "C" void omp_set_num_threads(int);
#endif
#ifdef DROVER_BENCHMARK_OPENBLAS
#include <cblas.h>
extern "C" void openblas_set_num_threads(int);
#endif

namespace {

int threads = 1, turns = 10;

double seconds() {
  timespec now;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

/// The best GFLOP/s of each candidate.
std::vector<double> race(double flops, const std::vector<std::function<void()>> &candidates) {
  const int calls = std::max(1, static_cast<int>(2e7 / flops));
  std::vector<double> best(candidates.size(), std::numeric_limits<double>::infinity());
  for (int turn = 0; turn < turns; ++turn)
    for (size_t i = 0; i < candidates.size(); ++i) {
      const double start = seconds();
      for (int call = 0; call < calls; ++call)
        candidates[i]();
      best[i] = std::min(best[i], (seconds() - start) / calls);
    }
  for (double &value : best)
    value = flops / value * 1e-9;
  return best;
}

std::vector<float> numbers(int64_t size) {
  std::vector<float> values(size);
  uint32_t state = 1;
  for (float &value : values)
    value = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / (1 << 23) - 1.0f;
  return values;
}

std::vector<uint16_t> halves(const std::vector<float> &values) {
  std::vector<uint16_t> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits;
    std::memcpy(&bits, &values[i], 4);
    result[i] = bits >> 16;
  }
  return result;
}

void matmuls(drover_call &call) {
  struct Shape {
    const char *what;
    int64_t m, n, k;
    bool transA, transB;
  };
  // Products of a layer of `benchmarks/step_time`'s model, forward, input gradient and weight gradient; then small and
  // square ones.
  const Shape shapes[] = {
      {"q, o forward", 1024, 512, 512, false, true},
      {"k, v forward", 1024, 256, 512, false, true},
      {"gate, up forward", 1024, 1408, 512, false, true},
      {"down forward", 1024, 512, 1408, false, true},
      {"head forward", 1024, 4096, 512, false, true},
      {"gate, up input", 1024, 512, 1408, false, false},
      {"down input", 1024, 1408, 512, false, false},
      {"head input", 1024, 512, 4096, false, false},
      {"q, o weight", 512, 512, 1024, true, false},
      {"gate, up weight", 1408, 512, 1024, true, false},
      {"down weight", 512, 1408, 1024, true, false},
      {"head weight", 4096, 512, 1024, true, false},
      {"tiny", 64, 48, 48, false, true},
      {"tiny", 256, 128, 48, false, true},
      {"tiny weight", 64, 64, 256, true, false},
      {"square", 1024, 1024, 1024, false, false},
      {"square", 2048, 2048, 2048, false, true},
  };
  std::printf("%-17s %5s %5s %5s %2s %8s %8s %8s %8s %8s\n", "product", "m", "n", "k", "t", "f32", "bf16", "bf16>f32",
              "oneDNN", "OpenBLAS");
  for (const Shape &s : shapes) {
    const std::vector<float> a = numbers(s.m * s.k), b = numbers(s.k * s.n);
    const std::vector<uint16_t> a16 = halves(a), b16 = halves(b);
    std::vector<float> c(s.m * s.n);
    std::vector<uint16_t> c16(s.m * s.n);
    const int64_t lda = s.transA ? s.m : s.k, ldb = s.transB ? s.k : s.n;
    drover_matmul full = {DROVER_F32, DROVER_F32, s.transA, s.transB, DROVER_OVERWRITE, 0, s.m, s.n, s.k, lda, ldb, s.n,
                          1,          0,          0,        0};
    drover_matmul half = full, widening = full;
    half.dtype_ab = half.dtype_c = widening.dtype_ab = DROVER_BF16;
    widening.store = DROVER_ADD;
    const std::vector<double> rate =
        race(2.0 * s.m * s.n * s.k, {[&] { drover_rt_matmul(&call, &full, a.data(), b.data(), c.data()); },
                                     [&] { drover_rt_matmul(&call, &half, a16.data(), b16.data(), c16.data()); },
                                     [&] { drover_rt_matmul(&call, &widening, a16.data(), b16.data(), c.data()); },
                                     [&] {
#ifdef DROVER_BENCHMARK_ONEDNN
                                       dnnl_sgemm(s.transA ? 'T' : 'N', s.transB ? 'T' : 'N', s.m, s.n, s.k, 1,
                                                  a.data(), lda, b.data(), ldb, 0, c.data(), s.n);
#endif
                                     },
                                     [&] {
#ifdef DROVER_BENCHMARK_OPENBLAS
                                       cblas_sgemm(CblasRowMajor, s.transA ? CblasTrans : CblasNoTrans,
                                                   s.transB ? CblasTrans : CblasNoTrans, s.m, s.n, s.k, 1, a.data(),
                                                   lda, b.data(), ldb, 0, c.data(), s.n);
#endif
                                     }});
    std::printf("%-17s %5ld %5ld %5ld %c%c", s.what, long(s.m), long(s.n), long(s.k), s.transA ? 'T' : 'N',
                s.transB ? 'T' : 'N');
    for (double value : rate)
      value < 1e5 ? std::printf(" %8.1f", value) : std::printf(" %8s", "-");
    std::printf("\n");
  }
}

void attentions(drover_call &call) {
  std::printf("\n%-30s %8s %8s %8s %8s\n", "attention, causal", "f32 fwd", "f32 bwd", "bf16 fwd", "bf16 bwd");
  for (int64_t length : {256, 1024, 4096}) {
    // heads 8, kv heads 4, head size 64: GFLOP/s of the pairs under the causal mask.
    const int64_t batch = std::max<int64_t>(1, 1024 / length), heads = 8, kvHeads = 4, size = 64;
    const double pairs = 0.5 * length * (length + 1) * batch * heads;
    std::vector<double> rates;
    for (int32_t dtype : {DROVER_F32, DROVER_BF16}) {
      const int64_t rows = batch * length, elements = rows * heads * size;
      const std::vector<float> source = numbers(elements);
      const std::vector<uint16_t> source16 = halves(source);
      const void *operand = dtype == DROVER_F32 ? static_cast<const void *>(source.data()) : source16.data();
      std::vector<float> result(elements), queryGrad(elements), keyGrad(elements), valueGrad(elements);
      std::vector<float> logSumExp(rows * heads);
      drover_attention d = {};
      d.dtype = dtype;
      d.dtype_kv_grad = DROVER_F32;
      d.causal = 1;
      d.batch = batch;
      d.queries = d.keys = length;
      d.heads = heads;
      d.kv_heads = kvHeads;
      d.head_size = d.value_head_size = size;
      d.query_stride = d.result_stride = d.gradient_stride = d.query_grad_stride = heads * size;
      d.key_stride = d.value_stride = d.key_grad_stride = d.value_grad_stride = kvHeads * size;
      d.scale = 1.0 / std::sqrt(double(size));
      std::vector<char> workspace(drover_attention_workspace(&d));
      for (const double rate :
           {race(4 * pairs * size, {[&] {
                   drover_rt_attention(&call, &d, operand, operand, operand, nullptr, nullptr, nullptr, nullptr,
                                       result.data(), logSumExp.data(), workspace.data());
                 }})[0],
            race(8 * pairs * size, {[&] {
                   drover_rt_attention_grad(&call, &d, operand, operand, operand, result.data(), logSumExp.data(),
                                            operand, nullptr, nullptr, nullptr, nullptr, queryGrad.data(),
                                            keyGrad.data(), valueGrad.data(), workspace.data());
                 }})[0]})
        rates.push_back(rate);
    }
    const std::string what = "batch " + std::to_string(batch) + " length " + std::to_string(length) + " heads 8/4x64";
    std::printf("%-30s %8.1f %8.1f %8.1f %8.1f\n", what.c_str(), rates[0], rates[1], rates[2], rates[3]);
  }
}

} // namespace

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i)
    if (std::sscanf(argv[i], "--threads=%d", &threads) != 1 && std::sscanf(argv[i], "--turns=%d", &turns) != 1) {
      std::fprintf(stderr, "usage: kernel-benchmark [--threads=N] [--turns=N]\n");
      return 1;
    }
#ifdef DROVER_BENCHMARK_ONEDNN
  omp_set_num_threads(threads);
#endif
#ifdef DROVER_BENCHMARK_OPENBLAS
  openblas_set_num_threads(threads);
#endif
  drover_pool pool(threads);
  drover_call call = {&pool, 0, 0, 0, nullptr, nullptr, nullptr};
  std::printf("GFLOP/s, %d threads, %s tiles\n", threads, drover::rt::kernelInstructionSet());
  matmuls(call);
  attentions(call);
}
