//===- AttentionTiles.cpp - what both directions of attention share -------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "kernels/AttentionTiles.h"

#include "kernels/Loops.h"

#include <algorithm>

using namespace drover::rt;

int64_t drover::rt::rowStride(const TileKernels &tiles, int64_t columns) { return roundUp(columns, tiles.nr) + 16; }

void TileShape::set(const TileKernels &tiles, const AttentionMask &mask, Span queries, Span keys, int64_t copies) {
  const int32_t numQueries = queries.size(), numKeys = keys.size();
  rows.resize(numQueries);
  whole = true;
  for (int32_t i = 0; i < numQueries; ++i) {
    const Span seen = mask.keysOf(queries.begin + i);
    const int64_t begin = std::clamp<int64_t>(seen.begin - keys.begin, 0, numKeys);
    const int64_t end = std::clamp<int64_t>(seen.end - keys.begin, begin, numKeys);
    rows[i] = {static_cast<int32_t>(begin), static_cast<int32_t>(end)};
    whole = whole && begin == 0 && end == numKeys;
  }
  if (whole)
    return;

  const int64_t stacked = numQueries * copies;
  keyGroups.assign(ceilDiv(stacked, tiles.mr), {numKeys, 0});
  for (int64_t i = 0; i < stacked; ++i) {
    const TileRange seen = rows[i % numQueries];
    TileRange &group = keyGroups[i / tiles.mr];
    if (seen.begin < seen.end)
      group = {std::min(group.begin, seen.begin), std::max(group.end, seen.end)};
  }
  queryGroups.assign(ceilDiv(numKeys, tiles.mr), {numQueries, 0});
  for (size_t group = 0; group < queryGroups.size(); ++group) {
    const int32_t first = group * tiles.mr, last = std::min<int32_t>(first + tiles.mr, numKeys);
    for (int32_t i = 0; i < numQueries; ++i)
      if (rows[i].begin < last && rows[i].end > first)
        queryGroups[group] = {std::min(queryGroups[group].begin, i), i + 1};
  }
}

void drover::rt::checkAttention(const drover_attention &desc) {
  checkFloatType("attention", desc.dtype);
  if (desc.kv_heads <= 0 || desc.heads % desc.kv_heads != 0)
    fatal("attention: %lld kv heads do not divide %lld heads", static_cast<long long>(desc.kv_heads),
          static_cast<long long>(desc.heads));
}
