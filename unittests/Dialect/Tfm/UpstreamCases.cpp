//===- UpstreamCases.cpp - gradient cases of arith and math -----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"
#include <algorithm>

using namespace drover::test;

static std::string range(double low, double high) {
  return " {test.low = " + std::to_string(low) + " : f64, test.high = " + std::to_string(high) + " : f64}";
}

/// An op on `count` tensors of one shape with values in [low, high).
static GradientCase elementwise(const std::string &op, unsigned count, double low = -1, double high = 1,
                                const std::string &suffix = "") {
  std::string arguments, operands;
  for (unsigned i = 0; i < count; ++i) {
    std::string name = "%x" + std::to_string(i);
    arguments += (i ? ", " : "") + name + ": tensor<3x5xELT>" + range(low, high);
    operands += (i ? ", " : " ") + name;
  }
  std::string name = op + suffix;
  std::replace(name.begin(), name.end(), '.', '_');
  return {name, "func.func @forward(" + arguments + ") -> tensor<3x5xELT> {\n  %0 = " + op + operands +
                    " : tensor<3x5xELT>\n  return %0 : tensor<3x5xELT>\n}"};
}

std::vector<GradientCase> drover::test::upstreamCases() {
  std::vector<GradientCase> result = {
      elementwise("arith.addf", 2),
      elementwise("arith.subf", 2),
      elementwise("arith.mulf", 2),
      elementwise("arith.divf", 2, 0.5, 2),
      elementwise("arith.negf", 1),
      elementwise("arith.maximumf", 2),
      elementwise("arith.minimumf", 2),
      elementwise("arith.maxnumf", 2),
      elementwise("arith.minnumf", 2),
      elementwise("math.absf", 1),
      elementwise("math.acos", 1, -0.9, 0.9),
      elementwise("math.acosh", 1, 1.2, 3),
      elementwise("math.asin", 1, -0.9, 0.9),
      elementwise("math.asinh", 1, -3, 3),
      elementwise("math.atan", 1, -3, 3),
      elementwise("math.atan2", 2, 0.3, 2),
      elementwise("math.atan2", 2, -2, -0.3, "_negative"),
      elementwise("math.atanh", 1, -0.9, 0.9),
      elementwise("math.cbrt", 1, 0.3, 2),
      elementwise("math.ceil", 1, 0.1, 0.9),
      elementwise("math.copysign", 2),
      elementwise("math.cos", 1, -3, 3),
      elementwise("math.cosh", 1, -2, 2),
      elementwise("math.erf", 1, -2, 2),
      elementwise("math.erfc", 1, -2, 2),
      elementwise("math.exp", 1),
      elementwise("math.exp2", 1),
      elementwise("math.expm1", 1),
      elementwise("math.floor", 1, 0.1, 0.9),
      elementwise("math.fma", 3),
      elementwise("math.log", 1, 0.3, 3),
      elementwise("math.log10", 1, 0.3, 3),
      elementwise("math.log1p", 1, -0.5, 3),
      elementwise("math.log2", 1, 0.3, 3),
      elementwise("math.powf", 2, 0.3, 2),
      elementwise("math.round", 1, 0.6, 1.4),
      elementwise("math.roundeven", 1, 0.6, 1.4),
      elementwise("math.rsqrt", 1, 0.3, 3),
      elementwise("math.sin", 1, -3, 3),
      elementwise("math.sinh", 1, -2, 2),
      elementwise("math.sqrt", 1, 0.3, 3),
      elementwise("math.tan", 1),
      elementwise("math.tanh", 1, -2, 2),
      elementwise("math.trunc", 1, 0.1, 0.9),
      {"arith_remf", "func.func @forward(%a: tensor<7xELT>" + range(2.1, 2.9) + ", %b: tensor<7xELT>" +
                         range(0.8, 0.95) + R"() -> tensor<7xELT> {
          %0 = arith.remf %a, %b : tensor<7xELT>
          return %0 : tensor<7xELT>
        })"},
      {"arith_select", R"(
        func.func @forward(%c: tensor<7xi1>, %a: tensor<7xELT>, %b: tensor<7xELT>) -> tensor<7xELT> {
          %0 = arith.select %c, %a, %b : tensor<7xi1>, tensor<7xELT>
          return %0 : tensor<7xELT>
        })"},
      {"arith_select_of_a_constant", R"(
        func.func @forward(%c: tensor<7xi1>, %a: tensor<7xELT> {test.constant}, %b: tensor<7xELT>) -> tensor<7xELT> {
          %0 = arith.select %c, %a, %b : tensor<7xi1>, tensor<7xELT>
          return %0 : tensor<7xELT>
        })"},
      {"math_fpowi", R"(
        func.func @forward(%a: tensor<7xELT>, %n: tensor<7xi32> {test.values = array<i64: 0, 1, 2, 3, -1, 4, 5>}) -> tensor<7xELT> {
          %0 = math.fpowi %a, %n : tensor<7xELT>, tensor<7xi32>
          return %0 : tensor<7xELT>
        })"},
      {"math_powf_with_negative_base", R"(
        func.func @forward(%a: tensor<7xELT>) -> tensor<7xELT> {
          %n = arith.constant dense<[2.0, 3.0, 2.0, 1.0, 4.0, 3.0, 0.0]> : tensor<7xELT>
          %0 = math.powf %a, %n : tensor<7xELT>
          return %0 : tensor<7xELT>
        })"},
      {"math_clampf", "func.func @forward(%x: tensor<9xELT>, %min: tensor<9xELT>" + range(-0.4, -0.2) +
                          ", %max: tensor<9xELT>" + range(0.2, 0.4) + R"() -> tensor<9xELT> {
          %0 = math.clampf %x to [%min, %max] : tensor<9xELT>
          return %0 : tensor<9xELT>
        })"},
      {"arith_extf", R"(
        func.func @forward(%x: tensor<7xf32>) -> tensor<7xf64> {
          %0 = arith.extf %x : tensor<7xf32> to tensor<7xf64>
          return %0 : tensor<7xf64>
        })"},
      {"arith_truncf", R"(
        func.func @forward(%x: tensor<7xf64>) -> tensor<7xf32> {
          %0 = arith.truncf %x : tensor<7xf64> to tensor<7xf32>
          return %0 : tensor<7xf32>
        })"},
  };
  return result;
}
