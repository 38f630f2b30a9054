//===- parameter_layout.h - a rank's part of a tensor -----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// docs/distributions.md, Padding: which element of the model's tensor a rank's local element is.
#ifndef DROVER_RT_PARAMETER_LAYOUT_H
#define DROVER_RT_PARAMETER_LAYOUT_H

#include "drover/rt/program.h"
#include <algorithm>

namespace drover::rt {

/// The global index of each of `localSize` indices of a dimension that `cuts`, outermost first, cut; -1 is padding.
std::vector<int64_t> globalIndices(const Grid &grid, const Coordinates &place, const std::vector<CutInfo> &cuts,
                                   int64_t dim, int64_t localSize);

/// The model's shape of a tensor whose part is `localShape`.
std::vector<int64_t> globalShape(const Grid &grid, const std::vector<int64_t> &localShape,
                                 const std::vector<CutInfo> &cuts);

/// Throws Error, with `where` in front, where the cuts don't make `localShape` of `shape`.
void checkCuts(const Grid &grid, const std::vector<int64_t> &shape, const std::vector<int64_t> &localShape,
               const std::vector<CutInfo> &cuts, const std::string &where);

class TensorLayout {
public:
  TensorLayout(const Grid &grid, const Coordinates &place, const std::vector<int64_t> &shape,
               const std::vector<int64_t> &localShape, const std::vector<CutInfo> &cuts);

  int64_t localElements() const { return rows * rowElements; }

  /// Cuts the local elements [first, first + count) into runs: fn(local, global, length), global -1 for padding.
  template <typename Fn> void forEachRun(int64_t first, int64_t count, Fn &&fn) const {
    for (int64_t place = first; place < first + count;) {
      int64_t row = place / rowElements, column = place % rowElements;
      int64_t end = std::min(rowElements, column + first + count - place);
      int64_t base = rowBase(row);
      for (const Run &run : runs) {
        int64_t begin = std::max(run.local, column), stop = std::min(run.local + run.length, end);
        if (begin < stop)
          fn(row * rowElements + begin, base < 0 || run.global < 0 ? -1 : base + run.global + begin - run.local,
             stop - begin);
      }
      place += end - column;
    }
  }

private:
  struct Run {
    int64_t local, global, length;
  };

  int64_t rowBase(int64_t row) const;

  std::vector<std::vector<int64_t>> outer; // global indices of the dimensions before the last one that is cut
  std::vector<int64_t> outerStrides;
  int64_t rows = 1, rowElements = 1;
  std::vector<Run> runs; // of a row: the last dimension that is cut and those behind it
};

} // namespace drover::rt

#endif // DROVER_RT_PARAMETER_LAYOUT_H
