//===- TilePack.cpp - operands into the layout of the register tile -------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "kernels/tiles/Vector.h"

#include <immintrin.h>

namespace drover::rt::DROVER_RT_ISA {
namespace {

inline float widenOne(float value) { return value; }
inline float widenOne(uint16_t value) { return floatOf(value); }
inline __m256 widenEight(const float *from) { return _mm256_loadu_ps(from); }
inline __m256 widenEight(const uint16_t *from) {
  const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
inline Vec widenVec(const float *from) { return load(from); }
inline Vec widenVec(const uint16_t *from) { return loadBf16(from); }

inline void transpose8(__m256 row[8]) {
  __m256 pair[8], quad[8];
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_ps(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    quad[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
    quad[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xee);
    quad[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
    quad[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    row[i] = _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x20);
    row[i + 4] = _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x31);
  }
}

/// The first Width (4, 6 or 8) floats of a vector.
template <int Width> inline void storeFirst(float *to, __m256 value) {
  if (Width == 8)
    return _mm256_storeu_ps(to, value);
  _mm_storeu_ps(to, _mm256_castps256_ps128(value));
  if (Width == 6)
    _mm_storel_pi(reinterpret_cast<__m64 *>(to + 4), _mm256_extractf128_ps(value, 1));
}

/// dst[p * Group + i] = src[i * stride + p] for i < Width, p < k; rows from `rows` on are zeros.
template <int Width, int Group, typename T>
void transposeRows(const T *src, int64_t stride, int64_t rows, int64_t k, float *dst) {
  int64_t p = 0;
  for (; p + 8 <= k; p += 8) {
    __m256 block[8];
    for (int i = 0; i < 8; ++i)
      block[i] = i < Width && i < rows ? widenEight(src + i * stride + p) : _mm256_setzero_ps();
    transpose8(block);
    for (int q = 0; q < 8; ++q)
      storeFirst<Width>(dst + (p + q) * Group, block[q]);
  }
  for (; p < k; ++p)
    for (int i = 0; i < Width; ++i)
      dst[p * Group + i] = i < rows ? widenOne(src[i * stride + p]) : 0.0f;
}

/// One group or panel of Group rows of the transposed form.
template <int Group, typename T>
void transposeGroup(const T *src, int64_t stride, int64_t rows, int64_t k, float *dst) {
  constexpr int tail = Group % 8;
  for (int i = 0; i + 8 <= Group; i += 8)
    transposeRows<8, Group>(src + i * stride, stride, rows - i, k, dst + i);
  if constexpr (tail != 0)
    transposeRows<tail, Group>(src + (Group - tail) * stride, stride, rows - (Group - tail), k, dst + Group - tail);
}

/// dst[p * Group + i] = src[p * stride + i] for i < rows, zero up to Group.
template <int Group, typename T> void copyGroup(const T *src, int64_t stride, int64_t rows, int64_t k, float *dst) {
  if (rows >= Group) {
    for (int64_t p = 0; p < k; ++p, src += stride, dst += Group) {
      int i = 0;
      for (; i + lanes <= Group; i += lanes)
        store(dst + i, widenVec(src + i));
      for (; i < Group; ++i)
        dst[i] = widenOne(src[i]);
    }
    return;
  }
  for (int64_t p = 0; p < k; ++p, src += stride, dst += Group)
    for (int i = 0; i < Group; ++i)
      dst[i] = i < rows ? widenOne(src[i]) : 0.0f;
}

/// `contiguous`: the packed index (rows of A, columns of B) is the contiguous one of the source.
template <int Group, typename T>
void pack(const T *src, bool contiguous, int64_t stride, int64_t size, int64_t k, float *dst) {
  for (int64_t i = 0; i < size; i += Group, dst += Group * k) {
    if (contiguous)
      copyGroup<Group>(src + i, stride, size - i, k, dst);
    else
      transposeGroup<Group>(src + i * stride, stride, size - i, k, dst);
  }
}

} // namespace

void packTileA(const void *src, int dtype, bool transposed, int64_t stride, int64_t m, int64_t k, float *dst) {
  if (dtype == DROVER_BF16)
    return pack<tileRows>(static_cast<const uint16_t *>(src), transposed, stride, m, k, dst);
  pack<tileRows>(static_cast<const float *>(src), transposed, stride, m, k, dst);
}

void packTileB(const void *src, int dtype, bool transposed, int64_t stride, int64_t k, int64_t n, float *dst) {
  if (dtype == DROVER_BF16)
    return pack<tileColumns>(static_cast<const uint16_t *>(src), !transposed, stride, n, k, dst);
  pack<tileColumns>(static_cast<const float *>(src), !transposed, stride, n, k, dst);
}

namespace {

/// to[j] = the pair of low[j * step] and high[j * step] for j < size, zero up to Group; no `high`: zero.
template <int Group>
void joinRows(const uint16_t *low, const uint16_t *high, int64_t step, int64_t size, uint32_t *to) {
  if (size >= Group && step == 1 && high) {
    for (int j = 0; j < Group; ++j)
      to[j] = low[j] | uint32_t(high[j]) << 16;
    return;
  }
  for (int j = 0; j < Group; ++j)
    to[j] = j < size ? low[j * step] | (high ? uint32_t(high[j * step]) << 16 : 0) : 0;
}

/// As `pack` for words of two bf16 that follow each other in the depth; an odd last one is paired with zero.
template <int Group>
void packPairs(const uint16_t *src, bool contiguous, int64_t stride, int64_t size, int64_t k, float *dst) {
  // Where the source has all pairs side by side they move as words; moves keep bits.
  if (!contiguous && stride % 2 == 0 && k % 2 == 0 && reinterpret_cast<uintptr_t>(src) % 4 == 0)
    return pack<Group>(reinterpret_cast<const float *>(src), false, stride / 2, size, k / 2, dst);
  const int64_t step = contiguous ? 1 : stride, depthStep = contiguous ? stride : 1;
  uint32_t *to = reinterpret_cast<uint32_t *>(dst);
  for (int64_t i = 0; i < size; i += Group)
    for (int64_t p = 0; p < k; p += 2, to += Group) {
      const uint16_t *low = src + i * step + p * depthStep;
      joinRows<Group>(low, p + 1 < k ? low + depthStep : nullptr, step, size - i, to);
    }
}

} // namespace

void packTileAPairs(const void *src, bool transposed, int64_t stride, int64_t m, int64_t k, float *dst) {
  packPairs<tileRows>(static_cast<const uint16_t *>(src), transposed, stride, m, k, dst);
}

void packTileBPairs(const void *src, bool transposed, int64_t stride, int64_t k, int64_t n, float *dst) {
  packPairs<tileColumns>(static_cast<const uint16_t *>(src), !transposed, stride, n, k, dst);
}

void widenRow(const void *src, int dtype, int64_t n, float *dst) {
  int64_t i = 0;
  if (dtype == DROVER_BF16) {
    const uint16_t *from = static_cast<const uint16_t *>(src);
    for (; i + lanes <= n; i += lanes)
      store(dst + i, loadBf16(from + i));
    for (; i < n; ++i)
      dst[i] = floatOf(from[i]);
    return;
  }
  const float *from = static_cast<const float *>(src);
  for (; i + lanes <= n; i += lanes)
    store(dst + i, load(from + i));
  for (; i < n; ++i)
    dst[i] = from[i];
}

void narrowRow(const float *src, int64_t n, void *dst, int dtype) {
  if (dtype != DROVER_BF16)
    return widenRow(src, DROVER_F32, n, static_cast<float *>(dst));
  uint16_t *to = static_cast<uint16_t *>(dst);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    storeBf16(to + i, load(src + i));
  for (; i < n; ++i)
    to[i] = bf16Of(src[i]);
}

void addToRow(const float *src, int64_t n, void *dst, int dtype) {
  int64_t i = 0;
  if (dtype == DROVER_BF16) {
    uint16_t *to = static_cast<uint16_t *>(dst);
    for (; i + lanes <= n; i += lanes)
      storeBf16(to + i, loadBf16(to + i) + load(src + i));
    for (; i < n; ++i)
      to[i] = bf16Of(floatOf(to[i]) + src[i]);
    return;
  }
  float *to = static_cast<float *>(dst);
  for (; i + lanes <= n; i += lanes)
    store(to + i, load(to + i) + load(src + i));
  for (; i < n; ++i)
    to[i] += src[i];
}

} // namespace drover::rt::DROVER_RT_ISA
