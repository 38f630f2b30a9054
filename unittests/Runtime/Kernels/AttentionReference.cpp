//===- AttentionReference.cpp - attention as its definition reads ---------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "AttentionReference.h"

#include <algorithm>
#include <limits>
#include <sstream>

using namespace drover::rt::test;

AttentionCase::AttentionCase(std::mt19937 &random, bool plain) {
  const auto maybe = [&] { return !plain && random() % 3 == 0; };
  d.dtype = plain ? DROVER_F32 : random() % 2;
  d.dtype_kv_grad = plain || random() % 2 ? DROVER_F32 : d.dtype;
  d.causal = plain ? 0 : random() % 3;
  d.window = maybe() ? pick(random, {1, 5, 30}) : 0;
  d.softcap = maybe() ? 2.5 : 0;
  maskKind = maybe() ? 1 + random() % 3 : 0;
  broadcastBatch = random() % 2;
  broadcastHeads = random() % 2;
  broadcastQueries = random() % 4 == 0;
  hasKeyMask = maybe();
  broadcastKeyMask = random() % 2;
  hasDocuments = maybe();
  hasAlibi = maybe();
  d.key_mask_dtype = random() % 2 ? DROVER_I64 : DROVER_I1;
  d.documents_dtype = random() % 2 ? DROVER_I64 : DROVER_I32;
  d.mask_dtype = maskKind == 1 ? DROVER_I1 : maskKind == 2 ? DROVER_F32 : DROVER_BF16;
  extraColumns = maybe() ? pick(random, {3, 16}) : 0;
  const int64_t kvHeads = pick(random, {1, 2, 3}), group = pick(random, {1, 1, 2, 3, 5});
  const int64_t queries = pick(random, {1, 2, 7, 33, 64, 65, 90, 140});
  const bool indexed = maybe() && d.causal != 2;
  const int64_t keys = (hasDocuments && !indexed) || random() % 2 ? queries : pick(random, {1, 5, 31, 64, 100, 150});
  if (indexed) {
    queryIndex.resize(queries);
    for (int64_t &index : queryIndex)
      index = random() % keys;
    if (random() % 2) // as CP has them
      std::sort(queryIndex.begin(), queryIndex.end());
  }
  resize(pick(random, {1, 2}), queries, keys, kvHeads * group, kvHeads, pick(random, {1, 4, 8, 12, 16, 20, 33, 64}),
         pick(random, {1, 4, 8, 16, 24, 33}), random);
}

void AttentionCase::resize(int64_t batch, int64_t queries, int64_t keys, int64_t heads, int64_t kvHeads,
                           int64_t headSize, int64_t valueHeadSize, std::mt19937 &random) {
  if (!queryIndex.empty() && static_cast<int64_t>(queryIndex.size()) != queries)
    queryIndex.clear();
  d.batch = batch;
  d.queries = queries;
  d.keys = keys;
  d.heads = heads;
  d.kv_heads = kvHeads;
  d.head_size = headSize;
  d.value_head_size = valueHeadSize;
  d.scale = 1.0 / std::sqrt(double(headSize));
  d.query_stride = heads * headSize + extraColumns;
  d.key_stride = kvHeads * headSize + extraColumns;
  d.value_stride = kvHeads * valueHeadSize + extraColumns;
  d.gradient_stride = heads * valueHeadSize + extraColumns;
  d.result_stride = heads * valueHeadSize;
  d.query_grad_stride = heads * headSize;
  d.key_grad_stride = kvHeads * headSize;
  d.value_grad_stride = kvHeads * valueHeadSize;

  query = Tensor(d.dtype, batch * queries * d.query_stride);
  key = Tensor(d.dtype, batch * keys * d.key_stride);
  value = Tensor(d.dtype, batch * keys * d.value_stride);
  gradient = Tensor(d.dtype, batch * queries * d.gradient_stride);
  for (Tensor *tensor : {&query, &key, &value, &gradient})
    tensor->randomize(random);

  d.mask_query_stride = broadcastQueries ? 0 : keys;
  d.mask_head_stride = broadcastHeads ? 0 : keys * queries;
  d.mask_batch_stride = broadcastBatch ? 0 : keys * queries * heads;
  boolMask.resize(maskKind == 1 ? batch * heads * queries * keys : 0);
  for (uint8_t &element : boolMask)
    element = random() % 3 != 0;
  floatMask = Tensor(maskKind == 3 ? DROVER_BF16 : DROVER_F32, maskKind > 1 ? batch * heads * queries * keys : 0);
  floatMask.randomize(random);
  for (int64_t i = 0; i < floatMask.size(); ++i)
    if (random() % 4 == 0)
      floatMask.set(i, -std::numeric_limits<float>::infinity());

  d.key_mask_batch_stride = broadcastKeyMask ? 0 : keys;
  keyMask64.resize(batch * keys);
  keyMask8.resize(batch * keys);
  for (size_t i = 0; i < keyMask64.size(); ++i)
    keyMask8[i] = keyMask64[i] = random() % 4 != 0;
  documents64.resize(batch * keys);
  documents32.resize(batch * keys);
  int64_t document = 0;
  for (size_t i = 0; i < documents64.size(); ++i) {
    document += random() % 20 == 0;
    documents32[i] = documents64[i] = document;
  }
  slopes.resize(heads);
  for (int64_t h = 0; h < heads; ++h)
    slopes[h] = std::ldexp(1.0f, -static_cast<int>(h) - 1);
  d.alibi_slopes = hasAlibi ? slopes.data() : nullptr;
}

const void *AttentionCase::keyMaskData() const {
  if (!hasKeyMask)
    return nullptr;
  return d.key_mask_dtype == DROVER_I64 ? static_cast<const void *>(keyMask64.data()) : keyMask8.data();
}

const void *AttentionCase::documentsData() const {
  if (!hasDocuments)
    return nullptr;
  return d.documents_dtype == DROVER_I64 ? static_cast<const void *>(documents64.data()) : documents32.data();
}

AttentionResults AttentionCase::run(drover_pool *pool) const {
  AttentionResults r;
  r.result = Tensor(d.dtype, d.batch * d.queries * d.result_stride);
  r.logSumExp = Tensor(DROVER_F32, d.batch * d.heads * d.queries);
  r.queryGrad = Tensor(d.dtype, d.batch * d.queries * d.query_grad_stride);
  r.keyGrad = Tensor(d.dtype_kv_grad, d.batch * d.keys * d.key_grad_stride);
  r.valueGrad = Tensor(d.dtype_kv_grad, d.batch * d.keys * d.value_grad_stride);
  // Results are overwritten, whatever their memory held.
  for (Tensor *tensor : {&r.result, &r.logSumExp, &r.queryGrad, &r.keyGrad, &r.valueGrad})
    tensor->fill(std::numeric_limits<float>::quiet_NaN());
  std::vector<char> workspace(drover_attention_workspace(&d));
  const void *mask = maskKind == 0   ? nullptr
                     : maskKind == 1 ? static_cast<const void *>(boolMask.data())
                                     : floatMask.data();
  const int64_t *index = queryIndex.empty() ? nullptr : queryIndex.data();
  drover_call call = {pool, 0, 0, 0, nullptr, nullptr, nullptr};
  drover_rt_attention(&call, &d, query.data(), key.data(), value.data(), mask, keyMaskData(), documentsData(), index,
                      r.result.data(), r.logSumExp.data(), workspace.data());
  drover_rt_attention_grad(&call, &d, query.data(), key.data(), value.data(), r.result.data(), r.logSumExp.data(),
                           gradient.data(), mask, keyMaskData(), documentsData(), index, r.queryGrad.data(),
                           r.keyGrad.data(), r.valueGrad.data(), workspace.data());
  return r;
}

int64_t AttentionCase::maskIndex(int64_t batch, int64_t head, int64_t i, int64_t j) const {
  return batch * d.mask_batch_stride + head * d.mask_head_stride + i * d.mask_query_stride + j;
}

int64_t AttentionCase::positionOf(int64_t i) const {
  return queryIndex.empty() ? i + (d.causal == 2 ? d.keys - d.queries : 0) : queryIndex[i];
}

bool AttentionCase::takesPart(int64_t batch, int64_t head, int64_t i, int64_t j) const {
  const int64_t position = positionOf(i);
  if (d.causal && j > position)
    return false;
  if (d.window && std::abs(position - j) >= d.window)
    return false;
  if (maskKind == 1 && !boolMask[maskIndex(batch, head, i, j)])
    return false;
  if (hasKeyMask && !keyMask64[batch * d.key_mask_batch_stride + j])
    return false;
  return !hasDocuments || documents64[batch * d.keys + position] == documents64[batch * d.keys + j];
}

double AttentionCase::bias(int64_t batch, int64_t head, int64_t i, int64_t j) const {
  return (maskKind > 1 ? floatMask[maskIndex(batch, head, i, j)] : 0.0) + (hasAlibi ? double(slopes[head]) * j : 0.0);
}

ReferenceResults AttentionCase::reference(const AttentionResults &forward) const {
  ReferenceResults r;
  const int64_t D = d.head_size, E = d.value_head_size, group = d.heads / d.kv_heads;
  r.result.resize(d.batch * d.queries * d.result_stride);
  r.logSumExp.resize(d.batch * d.heads * d.queries);
  r.queryGrad.resize(d.batch * d.queries * d.query_grad_stride);
  r.keyGrad.resize(d.batch * d.keys * d.key_grad_stride);
  r.valueGrad.resize(d.batch * d.keys * d.value_grad_stride);
  std::vector<double> score(d.keys), slope(d.keys);
  for (int64_t b = 0; b < d.batch; ++b)
    for (int64_t h = 0; h < d.heads; ++h)
      for (int64_t i = 0; i < d.queries; ++i) {
        const int64_t q = (b * d.queries + i) * d.query_stride + h * D;
        const int64_t out = (b * d.queries + i) * d.result_stride + h * E;
        const int64_t grad = (b * d.queries + i) * d.gradient_stride + h * E;
        const int64_t statistic = (b * d.heads + h) * d.queries + i;
        const auto keyAt = [&](int64_t j) { return (b * d.keys + j) * d.key_stride + h / group * D; };
        const auto valueAt = [&](int64_t j) { return (b * d.keys + j) * d.value_stride + h / group * E; };
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t j = 0; j < d.keys; ++j) {
          double dot = 0;
          for (int64_t c = 0; c < D; ++c)
            dot += query[q + c] * key[keyAt(j) + c];
          const double capped = d.softcap ? d.softcap * std::tanh(d.scale * dot / d.softcap) : d.scale * dot;
          slope[j] = d.scale * (d.softcap ? 1 - std::pow(capped / d.softcap, 2) : 1);
          score[j] = takesPart(b, h, i, j) ? capped + bias(b, h, i, j) : -std::numeric_limits<double>::infinity();
          largest = std::max(largest, score[j]);
        }
        r.logSumExp[statistic] = -std::numeric_limits<double>::infinity();
        if (largest == -std::numeric_limits<double>::infinity())
          continue;
        for (int64_t j = 0; j < d.keys; ++j)
          sum += std::exp(score[j] - largest);
        r.logSumExp[statistic] = largest + std::log(sum);
        double delta = 0;
        for (int64_t c = 0; c < E; ++c)
          delta += forward.result[out + c] * gradient[grad + c];
        for (int64_t j = 0; j < d.keys; ++j) {
          const double p = std::exp(score[j] - largest) / sum;
          double change = 0;
          for (int64_t c = 0; c < E; ++c) {
            r.result[out + c] += p * value[valueAt(j) + c];
            r.valueGrad[(b * d.keys + j) * d.value_grad_stride + h / group * E + c] += p * gradient[grad + c];
            change += gradient[grad + c] * value[valueAt(j) + c];
          }
          const double scoreGrad = p * (change - delta) * slope[j];
          for (int64_t c = 0; c < D; ++c) {
            r.queryGrad[(b * d.queries + i) * d.query_grad_stride + h * D + c] += scoreGrad * key[keyAt(j) + c];
            r.keyGrad[(b * d.keys + j) * d.key_grad_stride + h / group * D + c] += scoreGrad * query[q + c];
          }
        }
      }
  return r;
}

std::string AttentionCase::name() const {
  std::ostringstream out;
  out << "batch " << d.batch << " queries " << d.queries << " keys " << d.keys << " heads " << d.heads << "/"
      << d.kv_heads << " sizes " << d.head_size << "/" << d.value_head_size << " types " << d.dtype << d.dtype_kv_grad
      << " causal " << d.causal << " window " << d.window << " softcap " << d.softcap << " mask " << maskKind
      << " key_mask " << hasKeyMask << " documents " << hasDocuments << " alibi " << hasAlibi << " extra "
      << extraColumns << " index " << queryIndex.size();
  return out.str();
}
