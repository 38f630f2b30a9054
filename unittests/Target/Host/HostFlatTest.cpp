//===- HostFlatTest.cpp - bodies over ranges of a bucket --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "HostHarness.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace drover::test;

namespace {

class HostFlat : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, HostFlat, ::testing::Values(1, 7, 64, 4096, 4097, 100003));

constexpr const char *kAdamW = R"(
    func.func private @body(%p: tensor<?xf32>, %m: tensor<?xf32>, %v: tensor<?xf32> {test.positive}, %g: tensor<?xf32>, %h: tensor<8xf32> {test.positive})
        -> (tensor<?xf32> {tfm.inplace = 0 : i64}, tensor<?xf32> {tfm.inplace = 1 : i64}, tensor<?xf32> {tfm.inplace = 2 : i64}) attributes {tfm.body = "update"} {
      %0, %1, %2 = tfm.adamw %p, %m, %v, %g, %h : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<8xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
      return %0, %1, %2 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
    })";

TEST_P(HostFlat, AdamW) { expectMatches(kAdamW, {2e-5, 1e-5}, GetParam()); }

enum class Mutation { None, DecayAfterUpdate, EpsBeforeBiasCorrection, EpsUnderRoot };

/// Loshchilov and Hutter, arXiv 1711.05101, algorithm 2, with Adam's bias corrections.
double adamw(double p, double m, double v, double g, const std::vector<double> &h, Mutation mutation) {
  double decay = 1 - h[0] * h[1];
  g *= h[7];
  m = h[2] * m + (1 - h[2]) * g;
  v = h[3] * v + (1 - h[3]) * g * g;
  double root = std::sqrt(v / h[6]) + h[4];
  if (mutation == Mutation::EpsBeforeBiasCorrection)
    root = (std::sqrt(v) + h[4]) / std::sqrt(h[6]);
  if (mutation == Mutation::EpsUnderRoot)
    root = std::sqrt(v / h[6] + h[4] * h[4]);
  double step = h[0] * (m / h[5]) / root;
  return mutation == Mutation::DecayAfterUpdate ? (p - step) * decay : p * decay - step;
}

TEST(HostFlat, AdamWIsNoneOfItsMutants) {
  CompiledBodies bodies(kAdamW);
  ASSERT_TRUE(bodies.ok()) << bodies.diagnostics();
  constexpr int64_t size = 67;
  std::vector<drover::Tensor> arguments = randomArguments(bodies.original("body"), 11, size);
  // Step 3; an epsilon of the size of the gradients.
  arguments[4].floats = {0.01f, 0.1f, 0.9f, 0.95f, 0.05f, 0.271f, 0.142625f, 0.5f};
  drover::Tensor got = bodies.run("body", arguments, {1, 1, size})[0];
  auto distance = [&](Mutation mutation) {
    double largest = 0;
    for (int64_t i = 0; i < size; ++i)
      largest = std::max(largest, std::abs(got.floats[i] - adamw(arguments[0].floats[i], arguments[1].floats[i],
                                                                 arguments[2].floats[i], arguments[3].floats[i],
                                                                 arguments[4].floats, mutation)));
    return largest;
  };
  EXPECT_LT(distance(Mutation::None), 1e-6);
  for (Mutation mutation : {Mutation::DecayAfterUpdate, Mutation::EpsBeforeBiasCorrection, Mutation::EpsUnderRoot})
    EXPECT_GT(distance(mutation), 1e-5) << int(mutation);
}

TEST_P(HostFlat, Sgd) {
  expectMatches(R"(
    func.func private @body(%p: tensor<?xf32>, %g: tensor<?xf32>, %h: tensor<8xf32>) -> (tensor<?xf32> {tfm.inplace = 0 : i64}) attributes {tfm.body = "update"} {
      %0 = tfm.sgd %p, %g, %h : (tensor<?xf32>, tensor<?xf32>, tensor<8xf32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    })",
                kF32, GetParam());
}

TEST_P(HostFlat, SumOfSquares) {
  expectMatches(R"(
    func.func private @body(%g: tensor<?xf32>) -> tensor<f64> attributes {tfm.body = "norm"} {
      %0 = tfm.sum_of_squares %g : (tensor<?xf32>) -> tensor<f64>
      return %0 : tensor<f64>
    })",
                {1e-12, 0.0}, GetParam());
}

TEST_P(HostFlat, CastParameters) {
  expectMatches(R"(
    func.func private @body(%p: tensor<?xf32>) -> tensor<?xbf16> attributes {tfm.body = "update"} {
      %0 = arith.truncf %p : tensor<?xf32> to tensor<?xbf16>
      return %0 : tensor<?xbf16>
    })",
                {0.0, 0.0}, GetParam());
}

} // namespace
