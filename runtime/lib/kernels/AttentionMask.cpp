//===- AttentionMask.cpp - which keys a query sees ------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "kernels/AttentionMask.h"

#include "drover/rt/fatal.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace drover::rt;

namespace {

constexpr float excluded = -std::numeric_limits<float>::infinity();

float floatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

float halfToFloat(uint16_t half) {
  const int exponent = (half >> 10) & 31, fraction = half & 1023;
  const float sign = half & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 31)
    return fraction ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
  return sign * (exponent ? std::ldexp(float(1024 + fraction), exponent - 25) : std::ldexp(float(fraction), -24));
}

/// Calls fn with the elements as a typed accessor, so that loops over them are compiled once per type.
template <typename Fn> auto withElements(const char *what, const void *data, int32_t dtype, Fn &&fn) {
  switch (dtype) {
  case DROVER_F32:
    return fn([=](int64_t i) { return static_cast<const float *>(data)[i]; });
  case DROVER_BF16:
    return fn([=](int64_t i) { return floatOfBits(uint32_t(static_cast<const uint16_t *>(data)[i]) << 16); });
  case DROVER_F16:
    return fn([=](int64_t i) { return halfToFloat(static_cast<const uint16_t *>(data)[i]); });
  case DROVER_F64:
    return fn([=](int64_t i) { return static_cast<float>(static_cast<const double *>(data)[i]); });
  case DROVER_I64:
    return fn([=](int64_t i) { return static_cast<const int64_t *>(data)[i]; });
  case DROVER_I32:
    return fn([=](int64_t i) { return static_cast<const int32_t *>(data)[i]; });
  case DROVER_I8:
  case DROVER_I1:
    return fn([=](int64_t i) { return static_cast<const int8_t *>(data)[i]; });
  }
  fatal("attention: %s of unknown element type %d", what, dtype);
}

} // namespace

AttentionMask::AttentionMask(const drover_attention &desc, const void *mask, const void *keyMask, const void *documents,
                             const int64_t *queryIndex)
    : desc(desc), mask(mask), keyMask(keyMask), documents(documents), queryIndex(queryIndex) {}

int64_t AttentionMask::positionOf(int64_t query) const {
  if (queryIndex)
    return queryIndex[query];
  // Bottom-right aligns the last query with the last key.
  return query + (desc.causal == 2 ? desc.keys - desc.queries : 0);
}

Span AttentionMask::keysOf(int64_t query) const {
  const int64_t position = positionOf(query);
  Span keys = {0, desc.keys};
  if (desc.causal != 0)
    keys.end = std::clamp<int64_t>(position + 1, 0, desc.keys);
  if (desc.window > 0) {
    keys.begin = std::clamp<int64_t>(position - desc.window + 1, 0, desc.keys);
    keys.end = std::min(keys.end, std::clamp<int64_t>(position + desc.window, 0, desc.keys));
  }
  return keys;
}

Span AttentionMask::keysOf(Span queries) const {
  if (!queryIndex) // ends do not fall from query to query
    return {keysOf(queries.begin).begin, keysOf(queries.end - 1).end};
  Span all = {desc.keys, 0};
  for (int64_t i = queries.begin; i < queries.end; ++i) {
    const Span seen = keysOf(i);
    all = {std::min(all.begin, seen.begin), std::max(all.end, seen.end)};
  }
  return all;
}

bool AttentionMask::excludes(int64_t batch, Span queries, Span keys) const {
  const Span seen = keysOf(queries);
  if (seen.begin >= keys.end || seen.end <= keys.begin)
    return true;
  return (keyMask && keysMasked(batch, keys)) || (documents && documentsDisjoint(batch, queries, keys));
}

bool AttentionMask::documentsDisjoint(int64_t batch, Span queries, Span keys) const {
  return withElements("documents", documents, desc.documents_dtype, [&](auto id) {
    const auto bounds = [&](Span span, auto at) {
      auto low = id(batch * desc.keys + at(span.begin)), high = low;
      for (int64_t i = span.begin; i < span.end; ++i) {
        low = std::min(low, id(batch * desc.keys + at(i)));
        high = std::max(high, id(batch * desc.keys + at(i)));
      }
      return std::make_pair(low, high);
    };
    const auto query = bounds(queries, [&](int64_t i) { return positionOf(i); });
    const auto key = bounds(keys, [](int64_t j) { return j; });
    return query.second < key.first || key.second < query.first;
  });
}

bool AttentionMask::keysMasked(int64_t batch, Span keys) const {
  return withElements("key_mask", keyMask, desc.key_mask_dtype, [&](auto element) {
    for (int64_t j = keys.begin; j < keys.end; ++j)
      if (element(batch * desc.key_mask_batch_stride + j) != 0)
        return false;
    return true;
  });
}

void AttentionMask::biasRow(int64_t batch, int64_t head, int64_t query, Span keys, int64_t padded, float *bias) const {
  const int64_t size = keys.size();
  std::fill_n(bias, padded, 0.0f);
  if (mask) {
    const int64_t row = batch * desc.mask_batch_stride + head * desc.mask_head_stride + query * desc.mask_query_stride;
    withElements("mask", mask, desc.mask_dtype, [&](auto element) {
      for (int64_t j = 0; j < size; ++j) {
        const auto value = element(row + keys.begin + j);
        bias[j] = desc.mask_dtype == DROVER_I1 ? (value != 0 ? 0.0f : excluded) : static_cast<float>(value);
      }
    });
  }
  if (desc.alibi_slopes) {
    const float slope = desc.alibi_slopes[head];
    for (int64_t j = 0; j < size; ++j)
      bias[j] += slope * static_cast<float>(keys.begin + j);
  }
  if (keyMask)
    withElements("key_mask", keyMask, desc.key_mask_dtype, [&](auto element) {
      const int64_t row = batch * desc.key_mask_batch_stride + keys.begin;
      for (int64_t j = 0; j < size; ++j)
        bias[j] = element(row + j) != 0 ? bias[j] : excluded;
    });
  if (documents)
    withElements("documents", documents, desc.documents_dtype, [&](auto id) {
      const int64_t row = batch * desc.keys + keys.begin;
      const auto own = id(batch * desc.keys + positionOf(query));
      for (int64_t j = 0; j < size; ++j)
        bias[j] = id(row + j) == own ? bias[j] : excluded;
    });
}
