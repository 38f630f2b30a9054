//===- Attention.cpp - attention, forward ---------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Tiles of queries meet tiles of keys with a running maximum and sum (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018; Dao et al., "FlashAttention", 2022): no buffer grows with the lengths. The heads that
// share a kv head are stacked, so that a tile of keys is packed once for all of them.
//===----------------------------------------------------------------------===//
#include "drover/rt/body_device.h"
#include "kernels/AttentionTiles.h"
#include "kernels/Loops.h"
#include "kernels/Scratch.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace drover::rt;

namespace {

constexpr int64_t queryTile = 96;
constexpr int64_t keyTile = 128;
constexpr int64_t stackedHeads = 4;

class AttentionForward {
public:
  AttentionForward(const drover_attention &desc, const AttentionMask &mask, const void *query, const void *key,
                   const void *value, void *result, float *logSumExp)
      : d(desc), mask(mask), query(query), key(key), value(value), result(result), logSumExp(logSumExp),
        tiles(tileKernels()), group(desc.heads / desc.kv_heads), stacked(std::min(group, stackedHeads)),
        // Groups of more heads get fewer queries, so that the scores of a tile stay in the second-level cache.
        queriesPerTask(stacked > 2 ? queryTile / 2 : queryTile) {}

  void run(const drover_call *call) {
    const int64_t queryTiles = ceilDiv(d.queries, queriesPerTask), stacks = ceilDiv(group, stacked);
    parallelFor(call, d.batch * d.kv_heads * stacks * queryTiles, 1, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        // The last queries of a causal attention cost most: they come first.
        const int64_t tile = queryTiles - 1 - index % queryTiles, stack = index / queryTiles % stacks;
        const int64_t kvHead = index / queryTiles / stacks % d.kv_heads,
                      batch = index / queryTiles / stacks / d.kv_heads;
        const int64_t first = tile * queriesPerTask;
        runTile(batch, kvHead, kvHead * group + stack * stacked, std::min(stacked, group - stack * stacked),
                {first, std::min(first + queriesPerTask, d.queries)});
      }
    });
  }

private:
  /// Buffers of a thread.
  struct Buffers {
    Buffers(const AttentionForward &f, ScratchLayout &layout) {
      const int64_t rows = f.stacked * f.queriesPerTask;
      queries = layout.take(rows * rowStride(f.tiles, f.d.head_size));
      keys = layout.take(roundUp(keyTile, f.tiles.nr) * f.d.head_size);
      values = layout.take(roundUp(f.d.value_head_size, f.tiles.nr) * keyTile);
      scores = layout.take(rows * rowStride(f.tiles, keyTile));
      sums = layout.take(rows * rowStride(f.tiles, f.d.value_head_size));
      bias = layout.take(roundUp(keyTile, f.tiles.nr));
      maximum = layout.take(rows);
      total = layout.take(rows);
    }
    float *queries, *keys, *values, *scores, *sums, *bias, *maximum, *total;
  };

  void runTile(int64_t batch, int64_t kvHead, int64_t head, int64_t heads, Span queries);
  void addKeys(const Buffers &buffers, TileShape &shape, int64_t batch, int64_t kvHead, int64_t head, int64_t heads,
               Span queries, Span keys);
  void write(const Buffers &buffers, int64_t batch, int64_t head, int64_t heads, Span queries);

  const drover_attention &d;
  const AttentionMask &mask;
  const void *query, *key, *value;
  void *result;
  float *logSumExp;
  const TileKernels &tiles;
  const int64_t group, stacked, queriesPerTask;
};

void AttentionForward::runTile(int64_t batch, int64_t kvHead, int64_t head, int64_t heads, Span queries) {
  ScratchLayout sizes;
  Buffers unused(*this, sizes);
  ScratchLayout layout(threadScratch(ScratchUse::Task, sizes.floats()));
  const Buffers buffers(*this, layout);
  const int64_t rows = heads * queries.size(), stride = rowStride(tiles, d.head_size);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t position = batch * d.queries + queries.begin + row % queries.size();
    const int64_t from = position * d.query_stride + (head + row / queries.size()) * d.head_size;
    tiles.widen(at(query, d.dtype, from), d.dtype, d.head_size, buffers.queries + row * stride);
  }
  std::fill_n(buffers.sums, rows * rowStride(tiles, d.value_head_size), 0.0f);
  std::fill_n(buffers.total, rows, 0.0f);
  std::fill_n(buffers.maximum, rows, -std::numeric_limits<float>::infinity());

  TileShape shape;
  const Span seen = mask.keysOf(queries);
  for (int64_t j = seen.begin / keyTile * keyTile; j < seen.end; j += keyTile) {
    const Span keys = {j, std::min(j + keyTile, d.keys)};
    if (!mask.excludes(batch, queries, keys))
      addKeys(buffers, shape, batch, kvHead, head, heads, queries, keys);
  }
  write(buffers, batch, head, heads, queries);
}

void AttentionForward::addKeys(const Buffers &buffers, TileShape &shape, int64_t batch, int64_t kvHead, int64_t head,
                               int64_t heads, Span queries, Span keys) {
  const int64_t rows = heads * queries.size(), numKeys = keys.size();
  const int64_t scoreStride = rowStride(tiles, keyTile), sumStride = rowStride(tiles, d.value_head_size);
  const int64_t firstKey = batch * d.keys + keys.begin;
  shape.set(tiles, mask, queries, keys, heads);
  tiles.packB(at(key, d.dtype, firstKey * d.key_stride + kvHead * d.head_size), d.dtype, true, d.key_stride,
              d.head_size, numKeys, buffers.keys);
  tiles.packB(at(value, d.dtype, firstKey * d.value_stride + kvHead * d.value_head_size), d.dtype, false,
              d.value_stride, numKeys, d.value_head_size, buffers.values);

  TileGemm scores = {};
  scores.m = rows;
  scores.n = numKeys;
  scores.k = d.head_size;
  scores.a = buffers.queries;
  scores.aRow = rowStride(tiles, d.head_size);
  scores.aGroup = tiles.mr * scores.aRow;
  scores.aDepth = 1;
  scores.b = buffers.keys;
  scores.bPanel = d.head_size * tiles.nr;
  scores.bRow = tiles.nr;
  scores.c = buffers.scores;
  scores.ldc = scoreStride;
  scores.columns = shape.keysOfGroups();
  tiles.gemm(scores);

  const bool hasBias = mask.hasBias();
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t i = row % queries.size();
    const int32_t padded = roundUp(numKeys, tiles.nr);
    if (hasBias)
      mask.biasRow(batch, head + row / queries.size(), queries.begin + i, keys, padded, buffers.bias);
    const ScoreRow line = {buffers.scores + row * scoreStride,
                           hasBias ? buffers.bias : nullptr,
                           shape.row(i).begin,
                           shape.row(i).end,
                           padded,
                           static_cast<float>(d.scale),
                           static_cast<float>(d.softcap)};
    const float factor = tiles.softmaxRow(line, buffers.maximum[row], buffers.total[row]);
    if (factor != 1.0f)
      tiles.scaleRow(buffers.sums + row * sumStride, d.value_head_size, factor);
  }

  TileGemm sums = {};
  sums.m = rows;
  sums.n = d.value_head_size;
  sums.k = numKeys;
  sums.a = buffers.scores;
  sums.aRow = scoreStride;
  sums.aGroup = tiles.mr * scoreStride;
  sums.aDepth = 1;
  sums.b = buffers.values;
  sums.bPanel = numKeys * tiles.nr;
  sums.bRow = tiles.nr;
  sums.c = buffers.sums;
  sums.ldc = sumStride;
  sums.accumulate = true;
  sums.depth = shape.keysOfGroups();
  tiles.gemm(sums);
}

/// A row without a key that takes part is zero, its log-sum-exp -inf.
void AttentionForward::write(const Buffers &buffers, int64_t batch, int64_t head, int64_t heads, Span queries) {
  const int64_t rows = heads * queries.size(), sumStride = rowStride(tiles, d.value_head_size);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t rowHead = head + row / queries.size(), i = queries.begin + row % queries.size();
    const float total = buffers.total[row];
    float *sums = buffers.sums + row * sumStride;
    if (total != 0.0f)
      tiles.scaleRow(sums, d.value_head_size, 1.0f / total);
    else
      std::fill_n(sums, d.value_head_size, 0.0f);
    logSumExp[(batch * d.heads + rowHead) * d.queries + i] =
        total != 0.0f ? buffers.maximum[row] + std::log(total) : -std::numeric_limits<float>::infinity();
    tiles.narrow(sums, d.value_head_size,
                 at(result, d.dtype, (batch * d.queries + i) * d.result_stride + rowHead * d.value_head_size), d.dtype);
  }
}

} // namespace

extern "C" void drover_rt_attention(const drover_call *call, const drover_attention *desc, const void *query,
                                    const void *key, const void *value, const void *mask, const void *key_mask,
                                    const void *documents, const int64_t *query_index, void *result, void *log_sum_exp,
                                    void *workspace) {
  if (call && call->device)
    return call->device->attention(*desc, query, key, value, result, log_sum_exp, workspace);
  checkAttention(*desc);
  const AttentionMask masks(*desc, mask, key_mask, documents, query_index);
  AttentionForward(*desc, masks, query, key, value, result, static_cast<float *>(log_sum_exp)).run(call);
}
