//===- SelfCheck.cpp - one table of tile kernels against another ----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/abi.h"
#include "kernels/Loops.h"
#include "kernels/tiles/Tiles.h"

#include <cmath>
#include <vector>

using namespace drover::rt;

namespace {

// Odd sizes: edges of the register tile and an odd depth are met.
constexpr int64_t rows = 29, columns = 71, depth = 51;

bool close(const std::vector<float> &a, const std::vector<float> &b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!(std::fabs(a[i] - b[i]) <= 1e-4f * (1.0f + std::fabs(b[i]))))
      return false;
  return true;
}

/// bf16 between -1 and 1.
std::vector<uint16_t> operand(int64_t size, uint32_t state) {
  std::vector<uint16_t> values(size);
  for (uint16_t &value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<uint16_t>((state >> 16 & 0x80ff) | 0x3e00);
  }
  return values;
}

std::vector<float> product(const TileKernels &tiles, bool pairs, bool transposed) {
  const std::vector<uint16_t> a = operand(rows * depth, 1), b = operand(depth * columns, 2);
  const int64_t words = pairs ? (depth + 1) / 2 : depth;
  std::vector<float> packedA(roundUp(rows, tiles.mr) * words), packedB(roundUp(columns, tiles.nr) * words);
  const int64_t lda = transposed ? rows : depth, ldb = transposed ? depth : columns;
  if (pairs) {
    tiles.packAPairs(a.data(), transposed, lda, rows, depth, packedA.data());
    tiles.packBPairs(b.data(), transposed, ldb, depth, columns, packedB.data());
  } else {
    tiles.packA(a.data(), DROVER_BF16, transposed, lda, rows, depth, packedA.data());
    tiles.packB(b.data(), DROVER_BF16, transposed, ldb, depth, columns, packedB.data());
  }
  std::vector<float> c(rows * columns, 1.0f);
  const TileGemm tile = {rows,     columns,  words,          packedA.data(),   tiles.mr * words,
                         1,        tiles.mr, packedB.data(), tiles.nr * words, tiles.nr,
                         c.data(), columns,  true,           nullptr,          nullptr};
  pairs ? tiles.gemmPairs(tile) : tiles.gemm(tile);
  return c;
}

std::vector<float> softmax(const TileKernels &tiles) {
  const std::vector<uint16_t> values = operand(96, 3);
  std::vector<float> row(96), gradient(96);
  tiles.widen(values.data(), DROVER_BF16, 96, row.data());
  const std::vector<float> scores = row;
  const ScoreRow line = {row.data(), nullptr, 3, 77, 96, 5.0f, 0.0f};
  float maximum = -INFINITY, sum = 0;
  tiles.softmaxRow(line, maximum, sum);
  std::vector<float> result = row;
  row = gradient = scores;
  tiles.softmaxGradRow(line, maximum + std::log(sum), 0.25f, gradient.data());
  result.insert(result.end(), gradient.begin(), gradient.end());
  result.insert(result.end(), {maximum, sum, tiles.dot(scores.data(), scores.data(), 91)});
  return result;
}

} // namespace

bool drover::rt::agreesWith(const TileKernels &candidate, const TileKernels &reference) {
  for (bool transposed : {false, true}) {
    const std::vector<float> expected = product(reference, false, transposed);
    if (!close(product(candidate, false, transposed), expected) ||
        (candidate.gemmPairs && !close(product(candidate, true, transposed), expected)))
      return false;
  }
  std::vector<float> narrow(70);
  std::vector<uint16_t> narrowed[2] = {std::vector<uint16_t>(70), std::vector<uint16_t>(70)};
  for (size_t i = 0; i < narrow.size(); ++i)
    narrow[i] = std::sin(static_cast<float>(i)) * 1e3f;
  candidate.narrow(narrow.data(), 70, narrowed[0].data(), DROVER_BF16);
  reference.narrow(narrow.data(), 70, narrowed[1].data(), DROVER_BF16);
  return narrowed[0] == narrowed[1] && close(softmax(candidate), softmax(reference));
}
