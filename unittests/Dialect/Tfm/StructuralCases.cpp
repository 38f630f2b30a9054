//===- StructuralCases.cpp - gradient cases of data movement ----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"

using namespace drover::test;

/// An op of the form `tfm.NAME %x {attributes} : input -> result`.
static GradientCase movement(const std::string &name, const std::string &op, const std::string &attributes,
                             const std::string &input, const std::string &result) {
  std::string from = "tensor<" + input + "ELT>", to = "tensor<" + result + "ELT>";
  return {name, "func.func @forward(%x: " + from + ") -> " + to + " {\n  %0 = tfm." + op + " %x {" + attributes +
                    "} : " + from + " -> " + to + "\n  return %0 : " + to + "\n}"};
}

static GradientCase matmul(const std::string &name, const std::string &attributes, const std::string &lhs,
                           const std::string &rhs) {
  std::string a = "tensor<2x3x" + lhs + "xELT>", b = "tensor<2x3x" + rhs + "xELT>", to = "tensor<2x3x4x5xELT>";
  return {"matmul_" + name, "func.func @forward(%a: " + a + ", %b: " + b + ") -> " + to +
                                " {\n  %0 = tfm.matmul %a, %b {" + attributes + "} : (" + a + ", " + b + ") -> " + to +
                                "\n  return %0 : " + to + "\n}"};
}

std::vector<GradientCase> drover::test::structuralCases() {
  return {
      movement("reshape", "reshape", "", "2x3x4x", "6x4x"),
      movement("reshape_to_scalar", "reshape", "", "1x1x", ""),
      movement("transpose", "transpose", "permutation = array<i64: 2, 0, 1>", "2x3x5x", "5x2x3x"),
      movement("broadcast_new_dimensions", "broadcast", "", "3x", "2x5x3x"),
      movement("broadcast_ones", "broadcast", "", "2x1x3x1x", "2x5x3x4x"),
      movement("broadcast_scalar", "broadcast", "", "", "2x3x"),
      movement("broadcast_nothing", "broadcast", "", "2x3x", "2x3x"),
      movement("broadcast_one_to_one", "broadcast", "", "1x3x", "1x1x3x"),
      movement("slice", "slice", "offsets = array<i64: 0, 1>, strides = array<i64: 1, 1>", "3x5x", "2x3x"),
      movement("slice_strided", "slice", "offsets = array<i64: 1, 0>, strides = array<i64: 1, 2>", "3x5x", "2x3x"),
      movement("slice_backward", "slice", "offsets = array<i64: 2, 4>, strides = array<i64: -1, -2>", "3x5x", "3x2x"),
      movement("pad", "pad", "offsets = array<i64: 1, 2>, strides = array<i64: 1, 1>", "2x3x", "4x6x"),
      movement("pad_dilated", "pad", "offsets = array<i64: 0, 1>, strides = array<i64: 1, 2>", "2x3x", "2x7x"),
      movement("reduce_sum", "reduce", "axes = array<i64: 0, 2>, kind = 0 : i32", "2x3x4x", "3x"),
      movement("reduce_sum_keep", "reduce", "axes = array<i64: 1>, keep, kind = 0 : i32", "2x3x4x", "2x1x4x"),
      movement("reduce_sum_over_nothing", "reduce", "axes = array<i64>, kind = 0 : i32", "2x3x", "2x3x"),
      movement("reduce_max", "reduce", "axes = array<i64: 2>, kind = 1 : i32", "2x3x4x", "2x3x"),
      movement("reduce_min", "reduce", "axes = array<i64: 0, 1>, keep, kind = 2 : i32", "2x3x4x", "1x1x4x"),
      movement("reduce_mean", "reduce", "axes = array<i64: 0, 2>, kind = 3 : i32", "2x3x4x", "3x"),
      movement("reduce_mean_of_all", "reduce", "axes = array<i64: 0, 1>, kind = 3 : i32", "2x3x", ""),
      movement("softmax_last", "softmax", "axis = 2 : i64", "2x3x5x", "2x3x5x"),
      movement("softmax_middle", "softmax", "axis = 1 : i64", "2x3x5x", "2x3x5x"),
      matmul("plain", "", "4x7", "7x5"),
      matmul("transpose_lhs", "transpose_lhs", "7x4", "7x5"),
      matmul("transpose_rhs", "transpose_rhs", "4x7", "5x7"),
      matmul("transpose_both", "transpose_lhs, transpose_rhs", "7x4", "5x7"),
      {"concat", R"(
        func.func @forward(%a: tensor<2x3x2xELT>, %b: tensor<2x1x2xELT>, %c: tensor<2x2x2xELT>) -> tensor<2x6x2xELT> {
          %0 = tfm.concat %a, %b, %c {axis = 1 : i64} : (tensor<2x3x2xELT>, tensor<2x1x2xELT>, tensor<2x2x2xELT>) -> tensor<2x6x2xELT>
          return %0 : tensor<2x6x2xELT>
        })"},
      {"concat_with_a_constant", R"(
        func.func @forward(%a: tensor<2x3xELT> {test.constant}, %b: tensor<2x1xELT>) -> tensor<2x4xELT> {
          %0 = tfm.concat %a, %b {axis = 1 : i64} : (tensor<2x3xELT>, tensor<2x1xELT>) -> tensor<2x4xELT>
          return %0 : tensor<2x4xELT>
        })"},
      {"gather_first", R"(
        func.func @forward(%x: tensor<5x3xELT>, %i: tensor<2x2xi64> {test.values = array<i64: 0, 4, 4, 2>}) -> tensor<2x2x3xELT> {
          %0 = tfm.gather %x, %i {axis = 0 : i64} : (tensor<5x3xELT>, tensor<2x2xi64>) -> tensor<2x2x3xELT>
          return %0 : tensor<2x2x3xELT>
        })"},
      {"gather_middle_from_the_end", R"(
        func.func @forward(%x: tensor<2x5x3xELT>, %i: tensor<3xi32> {test.values = array<i64: -1, 1, -5>}) -> tensor<2x3x3xELT> {
          %0 = tfm.gather %x, %i {axis = 1 : i64} : (tensor<2x5x3xELT>, tensor<3xi32>) -> tensor<2x3x3xELT>
          return %0 : tensor<2x3x3xELT>
        })"},
      {"gather_one", R"(
        func.func @forward(%x: tensor<2x5xELT>, %i: tensor<i64> {test.values = array<i64: 3>}) -> tensor<2xELT> {
          %0 = tfm.gather %x, %i {axis = 1 : i64} : (tensor<2x5xELT>, tensor<i64>) -> tensor<2xELT>
          return %0 : tensor<2xELT>
        })"},
  };
}
