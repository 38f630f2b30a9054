//===- HostRankOpsTest.cpp - ops of a rank's part on the CPU ----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Ops that know the rank, and ops on a part of a table, of a vocabulary or of the queries, at several places of a grid.
//===----------------------------------------------------------------------===//
#include "HostHarness.h"
#include <gtest/gtest.h>

using namespace drover::test;

namespace {

Coordinates at(int32_t tp, int32_t cp) {
  Coordinates coordinates = {};
  coordinates[DROVER_AXIS_TP] = tp;
  coordinates[DROVER_AXIS_KV] = tp / 2;
  coordinates[DROVER_AXIS_REPLICA] = tp % 2;
  coordinates[DROVER_AXIS_CP] = cp;
  return coordinates;
}

/// A body on a grid of tp 4 (kv 2 times replica 2) and cp 3; `T` stands for the element type.
std::string body(const std::string &arguments, const std::string &results, const std::string &ops,
                 const std::string &element = "f32") {
  std::string text = "module attributes {tfm.grid = {tp = 4, kv = 2, replica = 2, cp = 3}} {\n"
                     "func.func private @body(" +
                     arguments + ") -> (" + results + ") attributes {tfm.body = \"forward\"} {\n" + ops + "}\n}\n";
  size_t at = 0;
  while ((at = text.find("xT>", at)) != std::string::npos)
    text.replace(at, 3, "x" + element + ">");
  return text;
}

/// At every place of the grid.
void expectEverywhere(const std::string &text, Tolerance tolerance = kF32) {
  for (int32_t tp = 0; tp < 4; ++tp)
    for (int32_t cp = 0; cp < 3; cp += tp == 0 ? 1 : 2) {
      SCOPED_TRACE("tp " + std::to_string(tp) + " cp " + std::to_string(cp));
      expectMatches(text, tolerance, 0, "body", 1, at(tp, cp));
    }
}

class HostRankOps : public ::testing::TestWithParam<const char *> {
protected:
  void expect(const std::string &arguments, const std::string &results, const std::string &ops) {
    std::string element = GetParam();
    expectEverywhere(body(arguments, results, ops, element), element == "f32" ? kF32 : kBF16);
  }
};
INSTANTIATE_TEST_SUITE_P(Types, HostRankOps, ::testing::Values("f32", "bf16"),
                         [](const auto &info) { return std::string(info.param); });

TEST_P(HostRankOps, EmbeddingOfATablesPart) {
  expect("%ids: tensor<2x9xi64> {test.range = array<i64: 0, 20>}, %t: tensor<5x37xT>", "tensor<2x9x37xT>", R"(
    %o = tfm.shard_offset {axes = ["tp"], size = 5 : i64} : tensor<i64>
    %y = tfm.embedding %ids, %t offset %o : (tensor<2x9xi64>, tensor<5x37xT>, tensor<i64>) -> tensor<2x9x37xT>
    return %y : tensor<2x9x37xT>)");
}

TEST_P(HostRankOps, EmbeddingGradOfATablesPart) {
  expect("%ids: tensor<2x9xi32> {test.range = array<i64: 0, 20>}, %d: tensor<2x9x37xT>", "tensor<5x37xf32>", R"(
    %o = tfm.shard_offset {axes = ["kv", "replica"], size = 5 : i64} : tensor<i64>
    %y = tfm.embedding_grad %ids, %d offset %o : (tensor<2x9xi32>, tensor<2x9x37xT>, tensor<i64>) -> tensor<5x37xf32>
    return %y : tensor<5x37xf32>)");
}

/// A vocabulary of 67 over 4 ranks of 20 columns: the last has 7, and padding.
const char *kLoss = R"(
    %o = tfm.shard_offset {axes = ["tp"], size = 20 : i64} : tensor<i64>
    %m = tfm.logits_max %l offset %o {vocabulary = 67 : i64} : (tensor<2x9x20xT>, tensor<i64>) -> tensor<2x9xf32>
    %s, %t = tfm.logits_sum %l, %y, %m offset %o {vocabulary = 67 : i64} : (tensor<2x9x20xT>, tensor<2x9xi64>, tensor<2x9xf32>, tensor<i64>) -> (tensor<2x9xf32>, tensor<2x9xf32>)
    %d = tfm.cross_entropy_grad %l, %y, %m, %s, %seed offset %o {vocabulary = 67 : i64} : (tensor<2x9x20xT>, tensor<2x9xi64>, tensor<2x9xf32>, tensor<2x9xf32>, tensor<f32>, tensor<i64>) -> tensor<2x9x20xT>
    return %m, %s, %t, %d : tensor<2x9xf32>, tensor<2x9xf32>, tensor<2x9xf32>, tensor<2x9x20xT>)";

TEST_P(HostRankOps, LossOfAVocabularysPart) {
  expect("%l: tensor<2x9x20xT>, %y: tensor<2x9xi64> {test.range = array<i64: -5, 67>}, %seed: tensor<f32>",
         "tensor<2x9xf32>, tensor<2x9xf32>, tensor<2x9xf32>, tensor<2x9x20xT>", kLoss);
}

/// The kernel that computes the logits picks the label's as they pass.
TEST_P(HostRankOps, LossOfLogitsThatItsKernelComputes) {
  expect("%x: tensor<2x9x20xT>, %b: tensor<20xT>, %y: tensor<2x9xi64> {test.range = array<i64: -5, 67>}, "
         "%seed: tensor<f32>",
         "tensor<2x9xf32>, tensor<2x9xf32>, tensor<2x9xf32>, tensor<2x9x20xT>",
         std::string("%l = tfm.bias_add %x, %b : (tensor<2x9x20xT>, tensor<20xT>) -> tensor<2x9x20xT>") + kLoss);
}

TEST(HostRankIndex, IndicesOfEveryWayToCutADimension) {
  expectEverywhere(body(
      "", "tensor<6xi64>, tensor<5xi64>, tensor<2xi64>, tensor<4xi64>, tensor<10xi64>, tensor<2xi64>, tensor<i64>", R"(
    %0 = tfm.global_index {axes = ["tp"]} : tensor<6xi64>
    %1 = tfm.global_index {axes = ["kv", "replica"], segments = array<i64: 17, 1, 1, 20>} : tensor<5xi64>
    %2 = tfm.global_index {axes = ["tp"], segments = array<i64: 3, 2, 2, 4>} : tensor<2xi64>
    %3 = tfm.global_index {axes = ["tp"], segments = array<i64: 1, 12, 16, 1>} : tensor<4xi64>
    %4 = tfm.global_index {axes = ["tp"], segments = array<i64: 3, 4, 4, 4, 3, 2, 2, 4, 3, 3, 4, 4>} : tensor<10xi64>
    %5 = tfm.global_index {axes = ["cp", "tp"], two_chunk} : tensor<2xi64>
    %6 = tfm.shard_offset {axes = ["cp", "tp"], size = 7 : i64} : tensor<i64>
    return %0, %1, %2, %3, %4, %5, %6 : tensor<6xi64>, tensor<5xi64>, tensor<2xi64>, tensor<4xi64>, tensor<10xi64>, tensor<2xi64>, tensor<i64>)"));
}

/// Padded query heads are set to zero.
TEST(HostRankIndex, MasksOfPadding) {
  expectEverywhere(body("%x: tensor<2x3x8xf32>", "tensor<2x3x8xf32>", R"(
    %i = tfm.global_index {axes = ["tp"], segments = array<i64: 3, 4, 8, 4>} : tensor<8xi64>
    %zero = arith.constant dense<0> : tensor<8xi64>
    %valid = arith.cmpi sge, %i, %zero : tensor<8xi64>
    %wide = tfm.broadcast %valid : tensor<8xi1> -> tensor<2x3x8xi1>
    %none = arith.constant dense<0.0> : tensor<2x3x8xf32>
    %y = arith.select %wide, %x, %none : tensor<2x3x8xi1>, tensor<2x3x8xf32>
    return %y : tensor<2x3x8xf32>)"));
}

/// The queries of a rank of cp, against all keys; positions are its indices.
TEST_P(HostRankOps, AttentionOfARanksQueries) {
  expect("%q: tensor<2x10x24xT>, %k: tensor<2x30x8xT>, %v: tensor<2x30x8xT>, %g: tensor<2x10x24xT>, "
         "%docs: tensor<2x30xi32>",
         "tensor<2x10x24xT>, tensor<2x10x24xT>, tensor<2x30x8xf32>, tensor<2x30x8xf32>", R"(
    %i = tfm.global_index {axes = ["cp"], two_chunk} : tensor<10xi64>
    %p = tfm.reshape %i : tensor<10xi64> -> tensor<1x10xi64>
    %r = tfm.rope %q, %p {head_size = 8 : i64, rotary_dim = 8 : i64, theta = 1.0e4 : f64} : (tensor<2x10x24xT>, tensor<1x10xi64>) -> tensor<2x10x24xT>
    %o, %l = tfm.attention %r, %k, %v documents %docs query_index %i causal top_left {num_heads = 3 : i64, num_kv_heads = 1 : i64, scale = 0.3 : f64} : (tensor<2x10x24xT>, tensor<2x30x8xT>, tensor<2x30x8xT>, tensor<2x30xi32>, tensor<10xi64>) -> (tensor<2x10x24xT>, tensor<2x3x10xf32>)
    %dq, %dk, %dv = tfm.attention_grad %r, %k, %v, %o, %l, %g documents %docs query_index %i causal top_left {num_heads = 3 : i64, num_kv_heads = 1 : i64, scale = 0.3 : f64} : (tensor<2x10x24xT>, tensor<2x30x8xT>, tensor<2x30x8xT>, tensor<2x10x24xT>, tensor<2x3x10xf32>, tensor<2x10x24xT>, tensor<2x30xi32>, tensor<10xi64>) -> (tensor<2x10x24xT>, tensor<2x30x8xf32>, tensor<2x30x8xf32>)
    return %o, %dq, %dk, %dv : tensor<2x10x24xT>, tensor<2x10x24xT>, tensor<2x30x8xf32>, tensor<2x30x8xf32>)");
}

} // namespace
