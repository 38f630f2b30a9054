//===- LayerCases.cpp - gradient cases of the layers ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"

using namespace drover::test;

std::vector<GradientCase> drover::test::layerCases() {
  return {
      {"embedding", R"(
        func.func @forward(%ids: tensor<2x3xi64> {test.high = 5.0 : f64}, %table: tensor<5x7xELT>) -> tensor<2x3x7xELT> {
          %0 = tfm.embedding %ids, %table : (tensor<2x3xi64>, tensor<5x7xELT>) -> tensor<2x3x7xELT>
          return %0 : tensor<2x3x7xELT>
        })"},
      {"embedding_of_one_repeated_id", R"(
        func.func @forward(%ids: tensor<4xi32> {test.values = array<i64: 2, 2, 0, 2>}, %table: tensor<3x5xELT>) -> tensor<4x5xELT> {
          %0 = tfm.embedding %ids, %table : (tensor<4xi32>, tensor<3x5xELT>) -> tensor<4x5xELT>
          return %0 : tensor<4x5xELT>
        })"},
      {"linear", R"(
        func.func @forward(%x: tensor<2x3x5xELT>, %w: tensor<7x5xELT>) -> tensor<2x3x7xELT> {
          %0 = tfm.linear %x, %w : (tensor<2x3x5xELT>, tensor<7x5xELT>) -> tensor<2x3x7xELT>
          return %0 : tensor<2x3x7xELT>
        })"},
      {"linear_in_out", R"(
        func.func @forward(%x: tensor<3x5xELT>, %w: tensor<5x7xELT>) -> tensor<3x7xELT> {
          %0 = tfm.linear %x, %w in_out : (tensor<3x5xELT>, tensor<5x7xELT>) -> tensor<3x7xELT>
          return %0 : tensor<3x7xELT>
        })"},
      {"linear_of_a_vector", R"(
        func.func @forward(%x: tensor<5xELT>, %w: tensor<1x5xELT>) -> tensor<1xELT> {
          %0 = tfm.linear %x, %w : (tensor<5xELT>, tensor<1x5xELT>) -> tensor<1xELT>
          return %0 : tensor<1xELT>
        })"},
      {"linear_with_wide_result", R"(
        func.func @forward(%x: tensor<1x3x5xELT>, %w: tensor<6x5xELT>) -> tensor<1x3x6xf64> {
          %0 = tfm.linear %x, %w : (tensor<1x3x5xELT>, tensor<6x5xELT>) -> tensor<1x3x6xf64>
          return %0 : tensor<1x3x6xf64>
        })"},
      {"bias_add", R"(
        func.func @forward(%x: tensor<2x3x5xELT>, %b: tensor<5xELT>) -> tensor<2x3x5xELT> {
          %0 = tfm.bias_add %x, %b : (tensor<2x3x5xELT>, tensor<5xELT>) -> tensor<2x3x5xELT>
          return %0 : tensor<2x3x5xELT>
        })"},
      {"rms_norm", R"(
        func.func @forward(%x: tensor<2x3x5xELT>, %w: tensor<5xELT>) -> tensor<2x3x5xELT> {
          %0 = tfm.rms_norm %x, %w {eps = 1.0e-3 : f64} : (tensor<2x3x5xELT>, tensor<5xELT>) -> tensor<2x3x5xELT>
          return %0 : tensor<2x3x5xELT>
        })"},
      {"rms_norm_weight_offset", R"(
        func.func @forward(%x: tensor<3x5xELT>, %w: tensor<5xELT>) -> tensor<3x5xELT> {
          %0 = tfm.rms_norm %x, %w {eps = 1.0e-6 : f64, weight_offset = 1.0 : f64} : (tensor<3x5xELT>, tensor<5xELT>) -> tensor<3x5xELT>
          return %0 : tensor<3x5xELT>
        })"},
      {"rms_norm_without_weight", R"(
        func.func @forward(%x: tensor<3x5xELT>) -> tensor<3x5xELT> {
          %0 = tfm.rms_norm %x {eps = 1.0e-2 : f64} : (tensor<3x5xELT>) -> tensor<3x5xELT>
          return %0 : tensor<3x5xELT>
        })"},
      {"rms_norm_with_frozen_weight", R"(
        func.func @forward(%x: tensor<3x5xELT>, %w: tensor<5xELT> {test.constant}) -> tensor<3x5xELT> {
          %0 = tfm.rms_norm %x, %w {eps = 1.0e-3 : f64} : (tensor<3x5xELT>, tensor<5xELT>) -> tensor<3x5xELT>
          return %0 : tensor<3x5xELT>
        })"},
      {"layer_norm", R"(
        func.func @forward(%x: tensor<2x3x5xELT>, %w: tensor<5xELT>, %b: tensor<5xELT>) -> tensor<2x3x5xELT> {
          %0 = tfm.layer_norm %x weight %w bias %b {eps = 1.0e-3 : f64} : (tensor<2x3x5xELT>, tensor<5xELT>, tensor<5xELT>) -> tensor<2x3x5xELT>
          return %0 : tensor<2x3x5xELT>
        })"},
      {"layer_norm_without_bias", R"(
        func.func @forward(%x: tensor<3x5xELT>, %w: tensor<5xELT>) -> tensor<3x5xELT> {
          %0 = tfm.layer_norm %x weight %w {eps = 1.0e-3 : f64} : (tensor<3x5xELT>, tensor<5xELT>) -> tensor<3x5xELT>
          return %0 : tensor<3x5xELT>
        })"},
      {"layer_norm_without_weight", R"(
        func.func @forward(%x: tensor<3x5xELT>) -> tensor<3x5xELT> {
          %0 = tfm.layer_norm %x {eps = 1.0e-3 : f64} : (tensor<3x5xELT>) -> tensor<3x5xELT>
          return %0 : tensor<3x5xELT>
        })"},
      {"layer_norm_with_frozen_weight", R"(
        func.func @forward(%x: tensor<3x5xELT>, %w: tensor<5xELT> {test.constant}, %b: tensor<5xELT>) -> tensor<3x5xELT> {
          %0 = tfm.layer_norm %x weight %w bias %b {eps = 1.0e-3 : f64} : (tensor<3x5xELT>, tensor<5xELT>, tensor<5xELT>) -> tensor<3x5xELT>
          return %0 : tensor<3x5xELT>
        })"},
      {"gelu_erf", R"(
        func.func @forward(%x: tensor<3x5xELT> {test.low = -4.0 : f64, test.high = 4.0 : f64}) -> tensor<3x5xELT> {
          %0 = tfm.gelu %x {kind = 0 : i32} : (tensor<3x5xELT>) -> tensor<3x5xELT>
          return %0 : tensor<3x5xELT>
        })"},
      {"gelu_tanh", R"(
        func.func @forward(%x: tensor<3x5xELT> {test.low = -4.0 : f64, test.high = 4.0 : f64}) -> tensor<3x5xELT> {
          %0 = tfm.gelu %x {kind = 1 : i32} : (tensor<3x5xELT>) -> tensor<3x5xELT>
          return %0 : tensor<3x5xELT>
        })"},
      {"silu", R"(
        func.func @forward(%x: tensor<3x5xELT> {test.low = -4.0 : f64, test.high = 4.0 : f64}) -> tensor<3x5xELT> {
          %0 = tfm.silu %x : (tensor<3x5xELT>) -> tensor<3x5xELT>
          return %0 : tensor<3x5xELT>
        })"},
      {"swiglu", R"(
        func.func @forward(%g: tensor<3x5xELT> {test.low = -4.0 : f64, test.high = 4.0 : f64}, %u: tensor<3x5xELT>) -> tensor<3x5xELT> {
          %0 = tfm.swiglu %g, %u : (tensor<3x5xELT>, tensor<3x5xELT>) -> tensor<3x5xELT>
          return %0 : tensor<3x5xELT>
        })"},
      {"swiglu_with_constant_gate", R"(
        func.func @forward(%g: tensor<3x5xELT> {test.constant}, %u: tensor<3x5xELT>) -> tensor<3x5xELT> {
          %0 = tfm.swiglu %g, %u : (tensor<3x5xELT>, tensor<3x5xELT>) -> tensor<3x5xELT>
          return %0 : tensor<3x5xELT>
        })"},
  };
}
