//===- Formulas.cpp - initializers that follow a formula ------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// A file without a signature does not say which of its initializers are trained. What a module computes when it is
// made (masks, tables of sines, slopes) is told from weights by its values: they satisfy equations that training
// breaks.
//
//===----------------------------------------------------------------------===//
#include "Parameters.h"
#include <cmath>

using namespace llvm;

namespace drover::onnx {

/// Enough to see a whole row of a mask.
static constexpr int64_t maxSample = 1 << 16;

/// The first values.
static std::vector<double> sample(const Tensor &tensor, StringRef bytes) {
  return decode(tensor.type, bytes, std::min(tensor.count(), maxSample)).floats;
}

/// The columns of a table: its last dimension.
static int64_t columnsOf(const Tensor &tensor) { return tensor.dims.empty() ? 1 : tensor.dims.back(); }

/// Two values, as far as one looks.
static bool isMask(ArrayRef<double> values) {
  double first = values.front();
  const double *other = find_if(values, [&](double value) { return !(value == first); });
  return other != values.end() && all_of(values, [&](double value) { return value == first || value == *other; });
}

/// A table of cosines or sines: the row of position 0 holds only 0 and one magnitude. Learned rows
/// never do.
static bool isWaves(ArrayRef<double> values, int64_t columns) {
  ArrayRef<double> row = values.take_front(columns);
  double magnitude = 0;
  for (double value : row)
    magnitude = std::max(magnitude, std::fabs(value));
  // All zeros may be a padding row of a learned table: look at the next one, too.
  if (magnitude == 0)
    return std::fabs(values[columns] - std::sin(1.0)) < 1e-3;
  return all_of(row, [&](double value) { return value == 0 || value == magnitude; });
}

/// Equal steps from each value to the next, within what their format rounds.
static bool isProgression(ArrayRef<double> row, double epsilon) {
  double step = row[1] - row[0], largest = 0;
  for (double value : row)
    largest = std::max(largest, std::fabs(value));
  return step != 0 && all_of(seq<size_t>(1, row.size()), [&](size_t i) {
           return std::fabs(row[i] - row[0] - step * i) <= 4 * epsilon * largest * (1 + std::log2(row.size()));
         });
}

/// Frequencies: positive, each smaller than the one before.
static bool isDecreasing(ArrayRef<double> values) {
  return values.back() > 0 &&
         all_of(seq<size_t>(1, values.size()), [&](size_t i) { return values[i] < values[i - 1]; });
}

/// ALiBi's slopes (Press et al., https://arxiv.org/abs/2108.12409, and the reference code for counts that are no
/// power of two): powers of two whose exponents are multiples of 4 over the largest power of two in the number of
/// heads.
static bool areSlopes(ArrayRef<double> values) {
  double heads = std::exp2(std::floor(std::log2(values.size())));
  return all_of(values, [&](double value) {
    double exponent = std::log2(value) * heads / 4;
    return value > 0 && value < 1 && std::fabs(exponent - std::round(exponent)) < 1e-2;
  });
}

StringRef formulaBehind(const Tensor &tensor, StringRef bytes) {
  // Of fewer values nothing can be said.
  constexpr int64_t fewest = 4;
  if (tensor.count() < fewest)
    return "";
  std::vector<double> values = sample(tensor, bytes);
  if (all_equal(values))
    return "";
  bool isVector = count_if(tensor.dims, [](int64_t dim) { return dim != 1; }) == 1;
  int64_t columns = columnsOf(tensor), size = values.size();
  if (!isVector && isMask(values))
    return "a mask by its values";
  if (!isVector && columns > 1 && size >= 2 * columns && isWaves(values, columns))
    return "cosines or sines by its values";
  double epsilon = tensor.type == ElemType::Float || tensor.type == ElemType::Double ? 0x1p-23 : 0x1p-7;
  ArrayRef<double> row = ArrayRef(values).take_front(isVector ? size : std::min(columns, size));
  if (static_cast<int64_t>(row.size()) >= fewest && isProgression(row, epsilon))
    return "numbers with equal steps";
  if (isVector && isDecreasing(values))
    return "frequencies by its values";
  if (isVector && areSlopes(values))
    return "slopes by its values";
  return "";
}

bool isIrregular(const Tensor &tensor, StringRef bytes) {
  std::vector<double> values = sample(tensor, bytes);
  size_t all = values.size();
  llvm::sort(values);
  size_t different = std::unique(values.begin(), values.end()) - values.begin();
  // A 16-bit format has few values between any two.
  return byteSize(tensor.type) == 2 ? different > 8 : 10 * different > 9 * all;
}

} // namespace drover::onnx
