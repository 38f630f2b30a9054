//===- RankOpsTest.cpp - parts of a tensor and the whole --------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// What ranks compute on their parts is held against one op on the whole tensor.
//===----------------------------------------------------------------------===//
#include "drover/Interpreter/Interpreter.h"
#include "drover/Registration.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace drover;

namespace {

Tensor integers(SmallVector<int64_t> shape, std::vector<int64_t> values) {
  Tensor tensor(ElementKind::I64, shape);
  tensor.ints = std::move(values);
  return tensor;
}

/// Numbers that are no multiples of each other, in (-1, 1).
Tensor numbers(SmallVector<int64_t> shape, double seed) {
  Tensor tensor(ElementKind::F64, shape);
  for (auto [i, value] : llvm::enumerate(tensor.floats))
    value = std::sin(seed + 1.7 * static_cast<double>(i));
  return tensor;
}

class RankOpsTest : public testing::Test {
protected:
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;

  void SetUp() override {
    registerAllDialects(registry);
    context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  }

  /// The results of a function whose body is `text`, at the given coordinates.
  SmallVector<Tensor> run(StringRef signature, StringRef text, ArrayRef<Tensor> arguments,
                          ArrayRef<std::pair<StringRef, int64_t>> coordinates = {}, std::string *reason = nullptr) {
    std::string source = ("module attributes {tfm.grid = {tp = 4, kv = 2, replica = 2, cp = 2}} {\nfunc.func @f" +
                          signature + " {\n" + text + "\n}\n}")
                             .str();
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(source, context.get());
    SmallVector<Tensor> results;
    if (!module)
      return results;
    InterpreterOptions options;
    options.exact = true;
    for (auto [axis, coordinate] : coordinates)
      options.coordinates[axis] = coordinate;
    std::string why;
    LogicalResult status =
        interpret(module->lookupSymbol<func::FuncOp>("f"), arguments, results, options, reason ? reason : &why);
    EXPECT_EQ(failed(status), reason != nullptr) << why;
    return results;
  }

  std::vector<int64_t> globalIndex(StringRef attributes, int64_t size,
                                   ArrayRef<std::pair<StringRef, int64_t>> coordinates) {
    std::string type = "tensor<" + std::to_string(size) + "xi64>";
    return run("() -> " + type,
               ("%0 = tfm.global_index {" + attributes + "} : " + type + "\nreturn %0 : " + type).str(), {},
               coordinates)[0]
        .ints;
  }
};

TEST_F(RankOpsTest, GlobalIndexCountsEachRanksPart) {
  EXPECT_EQ(globalIndex(R"(axes = ["tp"])", 2, {{"tp", 3}}), (std::vector<int64_t>{6, 7}));
  EXPECT_EQ(globalIndex(R"(axes = ["kv", "replica"])", 2, {{"kv", 1}, {"replica", 1}}), (std::vector<int64_t>{6, 7}));
  // A vocabulary of 13 over 4.
  EXPECT_EQ(globalIndex(R"(axes = ["tp"], segments = array<i64: 13, 1, 1, 16>)", 4, {{"tp", 3}}),
            (std::vector<int64_t>{12, -1, -1, -1}));
  // Three groups of 2 over four ranks: the last has padding only.
  EXPECT_EQ(globalIndex(R"(axes = ["tp"], segments = array<i64: 3, 2, 2, 4>)", 2, {{"tp", 3}}),
            (std::vector<int64_t>{-1, -1}));
  // One group of 6 heads of size 2, padded to 8 heads.
  EXPECT_EQ(globalIndex(R"(axes = ["tp"], segments = array<i64: 1, 12, 16, 1>)", 4, {{"tp", 2}}),
            (std::vector<int64_t>{8, 9, 10, 11}));
  EXPECT_EQ(globalIndex(R"(axes = ["tp"], segments = array<i64: 1, 12, 16, 1>)", 4, {{"tp", 3}}),
            (std::vector<int64_t>{-1, -1, -1, -1}));
  // Fused q and k: a share of each.
  EXPECT_EQ(globalIndex(R"(axes = ["tp"], segments = array<i64: 4, 2, 2, 4, 4, 1, 1, 4>)", 3, {{"tp", 1}}),
            (std::vector<int64_t>{2, 3, 9}));
}

TEST_F(RankOpsTest, TwoChunksAreTheFirstAndTheLastThatAreLeft) {
  EXPECT_EQ(globalIndex(R"(axes = ["cp"], two_chunk)", 4, {{"cp", 0}}), (std::vector<int64_t>{0, 1, 6, 7}));
  EXPECT_EQ(globalIndex(R"(axes = ["cp"], two_chunk)", 4, {{"cp", 1}}), (std::vector<int64_t>{2, 3, 4, 5}));
  // A cp rank's 8 rows cut over tp.
  EXPECT_EQ(globalIndex(R"(axes = ["cp", "tp"], two_chunk)", 2, {{"cp", 1}, {"tp", 1}}), (std::vector<int64_t>{6, 7}));
  EXPECT_EQ(globalIndex(R"(axes = ["cp", "tp"], two_chunk)", 2, {{"cp", 0}, {"tp", 2}}),
            (std::vector<int64_t>{12, 13}));
}

TEST_F(RankOpsTest, CoordinatesBeyondTheGridFail) {
  std::string reason;
  run("() -> tensor<i64>",
      "%0 = tfm.shard_offset {axes = [\"tp\"], size = 3 : i64} : tensor<i64>\nreturn %0 : tensor<i64>", {}, {{"tp", 4}},
      &reason);
  EXPECT_EQ(reason, "'tfm.shard_offset': coordinate 4 of tp is not below 4");
}

TEST_F(RankOpsTest, PartsOfATableAddUpToTheEmbedding) {
  Tensor ids = integers({1, 5}, {0, 7, 3, 4, 3}), table = numbers({8, 3}, 1), gradient = numbers({1, 5, 3}, 2);
  SmallVector<Tensor> whole =
      run("(%i: tensor<1x5xi64>, %t: tensor<8x3xf64>) -> tensor<1x5x3xf64>",
          "%0 = tfm.embedding %i, %t : (tensor<1x5xi64>, tensor<8x3xf64>) -> tensor<1x5x3xf64>\n"
          "return %0 : tensor<1x5x3xf64>",
          {ids, table});
  Tensor gradientF32(ElementKind::F32, {1, 5, 3});
  gradientF32.floats = gradient.floats;
  SmallVector<Tensor> wholeGrad =
      run("(%i: tensor<1x5xi64>, %g: tensor<1x5x3xf32>) -> tensor<8x3xf32>",
          "%0 = tfm.embedding_grad %i, %g : (tensor<1x5xi64>, tensor<1x5x3xf32>) -> tensor<8x3xf32>\n"
          "return %0 : tensor<8x3xf32>",
          {ids, gradientF32});
  std::vector<double> sum(15, 0.0), rows;
  for (int64_t rank = 0; rank < 4; ++rank) {
    Tensor part(ElementKind::F64, {2, 3});
    part.floats.assign(table.floats.begin() + rank * 6, table.floats.begin() + rank * 6 + 6);
    SmallVector<Tensor> results =
        run("(%i: tensor<1x5xi64>, %t: tensor<2x3xf64>, %g: tensor<1x5x3xf32>) -> (tensor<1x5x3xf64>, tensor<2x3xf32>)",
            R"(%o = tfm.shard_offset {axes = ["tp"], size = 2 : i64} : tensor<i64>
           %0 = tfm.embedding %i, %t offset %o : (tensor<1x5xi64>, tensor<2x3xf64>, tensor<i64>) -> tensor<1x5x3xf64>
           %1 = tfm.embedding_grad %i, %g offset %o : (tensor<1x5xi64>, tensor<1x5x3xf32>, tensor<i64>) -> tensor<2x3xf32>
           return %0, %1 : tensor<1x5x3xf64>, tensor<2x3xf32>)",
            {ids, part, gradientF32}, {{"tp", rank}});
    for (auto [total, value] : llvm::zip(sum, results[0].floats))
      total += value;
    rows.insert(rows.end(), results[1].floats.begin(), results[1].floats.end());
  }
  EXPECT_EQ(sum, whole[0].floats);
  EXPECT_EQ(rows, wholeGrad[0].floats);
}

/// A vocabulary of 5 over 4 ranks of 2 columns: the third has one column of padding, the last nothing else.
TEST_F(RankOpsTest, PartsOfAVocabularyGiveTheWholeLoss) {
  Tensor logits = numbers({3, 5}, 3), labels = integers({3}, {4, -1, 1});
  Tensor seed(ElementKind::F64, {});
  seed.floats = {0.5};
  SmallVector<Tensor> whole = run("(%l: tensor<3x5xf64>, %y: tensor<3xi64>, %seed: tensor<f64>) -> (tensor<3xf64>, "
                                  "tensor<3xf64>, tensor<3xf64>, tensor<3x5xf64>)",
                                  R"(%m = tfm.logits_max %l : (tensor<3x5xf64>) -> tensor<3xf64>
             %s, %t = tfm.logits_sum %l, %y, %m : (tensor<3x5xf64>, tensor<3xi64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
             %d = tfm.cross_entropy_grad %l, %y, %m, %s, %seed : (tensor<3x5xf64>, tensor<3xi64>, tensor<3xf64>, tensor<3xf64>, tensor<f64>) -> tensor<3x5xf64>
             return %m, %s, %t, %d : tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3x5xf64>)",
                                  {logits, labels, seed});
  std::vector<double> maximum(3, -INFINITY), sum(3, 0.0), target(3, 0.0);
  for (int64_t rank = 0; rank < 4; ++rank) {
    Tensor part(ElementKind::F64, {3, 2});
    for (int64_t i = 0; i < 6; ++i) {
      int64_t column = rank * 2 + i % 2;
      part.floats[i] = column < 5 ? logits.floats[i / 2 * 5 + column] : 100.0;
    }
    SmallVector<Tensor> results =
        run("(%l: tensor<3x2xf64>, %y: tensor<3xi64>, %m: tensor<3xf64>, %s: tensor<3xf64>, %seed: tensor<f64>) -> "
            "(tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3x2xf64>)",
            R"(%o = tfm.shard_offset {axes = ["tp"], size = 2 : i64} : tensor<i64>
               %0 = tfm.logits_max %l offset %o {vocabulary = 5 : i64} : (tensor<3x2xf64>, tensor<i64>) -> tensor<3xf64>
               %1, %2 = tfm.logits_sum %l, %y, %m offset %o {vocabulary = 5 : i64} : (tensor<3x2xf64>, tensor<3xi64>, tensor<3xf64>, tensor<i64>) -> (tensor<3xf64>, tensor<3xf64>)
               %d = tfm.cross_entropy_grad %l, %y, %m, %s, %seed offset %o {vocabulary = 5 : i64} : (tensor<3x2xf64>, tensor<3xi64>, tensor<3xf64>, tensor<3xf64>, tensor<f64>, tensor<i64>) -> tensor<3x2xf64>
               return %0, %1, %2, %d : tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3x2xf64>)",
            {part, labels, whole[0], whole[1], seed}, {{"tp", rank}});
    for (int64_t row = 0; row < 3; ++row) {
      maximum[row] = std::max(maximum[row], results[0].floats[row]);
      sum[row] += results[1].floats[row];
      target[row] += results[2].floats[row];
      for (int64_t v = 0; v < 2; ++v)
        EXPECT_EQ(results[3].floats[row * 2 + v], rank * 2 + v < 5 ? whole[3].floats[row * 5 + rank * 2 + v] : 0.0);
    }
  }
  EXPECT_EQ(maximum, whole[0].floats);
  EXPECT_EQ(target, whole[2].floats);
  for (int64_t row = 0; row < 3; ++row)
    EXPECT_NEAR(sum[row], whole[1].floats[row], 1e-15);
}

/// Queries 2, 3, 4, 5 of 8, with documents and a window.
TEST_F(RankOpsTest, AttentionOfSomeQueriesIsThoseRowsOfTheWhole) {
  Tensor q = numbers({1, 8, 4}, 1), k = numbers({1, 8, 2}, 2), v = numbers({1, 8, 2}, 3), g = numbers({1, 8, 4}, 4);
  Tensor documents = integers({1, 8}, {0, 0, 0, 1, 1, 1, 1, 2});
  const char *types = "%k: tensor<1x8x2xf64>, %v: tensor<1x8x2xf64>, %d: tensor<1x8xi64>";
  auto body = [](int64_t queries, bool part) {
    std::string s = std::to_string(queries), x4 = "tensor<1x" + s + "x4xf64>", lse = "tensor<1x2x" + s + "xf64>";
    std::string kv = "tensor<1x8x2xf64>", index = part ? "query_index %i " : "";
    std::string indexType = part ? ", tensor<" + s + "xi64>" : "";
    std::string settings =
        "documents %d " + index +
        "causal top_left {num_heads = 2 : i64, num_kv_heads = 1 : i64, scale = 0.7 : f64, window = 3 : i64} : (" + x4 +
        ", " + kv + ", " + kv;
    return "%o, %l = tfm.attention %q, %k, %v " + settings + ", tensor<1x8xi64>" + indexType + ") -> (" + x4 + ", " +
           lse + ")\n%dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %l, %g " + settings + ", " + x4 + ", " + lse +
           ", " + x4 + ", tensor<1x8xi64>" + indexType + ") -> (" + x4 + ", " + kv + ", " + kv +
           ")\nreturn %o, %dq, %dk, %dv : " + x4 + ", " + x4 + ", " + kv + ", " + kv;
  };
  std::string wholeResults = " -> (tensor<1x8x4xf64>, tensor<1x8x4xf64>, tensor<1x8x2xf64>, tensor<1x8x2xf64>)";
  SmallVector<Tensor> whole =
      run(std::string("(%q: tensor<1x8x4xf64>, ") + types + ", %g: tensor<1x8x4xf64>)" + wholeResults, body(8, false),
          {q, k, v, documents, g});
  std::vector<double> keyGrad(16, 0.0), valueGrad(16, 0.0);
  for (int64_t rank = 0; rank < 2; ++rank) {
    std::vector<int64_t> rows = rank == 0 ? std::vector<int64_t>{0, 1, 6, 7} : std::vector<int64_t>{2, 3, 4, 5};
    auto pick = [&](const Tensor &from) {
      Tensor part(ElementKind::F64, {1, 4, 4});
      for (int64_t i = 0; i < 16; ++i)
        part.floats[i] = from.floats[rows[i / 4] * 4 + i % 4];
      return part;
    };
    std::string signature = std::string("(%q: tensor<1x4x4xf64>, ") + types +
                            ", %g: tensor<1x4x4xf64>, %i: tensor<4xi64>) -> (tensor<1x4x4xf64>, tensor<1x4x4xf64>, "
                            "tensor<1x8x2xf64>, tensor<1x8x2xf64>)";
    SmallVector<Tensor> part = run(signature, body(4, true), {pick(q), k, v, documents, pick(g), integers({4}, rows)});
    EXPECT_EQ(part[0].floats, pick(whole[0]).floats);
    EXPECT_EQ(part[1].floats, pick(whole[1]).floats);
    for (int64_t i = 0; i < 16; ++i) {
      keyGrad[i] += part[2].floats[i];
      valueGrad[i] += part[3].floats[i];
    }
  }
  for (int64_t i = 0; i < 16; ++i) {
    EXPECT_NEAR(keyGrad[i], whole[2].floats[i], 1e-14);
    EXPECT_NEAR(valueGrad[i], whole[3].floats[i], 1e-14);
  }
}

} // namespace
