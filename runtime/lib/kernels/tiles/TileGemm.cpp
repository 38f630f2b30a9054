//===- TileGemm.cpp - products of tiles -----------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "kernels/tiles/Vector.h"

namespace drover::rt::DROVER_RT_ISA {
namespace {

/// c[M rows, `columns`] (+)= sum over p < k of a(i, p) b[p, :]. Each accumulator is one chain of fused multiply-adds,
/// or of products of pairs.
template <int M, int V, bool DepthContiguous, bool Pairs>
void registerTile(int64_t k, const float *a, int64_t aStride, const float *b, int64_t bRow, float *c, int64_t ldc,
                  bool accumulate, int64_t columns) {
  // The tile of C comes from far while the products are formed.
  for (int i = 0; i < M; ++i)
    __builtin_prefetch(c + i * ldc, 1);
  if (V * lanes > 16)
    for (int i = 0; i < M; ++i)
      __builtin_prefetch(c + i * ldc + 16, 1);
  Vec sum[M][V];
  for (int i = 0; i < M; ++i)
    for (int v = 0; v < V; ++v)
      sum[i][v] = Vec{};
#pragma GCC unroll 4
  for (int64_t p = 0; p < k; ++p) {
    Vec row[V];
    for (int v = 0; v < V; ++v)
      row[v] = load(b + p * bRow + v * lanes);
    for (int i = 0; i < M; ++i) {
      const Vec factor = splat(DepthContiguous ? a[i * aStride + p] : a[p * aStride + i]);
      for (int v = 0; v < V; ++v)
        sum[i][v] = Pairs ? dotPairs(sum[i][v], factor, row[v]) : sum[i][v] + factor * row[v];
    }
  }
  if (columns == V * lanes) {
    for (int i = 0; i < M; ++i)
      for (int v = 0; v < V; ++v) {
        float *to = c + i * ldc + v * lanes;
        store(to, accumulate ? load(to) + sum[i][v] : sum[i][v]);
      }
    return;
  }
  for (int i = 0; i < M; ++i) {
    float part[V * lanes];
    for (int v = 0; v < V; ++v)
      store(part + v * lanes, sum[i][v]);
    for (int64_t j = 0; j < columns; ++j)
      c[i * ldc + j] = accumulate ? c[i * ldc + j] + part[j] : part[j];
  }
}

using RegisterTile = void (*)(int64_t, const float *, int64_t, const float *, int64_t, float *, int64_t, bool, int64_t);

template <int V, bool DepthContiguous, bool Pairs>
constexpr RegisterTile registerTiles[] = {
    registerTile<1, V, DepthContiguous, Pairs>,  registerTile<2, V, DepthContiguous, Pairs>,
    registerTile<3, V, DepthContiguous, Pairs>,  registerTile<4, V, DepthContiguous, Pairs>,
    registerTile<5, V, DepthContiguous, Pairs>,  registerTile<6, V, DepthContiguous, Pairs>,
#if DROVER_RT_LANES == 16
    registerTile<7, V, DepthContiguous, Pairs>,  registerTile<8, V, DepthContiguous, Pairs>,
    registerTile<9, V, DepthContiguous, Pairs>,  registerTile<10, V, DepthContiguous, Pairs>,
    registerTile<11, V, DepthContiguous, Pairs>, registerTile<12, V, DepthContiguous, Pairs>,
#endif
};

/// By number of rows, for one or two vectors of columns.
struct RegisterTiles {
  const RegisterTile *narrow, *wide;
};

void multiply(const TileGemm &tile, int64_t aStride, RegisterTiles kernels) {
  const int64_t groups = (tile.m + tileRows - 1) / tileRows;
  // The panel of B stays in the first-level cache while the groups of A pass by.
  for (int64_t j = 0; j < tile.n; j += tileColumns) {
    const int64_t columns = tile.n - j < tileColumns ? tile.n - j : tileColumns;
    const float *panel = tile.b + (j / tileColumns) * tile.bPanel;
    const RegisterTile *byRows = columns > lanes ? kernels.wide : kernels.narrow;
    // Each group fetches its share of the next panel, which may lie beyond the second-level cache.
    const int64_t ahead = tile.bRow == tileColumns && j + tileColumns < tile.n ? tile.k * tileColumns : 0;
    const int64_t share = (ahead / groups + 15) / 16 * 16;
    for (int64_t i = 0, group = 0; i < tile.m; i += tileRows, ++group) {
      for (int64_t line = group * share; line < (group + 1) * share && line < ahead; line += 16)
        __builtin_prefetch(panel + tile.bPanel + line, 0, 2);
      if (tile.columns && (j + columns <= tile.columns[group].begin || j >= tile.columns[group].end))
        continue;
      int64_t first = 0, last = tile.k;
      if (tile.depth) {
        first = tile.depth[group].begin;
        last = tile.depth[group].end > first ? tile.depth[group].end : first;
      }
      const int64_t rows = tile.m - i < tileRows ? tile.m - i : tileRows;
      byRows[rows - 1](last - first, tile.a + group * tile.aGroup + first * tile.aDepth, aStride,
                       panel + first * tile.bRow, tile.bRow, tile.c + i * tile.ldc + j, tile.ldc, tile.accumulate,
                       columns);
    }
  }
}

} // namespace

void gemmTile(const TileGemm &tile) {
  if (tile.aDepth == 1 && tile.aRow != 1)
    return multiply(tile, tile.aRow, {registerTiles<1, true, false>, registerTiles<2, true, false>});
  multiply(tile, tile.aDepth, {registerTiles<1, false, false>, registerTiles<2, false, false>});
}

#if defined(__AVX512BF16__) || defined(DROVER_RT_EMULATE_PAIRS)
void gemmPairsTile(const TileGemm &tile) {
  multiply(tile, tile.aDepth, {registerTiles<1, false, true>, registerTiles<2, false, true>});
}
#else
constexpr void (*gemmPairsTile)(const TileGemm &) = nullptr;
#endif

} // namespace drover::rt::DROVER_RT_ISA

#define DROVER_RT_TABLE_NAME_(isa) tileKernels##isa
#define DROVER_RT_TABLE_NAME(isa) DROVER_RT_TABLE_NAME_(isa)

namespace drover::rt {
extern const TileKernels DROVER_RT_TABLE_NAME(DROVER_RT_ISA);
const TileKernels DROVER_RT_TABLE_NAME(DROVER_RT_ISA) = {
    DROVER_RT_ISA::lanes == 8 ? "avx2"
    : DROVER_RT_ISA::hasPairs ? "avx512_bf16"
                              : "avx512",
    DROVER_RT_ISA::tileRows,
    DROVER_RT_ISA::tileColumns,
    DROVER_RT_ISA::gemmTile,
    DROVER_RT_ISA::packTileA,
    DROVER_RT_ISA::packTileB,
    DROVER_RT_ISA::gemmPairsTile,
    DROVER_RT_ISA::packTileAPairs,
    DROVER_RT_ISA::packTileBPairs,
    DROVER_RT_ISA::widenRow,
    DROVER_RT_ISA::narrowRow,
    DROVER_RT_ISA::addToRow,
    DROVER_RT_ISA::scaleRow,
    DROVER_RT_ISA::dotRows,
    DROVER_RT_ISA::softmaxRow,
    DROVER_RT_ISA::softmaxGradRow,
};
} // namespace drover::rt
