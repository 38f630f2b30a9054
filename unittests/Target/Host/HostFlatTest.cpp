//===- HostFlatTest.cpp - bodies over ranges of a bucket --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "HostHarness.h"
#include <gtest/gtest.h>

using namespace drover::test;

namespace {

class HostFlat : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, HostFlat, ::testing::Values(1, 7, 64, 4096, 4097, 100003));

TEST_P(HostFlat, AdamW) {
  expectMatches(R"(
    func.func private @body(%p: tensor<?xf32>, %m: tensor<?xf32>, %v: tensor<?xf32> {test.positive}, %g: tensor<?xf32>, %h: tensor<8xf32> {test.positive})
        -> (tensor<?xf32> {tfm.inplace = 0 : i64}, tensor<?xf32> {tfm.inplace = 1 : i64}, tensor<?xf32> {tfm.inplace = 2 : i64}) attributes {tfm.body = "update"} {
      %0, %1, %2 = tfm.adamw %p, %m, %v, %g, %h : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<8xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
      return %0, %1, %2 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
    })",
                {2e-5, 1e-5}, GetParam());
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
