//===- CostTest.cpp - FLOPs and bytes of tfm ops ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Dialect/Tfm/IR/Tfm.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace drover::tfm;

namespace {

struct Cost {
  uint64_t flops, bytes;
};

/// The cost of the one op of a function with these arguments.
Cost costOf(const std::string &arguments, const std::string &op) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<func::FuncDialect, TfmDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      "func.func @f(" + arguments + ") {\n  " + op + "\n  return\n}", ParserConfig(&context));
  EXPECT_TRUE(module) << op;
  auto cost = cast<CostOpInterface>(module->lookupSymbol<func::FuncOp>("f").front().front());
  return {cost.getFlops(), cost.getBytes()};
}

TEST(Cost, LinearIsTwiceRowsTimesWeight) {
  Cost cost = costOf("%x: tensor<2x8x64xbf16>, %w: tensor<176x64xbf16>",
                     "%0 = tfm.linear %x, %w : (tensor<2x8x64xbf16>, tensor<176x64xbf16>) -> tensor<2x8x176xf32>");
  EXPECT_EQ(cost.flops, 2u * 16 * 64 * 176);
  EXPECT_EQ(cost.bytes, 2u * (16 * 64 + 176 * 64) + 4u * 16 * 176);
}

TEST(Cost, WeightGradientIsAsMuch) {
  Cost cost =
      costOf("%x: tensor<2x8x64xf32>, %dy: tensor<2x8x176xf32>",
             "%0 = tfm.linear_weight_grad %x, %dy : (tensor<2x8x64xf32>, tensor<2x8x176xf32>) -> tensor<176x64xf32>");
  EXPECT_EQ(cost.flops, 2u * 16 * 64 * 176);
}

TEST(Cost, MatmulCountsTheContractedSize) {
  for (const char *op :
       {"%0 = tfm.matmul %a, %b {transpose_rhs} : (tensor<3x4x7xf32>, tensor<3x5x7xf32>) -> tensor<3x4x5xf32>",
        "%0 = tfm.matmul %a, %b {transpose_lhs} : (tensor<3x7x4xf32>, tensor<3x7x5xf32>) -> tensor<3x4x5xf32>"}) {
    bool lhs = StringRef(op).contains("transpose_lhs");
    Cost cost = costOf(
        lhs ? "%a: tensor<3x7x4xf32>, %b: tensor<3x7x5xf32>" : "%a: tensor<3x4x7xf32>, %b: tensor<3x5x7xf32>", op);
    EXPECT_EQ(cost.flops, 2u * 3 * 4 * 7 * 5);
  }
}

/// Two sequences, four heads of size 3 on two kv heads with values of size 2.
Cost attention(int queries, int keys, const std::string &causal, bool gradient) {
  auto tensor = [](int length, int width) {
    return "tensor<2x" + std::to_string(length) + "x" + std::to_string(width) + "xf32>";
  };
  std::string q = tensor(queries, 12), k = tensor(keys, 6), v = tensor(keys, 4), o = tensor(queries, 8),
              lse = "tensor<2x4x" + std::to_string(queries) + "xf32>";
  std::string kind = causal.empty() ? "" : " causal " + causal;
  std::string attributes = " {num_heads = 4 : i64, num_kv_heads = 2 : i64, scale = 1.0 : f64} : (";
  std::string arguments = "%q: " + q + ", %k: " + k + ", %v: " + v;
  if (!gradient)
    return costOf(arguments, "%0, %1 = tfm.attention %q, %k, %v" + kind + attributes + q + ", " + k + ", " + v +
                                 ") -> (" + o + ", " + lse + ")");
  return costOf(arguments + ", %o: " + o + ", %l: " + lse,
                "%0, %1, %2 = tfm.attention_grad %q, %k, %v, %o, %l, %o" + kind + attributes + q + ", " + k + ", " + v +
                    ", " + o + ", " + lse + ", " + o + ") -> (" + q + ", " + k + ", " + v + ")");
}

TEST(Cost, AttentionCountsThePairsThatACausalMaskAllows) {
  for (int queries : {1, 3, 5}) {
    for (int keys : {1, 3, 5}) {
      for (const std::string causal : {"", "top_left", "bottom_right"}) {
        uint64_t pairs = 0;
        for (int i = 0; i < queries; ++i)
          for (int j = 0; j < keys; ++j)
            pairs += causal.empty() || j <= (causal == "top_left" ? i : i + keys - queries);
        EXPECT_EQ(attention(queries, keys, causal, false).flops, 2 * 2 * 4 * pairs * (3 + 2))
            << queries << " queries, " << keys << " keys, " << causal;
        EXPECT_EQ(attention(queries, keys, causal, true).flops, 2 * 2 * 2 * 4 * pairs * (3 + 2));
      }
    }
  }
}

TEST(Cost, AnOperandIsReadOnce) {
  // %o is both the result of the forward and its gradient.
  EXPECT_EQ(attention(3, 5, "", true).bytes, 4u * (172 + 48 + 24 + 172));
}

TEST(Cost, NarrowAndIndexElements) {
  EXPECT_EQ(costOf("%x: tensor<3xi1>", "%0 = tfm.reshape %x : tensor<3xi1> -> tensor<1x3xi1>").bytes, 6u);
  EXPECT_EQ(costOf("%x: tensor<3xindex>", "%0 = tfm.reshape %x : tensor<3xindex> -> tensor<1x3xindex>").bytes, 48u);
}

TEST(Cost, ElementWiseWorkIsFree) {
  EXPECT_EQ(costOf("%x: tensor<3xf32>", "%0 = tfm.silu %x : (tensor<3xf32>) -> tensor<3xf32>").flops, 0u);
}

} // namespace
