//===- Matmul.cpp - products of matrices ----------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// B is packed once by all threads, a chunk of columns over the whole depth at a time; then each thread packs blocks of
// rows of A into its own cache and multiplies them (the loop order of Goto and van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication", 2008). bf16 becomes f32 while it is packed, but for processors that multiply
// it. Only rows and columns are split over threads and the depth is cut by its length alone, so that a result is
// bitwise the same for any number of threads.
//===----------------------------------------------------------------------===//
#include "drover/rt/abi.h"
#include "drover/rt/body_device.h"
#include "kernels/Loops.h"
#include "kernels/Scratch.h"
#include "kernels/tiles/Tiles.h"

#include <algorithm>
#include <cstring>

using namespace drover::rt;

namespace {

/// Depth of a packed block: a panel of B (depth x nr floats) lives in the first-level cache.
constexpr int64_t depthBlock = 256;
/// Rows of a packed block of A: with the depth, about a quarter of a 512 KiB second-level cache.
constexpr int64_t rowBlock = 144;
/// Floats of packed B at once (8 MiB), and the columns that a block of C has at most.
constexpr int64_t packedFloats = int64_t(1) << 21;
constexpr int64_t columnBlock = 4096;
/// Multiply-adds that are worth a thread's while.
constexpr int64_t grainWork = int64_t(1) << 17;

class Matmul {
public:
  Matmul(const drover_call *call, const drover_matmul &desc, const void *a, const void *b, void *c)
      : call(call), d(desc), a(a), b(b), c(c), tiles(tileKernels()), add(addsTo(call, desc.store)),
        pairs(desc.dtype_ab == DROVER_BF16 && tiles.gemmPairs), perWord(pairs ? 2 : 1), words(ceilDiv(desc.k, perWord)),
        depth(roundUp(ceilDiv(std::max<int64_t>(words, 1), ceilDiv(std::max<int64_t>(words, 1), depthBlock)), 8)),
        threads(threadsOf(call)) {}

  void run();

private:
  void zero();
  void packColumns(int64_t firstProduct, int64_t products, int64_t column, int64_t columns, float *packed);
  void packB(int64_t product, int64_t p, int64_t size, int64_t j, int64_t width, float *to);
  void packA(int64_t product, int64_t p, int64_t size, int64_t row, int64_t rows, float *to);
  void multiply(int64_t firstProduct, int64_t products, int64_t column, int64_t columns, const float *packed);
  void multiplyBlock(int64_t product, int64_t row, int64_t rows, int64_t column, int64_t columns, const float *packedB);
  void finish(const float *sums, int64_t product, int64_t row, int64_t rows, int64_t column, int64_t columns);

  const drover_call *call;
  const drover_matmul &d;
  const void *a, *b;
  void *c;
  const TileKernels &tiles;
  const bool add;
  /// Packed operands consist of words: an f32 element, or two of bf16 where the processor multiplies those.
  const bool pairs;
  const int64_t perWord, words;
  const int64_t depth; // words of a block
  const int64_t threads;
};

void Matmul::run() {
  if (d.m <= 0 || d.n <= 0 || d.batch <= 0)
    return;
  if (d.k <= 0)
    return add ? void() : zero();
  // As many whole products as fit the packed chunk, or a part of the columns of one.
  const int64_t allColumns = roundUp(d.n, tiles.nr);
  const int64_t fitting = std::max(roundUp(packedFloats / words - tiles.nr + 1, tiles.nr), int64_t(tiles.nr) * 4);
  const int64_t columns = std::min({allColumns, fitting, columnBlock});
  const int64_t products =
      columns < allColumns ? 1 : std::clamp<int64_t>(packedFloats / (allColumns * words), 1, d.batch);
  float *packed = threadScratch(ScratchUse::Shared, products * columns * words);
  for (int64_t product = 0; product < d.batch; product += products) {
    const int64_t count = std::min(products, d.batch - product);
    for (int64_t column = 0; column < d.n; column += columns) {
      const int64_t width = std::min(columns, d.n - column);
      packColumns(product, count, column, width, packed);
      multiply(product, count, column, width, packed);
    }
  }
}

void Matmul::zero() {
  for (int64_t product = 0; product < d.batch; ++product)
    for (int64_t row = 0; row < d.m; ++row)
      std::memset(at(c, d.dtype_c, product * d.stride_c + row * d.ldc), 0, d.n * elementBytes(d.dtype_c));
}

/// Layout of the packed chunk: [product][depth block][panel][depth][nr].
void Matmul::packColumns(int64_t firstProduct, int64_t products, int64_t column, int64_t columns, float *packed) {
  const int64_t panels = ceilDiv(columns, tiles.nr), depthBlocks = ceilDiv(words, depth);
  const int64_t grain = std::max<int64_t>(1, 32768 / (depth * tiles.nr));
  parallelFor(call, products * depthBlocks * panels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end;) {
      const int64_t panel = index % panels, block = index / panels % depthBlocks,
                    product = index / panels / depthBlocks;
      // Neighbouring panels together: a row of B is then read in longer pieces.
      const int64_t count = std::min(end - index, panels - panel);
      const int64_t p = block * depth, size = std::min(depth, words - p);
      const int64_t j = column + panel * tiles.nr;
      const int64_t width = std::min(count * tiles.nr, column + columns - j);
      packB(firstProduct + product, p, size, j, width,
            packed + (product * words + p) * panels * tiles.nr + panel * size * tiles.nr);
      index += count;
    }
  });
}

/// `size` words of the depth from word p on, for `width` columns from column j on.
void Matmul::packB(int64_t product, int64_t p, int64_t size, int64_t j, int64_t width, float *to) {
  const int64_t first = p * perWord, elements = std::min(size * perWord, d.k - first);
  const int64_t from = product * d.stride_b + (d.trans_b ? j * d.ldb + first : first * d.ldb + j);
  const void *source = at(b, d.dtype_ab, from);
  if (pairs)
    return tiles.packBPairs(source, d.trans_b, d.ldb, elements, width, to);
  tiles.packB(source, d.dtype_ab, d.trans_b, d.ldb, elements, width, to);
}

void Matmul::packA(int64_t product, int64_t p, int64_t size, int64_t row, int64_t rows, float *to) {
  const int64_t first = p * perWord, elements = std::min(size * perWord, d.k - first);
  const int64_t from = product * d.stride_a + (d.trans_a ? first * d.lda + row : row * d.lda + first);
  const void *source = at(a, d.dtype_ab, from);
  if (pairs)
    return tiles.packAPairs(source, d.trans_a, d.lda, rows, elements, to);
  tiles.packA(source, d.dtype_ab, d.trans_a, d.lda, rows, elements, to);
}

void Matmul::multiply(int64_t firstProduct, int64_t products, int64_t column, int64_t columns, const float *packed) {
  // Blocks of equal size, a multiple of the threads in number where that does not make them small.
  int64_t blocks = ceilDiv(d.m, rowBlock);
  if (products % threads != 0)
    blocks = std::min(roundUp(blocks, threads), ceilDiv(d.m, 4 * tiles.mr));
  const int64_t rows = roundUp(ceilDiv(d.m, blocks), tiles.mr);
  blocks = ceilDiv(d.m, rows);
  const int64_t panels = ceilDiv(columns, tiles.nr);
  const int64_t grain = std::max<int64_t>(1, grainWork / (rows * columns * words));
  parallelFor(call, products * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t product = index / blocks, row = index % blocks * rows;
      multiplyBlock(firstProduct + product, row, std::min(rows, d.m - row), column, columns,
                    packed + product * words * panels * tiles.nr);
    }
  });
}

void Matmul::multiplyBlock(int64_t product, int64_t row, int64_t rows, int64_t column, int64_t columns,
                           const float *packedB) {
  const int64_t panels = ceilDiv(columns, tiles.nr);
  // f32 results are summed where they lie; bf16 ones in f32 beside, to be rounded once.
  const bool inPlace = d.dtype_c == DROVER_F32;
  ScratchLayout sizes;
  sizes.take(roundUp(rows, tiles.mr) * depth);
  sizes.take(inPlace ? 0 : rows * columns);
  ScratchLayout scratch(threadScratch(ScratchUse::Task, sizes.floats()));
  float *packedA = scratch.take(roundUp(rows, tiles.mr) * depth);
  float *sums = scratch.take(inPlace ? 0 : rows * columns);

  TileGemm tile = {};
  tile.m = rows;
  tile.n = columns;
  tile.a = packedA;
  tile.aRow = 1;
  tile.aDepth = tiles.mr;
  tile.bRow = tiles.nr;
  tile.c = inPlace ? static_cast<float *>(c) + product * d.stride_c + row * d.ldc + column : sums;
  tile.ldc = inPlace ? d.ldc : columns;
  for (int64_t p = 0; p < words; p += depth) {
    const int64_t size = std::min(depth, words - p);
    packA(product, p, size, row, rows, packedA);
    tile.k = size;
    tile.aGroup = size * tiles.mr;
    tile.b = packedB + p * panels * tiles.nr;
    tile.bPanel = size * tiles.nr;
    tile.accumulate = p > 0 || (inPlace && add);
    pairs ? tiles.gemmPairs(tile) : tiles.gemm(tile);
  }
  if (!inPlace)
    finish(sums, product, row, rows, column, columns);
}

void Matmul::finish(const float *sums, int64_t product, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i) {
    char *to = at(c, d.dtype_c, product * d.stride_c + (row + i) * d.ldc + column);
    if (add)
      tiles.addTo(sums + i * columns, columns, to, d.dtype_c);
    else
      tiles.narrow(sums + i * columns, columns, to, d.dtype_c);
  }
}

} // namespace

extern "C" void drover_rt_matmul(const drover_call *call, const drover_matmul *desc, const void *a, const void *b,
                                 void *c) {
  checkFloatType("matmul", desc->dtype_ab);
  checkFloatType("matmul", desc->dtype_c);
  if (call && call->device)
    return call->device->matmul(*desc, a, b, c, addsTo(call, desc->store));
  Matmul(call, *desc, a, b, c).run();
}
