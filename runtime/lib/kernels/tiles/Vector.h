//===- Vector.h - one vector of floats --------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Compiled once per instruction set, in a namespace of its own. No standard headers with inline functions here: the
// linker keeps one copy of such a function, and it must not be one that needs a better processor.
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_KERNELS_VECTOR_H
#define DROVER_RT_KERNELS_VECTOR_H

#include "drover/rt/abi.h"
#include "kernels/tiles/Tiles.h"

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace drover::rt::DROVER_RT_ISA {

// The unit tests compile the wide form for AVX2 too (DROVER_RT_LANES), so that it is tested on any machine.
#ifndef DROVER_RT_LANES
#ifdef __AVX512F__
#define DROVER_RT_LANES 16
#else
#define DROVER_RT_LANES 8
#endif
#endif
constexpr int lanes = DROVER_RT_LANES;

typedef float Vec __attribute__((vector_size(4 * lanes)));
typedef int32_t IntVec __attribute__((vector_size(4 * lanes)));
typedef uint32_t BitVec __attribute__((vector_size(4 * lanes)));
typedef uint16_t HalfVec __attribute__((vector_size(2 * lanes)));

// The same without alignment, for memory.
typedef float MemVec __attribute__((vector_size(4 * lanes), aligned(4), may_alias));
typedef uint16_t MemHalfVec __attribute__((vector_size(2 * lanes), aligned(2), may_alias));

inline Vec load(const float *from) { return *reinterpret_cast<const MemVec *>(from); }
inline void store(float *to, Vec value) { *reinterpret_cast<MemVec *>(to) = value; }

inline Vec splat(float x) {
#if DROVER_RT_LANES == 16
  return Vec{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
#else
  return Vec{x, x, x, x, x, x, x, x};
#endif
}

inline IntVec iota() {
#if DROVER_RT_LANES == 16
  return IntVec{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#else
  return IntVec{0, 1, 2, 3, 4, 5, 6, 7};
#endif
}

/// As the machine's instruction: b where either is not a number.
inline Vec maxOf(Vec a, Vec b) { return a > b ? a : b; }
inline Vec minOf(Vec a, Vec b) { return a < b ? a : b; }

inline float sumOf(Vec v) {
  float part[lanes];
  store(part, v);
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane)
      part[lane] += part[lane + width];
  return part[0];
}

inline float largestOf(Vec v) {
  float part[lanes];
  store(part, v);
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane)
      part[lane] = part[lane] > part[lane + width] ? part[lane] : part[lane + width];
  return part[0];
}

inline float floatOf(uint16_t bf16) { return __builtin_bit_cast(float, uint32_t(bf16) << 16); }

inline uint16_t bf16Of(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  if (value != value)
    return uint16_t((bits >> 16) | 0x40);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline Vec loadBf16(const uint16_t *from) {
  const HalfVec half = *reinterpret_cast<const MemHalfVec *>(from);
  return (Vec)(__builtin_convertvector(half, BitVec) << 16);
}

/// Round to nearest even; a quiet NaN stays one.
inline void storeBf16(uint16_t *to, Vec value) {
  const BitVec bits = (BitVec)value;
  const BitVec rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const BitVec quiet = (bits >> 16) | 0x40;
  const BitVec chosen = (value != value) ? quiet : rounded;
  *reinterpret_cast<MemHalfVec *>(to) = __builtin_convertvector(chosen, HalfVec);
}

/// Whether there is a product of bf16 pairs: the processor's, or in the unit tests the formula.
#if defined(__AVX512BF16__) || defined(DROVER_RT_EMULATE_PAIRS)
constexpr bool hasPairs = true;
#else
constexpr bool hasPairs = false;
#endif

/// sum + a.low * b.low + a.high * b.high in each lane, a lane of a and b being two bf16.
inline Vec dotPairs(Vec sum, Vec a, Vec b) {
#ifdef __AVX512BF16__
  return (Vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
#else
  const Vec lowA = (Vec)((BitVec)a << 16), lowB = (Vec)((BitVec)b << 16);
  const Vec highA = (Vec)((BitVec)a & 0xffff0000u), highB = (Vec)((BitVec)b & 0xffff0000u);
  return (sum + lowA * lowB) + highA * highB;
#endif
}

/// e^x for x up to 88, within 1 ulp or so; exactly 0 below -87.3 (no denormals), NaN for NaN. x = n ln2 + r with ln2 in
/// two parts, e^r = 1 + r + r^2 Q(r), Q fitted on [-ln2/2, ln2/2] (relative error 3e-9).
inline Vec exponential(Vec x) {
  const Vec tiny = splat(-87.33f);
  const Vec magic = splat(12582912.0f); // 1.5 * 2^23: the sum's low bits are the rounded integer
  const Vec clamped = maxOf(tiny, x);
  const Vec shifted = clamped * 1.44269504f + magic;
  const Vec n = shifted - magic;
  const Vec r = (clamped - n * 0.693145752f) - n * 1.42860677e-6f;
  Vec q = splat(0.0013814467f);
  q = q * r + 0.0083687808f;
  q = q * r + 0.0416683927f;
  q = q * r + 0.1666651964f;
  q = q * r + 0.4999999404f;
  const Vec tail = q * (r * r) + r;
  // The shift drops all of the magic number and leaves n in the exponent.
  const Vec power = (Vec)(((BitVec)shifted << 23) + 0x3f800000u);
  const Vec value = tail * power + power;
  return x < tiny ? Vec{} : value;
}

/// tanh x: below 0.625 x + x^3 P(x^2) (relative error 4e-9), above (1 - e) / (1 + e) with e = e^-2|x|.
inline Vec hyperbolicTangent(Vec x) {
  const Vec magnitude = (Vec)((BitVec)x & 0x7fffffffu);
  const Vec square = x * x;
  Vec p = splat(-0.0057170447f);
  p = p * square + 0.0206505861f;
  p = p * square + -0.0537434965f;
  p = p * square + 0.1333149076f;
  p = p * square + -0.3333328366f;
  const Vec small = x + x * (square * p);
  const Vec e = exponential(magnitude * -2.0f);
  const Vec large = (1.0f - e) / (1.0f + e);
  const Vec signedLarge = (Vec)((BitVec)large | ((BitVec)x & 0x80000000u));
  return magnitude < splat(0.625f) ? small : signedLarge;
}

void packTileA(const void *src, int dtype, bool transposed, int64_t stride, int64_t m, int64_t k, float *dst);
void packTileB(const void *src, int dtype, bool transposed, int64_t stride, int64_t k, int64_t n, float *dst);
void packTileAPairs(const void *src, bool transposed, int64_t stride, int64_t m, int64_t k, float *dst);
void packTileBPairs(const void *src, bool transposed, int64_t stride, int64_t k, int64_t n, float *dst);
void widenRow(const void *src, int dtype, int64_t n, float *dst);
void narrowRow(const float *src, int64_t n, void *dst, int dtype);
void addToRow(const float *src, int64_t n, void *dst, int dtype);
void scaleRow(float *dst, int64_t n, float factor);
float dotRows(const float *a, const float *b, int64_t n);
float softmaxRow(const ScoreRow &row, float &maximum, float &sum);
void softmaxGradRow(const ScoreRow &row, float logSumExp, float delta, float *gradient);

/// Rows and vectors of the register tile: the accumulators, a row of B and one of A fill the registers (16, or 32).
constexpr int tileRows = lanes == 8 ? 6 : 12;
constexpr int tileVectors = 2;
constexpr int tileColumns = tileVectors * lanes;

} // namespace drover::rt::DROVER_RT_ISA

#endif // DROVER_RT_KERNELS_VECTOR_H
