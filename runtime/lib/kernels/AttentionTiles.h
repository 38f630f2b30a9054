//===- AttentionTiles.h - what both directions of attention share -*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_KERNELS_ATTENTIONTILES_H
#define DROVER_RT_KERNELS_ATTENTIONTILES_H

#include "kernels/AttentionMask.h"
#include "kernels/tiles/Tiles.h"

#include <vector>

namespace drover::rt {

/// A row-major operand in f32 whose rows are readable up to a whole register tile. The odd part keeps rows of a power
/// of two from falling into the same cache sets.
int64_t rowStride(const TileKernels &tiles, int64_t columns);

/// The keys that each query of a tile takes part with, relative to the tile, and what groups of mr rows need.
class TileShape {
public:
  /// `copies`: the queries' rows appear so often, one set under the other (heads that share keys).
  void set(const TileKernels &tiles, const AttentionMask &mask, Span queries, Span keys, int64_t copies);

  TileRange row(int64_t query) const { return rows[query]; }
  /// Per group of mr rows, the keys; null where all rows need all. For TileGemm::columns and ::depth.
  const TileRange *keysOfGroups() const { return whole ? nullptr : keyGroups.data(); }
  /// Per group of mr keys, the queries (of one copy); null likewise.
  const TileRange *queriesOfGroups() const { return whole ? nullptr : queryGroups.data(); }

private:
  bool whole = true;
  std::vector<TileRange> rows, keyGroups, queryGroups;
};

/// Rejects what the kernels do not compute.
void checkAttention(const drover_attention &desc);

} // namespace drover::rt

#endif // DROVER_RT_KERNELS_ATTENTIONTILES_H
