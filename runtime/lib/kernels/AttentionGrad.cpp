//===- AttentionGrad.cpp - attention, backward ----------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Per pair of tiles the probabilities are rebuilt from the log-sum-exp (Dao et al., "FlashAttention", 2022, algorithm
// 4):
//   P = exp(S - lse), dV += P^T dO, dS = P * (dO V^T - delta), dQ += dS K, dK += dS^T Q, delta = rowsum(dO * O).
// With enough (batch, kv head) pairs each is one task that walks all tiles. Else dK, dV and dQ are computed in two
// passes, over tiles of keys and over tiles of queries, at 7/5 of the work. Either way dQ of a tile is summed over the
// keys in order, and dK, dV over heads and queries in order: the results agree bitwise, for any number of threads.
//===----------------------------------------------------------------------===//
#include "drover/rt/body_device.h"
#include "kernels/AttentionTiles.h"
#include "kernels/Loops.h"
#include "kernels/Scratch.h"

#include <algorithm>
#include <limits>

using namespace drover::rt;

namespace {

constexpr int64_t queryTile = 96;
constexpr int64_t keyTile = 96;

struct Operands {
  const void *query, *key, *value, *result, *gradient;
  const float *logSumExp;
  void *queryGrad, *keyGrad, *valueGrad;
  float *delta;
  float *queryGradSums; // f32, where query_grad is narrower: [batch, queries, heads * head_size]
};

class AttentionBackward {
public:
  AttentionBackward(const drover_attention &desc, const AttentionMask &mask, const Operands &operands)
      : d(desc), mask(mask), o(operands), tiles(tileKernels()), group(desc.heads / desc.kv_heads),
        headStride(rowStride(tiles, desc.head_size)), valueStride(rowStride(tiles, desc.value_head_size)),
        scoreStride(rowStride(tiles, keyTile)) {}

  void run(const drover_call *call);

private:
  /// Buffers of a thread: the tile of keys, the tile of queries, their scores, and the sums.
  struct Buffers {
    Buffers(const AttentionBackward &b, ScratchLayout &layout) {
      const int64_t keyPanels = roundUp(keyTile, b.tiles.nr);
      keysTransposed = layout.take(keyPanels * b.d.head_size);
      valuesTransposed = layout.take(keyPanels * b.d.value_head_size);
      keys = layout.take(keyTile * b.headStride);
      keyGrad = layout.take(keyTile * b.headStride);
      valueGrad = layout.take(keyTile * b.valueStride);
      queries = layout.take(queryTile * b.headStride);
      gradients = layout.take(queryTile * b.valueStride);
      scores = layout.take(queryTile * b.scoreStride);
      scoreGrads = layout.take(queryTile * b.scoreStride);
      bias = layout.take(keyPanels);
    }
    float *keysTransposed, *valuesTransposed, *keys, *keyGrad, *valueGrad, *queries, *gradients, *scores, *scoreGrads,
        *bias;
    TileShape shape;
  };

  /// Which sums a tile contributes to.
  enum Sums { KeySums = 1, QuerySums = 2 };

  template <typename Fn> void withBuffers(Fn &&fn);

  /// Where dQ of rows [batch, i.., head] is summed in f32: the result itself, or the workspace.
  float *queryGradSums(int64_t batch, int64_t head, int64_t i) const {
    if (d.dtype == DROVER_F32)
      return static_cast<float *>(o.queryGrad) + queryRow(batch, i) * d.query_grad_stride + head * d.head_size;
    return o.queryGradSums + (queryRow(batch, i) * d.heads + head) * d.head_size;
  }
  int64_t queryGradSumStride() const { return d.dtype == DROVER_F32 ? d.query_grad_stride : d.heads * d.head_size; }

  void computeDelta(const drover_call *call);
  void allOfKvHead(Buffers &buffers, int64_t batch, int64_t kvHead);
  void keyGradients(Buffers &buffers, int64_t batch, int64_t kvHead, Span keys, int sums);
  void queryGradients(Buffers &buffers, int64_t batch, int64_t head, Span queries);
  void loadKeys(const Buffers &buffers, int64_t batch, int64_t kvHead, Span keys);
  void loadQueries(const Buffers &buffers, int64_t batch, int64_t head, Span queries);
  void storeKeyGradients(const Buffers &buffers, int64_t batch, int64_t kvHead, Span keys);
  void zeroQueryGradients(int64_t batch, int64_t head, Span queries);
  void storeQueryGradients(int64_t batch, int64_t head, Span queries);
  void scoreTile(Buffers &buffers, int64_t batch, int64_t head, Span queries, Span keys);
  void addTile(Buffers &buffers, int64_t batch, int64_t head, Span queries, Span keys, int sums);
  void multiply(int64_t m, int64_t n, int64_t k, const float *a, int64_t aRow, int64_t aDepth, const float *b,
                int64_t bPanel, int64_t bRow, float *c, int64_t ldc, bool accumulate, const TileRange *columns,
                const TileRange *depth);

  Span queryTileAt(int64_t i) const { return {i, std::min(i + queryTile, d.queries)}; }
  Span keyTileAt(int64_t j) const { return {j, std::min(j + keyTile, d.keys)}; }
  int64_t queryRow(int64_t batch, int64_t i) const { return batch * d.queries + i; }
  int64_t keyRow(int64_t batch, int64_t j) const { return batch * d.keys + j; }

  const drover_attention &d;
  const AttentionMask &mask;
  const Operands &o;
  const TileKernels &tiles;
  const int64_t group, headStride, valueStride, scoreStride;
};

template <typename Fn> void AttentionBackward::withBuffers(Fn &&fn) {
  ScratchLayout sizes;
  Buffers unused(*this, sizes);
  ScratchLayout layout(threadScratch(ScratchUse::Task, sizes.floats()));
  Buffers buffers(*this, layout);
  fn(buffers);
}

void AttentionBackward::run(const drover_call *call) {
  computeDelta(call);
  const int64_t pairs = d.batch * d.kv_heads, threads = threadsOf(call);
  // One pass over whole pairs keeps pairs / (threads * rounds) of the threads busy, two passes do 7/5 of the work.
  const int64_t rounds = ceilDiv(pairs, threads);
  if (pairs * 7 >= threads * rounds * 5) {
    parallelFor(call, pairs, 1, [&](int64_t begin, int64_t end) {
      withBuffers([&](Buffers &buffers) {
        for (int64_t index = begin; index < end; ++index)
          allOfKvHead(buffers, index / d.kv_heads, index % d.kv_heads);
      });
    });
    return;
  }
  const int64_t keyTiles = ceilDiv(d.keys, keyTile), queryTiles = ceilDiv(d.queries, queryTile);
  parallelFor(call, pairs * keyTiles, 1, [&](int64_t begin, int64_t end) {
    withBuffers([&](Buffers &buffers) {
      for (int64_t index = begin; index < end; ++index) {
        const int64_t pair = index / keyTiles;
        keyGradients(buffers, pair / d.kv_heads, pair % d.kv_heads, keyTileAt(index % keyTiles * keyTile), KeySums);
      }
    });
  });
  parallelFor(call, d.batch * d.heads * queryTiles, 1, [&](int64_t begin, int64_t end) {
    withBuffers([&](Buffers &buffers) {
      for (int64_t index = begin; index < end; ++index) {
        const int64_t batchHead = index / queryTiles;
        queryGradients(buffers, batchHead / d.heads, batchHead % d.heads, queryTileAt(index % queryTiles * queryTile));
      }
    });
  });
}

void AttentionBackward::computeDelta(const drover_call *call) {
  const int64_t size = d.value_head_size;
  parallelFor(call, d.batch * d.queries, 16, [&](int64_t begin, int64_t end) {
    float *wide = threadScratch(ScratchUse::Task, 2 * size);
    for (int64_t row = begin; row < end; ++row)
      for (int64_t head = 0; head < d.heads; ++head) {
        tiles.widen(at(o.result, d.dtype, row * d.result_stride + head * size), d.dtype, size, wide);
        tiles.widen(at(o.gradient, d.dtype, row * d.gradient_stride + head * size), d.dtype, size, wide + size);
        o.delta[(row / d.queries * d.heads + head) * d.queries + row % d.queries] = tiles.dot(wide, wide + size, size);
      }
  });
}

void AttentionBackward::allOfKvHead(Buffers &buffers, int64_t batch, int64_t kvHead) {
  const Span all = {0, d.queries};
  for (int64_t g = 0; g < group; ++g)
    zeroQueryGradients(batch, kvHead * group + g, all);
  for (int64_t j = 0; j < d.keys; j += keyTile)
    keyGradients(buffers, batch, kvHead, keyTileAt(j), KeySums | QuerySums);
  for (int64_t g = 0; g < group; ++g)
    storeQueryGradients(batch, kvHead * group + g, all);
}

/// dK and dV of a tile of keys, and where `sums` says so its part of dQ.
void AttentionBackward::keyGradients(Buffers &buffers, int64_t batch, int64_t kvHead, Span keys, int sums) {
  std::fill_n(buffers.keyGrad, keyTile * headStride, 0.0f);
  std::fill_n(buffers.valueGrad, keyTile * valueStride, 0.0f);
  bool loaded = false;
  for (int64_t g = 0; g < group; ++g)
    for (int64_t i = 0; i < d.queries; i += queryTile) {
      const Span queries = queryTileAt(i);
      if (mask.excludes(batch, queries, keys))
        continue;
      if (!loaded)
        loadKeys(buffers, batch, kvHead, keys);
      loaded = true;
      addTile(buffers, batch, kvHead * group + g, queries, keys, sums);
    }
  storeKeyGradients(buffers, batch, kvHead, keys);
}

void AttentionBackward::queryGradients(Buffers &buffers, int64_t batch, int64_t head, Span queries) {
  zeroQueryGradients(batch, head, queries);
  for (int64_t j = 0; j < d.keys; j += keyTile) {
    const Span keys = keyTileAt(j);
    if (mask.excludes(batch, queries, keys))
      continue;
    loadKeys(buffers, batch, head / group, keys);
    addTile(buffers, batch, head, queries, keys, QuerySums);
  }
  storeQueryGradients(batch, head, queries);
}

void AttentionBackward::loadKeys(const Buffers &buffers, int64_t batch, int64_t kvHead, Span keys) {
  const int64_t first = keyRow(batch, keys.begin);
  const void *key = at(o.key, d.dtype, first * d.key_stride + kvHead * d.head_size);
  const void *value = at(o.value, d.dtype, first * d.value_stride + kvHead * d.value_head_size);
  tiles.packB(key, d.dtype, true, d.key_stride, d.head_size, keys.size(), buffers.keysTransposed);
  tiles.packB(value, d.dtype, true, d.value_stride, d.value_head_size, keys.size(), buffers.valuesTransposed);
  for (int64_t j = 0; j < keys.size(); ++j)
    tiles.widen(at(key, d.dtype, j * d.key_stride), d.dtype, d.head_size, buffers.keys + j * headStride);
}

void AttentionBackward::loadQueries(const Buffers &buffers, int64_t batch, int64_t head, Span queries) {
  for (int64_t i = 0; i < queries.size(); ++i) {
    const int64_t row = queryRow(batch, queries.begin + i);
    tiles.widen(at(o.query, d.dtype, row * d.query_stride + head * d.head_size), d.dtype, d.head_size,
                buffers.queries + i * headStride);
    tiles.widen(at(o.gradient, d.dtype, row * d.gradient_stride + head * d.value_head_size), d.dtype, d.value_head_size,
                buffers.gradients + i * valueStride);
  }
}

void AttentionBackward::storeKeyGradients(const Buffers &buffers, int64_t batch, int64_t kvHead, Span keys) {
  for (int64_t j = 0; j < keys.size(); ++j) {
    const int64_t row = keyRow(batch, keys.begin + j);
    tiles.narrow(buffers.keyGrad + j * headStride, d.head_size,
                 at(o.keyGrad, d.dtype_kv_grad, row * d.key_grad_stride + kvHead * d.head_size), d.dtype_kv_grad);
    tiles.narrow(buffers.valueGrad + j * valueStride, d.value_head_size,
                 at(o.valueGrad, d.dtype_kv_grad, row * d.value_grad_stride + kvHead * d.value_head_size),
                 d.dtype_kv_grad);
  }
}

void AttentionBackward::zeroQueryGradients(int64_t batch, int64_t head, Span queries) {
  for (int64_t i = queries.begin; i < queries.end; ++i)
    std::fill_n(queryGradSums(batch, head, i), d.head_size, 0.0f);
}

void AttentionBackward::storeQueryGradients(int64_t batch, int64_t head, Span queries) {
  if (d.dtype == DROVER_F32)
    return;
  for (int64_t i = queries.begin; i < queries.end; ++i)
    tiles.narrow(queryGradSums(batch, head, i), d.head_size,
                 at(o.queryGrad, d.dtype, queryRow(batch, i) * d.query_grad_stride + head * d.head_size), d.dtype);
}

void AttentionBackward::multiply(int64_t m, int64_t n, int64_t k, const float *a, int64_t aRow, int64_t aDepth,
                                 const float *b, int64_t bPanel, int64_t bRow, float *c, int64_t ldc, bool accumulate,
                                 const TileRange *columns, const TileRange *depth) {
  tiles.gemm({m, n, k, a, tiles.mr * aRow, aRow, aDepth, b, bPanel, bRow, c, ldc, accumulate, columns, depth});
}

/// Probabilities into `scores`, the gradient of <q, k> into `scoreGrads`; zero where a pair does not take part.
void AttentionBackward::scoreTile(Buffers &buffers, int64_t batch, int64_t head, Span queries, Span keys) {
  const TileRange *seen = buffers.shape.keysOfGroups();
  multiply(queries.size(), keys.size(), d.head_size, buffers.queries, headStride, 1, buffers.keysTransposed,
           d.head_size * tiles.nr, tiles.nr, buffers.scores, scoreStride, false, seen, nullptr);
  multiply(queries.size(), keys.size(), d.value_head_size, buffers.gradients, valueStride, 1, buffers.valuesTransposed,
           d.value_head_size * tiles.nr, tiles.nr, buffers.scoreGrads, scoreStride, false, seen, nullptr);
  const bool hasBias = mask.hasBias();
  const int32_t padded = roundUp(keys.size(), tiles.nr);
  for (int64_t i = 0; i < queries.size(); ++i) {
    if (hasBias)
      mask.biasRow(batch, head, queries.begin + i, keys, padded, buffers.bias);
    const TileRange range = buffers.shape.row(i);
    const ScoreRow row = {
        buffers.scores + i * scoreStride, hasBias ? buffers.bias : nullptr, range.begin, range.end, padded,
        static_cast<float>(d.scale),      static_cast<float>(d.softcap)};
    const int64_t statistic = (batch * d.heads + head) * d.queries + queries.begin + i;
    tiles.softmaxGradRow(row, o.logSumExp[statistic], o.delta[statistic], buffers.scoreGrads + i * scoreStride);
  }
}

void AttentionBackward::addTile(Buffers &buffers, int64_t batch, int64_t head, Span queries, Span keys, int sums) {
  buffers.shape.set(tiles, mask, queries, keys, 1);
  loadQueries(buffers, batch, head, queries);
  scoreTile(buffers, batch, head, queries, keys);
  if (sums & KeySums) {
    const TileRange *seen = buffers.shape.queriesOfGroups();
    multiply(keys.size(), d.value_head_size, queries.size(), buffers.scores, 1, scoreStride, buffers.gradients,
             tiles.nr, valueStride, buffers.valueGrad, valueStride, true, nullptr, seen);
    multiply(keys.size(), d.head_size, queries.size(), buffers.scoreGrads, 1, scoreStride, buffers.queries, tiles.nr,
             headStride, buffers.keyGrad, headStride, true, nullptr, seen);
  }
  if (sums & QuerySums)
    multiply(queries.size(), d.head_size, keys.size(), buffers.scoreGrads, scoreStride, 1, buffers.keys, tiles.nr,
             headStride, queryGradSums(batch, head, queries.begin), queryGradSumStride(), true, nullptr,
             buffers.shape.keysOfGroups());
}

} // namespace

extern "C" void drover_rt_attention_grad(const drover_call *call, const drover_attention *desc, const void *query,
                                         const void *key, const void *value, const void *result,
                                         const void *log_sum_exp, const void *gradient, const void *mask,
                                         const void *key_mask, const void *documents, const int64_t *query_index,
                                         void *query_grad, void *key_grad, void *value_grad, void *workspace) {
  if (call && call->device)
    return call->device->attentionGrad(*desc, query, key, value, result, log_sum_exp, gradient, query_grad, key_grad,
                                       value_grad, workspace);
  checkAttention(*desc);
  checkFloatType("attention gradient", desc->dtype_kv_grad);
  const AttentionMask masks(*desc, mask, key_mask, documents, query_index);
  Operands operands = {query,      key,
                       value,      result,
                       gradient,   static_cast<const float *>(log_sum_exp),
                       query_grad, key_grad,
                       value_grad, static_cast<float *>(workspace),
                       nullptr};
  operands.queryGradSums = operands.delta + desc->batch * desc->queries * desc->heads;
  AttentionBackward(*desc, masks, operands).run(call);
}
