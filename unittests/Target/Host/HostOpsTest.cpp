//===- HostOpsTest.cpp - every op of a layer on the CPU ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Sizes are odd on purpose: short vectors, tails, several blocks of rows.
//===----------------------------------------------------------------------===//
#include "HostHarness.h"
#include <gtest/gtest.h>

using namespace drover::test;

namespace {

/// A forward body with the given arguments, result types and ops; `T` stands for the element type.
std::string body(std::string arguments, std::string results, std::string ops, const std::string &element = "f32") {
  std::string text = "func.func private @body(" + arguments + ") -> (" + results +
                     ") attributes {tfm.body = \"forward\"} {\n" + ops + "}\n";
  size_t at = 0;
  while ((at = text.find("xT>", at)) != std::string::npos)
    text.replace(at, 3, "x" + element + ">");
  return text;
}

class HostOps : public ::testing::TestWithParam<const char *> {
protected:
  void expect(const std::string &arguments, const std::string &results, const std::string &ops) {
    std::string element = GetParam();
    expectMatches(body(arguments, results, ops, element), element == "f32" ? kF32 : kBF16);
  }
};
INSTANTIATE_TEST_SUITE_P(Types, HostOps, ::testing::Values("f32", "bf16"),
                         [](const auto &info) { return std::string(info.param); });

TEST_P(HostOps, RmsNormOfAResidualAdd) {
  expect("%x: tensor<3x7x37xT>, %r: tensor<3x7x37xT>, %w: tensor<37xT>", "tensor<3x7x37xT>, tensor<3x7x37xT>", R"(
    %h = arith.addf %x, %r : tensor<3x7x37xT>
    %y = tfm.rms_norm %h, %w {eps = 1.0e-6 : f64} : (tensor<3x7x37xT>, tensor<37xT>) -> tensor<3x7x37xT>
    return %h, %y : tensor<3x7x37xT>, tensor<3x7x37xT>)");
}

TEST_P(HostOps, RmsNormWithOffsetAndWithoutWeight) {
  expect("%x: tensor<2x5x64xT>, %w: tensor<64xT>", "tensor<2x5x64xT>, tensor<2x5x64xT>", R"(
    %y = tfm.rms_norm %x, %w {eps = 1.0e-5 : f64, weight_offset = 1.0 : f64} : (tensor<2x5x64xT>, tensor<64xT>) -> tensor<2x5x64xT>
    %z = tfm.rms_norm %x {eps = 1.0e-5 : f64} : (tensor<2x5x64xT>) -> tensor<2x5x64xT>
    return %y, %z : tensor<2x5x64xT>, tensor<2x5x64xT>)");
}

TEST_P(HostOps, RmsNormGradients) {
  expect("%x: tensor<9x11x37xT>, %dy: tensor<9x11x37xT>, %w: tensor<37xT>", "tensor<9x11x37xT>, tensor<37xf32>", R"(
    %dx, %dw = tfm.rms_norm_grad %x, %dy, %w {eps = 1.0e-6 : f64} : (tensor<9x11x37xT>, tensor<9x11x37xT>, tensor<37xT>) -> (tensor<9x11x37xT>, tensor<37xf32>)
    return %dx, %dw : tensor<9x11x37xT>, tensor<37xf32>)");
}

TEST_P(HostOps, LayerNormAndItsGradients) {
  expect("%x: tensor<9x11x67xT>, %dy: tensor<9x11x67xT>, %w: tensor<67xT>, %b: tensor<67xT>",
         "tensor<9x11x67xT>, tensor<9x11x67xT>, tensor<67xf32>, tensor<67xf32>", R"(
    %y = tfm.layer_norm %x weight %w bias %b {eps = 1.0e-5 : f64} : (tensor<9x11x67xT>, tensor<67xT>, tensor<67xT>) -> tensor<9x11x67xT>
    %dx, %dw, %db = tfm.layer_norm_grad %x, %dy, %w {eps = 1.0e-5 : f64, resultSegmentSizes = array<i32: 1, 1, 1>} : (tensor<9x11x67xT>, tensor<9x11x67xT>, tensor<67xT>) -> (tensor<9x11x67xT>, tensor<67xf32>, tensor<67xf32>)
    return %y, %dx, %dw, %db : tensor<9x11x67xT>, tensor<9x11x67xT>, tensor<67xf32>, tensor<67xf32>)");
}

TEST_P(HostOps, Activations) {
  expect("%x: tensor<3x5x35xT>, %u: tensor<3x5x35xT>, %dy: tensor<3x5x35xT>",
         "tensor<3x5x35xT>, tensor<3x5x35xT>, tensor<3x5x35xT>, tensor<3x5x35xT>, tensor<3x5x35xT>, tensor<3x5x35xT>, "
         "tensor<3x5x35xT>, tensor<3x5x35xT>, tensor<3x5x35xT>",
         R"(
    %0 = tfm.gelu %x {kind = 0 : i32} : (tensor<3x5x35xT>) -> tensor<3x5x35xT>
    %1 = tfm.gelu %x {kind = 1 : i32} : (tensor<3x5x35xT>) -> tensor<3x5x35xT>
    %2 = tfm.gelu_grad %x, %dy {kind = 0 : i32} : (tensor<3x5x35xT>, tensor<3x5x35xT>) -> tensor<3x5x35xT>
    %3 = tfm.gelu_grad %x, %dy {kind = 1 : i32} : (tensor<3x5x35xT>, tensor<3x5x35xT>) -> tensor<3x5x35xT>
    %4 = tfm.silu %x : (tensor<3x5x35xT>) -> tensor<3x5x35xT>
    %5 = tfm.silu_grad %x, %dy : (tensor<3x5x35xT>, tensor<3x5x35xT>) -> tensor<3x5x35xT>
    %6 = tfm.swiglu %x, %u : (tensor<3x5x35xT>, tensor<3x5x35xT>) -> tensor<3x5x35xT>
    %7, %8 = tfm.swiglu_grad %x, %u, %dy : (tensor<3x5x35xT>, tensor<3x5x35xT>, tensor<3x5x35xT>) -> (tensor<3x5x35xT>, tensor<3x5x35xT>)
    return %0, %1, %2, %3, %4, %5, %6, %7, %8 : tensor<3x5x35xT>, tensor<3x5x35xT>, tensor<3x5x35xT>, tensor<3x5x35xT>, tensor<3x5x35xT>, tensor<3x5x35xT>, tensor<3x5x35xT>, tensor<3x5x35xT>, tensor<3x5x35xT>)");
}

TEST_P(HostOps, EmbeddingAndItsGradient) {
  expect("%ids: tensor<3x7xi64> {test.range = array<i64: 0, 19>}, %t: tensor<19x37xT>, %dy: tensor<3x7x37xT>",
         "tensor<3x7x37xT>, tensor<19x37xf32>", R"(
    %0 = tfm.embedding %ids, %t : (tensor<3x7xi64>, tensor<19x37xT>) -> tensor<3x7x37xT>
    %1 = tfm.embedding_grad %ids, %dy : (tensor<3x7xi64>, tensor<3x7x37xT>) -> tensor<19x37xf32>
    return %0, %1 : tensor<3x7x37xT>, tensor<19x37xf32>)");
}

TEST_P(HostOps, LinearsInBothOrientations) {
  expect("%x: tensor<3x7x37xT>, %w: tensor<29x37xT>, %v: tensor<37x29xT>, %dy: tensor<3x7x29xT>",
         "tensor<3x7x29xT>, tensor<3x7x29xT>, tensor<3x7x29xf32>, tensor<29x37xf32>, tensor<37x29xf32>", R"(
    %0 = tfm.linear %x, %w : (tensor<3x7x37xT>, tensor<29x37xT>) -> tensor<3x7x29xT>
    %1 = tfm.linear %x, %v in_out : (tensor<3x7x37xT>, tensor<37x29xT>) -> tensor<3x7x29xT>
    %2 = tfm.linear %x, %w : (tensor<3x7x37xT>, tensor<29x37xT>) -> tensor<3x7x29xf32>
    %3 = tfm.linear_weight_grad %x, %dy : (tensor<3x7x37xT>, tensor<3x7x29xT>) -> tensor<29x37xf32>
    %4 = tfm.linear_weight_grad %x, %dy in_out : (tensor<3x7x37xT>, tensor<3x7x29xT>) -> tensor<37x29xf32>
    return %0, %1, %2, %3, %4 : tensor<3x7x29xT>, tensor<3x7x29xT>, tensor<3x7x29xf32>, tensor<29x37xf32>, tensor<37x29xf32>)");
}

TEST_P(HostOps, BiasAndColumnSum) {
  expect("%x: tensor<9x17x37xT>, %b: tensor<37xT>", "tensor<9x17x37xT>, tensor<37xf32>", R"(
    %0 = tfm.bias_add %x, %b : (tensor<9x17x37xT>, tensor<37xT>) -> tensor<9x17x37xT>
    %1 = tfm.column_sum %0 : (tensor<9x17x37xT>) -> tensor<37xf32>
    return %0, %1 : tensor<9x17x37xT>, tensor<37xf32>)");
}

TEST_P(HostOps, Rope) {
  expect("%x: tensor<2x7x60xT>, %p: tensor<2x7xi64> {test.range = array<i64: 0, 5000>}, %q: tensor<1x7xi32> "
         "{test.range = array<i64: 0, 100>}",
         "tensor<2x7x60xT>, tensor<2x7x60xT>, tensor<2x7x60xT>", R"(
    %0 = tfm.rope %x, %p {head_size = 20 : i64, rotary_dim = 20 : i64, theta = 1.0e4 : f64} : (tensor<2x7x60xT>, tensor<2x7xi64>) -> tensor<2x7x60xT>
    %1 = tfm.rope %x, %q {head_size = 20 : i64, rotary_dim = 8 : i64, theta = 1.0e4 : f64, interleaved, magnitude = 1.5 : f64} : (tensor<2x7x60xT>, tensor<1x7xi32>) -> tensor<2x7x60xT>
    %2 = tfm.rope %x, %p {head_size = 60 : i64, rotary_dim = 60 : i64, theta = 5.0e5 : f64, inverse, scaling = #tfm.rope_scaling<kind = "llama3", factor = 8.0, low = 1.0, high = 4.0, original = 8192>} : (tensor<2x7x60xT>, tensor<2x7xi64>) -> tensor<2x7x60xT>
    return %0, %1, %2 : tensor<2x7x60xT>, tensor<2x7x60xT>, tensor<2x7x60xT>)");
}

TEST_P(HostOps, AttentionAndItsGradients) {
  expect("%q: tensor<2x9x48xT>, %k: tensor<2x9x24xT>, %v: tensor<2x9x24xT>, %do: tensor<2x9x48xT>",
         "tensor<2x9x48xT>, tensor<2x4x9xf32>, tensor<2x9x48xT>, tensor<2x9x24xT>, tensor<2x9x24xT>", R"(
    %o, %lse = tfm.attention %q, %k, %v causal top_left {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.28 : f64} : (tensor<2x9x48xT>, tensor<2x9x24xT>, tensor<2x9x24xT>) -> (tensor<2x9x48xT>, tensor<2x4x9xf32>)
    %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %lse, %do causal top_left {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 0.28 : f64} : (tensor<2x9x48xT>, tensor<2x9x24xT>, tensor<2x9x24xT>, tensor<2x9x48xT>, tensor<2x4x9xf32>, tensor<2x9x48xT>) -> (tensor<2x9x48xT>, tensor<2x9x24xT>, tensor<2x9x24xT>)
    return %o, %lse, %dq, %dk, %dv : tensor<2x9x48xT>, tensor<2x4x9xf32>, tensor<2x9x48xT>, tensor<2x9x24xT>, tensor<2x9x24xT>)");
}

TEST_P(HostOps, AttentionWithMasks) {
  expect("%q: tensor<2x5x32xT>, %k: tensor<2x7x32xT>, %v: tensor<2x7x32xT>, %m: tensor<2x1x5x7xi1>, %n: "
         "tensor<2x7xi64>, %d: tensor<2x5xi32>",
         "tensor<2x5x32xT>, tensor<2x5x32xT>, tensor<2x5x32xT>", R"(
    %o, %l = tfm.attention %q, %k, %v mask %m key_mask %n {num_heads = 4 : i64, num_kv_heads = 4 : i64, scale = 0.35 : f64} : (tensor<2x5x32xT>, tensor<2x7x32xT>, tensor<2x7x32xT>, tensor<2x1x5x7xi1>, tensor<2x7xi64>) -> (tensor<2x5x32xT>, tensor<2x4x5xf32>)
    %p, %r = tfm.attention %q, %q, %q documents %d causal top_left {num_heads = 4 : i64, num_kv_heads = 4 : i64, scale = 0.35 : f64, alibi_slopes = array<f32: 0.5, 0.25, 0.125, 0.0625>} : (tensor<2x5x32xT>, tensor<2x5x32xT>, tensor<2x5x32xT>, tensor<2x5xi32>) -> (tensor<2x5x32xT>, tensor<2x4x5xf32>)
    %s, %t = tfm.attention %q, %k, %v causal bottom_right {num_heads = 4 : i64, num_kv_heads = 4 : i64, scale = 0.35 : f64, window = 3 : i64, softcap = 5.0 : f64} : (tensor<2x5x32xT>, tensor<2x7x32xT>, tensor<2x7x32xT>) -> (tensor<2x5x32xT>, tensor<2x4x5xf32>)
    return %o, %p, %s : tensor<2x5x32xT>, tensor<2x5x32xT>, tensor<2x5x32xT>)");
}

TEST_P(HostOps, LossAndItsGradient) {
  expect("%x: tensor<3x7x37xT>, %l: tensor<3x7xi64> {test.range = array<i64: -2, 37>}, %seed: tensor<f32>",
         "tensor<f64>, tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7x37xT>", R"(
    %m = tfm.logits_max %x : (tensor<3x7x37xT>) -> tensor<3x7xf32>
    %s, %t = tfm.logits_sum %x, %l, %m : (tensor<3x7x37xT>, tensor<3x7xi64>, tensor<3x7xf32>) -> (tensor<3x7xf32>, tensor<3x7xf32>)
    %loss = tfm.cross_entropy %l, %m, %s, %t : (tensor<3x7xi64>, tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7xf32>) -> tensor<f64>
    %d = tfm.cross_entropy_grad %x, %l, %m, %s, %seed : (tensor<3x7x37xT>, tensor<3x7xi64>, tensor<3x7xf32>, tensor<3x7xf32>, tensor<f32>) -> tensor<3x7x37xT>
    return %loss, %m, %s, %t, %d : tensor<f64>, tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7x37xT>)");
}

TEST_P(HostOps, LossOfLogitsThatTheSameKernelComputes) {
  expect("%x: tensor<3x7x37xf32>, %b: tensor<37xf32>, %l: tensor<3x7xi64> {test.range = array<i64: -2, 37>}",
         "tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7x37xf32>", R"(
    %y = tfm.bias_add %x, %b : (tensor<3x7x37xf32>, tensor<37xf32>) -> tensor<3x7x37xf32>
    %m = tfm.logits_max %y : (tensor<3x7x37xf32>) -> tensor<3x7xf32>
    %s, %t = tfm.logits_sum %y, %l, %m : (tensor<3x7x37xf32>, tensor<3x7xi64>, tensor<3x7xf32>) -> (tensor<3x7xf32>, tensor<3x7xf32>)
    return %m, %s, %t, %y : tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7x37xf32>)");
}

const char *kAccumulations = R"(
func.func private @body(%x: tensor<3x37x19xf32>, %dy: tensor<3x37x23xf32>, %ids: tensor<3x37xi64> {test.range = array<i64: 0, 11>},
    %w: tensor<19xf32>, %dx: tensor<3x37x19xf32>,
    %a: tensor<23x19xf32>, %b: tensor<23xf32>, %c: tensor<11x23xf32>, %d: tensor<19xf32>, %e: tensor<3x37x23xf32>)
    -> (tensor<23x19xf32> {tfm.inplace = 5 : i64}, tensor<23xf32> {tfm.inplace = 6 : i64}, tensor<11x23xf32> {tfm.inplace = 7 : i64},
        tensor<19xf32> {tfm.inplace = 8 : i64}, tensor<3x37x19xf32>, tensor<3x37x23xf32> {tfm.inplace = 9 : i64}) attributes {tfm.body = "backward"} {
  %0 = tfm.linear_weight_grad %x, %dy : (tensor<3x37x19xf32>, tensor<3x37x23xf32>) -> tensor<23x19xf32>
  %1 = tfm.accumulate %a, %0 : (tensor<23x19xf32>, tensor<23x19xf32>) -> tensor<23x19xf32>
  %2 = tfm.column_sum %dy : (tensor<3x37x23xf32>) -> tensor<23xf32>
  %3 = tfm.accumulate %b, %2 : (tensor<23xf32>, tensor<23xf32>) -> tensor<23xf32>
  %4 = tfm.embedding_grad %ids, %dy : (tensor<3x37xi64>, tensor<3x37x23xf32>) -> tensor<11x23xf32>
  %5 = tfm.accumulate %c, %4 : (tensor<11x23xf32>, tensor<11x23xf32>) -> tensor<11x23xf32>
  %6, %7 = tfm.rms_norm_grad %x, %dx, %w {eps = 1.0e-6 : f64} : (tensor<3x37x19xf32>, tensor<3x37x19xf32>, tensor<19xf32>) -> (tensor<3x37x19xf32>, tensor<19xf32>)
  %8 = tfm.accumulate %d, %7 : (tensor<19xf32>, tensor<19xf32>) -> tensor<19xf32>
  %9 = arith.mulf %dy, %dy : tensor<3x37x23xf32>
  %10 = tfm.accumulate %e, %9 : (tensor<3x37x23xf32>, tensor<3x37x23xf32>) -> tensor<3x37x23xf32>
  return %1, %3, %5, %8, %6, %10 : tensor<23x19xf32>, tensor<23xf32>, tensor<11x23xf32>, tensor<19xf32>, tensor<3x37x19xf32>, tensor<3x37x23xf32>
})";

TEST(HostAccumulate, AddsToEarlierMicrobatches) { expectMatches(kAccumulations, kF32); }
TEST(HostAccumulate, OverwritesInTheFirst) { expectMatches(kAccumulations, kF32, 0, "body", 0); }

} // namespace
