//===- CudaAttentionTest.cpp - generated attention, run ---------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Both directions by the emulator with all its checks, against the interpreter, in f32 and bf16: lengths that are no
// multiples of a tile, heads that are no multiples of 16, and every mask.
//===----------------------------------------------------------------------===//
#include "CudaBackend.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>

using namespace drover::test;

namespace {

/// An attention; `B`, `S`, `T`, `H` in the texts of the masks stand for batch, queries, keys and heads.
struct Case {
  const char *name;
  int64_t batch, queries, keys, heads, kvHeads, headSize, valueHeadSize;
  const char *arguments, *operands, *types, *attributes;
};

constexpr Case kCases[] = {
    {"Plain", 1, 5, 7, 1, 1, 8, 8, "", "", "", ""},
    {"CausalOverSeveralTiles", 2, 150, 150, 2, 1, 24, 24, "", "causal top_left", "", ""},
    {"CausalInWholeTiles", 1, 128, 128, 2, 2, 64, 64, "", "causal top_left", "", ""},
    {"LongHeads", 1, 70, 70, 3, 1, 128, 128, "", "causal top_left", "", ""},
    {"LongestHeads", 1, 70, 70, 2, 1, 256, 256, "", "causal top_left", "", ""},
    {"LongKeysOfShorterValues", 1, 20, 70, 1, 1, 192, 128, "", "causal bottom_right", "", ""},
    {"LongHeadsThatNoAccessFits", 1, 9, 20, 1, 1, 131, 133, "", "", "", ", alibi_slopes = array<f32: 0.5>"},
    {"LongHeadsInDocuments", 1, 70, 70, 2, 1, 136, 168, ", %m: tensor<BxSxi32> {test.range = array<i64: 0, 3>}",
     "documents %m causal top_left", ", tensor<BxSxi32>", ", window = 33 : i64, softcap = 2.0 : f64"},
    {"LongHeadsAndMask", 1, 20, 40, 2, 1, 144, 8, ", %m: tensor<1xHxSxTxf32>", "mask %m", ", tensor<1xHxSxTxf32>", ""},
    {"HeadsOfOtherValues", 1, 40, 70, 2, 2, 40, 72, "", "", "", ""},
    {"HeadsThatNoAccessFits", 1, 9, 11, 3, 3, 7, 5, "", "", "", ""},
    {"LastQueriesOfALongerSequence", 1, 70, 131, 2, 2, 16, 16, "", "causal bottom_right", "", ""},
    {"QueriesThatSeeNoKey", 1, 80, 9, 2, 1, 16, 16, "", "causal bottom_right", "", ""},
    {"Window", 1, 200, 200, 1, 1, 16, 16, "", "causal top_left", "", ", window = 33 : i64"},
    {"WindowOnBothSides", 1, 100, 150, 1, 1, 16, 16, "", "", "", ", window = 20 : i64"},
    {"Softcap", 1, 33, 33, 2, 1, 16, 16, "", "causal top_left", "", ", softcap = 2.0 : f64"},
    {"Slopes", 1, 70, 70, 4, 2, 16, 16, "", "causal top_left", "",
     ", alibi_slopes = array<f32: 0.5, 0.25, 0.125, 0.0625>"},
    {"Documents", 2, 90, 90, 2, 1, 16, 16, ", %m: tensor<BxSxi32> {test.range = array<i64: 0, 3>}",
     "documents %m causal top_left", ", tensor<BxSxi32>", ""},
    {"Mask", 2, 20, 70, 2, 1, 16, 16, ", %m: tensor<Bx1xSxTxi1>", "mask %m", ", tensor<Bx1xSxTxi1>", ""},
    {"MaskOfFloats", 1, 20, 70, 2, 1, 16, 16, ", %m: tensor<1xHxSxTxf32>", "mask %m", ", tensor<1xHxSxTxf32>", ""},
    {"MaskOfKeys", 2, 20, 70, 2, 1, 16, 16, ", %m: tensor<BxTxi64> {test.range = array<i64: 0, 2>}", "key_mask %m",
     ", tensor<BxTxi64>", ""},
    {"MaskOfAllKeys", 1, 20, 70, 2, 1, 16, 16, ", %m: tensor<1xTxi64> {test.range = array<i64: 0, 1>}", "key_mask %m",
     ", tensor<1xTxi64>", ""},
    {"QueriesInAnyOrder", 1, 66, 90, 2, 1, 16, 16,
     ", %d: tensor<BxTxi64> {test.range = array<i64: 0, 2>}, %m: tensor<Sxi64> {test.range = array<i64: 0, 90>}",
     "documents %d query_index %m causal top_left", ", tensor<BxTxi64>, tensor<Sxi64>", ", window = 50 : i64"},
};

std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>> &names) {
  for (const auto &[name, value] : names)
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size())
      text.replace(at, name.size(), value);
  return text;
}

std::string textOf(const Case &c, const std::string &element) {
  std::string text = R"(
func.func private @body(%q: QUERY, %k: KEY, %v: VALUE, %do: RESULT MASKARG) -> (RESULT, LSE, QUERY, KEYGRAD, VALUEGRAD) attributes {tfm.body = "forward"} {
  %o, %lse = tfm.attention %q, %k, %v MASKS {num_heads = HEADS : i64, num_kv_heads = KVHEADS : i64, scale = 0.3 : f64 ATTRIBUTES} : (QUERY, KEY, VALUE MASKTYPES) -> (RESULT, LSE)
  %dq, %dk, %dv = tfm.attention_grad %q, %k, %v, %o, %lse, %do MASKS {num_heads = HEADS : i64, num_kv_heads = KVHEADS : i64, scale = 0.3 : f64 ATTRIBUTES} : (QUERY, KEY, VALUE, RESULT, LSE, RESULT MASKTYPES) -> (QUERY, KEYGRAD, VALUEGRAD)
  return %o, %lse, %dq, %dk, %dv : RESULT, LSE, QUERY, KEYGRAD, VALUEGRAD
})";
  auto number = [](int64_t value) { return std::to_string(value); };
  auto tensor = [&](int64_t length, int64_t columns, const std::string &type) {
    return llvm::formatv("tensor<{0}x{1}x{2}x{3}>", c.batch, length, columns, type).str();
  };
  auto mask = [&](const char *part) {
    return replaced(part, {{"<B", "<" + number(c.batch)},
                           {"xS", "x" + number(c.queries)},
                           {"<S", "<" + number(c.queries)},
                           {"xT", "x" + number(c.keys)},
                           {"xH", "x" + number(c.heads)}});
  };
  return replaced(text, {{"MASKARG", mask(c.arguments)},
                         {"MASKTYPES", mask(c.types)},
                         {"MASKS", c.operands},
                         {"ATTRIBUTES", c.attributes},
                         {"KVHEADS", number(c.kvHeads)},
                         {"HEADS", number(c.heads)},
                         {"QUERY", tensor(c.queries, c.heads * c.headSize, element)},
                         {"KEYGRAD", tensor(c.keys, c.kvHeads * c.headSize, "f32")},
                         {"VALUEGRAD", tensor(c.keys, c.kvHeads * c.valueHeadSize, "f32")},
                         {"KEY", tensor(c.keys, c.kvHeads * c.headSize, element)},
                         {"VALUE", tensor(c.keys, c.kvHeads * c.valueHeadSize, element)},
                         {"RESULT", tensor(c.queries, c.heads * c.valueHeadSize, element)},
                         {"LSE", tensor(c.heads, c.queries, "f32")}});
}

class CudaAttention : public ::testing::TestWithParam<std::tuple<Case, const char *>> {};
INSTANTIATE_TEST_SUITE_P(Cases, CudaAttention,
                         ::testing::Combine(::testing::ValuesIn(kCases), ::testing::Values("f32", "bf16")),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param);
                         });

TEST_P(CudaAttention, EqualsTheInterpreter) {
  auto [c, element] = GetParam();
  expectMatches(textOf(c, element), std::string(element) == "f32" ? kF32 : kBF16);
}

// By wgmma: lengths that are no multiples of a tile, both head sizes and both at once, and what else tells pairs apart.
constexpr Case kWarpgroupCases[] = {
    {"Causal", 1, 100, 100, 2, 1, 64, 64, "", "causal top_left", "", ""},
    {"LongHeads", 1, 64, 90, 1, 1, 128, 128, "", "causal bottom_right", "", ""},
    {"HeadsOfOtherValues", 1, 70, 70, 1, 1, 128, 64, "", "", "", ", window = 20 : i64, softcap = 2.0 : f64"},
    {"Documents", 2, 90, 90, 1, 1, 64, 64, ", %m: tensor<BxSxi32> {test.range = array<i64: 0, 3>}",
     "documents %m causal top_left", ", tensor<BxSxi32>", ""},
};

class CudaWarpgroupAttention : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, CudaWarpgroupAttention, ::testing::ValuesIn(kWarpgroupCases),
                         [](const auto &info) { return std::string(info.param.name); });

TEST_P(CudaWarpgroupAttention, EqualsTheInterpreter) {
  drover::host::HostOptions options;
  options.attention = "wgmma";
  expectMatches(textOf(GetParam(), "bf16"), kBF16, 0, "body", 1, {}, options);
}

} // namespace
