//===- EmbeddingGrad.cpp - gradient of a table lookup ---------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/abi.h"
#include "drover/rt/fatal.h"
#include "kernels/Loops.h"
#include "kernels/tiles/Tiles.h"

#include <algorithm>
#include <vector>

using namespace drover::rt;

namespace {

/// Columns of a task; their sum lives on the stack.
constexpr int64_t chunkColumns = 256;

int64_t idAt(const void *ids, int32_t dtype, int64_t position) {
  return dtype == DROVER_I64 ? static_cast<const int64_t *>(ids)[position]
                             : static_cast<const int32_t *>(ids)[position];
}

/// Positions grouped by the row of the table that they read, in order within each (a stable counting sort). With an
/// offset the table is a part of a longer one, and positions of other parts are left out.
struct PositionsByRow {
  PositionsByRow(const void *ids, int32_t dtype, int64_t positions, const int64_t *offset, int64_t rows)
      : first(rows + 1), order(positions) {
    const auto rowAt = [&](int64_t position) { return idAt(ids, dtype, position) - (offset ? *offset : 0); };
    for (int64_t position = 0; position < positions; ++position) {
      const int64_t row = rowAt(position);
      if (row >= 0 && row < rows)
        ++first[row + 1];
      else if (!offset)
        fatal("embedding gradient: id %lld at position %lld, the table has %lld rows", static_cast<long long>(row),
              static_cast<long long>(position), static_cast<long long>(rows));
    }
    for (int64_t row = 0; row < rows; ++row)
      first[row + 1] += first[row];
    std::vector<int64_t> next(first.begin(), first.end() - 1);
    for (int64_t position = 0; position < positions; ++position)
      if (const int64_t row = rowAt(position); row >= 0 && row < rows)
        order[next[row]++] = position;
  }

  std::vector<int64_t> first; // of each row in `order`
  std::vector<int64_t> order;
};

} // namespace

extern "C" void drover_rt_embedding_grad(const drover_call *call, const void *ids, int32_t ids_dtype, int64_t positions,
                                         const int64_t *offset, const void *gradient, int32_t gradient_dtype,
                                         int64_t width, int64_t rows, float *table_grad, int32_t store) {
  if (ids_dtype != DROVER_I64 && ids_dtype != DROVER_I32)
    fatal("embedding gradient: ids of element type %d: i64 and i32 are supported", ids_dtype);
  checkFloatType("embedding gradient", gradient_dtype);
  const PositionsByRow byRow(ids, ids_dtype, positions, offset, rows);
  const TileKernels &tiles = tileKernels();
  const bool add = addsTo(call, store);
  const int64_t chunks = ceilDiv(width, chunkColumns);
  parallelFor(call, rows * chunks, 16, [&](int64_t begin, int64_t end) {
    float sum[chunkColumns], widened[chunkColumns];
    for (int64_t index = begin; index < end; ++index) {
      const int64_t row = index / chunks, column = index % chunks * chunkColumns;
      const int64_t size = std::min(chunkColumns, width - column);
      const int64_t first = byRow.first[row], last = byRow.first[row + 1];
      if (first == last && add)
        continue;
      std::fill_n(sum, size, 0.0f);
      for (int64_t i = first; i < last; ++i) {
        tiles.widen(at(gradient, gradient_dtype, byRow.order[i] * width + column), gradient_dtype, size, widened);
        tiles.addTo(widened, size, sum, DROVER_F32);
      }
      float *to = table_grad + row * width + column;
      if (add)
        tiles.addTo(sum, size, to, DROVER_F32);
      else
        tiles.narrow(sum, size, to, DROVER_F32);
    }
  });
}
