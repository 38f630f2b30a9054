//===- CudnnConditionsTest.cpp - where cuDNN computes attention -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "CudnnConditions.h"
#include <functional>
#include <gtest/gtest.h>

using namespace drover::lower;

namespace {

CudnnQuestion plain(bool backward) {
  CudnnQuestion question = {};
  drover_attention &d = question.sizes;
  d.dtype = d.dtype_kv_grad = DROVER_BF16;
  d.causal = 1;
  d.batch = 1;
  d.queries = d.keys = 4096;
  d.heads = 32;
  d.kv_heads = 8;
  d.head_size = d.value_head_size = 128;
  question.backward = backward;
  return question;
}

struct Case {
  const char *name, *reason;
  bool backwardOnly;
  void (*change)(CudnnQuestion &);
};

const Case kCases[] = {
    {"F32", "f32", false, [](CudnnQuestion &q) { q.sizes.dtype = DROVER_F32; }},
    {"Mask", "a mask of pairs", false, [](CudnnQuestion &q) { q.hasMask = true; }},
    {"KeyMask", "a mask of keys", false, [](CudnnQuestion &q) { q.hasKeyMask = true; }},
    {"Documents", "documents", false, [](CudnnQuestion &q) { q.hasDocuments = true; }},
    {"QueryIndex", "queries at places of their own", false, [](CudnnQuestion &q) { q.hasQueryIndex = true; }},
    {"Slopes", "ALiBi slopes", false, [](CudnnQuestion &q) { q.hasSlopes = true; }},
    {"Window", "a window", false, [](CudnnQuestion &q) { q.sizes.window = 1; }},
    {"Softcap", "a softcap", false, [](CudnnQuestion &q) { q.sizes.softcap = 30; }},
    {"OtherValues", "values of another head size (64) than keys (128)", false,
     [](CudnnQuestion &q) { q.sizes.value_head_size = 64; }},
    {"NoMultipleOf8", "heads of 100 elements", false,
     [](CudnnQuestion &q) { q.sizes.head_size = q.sizes.value_head_size = 100; }},
    {"LongHeads", "heads of 136 elements", false,
     [](CudnnQuestion &q) { q.sizes.head_size = q.sizes.value_head_size = 136; }},
    {"Groups", "32 query heads, which 5 kv heads do not divide", false, [](CudnnQuestion &q) { q.sizes.kv_heads = 5; }},
    {"MoreQueries", "4097 queries over 4096 keys", false, [](CudnnQuestion &q) { q.sizes.queries = 4097; }},
    {"WideGradients", "gradients of keys and values in f32", true,
     [](CudnnQuestion &q) { q.sizes.dtype_kv_grad = DROVER_F32; }},
    {"OneQuery", "one query", true, [](CudnnQuestion &q) { q.sizes.queries = 1; }},
    {"Workspace", "a deterministic backward with", true,
     [](CudnnQuestion &q) { q.sizes.queries = q.sizes.keys = 8192; }},
};

class CudnnConditions : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, CudnnConditions, ::testing::ValuesIn(kCases),
                         [](const auto &info) { return std::string(info.param.name); });

TEST_P(CudnnConditions, AreNamed) {
  for (bool backward : {false, true}) {
    CudnnQuestion question = plain(backward);
    EXPECT_EQ(whyNotCudnn(question), "");
    GetParam().change(question);
    std::string reason = whyNotCudnn(question);
    if (!backward && GetParam().backwardOnly)
      EXPECT_EQ(reason, "");
    else
      EXPECT_EQ(reason.rfind(GetParam().reason, 0), 0u) << reason;
  }
}

TEST(CudnnConditions, BothSidesOfTheBounds) {
  auto accepted = [](bool backward, auto change) {
    CudnnQuestion question = plain(backward);
    change(question.sizes);
    return whyNotCudnn(question).empty();
  };
  EXPECT_TRUE(accepted(true, [](drover_attention &d) { d.head_size = d.value_head_size = 8; }));
  EXPECT_TRUE(accepted(true, [](drover_attention &d) { d.causal = 2, d.queries = 4095; }));
  EXPECT_TRUE(accepted(true, [](drover_attention &d) { d.causal = 0, d.queries = 4097; }));
  EXPECT_TRUE(accepted(true, [](drover_attention &d) { d.queries = 2; }));
  EXPECT_TRUE(accepted(false, [](drover_attention &d) { d.queries = d.keys = 131072; }));
}

} // namespace
