//===- TileRows.cpp - rows of a tile of attention scores ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "kernels/tiles/Vector.h"

namespace drover::rt::DROVER_RT_ISA {
namespace {

/// What a row's scores go through. Plain: a positive scale and nothing else, the common case.
template <bool Plain> class Scores {
public:
  explicit Scores(const ScoreRow &row)
      : row(row), excluded(splat(-__builtin_inff())), inverseCap(row.softcap != 0.0f ? 1.0f / row.softcap : 0.0f) {}

  /// The columns of a whole vector: capped(scale * raw) + bias, -inf where one does not take part. `slope` gets the
  /// derivative of the capped score by the raw one.
  Vec at(int32_t column, Vec &slope) const {
    Vec score = load(row.scores + column) * row.scale;
    slope = splat(row.scale);
    if (Plain)
      return isInside(column) ? score : only(column, score);
    if (row.softcap != 0.0f) {
      const Vec bounded = hyperbolicTangent(score * inverseCap);
      score = bounded * row.softcap;
      slope = (1.0f - bounded * bounded) * row.scale;
    }
    if (row.bias) {
      const Vec bias = load(row.bias + column);
      score = bias == excluded ? excluded : score + bias;
    }
    return only(column, score);
  }

  bool isInside(int32_t column) const { return column >= row.begin && column + lanes <= row.end; }

  /// The columns to visit, in whole vectors.
  int32_t first() const { return row.begin / lanes * lanes; }
  int32_t last() const { return row.end; }

private:
  Vec only(int32_t column, Vec score) const {
    const IntVec index = iota() + column;
    return ((index >= row.begin) & (index < row.end)) ? score : excluded;
  }

  const ScoreRow &row;
  const Vec excluded;
  const float inverseCap;
};

bool isPlain(const ScoreRow &row) { return row.softcap == 0.0f && !row.bias && row.scale > 0.0f; }

void zero(float *row, int32_t begin, int32_t end) {
  for (int32_t column = begin; column < end; column += lanes)
    store(row + column, Vec{});
}

/// The row without the vectors that are visited.
void zeroOutside(float *row, int32_t first, int32_t last, int32_t size) {
  zero(row, 0, first);
  zero(row, last <= first ? first : (last + lanes - 1) / lanes * lanes, size);
}

} // namespace

void scaleRow(float *dst, int64_t n, float factor) {
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    store(dst + i, load(dst + i) * factor);
  for (; i < n; ++i)
    dst[i] *= factor;
}

float dotRows(const float *a, const float *b, int64_t n) {
  Vec sums[4] = {};
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes)
    for (int part = 0; part < 4; ++part)
      sums[part] += load(a + i + part * lanes) * load(b + i + part * lanes);
  for (; i + lanes <= n; i += lanes)
    sums[0] += load(a + i) * load(b + i);
  float sum = sumOf((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; i < n; ++i)
    sum += a[i] * b[i];
  return sum;
}

namespace {

template <bool Plain> float softmax(const ScoreRow &row, float &maximum, float &sum) {
  const Scores<Plain> scores(row);
  const float none = -__builtin_inff();
  Vec largest = splat(none), slope;
  for (int32_t column = scores.first(); column < scores.last(); column += lanes) {
    const Vec score = scores.at(column, slope);
    // Plain scores are cheaper computed again than stored.
    if (!Plain)
      store(row.scores + column, score);
    largest = maxOf(score, largest);
  }
  zeroOutside(row.scores, scores.first(), scores.last(), row.size);

  const float former = maximum, here = largestOf(largest);
  maximum = here > former ? here : former;
  // With nothing above -inf the row holds exclusions, whose exponential is 0 against any reference, and NaNs.
  const Vec reference = splat(maximum == none ? 0.0f : maximum);
  Vec total = {};
  for (int32_t column = scores.first(); column < scores.last(); column += lanes) {
    const Vec score = Plain ? scores.at(column, slope) : load(row.scores + column);
    const Vec p = exponential(score - reference);
    store(row.scores + column, p);
    total += p;
  }
  const float factor = former == maximum ? 1.0f : former == none ? 0.0f : exponential(splat(former - maximum))[0];
  sum = sum * factor + sumOf(total);
  return factor;
}

template <bool Plain> void softmaxGrad(const ScoreRow &row, float logSumExp, float delta, float *gradient) {
  const Scores<Plain> scores(row);
  for (int32_t column = scores.first(); column < scores.last(); column += lanes) {
    Vec slope;
    const Vec p = exponential(scores.at(column, slope) - logSumExp);
    const Vec change = p * (load(gradient + column) - delta) * slope;
    store(row.scores + column, p);
    // Excluded columns may hold anything, infinities included.
    store(gradient + column, Plain && scores.isInside(column) ? change : (p == splat(0.0f) ? p : change));
  }
  zeroOutside(row.scores, scores.first(), scores.last(), row.size);
  zeroOutside(gradient, scores.first(), scores.last(), row.size);
}

} // namespace

float softmaxRow(const ScoreRow &row, float &maximum, float &sum) {
  return isPlain(row) ? softmax<true>(row, maximum, sum) : softmax<false>(row, maximum, sum);
}

void softmaxGradRow(const ScoreRow &row, float logSumExp, float delta, float *gradient) {
  if (logSumExp == -__builtin_inff()) {
    zero(row.scores, 0, row.size);
    zero(gradient, 0, row.size);
    return;
  }
  if (isPlain(row))
    return softmaxGrad<true>(row, logSumExp, delta, gradient);
  softmaxGrad<false>(row, logSumExp, delta, gradient);
}

} // namespace drover::rt::DROVER_RT_ISA
