//===- Tiles.h - kernels on tiles that fit a cache --------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The instruction-set dependent layer: each function exists once per instruction set, compiled from the same source,
// and is reached through a table. Everything above it is plain C++.
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_KERNELS_TILES_H
#define DROVER_RT_KERNELS_TILES_H

#include <cstdint>

namespace drover::rt {

/// [begin, end) of a tile's columns or depth that a group of rows needs.
struct TileRange {
  int32_t begin, end;
};

/// C[m, n] (+)= A[m, k] B[k, n] in f32. Element (i, p) of A is a[(i / mr) * aGroup + (i % mr) * aRow + p * aDepth],
/// one of aRow and aDepth being 1. Column j of B is b[(j / nr) * bPanel + p * bRow + j % nr], readable up to a whole
/// panel. An element's sum runs over p in order, whatever m and n are: tiles may be cut anywhere.
struct TileGemm {
  int64_t m, n, k;
  const float *a;
  int64_t aGroup, aRow, aDepth;
  const float *b;
  int64_t bPanel, bRow;
  float *c;
  int64_t ldc;
  bool accumulate;
  /// Per group of mr rows, or null: columns outside are not computed (C keeps what it has), depth outside is skipped.
  const TileRange *columns;
  const TileRange *depth;
};

/// One row of scores through scale, cap, bias and exclusion: see TileRows.cpp.
struct ScoreRow {
  float *scores;      // in: <q, k>; out: as the function says
  const float *bias;  // added to the capped score, -inf excludes; null: none
  int32_t begin, end; // columns that take part
  int32_t size;       // columns of the row; a multiple of 16 is readable and written
  float scale;
  float softcap; // 0: none
};

struct TileKernels {
  const char *name;
  /// Rows and columns of the register tile.
  int mr, nr;

  void (*gemm)(const TileGemm &tile);

  /// Packs A[m, k] (element (i, p) at src[i * stride + p], or src[p * stride + i] where transposed) into groups of mr
  /// rows, [m / mr][k][mr], and B[k, n] into panels of nr columns, [n / nr][k][nr]; the last one is filled with zeros.
  /// dtype is that of the source.
  void (*packA)(const void *src, int dtype, bool transposed, int64_t stride, int64_t m, int64_t k, float *dst);
  void (*packB)(const void *src, int dtype, bool transposed, int64_t stride, int64_t k, int64_t n, float *dst);

  /// The same on bf16 operands: an element of a and b is then a word of two that follow each other in the depth, k
  /// counts words, A is packed. Null where the processor has no such product. In packing k counts elements.
  void (*gemmPairs)(const TileGemm &tile);
  void (*packAPairs)(const void *src, bool transposed, int64_t stride, int64_t m, int64_t k, float *dst);
  void (*packBPairs)(const void *src, bool transposed, int64_t stride, int64_t k, int64_t n, float *dst);

  /// A row of n elements to and from f32; bf16 is rounded to nearest even.
  void (*widen)(const void *src, int dtype, int64_t n, float *dst);
  void (*narrow)(const float *src, int64_t n, void *dst, int dtype);
  /// dst += src, dst of `dtype`, added in f32.
  void (*addTo)(const float *src, int64_t n, void *dst, int dtype);
  /// dst *= factor.
  void (*scaleRow)(float *dst, int64_t n, float factor);
  float (*dot)(const float *a, const float *b, int64_t n);

  /// Scores to exp(score - maximum), with the running maximum and sum of the row moved on; returns the factor by which
  /// what was accumulated under the former maximum shrinks.
  float (*softmaxRow)(const ScoreRow &row, float &maximum, float &sum);
  /// Scores to probabilities exp(score - logSumExp); `gradient`, in: the gradient of the probabilities; out: that of
  /// <q, k>, i.e. p * (gradient - delta) * scale * (1 - (capped / softcap)^2).
  void (*softmaxGradRow)(const ScoreRow &row, float logSumExp, float delta, float *gradient);
};

/// The best table for this processor. DROVER_RT_ISA=avx2|avx512 in the environment chooses a lower one.
const TileKernels &tileKernels();
/// From now on `table`; null: the best again. For tests.
void useTileKernels(const TileKernels *table);

/// Whether a table computes what the reference does, within rounding, on a small example of each function.
bool agreesWith(const TileKernels &candidate, const TileKernels &reference);

extern const TileKernels tileKernelsAvx2;
extern const TileKernels tileKernelsAvx512;
extern const TileKernels tileKernelsAvx512Bf16;

} // namespace drover::rt

#endif // DROVER_RT_KERNELS_TILES_H
