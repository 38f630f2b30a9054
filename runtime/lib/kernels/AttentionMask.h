//===- AttentionMask.h - which keys a query sees ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_KERNELS_ATTENTIONMASK_H
#define DROVER_RT_KERNELS_ATTENTIONMASK_H

#include "drover/rt/abi.h"

namespace drover::rt {

/// A range of queries or keys.
struct Span {
  int64_t begin, end;
  int64_t size() const { return end > begin ? end - begin : 0; }
};

/// All that restricts or shifts scores, as `tfm.attention` defines it (docs/tfm.md).
class AttentionMask {
public:
  AttentionMask(const drover_attention &desc, const void *mask, const void *keyMask, const void *documents,
                const int64_t *queryIndex);

  /// The keys that causality and the window leave to a query, and to any of several.
  Span keysOf(int64_t query) const;
  Span keysOf(Span queries) const;

  /// Whether surely no pair of the tile takes part: by causality, the window, the documents or the key mask. False may
  /// be said of a tile in which none does.
  bool excludes(int64_t batch, Span queries, Span keys) const;

  /// Whether anything but causality and the window acts.
  bool hasBias() const { return mask || keyMask || documents || desc.alibi_slopes; }

  /// What is added to the scores of a query's keys, -inf where one is excluded; `padded` elements are written.
  void biasRow(int64_t batch, int64_t head, int64_t query, Span keys, int64_t padded, float *bias) const;

private:
  /// Where a query stands among the keys.
  int64_t positionOf(int64_t query) const;
  bool documentsDisjoint(int64_t batch, Span queries, Span keys) const;
  bool keysMasked(int64_t batch, Span keys) const;

  const drover_attention &desc;
  const void *mask, *keyMask, *documents;
  const int64_t *queryIndex;
};

} // namespace drover::rt

#endif // DROVER_RT_KERNELS_ATTENTIONMASK_H
