//===- ParameterLayout.cpp - a rank's part of a tensor --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/parameter_layout.h"
#include "drover/rt/text.h"

namespace drover::rt {

static std::vector<const CutInfo *> cutsOf(const std::vector<CutInfo> &cuts, int64_t dim) {
  std::vector<const CutInfo *> result;
  for (const CutInfo &cut : cuts)
    if (cut.dim == dim)
      result.push_back(&cut);
  return result;
}

static int64_t paddedElements(const CutInfo &cut) {
  int64_t elements = 0;
  for (const Segment &segment : cut.segments)
    elements += segment.total * segment.padded;
  return elements;
}

static int64_t validElements(const CutInfo &cut) {
  int64_t elements = 0;
  for (const Segment &segment : cut.segments)
    elements += segment.groups * segment.valid;
  return elements;
}

/// From an index of a part to the index of what was cut.
static int64_t indexBeforeCut(const CutInfo &cut, int64_t index, int64_t part, int64_t parts, int64_t place) {
  if (cut.axis == DROVER_AXIS_CP) { // chunks `place` and 2n-1-place
    int64_t chunk = part / 2;
    return index < chunk ? place * chunk + index : (2 * parts - 1 - place) * chunk + index - chunk;
  }
  if (cut.segments.empty())
    return place * part + index;
  int64_t global = 0;
  for (const Segment &segment : cut.segments) {
    int64_t share = segment.total * segment.padded / parts;
    if (index < share) {
      int64_t padded = place * share + index, group = padded / segment.padded, within = padded % segment.padded;
      return group < segment.groups && within < segment.valid ? global + group * segment.valid + within : -1;
    }
    index -= share;
    global += segment.groups * segment.valid;
  }
  return -1;
}

std::vector<int64_t> globalIndices(const Grid &grid, const Coordinates &place, const std::vector<CutInfo> &cuts,
                                   int64_t dim, int64_t localSize) {
  std::vector<int64_t> indices(static_cast<size_t>(localSize));
  for (int64_t i = 0; i < localSize; ++i)
    indices[size_t(i)] = i;
  std::vector<const CutInfo *> own = cutsOf(cuts, dim);
  int64_t part = localSize;
  for (auto cut = own.rbegin(); cut != own.rend(); ++cut) {
    int64_t parts = grid.size((*cut)->axis);
    for (int64_t &index : indices)
      index = index < 0 ? -1 : indexBeforeCut(**cut, index, part, parts, place[size_t((*cut)->axis)]);
    part *= parts;
  }
  return indices;
}

std::vector<int64_t> globalShape(const Grid &grid, const std::vector<int64_t> &localShape,
                                 const std::vector<CutInfo> &cuts) {
  std::vector<int64_t> shape = localShape;
  for (const CutInfo &cut : cuts) {
    int64_t &size = shape[size_t(cut.dim)];
    size = cut.segments.empty() ? size * grid.size(cut.axis) : validElements(cut);
  }
  return shape;
}

void checkCuts(const Grid &grid, const std::vector<int64_t> &shape, const std::vector<int64_t> &localShape,
               const std::vector<CutInfo> &cuts, const std::string &where) {
  std::vector<int64_t> whole = localShape;
  bool good = shape.size() == localShape.size();
  for (const CutInfo &cut : cuts) {
    int64_t parts = grid.size(cut.axis);
    bool inside = good && cut.dim < int64_t(shape.size());
    if (!inside) {
      good = false;
      break;
    }
    int64_t &size = whole[size_t(cut.dim)];
    good &= cut.axis != DROVER_AXIS_CP || (size % 2 == 0 && cut.segments.empty());
    for (const Segment &segment : cut.segments)
      good &= segment.total * segment.padded % parts == 0;
    good &= cut.segments.empty() || paddedElements(cut) == size * parts;
    size = cut.segments.empty() ? size * parts : validElements(cut);
  }
  if (!good || whole != shape)
    fail(where, ": its cuts do not make ", formatShape(localShape), " of ", formatShape(shape));
}

TensorLayout::TensorLayout(const Grid &grid, const Coordinates &place, const std::vector<int64_t> &shape,
                           const std::vector<int64_t> &localShape, const std::vector<CutInfo> &cuts) {
  size_t dims = shape.size(), lastCut = dims;
  for (const CutInfo &cut : cuts)
    lastCut = lastCut == dims ? size_t(cut.dim) : std::max(lastCut, size_t(cut.dim));
  std::vector<int64_t> strides(dims, 1);
  for (size_t dim = dims; dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  if (lastCut == dims) { // all of it, as one run
    for (int64_t size : shape)
      rowElements *= size;
    runs = {{0, 0, rowElements}};
    return;
  }
  for (size_t dim = 0; dim < lastCut; ++dim) {
    outer.push_back(globalIndices(grid, place, cuts, int64_t(dim), localShape[dim]));
    outerStrides.push_back(strides[dim]);
    rows *= localShape[dim];
  }
  std::vector<int64_t> indices = globalIndices(grid, place, cuts, int64_t(lastCut), localShape[lastCut]);
  int64_t inner = strides[lastCut];
  for (size_t i = 0; i < indices.size(); ++i) {
    bool follows =
        !runs.empty() &&
        (indices[i] < 0 ? runs.back().global < 0
                        : runs.back().global >= 0 && runs.back().global + runs.back().length == indices[i] * inner);
    if (follows)
      runs.back().length += inner;
    else
      runs.push_back({int64_t(i) * inner, indices[i] < 0 ? -1 : indices[i] * inner, inner});
  }
  rowElements = localShape[lastCut] * inner;
}

int64_t TensorLayout::rowBase(int64_t row) const {
  int64_t base = 0;
  for (size_t dim = outer.size(); dim-- > 0;) {
    int64_t size = int64_t(outer[dim].size()), index = outer[dim][size_t(row % size)];
    if (index < 0)
      return -1;
    base += index * outerStrides[dim];
    row /= size;
  }
  return base;
}

} // namespace drover::rt
