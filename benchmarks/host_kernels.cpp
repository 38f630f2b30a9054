//===- host_kernels.cpp - fused kernels against plain loops -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// GB/s on one thread of kernels that the compiler fuses, beside the loops that one would write by hand, compiled with
// -O3 -march=native -ffast-math. Results are compared before they are timed. Bytes are those that must move once.
//===----------------------------------------------------------------------===//
#include "../unittests/Target/Host/HostHarness.h"
#include "drover/rt/thread_pool.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>

using namespace drover;
using namespace drover::test;

namespace {

constexpr int64_t kRows = 1024, kWidth = 512, kHidden = 1408, kFlat = int64_t{1} << 21;

__attribute__((noinline)) void normByHand(const float *__restrict x, const float *__restrict r,
                                          const float *__restrict w, float *__restrict h, float *__restrict y) {
  for (int64_t i = 0; i < kRows; ++i, x += kWidth, r += kWidth, h += kWidth, y += kWidth) {
    float sum = 0.0f;
    for (int64_t j = 0; j < kWidth; ++j) {
      h[j] = x[j] + r[j];
      sum += h[j] * h[j];
    }
    float scale = 1.0f / std::sqrt(sum / kWidth + 1e-5f);
    for (int64_t j = 0; j < kWidth; ++j)
      y[j] = h[j] * scale * w[j];
  }
}

__attribute__((noinline)) void swigluByHand(const float *__restrict g, const float *__restrict u, float *__restrict y) {
  for (int64_t i = 0; i < kRows * kHidden; ++i)
    y[i] = g[i] / (1.0f + std::exp(-g[i])) * u[i];
}

__attribute__((noinline)) void adamwByHand(float *__restrict p, float *__restrict m, float *__restrict v,
                                           const float *__restrict g, const float *__restrict h) {
  for (int64_t i = 0; i < kFlat; ++i) {
    float gradient = h[7] * g[i];
    m[i] = h[2] * m[i] + (1.0f - h[2]) * gradient;
    v[i] = h[3] * v[i] + (1.0f - h[3]) * gradient * gradient;
    p[i] = p[i] * (1.0f - h[0] * h[1]) - h[0] / h[5] * m[i] / (std::sqrt(v[i]) / std::sqrt(h[6]) + h[4]);
  }
}

const char *kBodies = R"(
func.func private @norm(%x: tensor<1024x512xf32>, %r: tensor<1024x512xf32>, %w: tensor<512xf32>) -> (tensor<1024x512xf32>, tensor<1024x512xf32>) attributes {tfm.body = "forward"} {
  %h = arith.addf %x, %r : tensor<1024x512xf32>
  %y = tfm.rms_norm %h, %w {eps = 1.0e-5 : f64} : (tensor<1024x512xf32>, tensor<512xf32>) -> tensor<1024x512xf32>
  return %h, %y : tensor<1024x512xf32>, tensor<1024x512xf32>
}
func.func private @swiglu(%g: tensor<1024x1408xf32>, %u: tensor<1024x1408xf32>) -> tensor<1024x1408xf32> attributes {tfm.body = "forward"} {
  %y = tfm.swiglu %g, %u : (tensor<1024x1408xf32>, tensor<1024x1408xf32>) -> tensor<1024x1408xf32>
  return %y : tensor<1024x1408xf32>
}
func.func private @adamw(%p: tensor<?xf32>, %m: tensor<?xf32>, %v: tensor<?xf32>, %g: tensor<?xf32>, %h: tensor<8xf32>)
    -> (tensor<?xf32> {tfm.inplace = 0 : i64}, tensor<?xf32> {tfm.inplace = 1 : i64}, tensor<?xf32> {tfm.inplace = 2 : i64}) attributes {tfm.body = "update"} {
  %0, %1, %2 = tfm.adamw %p, %m, %v, %g, %h : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<8xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
  return %0, %1, %2 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
})";

/// Seconds of the fastest quarter of repeated calls.
double seconds(const std::function<void()> &run) {
  std::vector<double> times;
  for (int i = 0; i < 60; ++i) {
    auto start = std::chrono::steady_clock::now();
    run();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 4];
}

struct Memory {
  explicit Memory(int64_t floats, bool positive = false)
      : data(static_cast<float *>(std::aligned_alloc(64, (floats * 4 + 63) / 64 * 64))), size(floats) {
    for (int64_t i = 0; i < floats; ++i)
      data[i] = static_cast<float>((i * 2654435761u) % 2000) / 1000.0f - (positive ? 0.0f : 1.0f);
  }
  ~Memory() { std::free(data); }
  float *data;
  int64_t size;
};

double largestDifference(const Memory &a, const Memory &b) {
  double worst = 0.0;
  for (int64_t i = 0; i < a.size; ++i)
    worst = std::max(worst, std::fabs(double(a.data[i]) - b.data[i]) / (1.0 + std::fabs(b.data[i])));
  return worst;
}

void report(const char *name, double bytes, double difference, const std::function<void()> &ours,
            const std::function<void()> &hand) {
  double a = bytes / seconds(ours) / 1e9, b = bytes / seconds(hand) / 1e9;
  std::printf("%-22s %8.1f %8.1f %8.2f   %.1e\n", name, a, b, a / b, difference);
}

} // namespace

int main() {
  auto start = std::chrono::steady_clock::now();
  CompiledBodies bodies(kBodies);
  double compile = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!bodies.ok()) {
    std::fprintf(stderr, "%s\n", bodies.diagnostics().c_str());
    return 1;
  }
  std::printf("three bodies compiled in %.0f ms\n", compile * 1e3);
  std::printf("%-22s %8s %8s %8s   %s\n", "GB/s, one thread", "drover", "by hand", "ratio", "difference");
  drover_pool pool(1);
  auto caller = [&](const char *name, std::vector<void *> operands, int64_t size) {
    drover_body_fn body = bodies.function(name);
    return [=, &pool]() {
      drover_call call = {&pool, size, 0, 0, nullptr, nullptr, nullptr};
      body(operands.data(), nullptr, &call);
    };
  };
  {
    Memory x(kRows * kWidth), r(kRows * kWidth), w(kWidth), h(kRows * kWidth), y(kRows * kWidth), z(kRows * kWidth);
    auto ours = caller("norm", {x.data, r.data, w.data, h.data, y.data}, 0);
    auto hand = [&] { normByHand(x.data, r.data, w.data, h.data, z.data); };
    ours();
    hand();
    report("rms_norm + residual", 16.0 * kRows * kWidth, largestDifference(y, z), ours, hand);
  }
  {
    Memory g(kRows * kHidden), u(kRows * kHidden), y(kRows * kHidden), z(kRows * kHidden);
    auto ours = caller("swiglu", {g.data, u.data, y.data}, 0);
    auto hand = [&] { swigluByHand(g.data, u.data, z.data); };
    ours();
    hand();
    report("swiglu", 12.0 * kRows * kHidden, largestDifference(y, z), ours, hand);
  }
  {
    Memory p(kFlat), m(kFlat), v(kFlat, true), g(kFlat), q(kFlat), n(kFlat), s(kFlat, true), h(8);
    const float settings[8] = {1e-3f, 0.1f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.05f, 0.5f};
    std::copy(settings, settings + 8, h.data);
    auto ours = caller("adamw", {p.data, m.data, v.data, g.data, h.data}, kFlat);
    auto hand = [&] { adamwByHand(q.data, n.data, s.data, g.data, h.data); };
    ours();
    hand();
    report("adamw", 28.0 * kFlat, largestDifference(p, q), ours, hand);
  }
}
