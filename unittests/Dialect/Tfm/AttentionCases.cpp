//===- AttentionCases.cpp - gradient cases of rope and attention ----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"
#include <array>

using namespace drover::test;

/// Two sequences of three positions, two heads of six channels.
static GradientCase rope(const std::string &name, const std::string &attributes, int positionRows = 2) {
  std::string positions = "tensor<" + std::to_string(positionRows) + "x3xi64>";
  return {"rope_" + name, "func.func @forward(%x: tensor<2x3x12xELT>, %p: " + positions +
                              " {test.high = 40.0 : f64}) -> tensor<2x3x12xELT> {\n"
                              "  %0 = tfm.rope %x, %p {head_size = 6 : i64, " +
                              attributes + "} : (tensor<2x3x12xELT>, " + positions +
                              ") -> tensor<2x3x12xELT>\n  return %0 : tensor<2x3x12xELT>\n}"};
}

namespace {
/// An attention with 4 query heads of size 3 and values of size 2.
struct Attention {
  std::string name;
  int kvHeads = 2, queries = 3, keys = 4;
  /// Operand keyword, argument attributes and type of what masks it.
  std::vector<std::array<std::string, 3>> masks = {};
  std::string causal = "", attributes = "";
};
} // namespace

static GradientCase attention(const Attention &test) {
  auto tensor = [](int length, int width) {
    return "tensor<2x" + std::to_string(length) + "x" + std::to_string(width) + "xELT>";
  };
  std::string query = tensor(test.queries, 12), key = tensor(test.keys, 3 * test.kvHeads),
              value = tensor(test.keys, 2 * test.kvHeads), result = tensor(test.queries, 8);
  std::string accumulator = "tensor<2x4x" + std::to_string(test.queries) + "xLSE>";
  std::string arguments = "%q: " + query + ", %k: " + key + ", %v: " + value, operands, types;
  for (const auto &[keyword, attributes, type] : test.masks) {
    arguments += ", %" + keyword + ": " + type + " {" + attributes + "}";
    operands += " " + keyword + " %" + keyword;
    types += ", " + type;
  }
  std::string text = "func.func @forward(" + arguments + ") -> " + result + " {\n  %0, %1 = tfm.attention %q, %k, %v" +
                     operands + (test.causal.empty() ? "" : " causal " + test.causal) +
                     " {num_heads = 4 : i64, num_kv_heads = " + std::to_string(test.kvHeads) +
                     " : i64, scale = 0.6 : f64" + (test.attributes.empty() ? "" : ", " + test.attributes) + "} : (" +
                     query + ", " + key + ", " + value + types + ") -> (" + result + ", " + accumulator +
                     ")\n  return %0 : " + result + "\n}";
  return {"attention_" + test.name, text};
}

std::vector<GradientCase> drover::test::attentionCases() {
  const std::string theta = "theta = 1.0e2 : f64", whole = "rotary_dim = 6 : i64, " + theta;
  std::vector<GradientCase> result = {
      rope("whole_head", whole),
      rope("interleaved", whole + ", interleaved"),
      rope("partial", "rotary_dim = 4 : i64, " + theta),
      rope("partial_interleaved", "rotary_dim = 2 : i64, interleaved, " + theta),
      rope("inverse", whole + ", inverse"),
      rope("shared_positions", whole, 1),
      rope("magnitude", whole + ", magnitude = 1.3 : f64"),
      rope("inv_freq", whole + ", inv_freq = array<f32: 1.0, 0.3, 0.05>"),
      rope("linear_scaling", whole + ", scaling = #tfm.rope_scaling<kind = \"linear\", factor = 4.0, low = 1.0, "
                                     "high = 4.0, original = 16>"),
      rope("llama3_scaling", whole + ", scaling = #tfm.rope_scaling<kind = \"llama3\", factor = 8.0, low = 1.0, "
                                     "high = 4.0, original = 32>"),
  };
  const std::array<std::string, 3> floatMask{"mask", "test.constant", "tensor<2x1x3x4xELT>"},
      floatMaskPerHead{"mask", "test.constant", "tensor<1x4x1x4xELT>"},
      boolMask{"mask", "test.values = array<i64: 1, 1, 0, 1, 1>", "tensor<2x4x3x4xi1>"},
      emptyRows{"mask", "test.values = array<i64: 1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1>", "tensor<1x1x3x4xi1>"},
      keyMask{"key_mask", "test.values = array<i64: 1, 1, 0, 1, 0, 1, 1, 1>", "tensor<2x4xi64>"},
      noKeys{"key_mask", "test.values = array<i64: 0, 0, 0, 0, 0, 1, 1, 1>", "tensor<2x4xi1>"},
      sharedKeyMask{"key_mask", "test.values = array<i64: 1, 0, 1, 1>", "tensor<1x4xi32>"},
      documents{"documents", "test.values = array<i64: 0, 0, 1, 1, 5, 5, 5, 7>", "tensor<2x4xi32>"};
  for (const Attention &test : {
           Attention{"plain"},
           Attention{"one_kv_head", 1},
           Attention{"as_many_kv_heads", 4},
           Attention{"top_left", 2, 4, 4, {}, "top_left"},
           Attention{"top_left_more_keys", 2, 3, 5, {}, "top_left"},
           Attention{"top_left_more_queries", 2, 5, 3, {}, "top_left"},
           Attention{"bottom_right_more_keys", 2, 3, 5, {}, "bottom_right"},
           Attention{"bottom_right_more_queries", 2, 5, 3, {}, "bottom_right"}, // two rows see nothing
           Attention{"one_query", 2, 1, 5, {}, "bottom_right"},
           Attention{"window", 2, 5, 5, {}, "top_left", "window = 2 : i64"},
           Attention{"window_bottom_right", 2, 3, 5, {}, "bottom_right", "window = 3 : i64"},
           Attention{"window_both_sides", 2, 5, 5, {}, "", "window = 2 : i64"},
           Attention{"softcap", 2, 3, 4, {}, "", "softcap = 0.7 : f64"},
           Attention{"alibi", 2, 4, 4, {}, "top_left", "alibi_slopes = array<f32: 0.5, 0.25, 0.125, 0.0625>"},
           Attention{"float_mask", 2, 3, 4, {floatMask}},
           Attention{"float_mask_per_head", 2, 3, 4, {floatMaskPerHead}},
           Attention{"bool_mask", 2, 3, 4, {boolMask}},
           Attention{"bool_mask_with_empty_rows", 2, 3, 4, {emptyRows}},
           Attention{"key_mask", 2, 3, 4, {keyMask}},
           Attention{"key_mask_without_keys", 2, 3, 4, {noKeys}},
           Attention{"shared_key_mask", 2, 3, 4, {sharedKeyMask}, "bottom_right"},
           Attention{"documents", 2, 4, 4, {documents}, "top_left"},
           Attention{"documents_both_sides", 2, 4, 4, {documents}},
           Attention{"everything",
                     2,
                     4,
                     4,
                     {std::array<std::string, 3>{"mask", "test.constant", "tensor<2x4x4x4xELT>"}, keyMask, documents},
                     "top_left",
                     "window = 3 : i64, softcap = 1.5 : f64, "
                     "alibi_slopes = array<f32: 0.5, 0.25, 0.125, 0.0625>"},
       })
    result.push_back(attention(test));
  return result;
}
