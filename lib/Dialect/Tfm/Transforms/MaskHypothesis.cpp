//===- MaskHypothesis.cpp - what a mask computes --------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "MaskHypothesis.h"
#include <cmath>

using namespace drover;
using namespace drover::tfm;

double MaskSample::at(int64_t b, int64_t h, int64_t i, int64_t j) const {
  int64_t index = 0, at[] = {b, h, i, j};
  for (unsigned d = 0; d < 4; ++d)
    index = index * mask.shape[d] + (mask.shape[d] == 1 ? 0 : at[d]);
  double value = mask.asDouble(index);
  if (mask.kind == ElementKind::I1)
    return value != 0 ? 0.0 : -INFINITY;
  return value;
}

namespace {
/// Calls `visit(sample, b, h, i)` for every distinct row, until it is false.
template <typename FnT> bool forEachRow(llvm::ArrayRef<MaskSample> samples, bool perBatch, FnT visit) {
  for (const MaskSample &sample : samples)
    for (int64_t b = 0, bs = perBatch || sample.mask.shape[0] > 1 ? sample.batch : 1; b < bs; ++b)
      for (int64_t h = 0; h < sample.mask.shape[1]; ++h)
        for (int64_t i = 0; i < sample.queries; ++i)
          if (!visit(sample, b, h, i))
            return false;
  return true;
}

/// The key that query i is aligned with.
int64_t positionOf(CausalKind causal, const MaskSample &sample, int64_t i) {
  return causal == CausalKind::BottomRight ? i + sample.keys - sample.queries : i;
}

bool allows(const MaskHypothesis &hypothesis, const MaskSample &sample, int64_t b, int64_t i, int64_t j) {
  int64_t position = positionOf(hypothesis.causal, sample, i);
  if (hypothesis.causal != CausalKind::None && j > position)
    return false;
  if (hypothesis.window && position - j >= *hypothesis.window)
    return false;
  if (!hypothesis.keyMask)
    return true;
  const Tensor &keys = sample.keyMasks[*hypothesis.keyMask];
  return keys.ints[(keys.shape[0] == 1 ? 0 : b * sample.keys) + j] != 0;
}

/// The window that the samples show beyond causal and key mask: one more than the farthest key allowed.
std::optional<int64_t> findWindow(llvm::ArrayRef<MaskSample> samples, const MaskHypothesis &hypothesis) {
  int64_t farthest = -1;
  bool cut = false;
  forEachRow(samples, hypothesis.keyMask.has_value(), [&](const MaskSample &sample, int64_t b, int64_t h, int64_t i) {
    int64_t position = positionOf(hypothesis.causal, sample, i);
    for (int64_t j = 0; j <= std::min(position, sample.keys - 1); ++j) {
      if (!allows(hypothesis, sample, b, i, j))
        continue;
      bool allowed = sample.at(b, h, i, j) > kMaskedBelow;
      if (allowed)
        farthest = std::max(farthest, position - j);
      cut |= !allowed;
    }
    return true;
  });
  return cut && farthest >= 0 ? std::optional(farthest + 1) : std::nullopt;
}

/// Slopes per head of what is added along the allowed keys of a row, all zero where nothing is.
std::optional<llvm::SmallVector<float>> findSlopes(llvm::ArrayRef<MaskSample> samples,
                                                   const MaskHypothesis &hypothesis) {
  const MaskSample *longest = nullptr;
  for (const MaskSample &sample : samples)
    if (!longest || sample.keys > longest->keys)
      longest = &sample;
  llvm::SmallVector<float> slopes(longest->heads, 0.0f);
  for (int64_t h = 0; h < longest->heads; ++h) {
    int64_t hm = longest->mask.shape[1] == 1 ? 0 : h;
    // The farthest two allowed keys of any row give the slope best.
    int64_t distance = 0;
    for (int64_t b = 0; b < longest->batch; ++b)
      for (int64_t i = 0; i < longest->queries; ++i) {
        int64_t first = -1, last = -1;
        for (int64_t j = 0; j < longest->keys; ++j)
          if (allows(hypothesis, *longest, b, i, j)) {
            first = first < 0 ? j : first;
            last = j;
          }
        if (last - first <= distance)
          continue;
        distance = last - first;
        slopes[h] = static_cast<float>((longest->at(b, hm, i, last) - longest->at(b, hm, i, first)) / distance);
      }
  }
  if (llvm::any_of(slopes, [](float slope) { return !std::isfinite(slope) || std::abs(slope) > 100; }))
    return std::nullopt;
  return slopes;
}

bool explains(llvm::ArrayRef<MaskSample> samples, const MaskHypothesis &hypothesis, llvm::ArrayRef<float> slopes) {
  return forEachRow(samples, hypothesis.keyMask.has_value(),
                    [&](const MaskSample &sample, int64_t b, int64_t h, int64_t i) {
                      std::optional<double> constant; // of the row
                      for (int64_t j = 0; j < sample.keys; ++j) {
                        double value = sample.at(b, h, i, j);
                        if (std::isnan(value) || (value > kMaskedBelow) != allows(hypothesis, sample, b, i, j))
                          return false;
                        if (value <= kMaskedBelow)
                          continue;
                        double rest = value - slopes[h] * j;
                        if (!constant)
                          constant = rest;
                        if (std::abs(rest - *constant) > 1e-5 * (1 + std::abs(value)))
                          return false;
                      }
                      return true;
                    });
}
} // namespace

std::optional<MaskHypothesis> drover::tfm::explainMask(llvm::ArrayRef<MaskSample> samples, unsigned candidates) {
  for (unsigned keyMask = 0; keyMask <= candidates; ++keyMask)
    for (CausalKind causal : {CausalKind::None, CausalKind::TopLeft, CausalKind::BottomRight}) {
      MaskHypothesis hypothesis;
      hypothesis.causal = causal;
      if (keyMask > 0)
        hypothesis.keyMask = keyMask - 1;
      if (causal != CausalKind::None)
        hypothesis.window = findWindow(samples, hypothesis);
      std::optional<llvm::SmallVector<float>> slopes = findSlopes(samples, hypothesis);
      if (!slopes || !explains(samples, hypothesis, *slopes))
        continue;
      if (llvm::any_of(*slopes, [](float slope) { return slope != 0; }))
        hypothesis.alibiSlopes = std::move(*slopes);
      return hypothesis;
    }
  return std::nullopt;
}
