//===- AttentionReference.h - attention as its definition reads --*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_RUNTIME_KERNELS_ATTENTIONREFERENCE_H
#define DROVER_UNITTESTS_RUNTIME_KERNELS_ATTENTIONREFERENCE_H

#include "TestData.h"

#include "drover/rt/thread_pool.h"

#include <string>

namespace drover::rt::test {

/// What the kernels computed. Rows are contiguous here.
struct AttentionResults {
  Tensor result, logSumExp, queryGrad, keyGrad, valueGrad;
  bool sameBits(const AttentionResults &other) const {
    return result.sameBits(other.result) && logSumExp.sameBits(other.logSumExp) &&
           queryGrad.sameBits(other.queryGrad) && keyGrad.sameBits(other.keyGrad) &&
           valueGrad.sameBits(other.valueGrad);
  }
};

struct ReferenceResults {
  std::vector<double> result, logSumExp, queryGrad, keyGrad, valueGrad;
};

/// One attention with its operands; query, key and value may be slices of wider rows.
class AttentionCase {
public:
  /// Random sizes and options, or none of the options.
  explicit AttentionCase(std::mt19937 &random, bool plain = false);

  /// New sizes for the same options, and new values.
  void resize(int64_t batch, int64_t queries, int64_t keys, int64_t heads, int64_t kvHeads, int64_t headSize,
              int64_t valueHeadSize, std::mt19937 &random);

  AttentionResults run(drover_pool *pool) const;
  /// In double. The gradients start from the kernel's own result and log_sum_exp, as the contract says.
  ReferenceResults reference(const AttentionResults &forward) const;
  std::string name() const;

  /// Where the queries stand among the keys; empty where they are as the descriptor says.
  std::vector<int64_t> queryIndex;
  drover_attention d = {};
  Tensor query, key, value, gradient;

private:
  int64_t positionOf(int64_t query) const;
  bool takesPart(int64_t batch, int64_t head, int64_t query, int64_t key) const;
  double bias(int64_t batch, int64_t head, int64_t query, int64_t key) const;
  int64_t maskIndex(int64_t batch, int64_t head, int64_t query, int64_t key) const;
  const void *keyMaskData() const;
  const void *documentsData() const;

  bool broadcastBatch = false, broadcastHeads = false, broadcastQueries = false, broadcastKeyMask = false;
  bool hasKeyMask = false, hasDocuments = false, hasAlibi = false;
  int maskKind = 0; // 0 none, 1 i1, 2 f32, 3 bf16
  int64_t extraColumns = 0;
  std::vector<uint8_t> boolMask;
  Tensor floatMask;
  std::vector<int64_t> keyMask64, documents64;
  std::vector<int32_t> documents32;
  std::vector<uint8_t> keyMask8;
  std::vector<float> slopes;
};

} // namespace drover::rt::test

#endif // DROVER_UNITTESTS_RUNTIME_KERNELS_ATTENTIONREFERENCE_H
