//===- HostStructuralTest.cpp - what was not raised, on the CPU -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "HostHarness.h"
#include <gtest/gtest.h>

using namespace drover::test;

namespace {

void expectBody(const std::string &signature, const std::string &ops, Tolerance tolerance = kF32) {
  expectMatches("func.func private @body" + signature + " attributes {tfm.body = \"forward\"} {\n" + ops + "\n}",
                tolerance);
}

TEST(HostStructural, ViewsAreReadInPlace) {
  expectBody("(%x: tensor<2x5x12xf32>) -> (tensor<2x12x5xf32>, tensor<2x5x4xf32>, tensor<10x12xf32>, "
             "tensor<3x2x5x12xf32>, tensor<5x12x2xf32>)",
             R"(
    %0 = tfm.transpose %x {permutation = array<i64: 0, 2, 1>} : tensor<2x5x12xf32> -> tensor<2x12x5xf32>
    %1 = tfm.slice %x {offsets = array<i64: 0, 0, 3>, strides = array<i64: 1, 1, 2>} : tensor<2x5x12xf32> -> tensor<2x5x4xf32>
    %2 = tfm.reshape %x : tensor<2x5x12xf32> -> tensor<10x12xf32>
    %3 = tfm.broadcast %x : tensor<2x5x12xf32> -> tensor<3x2x5x12xf32>
    %4 = tfm.transpose %x {permutation = array<i64: 1, 2, 0>} : tensor<2x5x12xf32> -> tensor<5x12x2xf32>
    %5 = arith.mulf %4, %4 : tensor<5x12x2xf32>
    return %0, %1, %2, %3, %5 : tensor<2x12x5xf32>, tensor<2x5x4xf32>, tensor<10x12xf32>, tensor<3x2x5x12xf32>, tensor<5x12x2xf32>)");
}

TEST(HostStructural, AReshapeOfATransposeIsCopied) {
  expectBody("(%x: tensor<2x5x4x3xf32>) -> (tensor<2x4x15xf32>, tensor<2x4x15xf32>)", R"(
    %0 = tfm.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x5x4x3xf32> -> tensor<2x4x5x3xf32>
    %1 = tfm.reshape %0 : tensor<2x4x5x3xf32> -> tensor<2x4x15xf32>
    %2 = math.absf %1 : tensor<2x4x15xf32>
    return %1, %2 : tensor<2x4x15xf32>, tensor<2x4x15xf32>)");
}

TEST(HostStructural, ConcatAndPad) {
  expectBody("(%x: tensor<2x5x6xf32>, %y: tensor<2x5x3xf32>, %z: tensor<2x4x6xbf16>, %u: tensor<2x1x6xbf16>) -> "
             "(tensor<2x5x9xf32>, tensor<2x5x6xbf16>, tensor<4x7x13xf32>, tensor<2x5x12xf32>)",
             R"(
    %0 = tfm.concat %x, %y {axis = 2 : i64} : (tensor<2x5x6xf32>, tensor<2x5x3xf32>) -> tensor<2x5x9xf32>
    %1 = tfm.concat %z, %u {axis = 1 : i64} : (tensor<2x4x6xbf16>, tensor<2x1x6xbf16>) -> tensor<2x5x6xbf16>
    %2 = tfm.pad %x {offsets = array<i64: 1, 2, 1>, strides = array<i64: 2, 1, 2>} : tensor<2x5x6xf32> -> tensor<4x7x13xf32>
    %3 = arith.negf %x : tensor<2x5x6xf32>
    %4 = math.absf %x : tensor<2x5x6xf32>
    %5 = tfm.concat %3, %4 {axis = 2 : i64} : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x12xf32>
    return %0, %1, %2, %5 : tensor<2x5x9xf32>, tensor<2x5x6xbf16>, tensor<4x7x13xf32>, tensor<2x5x12xf32>)");
}

TEST(HostStructural, Reductions) {
  expectBody("(%x: tensor<3x5x19xf32>, %i: tensor<3x5xi64> {test.range = array<i64: -9, 9>}) -> (tensor<3x5xf32>, "
             "tensor<3x1x19xf32>, tensor<5xf32>, tensor<3x5x1xf32>, tensor<3x5xf32>, tensor<5xi64>, tensor<3xi64>, "
             "tensor<f32>)",
             R"(
    %0 = tfm.reduce %x {axes = array<i64: 2>, kind = 0 : i32} : tensor<3x5x19xf32> -> tensor<3x5xf32>
    %1 = tfm.reduce %x {axes = array<i64: 1>, kind = 1 : i32, keep} : tensor<3x5x19xf32> -> tensor<3x1x19xf32>
    %2 = tfm.reduce %x {axes = array<i64: 0, 2>, kind = 3 : i32} : tensor<3x5x19xf32> -> tensor<5xf32>
    %3 = tfm.reduce %x {axes = array<i64: 2>, kind = 2 : i32, keep} : tensor<3x5x19xf32> -> tensor<3x5x1xf32>
    %4 = tfm.reduce %x {axes = array<i64: 2>, kind = 4 : i32} : tensor<3x5x19xf32> -> tensor<3x5xf32>
    %5 = tfm.reduce %i {axes = array<i64: 0>, kind = 1 : i32} : tensor<3x5xi64> -> tensor<5xi64>
    %6 = tfm.reduce %i {axes = array<i64: 1>, kind = 0 : i32} : tensor<3x5xi64> -> tensor<3xi64>
    %7 = tfm.reduce %x {axes = array<i64: 0, 1, 2>, kind = 3 : i32} : tensor<3x5x19xf32> -> tensor<f32>
    return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<3x5xf32>, tensor<3x1x19xf32>, tensor<5xf32>, tensor<3x5x1xf32>, tensor<3x5xf32>, tensor<5xi64>, tensor<3xi64>, tensor<f32>)");
}

TEST(HostStructural, ANormThatWasNotRaised) {
  expectBody("(%x: tensor<3x5x37xf32>, %w: tensor<37xf32>) -> tensor<3x5x37xf32>", R"(
    %eps = arith.constant dense<1.0e-6> : tensor<3x5x1xf32>
    %0 = arith.mulf %x, %x : tensor<3x5x37xf32>
    %1 = tfm.reduce %0 {axes = array<i64: 2>, kind = 3 : i32, keep} : tensor<3x5x37xf32> -> tensor<3x5x1xf32>
    %2 = arith.addf %1, %eps : tensor<3x5x1xf32>
    %3 = math.rsqrt %2 : tensor<3x5x1xf32>
    %4 = tfm.broadcast %3 : tensor<3x5x1xf32> -> tensor<3x5x37xf32>
    %5 = arith.mulf %x, %4 : tensor<3x5x37xf32>
    %6 = tfm.broadcast %w : tensor<37xf32> -> tensor<3x5x37xf32>
    %7 = arith.mulf %5, %6 : tensor<3x5x37xf32>
    return %7 : tensor<3x5x37xf32>)");
}

TEST(HostStructural, AnAttentionThatWasNotRaised) {
  expectBody("(%q: tensor<2x5x24xf32>, %k: tensor<2x5x24xf32>, %v: tensor<2x5x24xf32>) -> tensor<2x5x24xf32>", R"(
    %q4 = tfm.reshape %q : tensor<2x5x24xf32> -> tensor<2x5x3x8xf32>
    %k4 = tfm.reshape %k : tensor<2x5x24xf32> -> tensor<2x5x3x8xf32>
    %v4 = tfm.reshape %v : tensor<2x5x24xf32> -> tensor<2x5x3x8xf32>
    %qt = tfm.transpose %q4 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x5x3x8xf32> -> tensor<2x3x5x8xf32>
    %kt = tfm.transpose %k4 {permutation = array<i64: 0, 2, 3, 1>} : tensor<2x5x3x8xf32> -> tensor<2x3x8x5xf32>
    %vt = tfm.transpose %v4 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x5x3x8xf32> -> tensor<2x3x5x8xf32>
    %s = tfm.matmul %qt, %kt : (tensor<2x3x5x8xf32>, tensor<2x3x8x5xf32>) -> tensor<2x3x5x5xf32>
    %scale = arith.constant dense<0.35> : tensor<2x3x5x5xf32>
    %s1 = arith.mulf %s, %scale : tensor<2x3x5x5xf32>
    %row = tfm.iota {axis = 0 : i64} : tensor<5x5xi64>
    %col = tfm.iota {axis = 1 : i64} : tensor<5x5xi64>
    %visible = arith.cmpi sle, %col, %row : tensor<5x5xi64>
    %m = tfm.broadcast %visible : tensor<5x5xi1> -> tensor<2x3x5x5xi1>
    %low = arith.constant dense<0xFF800000> : tensor<2x3x5x5xf32>
    %s2 = arith.select %m, %s1, %low : tensor<2x3x5x5xi1>, tensor<2x3x5x5xf32>
    %p = tfm.softmax %s2 {axis = 3 : i64} : tensor<2x3x5x5xf32> -> tensor<2x3x5x5xf32>
    %o = tfm.matmul %p, %vt : (tensor<2x3x5x5xf32>, tensor<2x3x5x8xf32>) -> tensor<2x3x5x8xf32>
    %ot = tfm.transpose %o {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x3x5x8xf32> -> tensor<2x5x3x8xf32>
    %r = tfm.reshape %ot : tensor<2x5x3x8xf32> -> tensor<2x5x24xf32>
    return %r : tensor<2x5x24xf32>)");
}

TEST(HostStructural, MatmulsOfEveryOrientation) {
  expectBody("(%a: tensor<2x3x5x7xf32>, %b: tensor<2x3x9x7xf32>, %c: tensor<2x3x7x5xf32>, %d: tensor<4x6xf64>, %e: "
             "tensor<6x3xf64>) -> (tensor<2x3x5x9xf32>, tensor<2x3x5x9xf32>, tensor<4x3xf64>)",
             R"(
    %0 = tfm.matmul %a, %b {transpose_rhs} : (tensor<2x3x5x7xf32>, tensor<2x3x9x7xf32>) -> tensor<2x3x5x9xf32>
    %1 = tfm.matmul %c, %b {transpose_lhs, transpose_rhs} : (tensor<2x3x7x5xf32>, tensor<2x3x9x7xf32>) -> tensor<2x3x5x9xf32>
    %2 = tfm.matmul %d, %e : (tensor<4x6xf64>, tensor<6x3xf64>) -> tensor<4x3xf64>
    return %0, %1, %2 : tensor<2x3x5x9xf32>, tensor<2x3x5x9xf32>, tensor<4x3xf64>)");
}

TEST(HostStructural, SoftmaxOverAnyDimension) {
  expectBody("(%x: tensor<3x5x19xf32>) -> (tensor<3x5x19xf32>, tensor<3x5x19xf32>)", R"(
    %0 = tfm.softmax %x {axis = 2 : i64} : tensor<3x5x19xf32> -> tensor<3x5x19xf32>
    %1 = tfm.softmax %x {axis = 1 : i64} : tensor<3x5x19xf32> -> tensor<3x5x19xf32>
    return %0, %1 : tensor<3x5x19xf32>, tensor<3x5x19xf32>)");
}

TEST(HostStructural, GatherAndScatter) {
  expectBody("(%x: tensor<4x9x5xf32>, %i: tensor<2x3xi64> {test.range = array<i64: -9, 9>}, %u: tensor<4x2x3x5xf32>, "
             "%v: tensor<4x2x3x5xbf16>, %n: tensor<3x2xi64> {test.range = array<i64: 0, 4>}, %w: tensor<3x5xf32>, %j: "
             "tensor<2xi32> {test.range = array<i64: 0, 5>}) -> (tensor<4x2x3x5xf32>, tensor<4x9x5xf32>, "
             "tensor<4x9x5xbf16>, tensor<4x9x5xf32>, tensor<4x9x2xf32>)",
             R"(
    %0 = tfm.gather %x, %i {axis = 1 : i64} : (tensor<4x9x5xf32>, tensor<2x3xi64>) -> tensor<4x2x3x5xf32>
    %1 = tfm.scatter_add %u, %i {axis = 1 : i64} : (tensor<4x2x3x5xf32>, tensor<2x3xi64>) -> tensor<4x9x5xf32>
    %2 = tfm.scatter_add %v, %i {axis = 1 : i64} : (tensor<4x2x3x5xbf16>, tensor<2x3xi64>) -> tensor<4x9x5xbf16>
    %3 = tfm.scatter_nd %x, %n, %w : (tensor<4x9x5xf32>, tensor<3x2xi64>, tensor<3x5xf32>) -> tensor<4x9x5xf32>
    %4 = tfm.gather %x, %j {axis = 2 : i64} : (tensor<4x9x5xf32>, tensor<2xi32>) -> tensor<4x9x2xf32>
    return %0, %1, %2, %3, %4 : tensor<4x2x3x5xf32>, tensor<4x9x5xf32>, tensor<4x9x5xbf16>, tensor<4x9x5xf32>, tensor<4x9x2xf32>)");
}

TEST(HostStructural, ConstantsAndIotas) {
  expectBody("() -> (tensor<3x5xi32>, tensor<4xf32>, tensor<2x3xi64>, tensor<3xi1>, tensor<f32>)", R"(
    %0 = tfm.iota {axis = 1 : i64, start = 3 : i64, step = -2 : i64} : tensor<3x5xi32>
    %1 = arith.constant dense<[1.0, -2.0, 3.5, 0.25]> : tensor<4xf32>
    %2 = tfm.fill {value = 7 : i64} : tensor<2x3xi64>
    %3 = arith.constant dense<[true, false, true]> : tensor<3xi1>
    %4 = arith.constant dense<2.5> : tensor<f32>
    return %0, %1, %2, %3, %4 : tensor<3x5xi32>, tensor<4xf32>, tensor<2x3xi64>, tensor<3xi1>, tensor<f32>)");
}

TEST(HostStructural, ConstantsThatAreResources) {
  expectMatches(R"(
    func.func private @body(%x: tensor<3xf32>) -> tensor<3xf32> attributes {tfm.body = "forward"} {
      %0 = arith.constant dense_resource<table> : tensor<3xf32>
      %1 = arith.addf %x, %0 : tensor<3xf32>
      return %1 : tensor<3xf32>
    }
    {-# dialect_resources: { builtin: { table: "0x040000000000803f0000004000004040" } } #-})");
}

TEST(HostStructural, IntegersAndCasts) {
  expectBody("(%i: tensor<3x19xi64> {test.range = array<i64: -50, 50>}, %x: tensor<3x19xf32>, %h: tensor<3x19xf16>) -> "
             "(tensor<3x19xi64>, tensor<3x19xi1>, tensor<3x19xbf16>, tensor<3x19xi32>, tensor<3x19xf64>, "
             "tensor<3x19xf16>, tensor<3x19xf32>)",
             R"(
    %c = arith.constant dense<7> : tensor<3x19xi64>
    %0 = arith.remsi %i, %c : tensor<3x19xi64>
    %1 = arith.cmpi slt, %0, %i : tensor<3x19xi64>
    %2 = arith.sitofp %i : tensor<3x19xi64> to tensor<3x19xbf16>
    %3 = arith.fptosi %x : tensor<3x19xf32> to tensor<3x19xi32>
    %4 = arith.extf %x : tensor<3x19xf32> to tensor<3x19xf64>
    %5 = arith.addf %h, %h : tensor<3x19xf16>
    %6 = arith.extf %h : tensor<3x19xf16> to tensor<3x19xf32>
    return %0, %1, %2, %3, %4, %5, %6 : tensor<3x19xi64>, tensor<3x19xi1>, tensor<3x19xbf16>, tensor<3x19xi32>, tensor<3x19xf64>, tensor<3x19xf16>, tensor<3x19xf32>)");
}

TEST(HostStructural, MathFunctions) {
  expectBody("(%x: tensor<4x257xf32>, %p: tensor<4x257xf32> {test.positive}) -> (tensor<4x257xf32>, tensor<4x257xf32>, "
             "tensor<4x257xf32>, tensor<4x257xf32>, tensor<4x257xf32>, tensor<4x257xf32>, tensor<4x257xf32>, "
             "tensor<4x257xf32>)",
             R"(
    %ten = arith.constant dense<30.0> : tensor<4x257xf32>
    %x10 = arith.mulf %x, %ten : tensor<4x257xf32>
    %0 = math.exp %x10 : tensor<4x257xf32>
    %1 = math.tanh %x : tensor<4x257xf32>
    %2 = math.erf %x : tensor<4x257xf32>
    %3 = math.log %p : tensor<4x257xf32>
    %4 = math.sin %x10 : tensor<4x257xf32>
    %5 = math.cos %x10 : tensor<4x257xf32>
    %6 = math.rsqrt %p : tensor<4x257xf32>
    %7 = math.powf %p, %x : tensor<4x257xf32>
    return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<4x257xf32>, tensor<4x257xf32>, tensor<4x257xf32>, tensor<4x257xf32>, tensor<4x257xf32>, tensor<4x257xf32>, tensor<4x257xf32>, tensor<4x257xf32>)");
}

/// rt-expand-math's promise: two units in the last place, four for erf.
class HostMath : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Functions, HostMath, ::testing::Values("exp", "tanh", "erf", "log", "sin", "cos", "rsqrt"),
                         [](const auto &info) { return std::string(info.param); });

TEST_P(HostMath, IsExactToAFewUnitsInTheLastPlace) {
  std::string function = GetParam();
  bool positive = function == "log" || function == "rsqrt", wide = function != "erf" && function != "tanh";
  expectBody("(%x: tensor<64x257xf32>" + std::string(positive ? " {test.positive}" : "") + ") -> tensor<64x257xf32>",
             "%c = arith.constant dense<" + std::string(wide ? "20.0" : "1.5") + "> : tensor<64x257xf32>\n" +
                 "%y = arith.mulf %x, %c : tensor<64x257xf32>\n%0 = math." + function +
                 " %y : tensor<64x257xf32>\nreturn %0 : tensor<64x257xf32>",
             {function == "erf" ? 4.8e-7 : 2.4e-7, 0.0});
}

TEST(HostStructural, ResultsThatAreArgumentsOrReturnedTwice) {
  expectBody("(%x: tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<15xf32>)", R"(
    %0 = arith.negf %x : tensor<3x5xf32>
    %1 = tfm.reshape %0 : tensor<3x5xf32> -> tensor<15xf32>
    return %x, %0, %0, %1 : tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<15xf32>)");
}

TEST(HostStructural, AnInPlaceResultWhoseArgumentIsReadLater) {
  expectBody("(%x: tensor<6x5xf32>, %y: tensor<5x6xf32>) -> (tensor<6x5xf32> {tfm.inplace = 0 : i64}, tensor<5x6xf32>)",
             R"(
    %0 = arith.negf %x : tensor<6x5xf32>
    %t = tfm.transpose %x {permutation = array<i64: 1, 0>} : tensor<6x5xf32> -> tensor<5x6xf32>
    %1 = arith.addf %t, %y : tensor<5x6xf32>
    return %0, %1 : tensor<6x5xf32>, tensor<5x6xf32>)");
}

TEST(HostStructural, LargeFlatKernels) {
  expectBody("(%x: tensor<3x5000xf32>, %y: tensor<3x5000xf32>) -> tensor<3x5000xf32>", R"(
    %0 = arith.mulf %x, %y : tensor<3x5000xf32>
    %1 = math.tanh %0 : tensor<3x5000xf32>
    return %1 : tensor<3x5000xf32>)");
}

TEST(HostStructural, ErrorsAreLocatedAndSayWhatIsSupported) {
  auto message = [](const std::string &text) {
    CompiledBodies bodies(text);
    EXPECT_FALSE(bodies.ok());
    return bodies.diagnostics();
  };
  EXPECT_NE(message("func.func private @body(%x: tensor<?xf32>) -> tensor<?xf32> attributes {tfm.body = \"forward\"} { "
                    "return %x : tensor<?xf32> }")
                .find("expects static sizes, not 'tensor<?xf32>'; only update and norm bodies are flat"),
            std::string::npos);
  drover::host::HostOptions options;
  options.cpu = "no-such-cpu";
  CompiledBodies bodies("func.func private @body(%x: tensor<2xf32>) -> tensor<2xf32> attributes {tfm.body = "
                        "\"forward\"} { return %x : tensor<2xf32> }",
                        options);
  EXPECT_NE(bodies.diagnostics().find("unknown CPU 'no-such-cpu'"), std::string::npos);
  options.cpu = "i386";
  CompiledBodies narrow("func.func private @body(%x: tensor<2xf32>) -> tensor<2xf32> attributes {tfm.body = "
                        "\"forward\"} { return %x : tensor<2xf32> }",
                        options);
  EXPECT_NE(narrow.diagnostics().find("CPU 'i386' has no 64-bit mode"), std::string::npos);
}

TEST(HostStructural, OtherCpusAreTargets) {
  drover::host::HostOptions options;
  options.cpu = "x86-64";
  CompiledBodies bodies("func.func private @body(%x: tensor<40xbf16>) -> tensor<40xbf16> attributes {tfm.body = "
                        "\"forward\"} { %0 = math.exp %x : tensor<40xbf16> return %0 : tensor<40xbf16> }",
                        options);
  EXPECT_TRUE(bodies.ok()) << bodies.diagnostics();
}

} // namespace
