//===- RopeFrequencies.cpp - from a table of angles to its formula --------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "RopeFrequencies.h"
#include <cmath>

using namespace mlir;
using namespace drover::tfm;

/// rope_theta of published models, the most frequent first.
static constexpr double usualThetas[] = {1e4, 5e5, 1e6, 1e5, 2.5e4, 1e7, 8e6, 1e3, 5e4, 2e5, 1.5e5, 6e5, 4e6, 5e6};

static bool agrees(ArrayRef<double> frequencies, double theta, RopeScalingAttr scaling) {
  SmallVector<float> formula = ropeFrequencies(2 * frequencies.size(), theta, scaling);
  return llvm::all_of(llvm::zip(frequencies, formula), [](auto pair) {
    auto [value, expected] = pair;
    return std::abs(value - expected) <= 1e-6 * std::abs(expected);
  });
}

/// `value` with `digits` significant decimal digits.
static double roundDigits(double value, int digits) {
  double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

/// theta from the steepest pair of neighbouring frequencies f[c], f[c+1] = f[c] * theta^(-1/n), rounded to as few
/// digits as agree; with the usual ones before it.
static std::optional<double> fitTheta(ArrayRef<double> frequencies, RopeScalingAttr scaling) {
  for (double theta : usualThetas)
    if (agrees(frequencies, theta, scaling))
      return theta;
  if (frequencies.size() < 2 || !(frequencies[1] > 0) || !(frequencies[0] > 0))
    return std::nullopt;
  // The last frequency determines theta best; the first two do where the later ones are scaled.
  double n = frequencies.size();
  for (size_t last : {frequencies.size() - 1, size_t{1}}) {
    double theta = std::pow(frequencies[0] / frequencies[last], n / static_cast<double>(last));
    if (!std::isfinite(theta) || theta <= 0)
      continue;
    for (int digits = 1; digits <= 7; ++digits)
      if (double rounded = roundDigits(theta, digits); agrees(frequencies, rounded, scaling))
        return rounded;
  }
  return std::nullopt;
}

RopeFormula drover::tfm::fitRopeFormula(ArrayRef<double> frequencies, MLIRContext *context) {
  if (std::optional<double> theta = fitTheta(frequencies, {}))
    return {*theta, {}, {}};
  auto scaling = [&](StringRef kind, double factor, double low, double high, int64_t original) {
    return RopeScalingAttr::get(context, kind, APFloat(factor), APFloat(low), APFloat(high), original);
  };
  // Linear: all divided by the factor, the first of which is 1 otherwise.
  if (frequencies.front() > 0 && frequencies.front() < 1) {
    RopeScalingAttr linear = scaling("linear", roundDigits(1.0 / frequencies.front(), 6), 1.0, 1.0, 0);
    if (std::optional<double> theta = fitTheta(frequencies, linear))
      return {*theta, linear, {}};
  }
  // Llama 3.1: only the long wavelengths are divided. 8192 is what the published models have; then powers of two.
  SmallVector<int64_t> originals{8192};
  for (int64_t original = 16; original <= (1 << 20); original *= 2)
    originals.push_back(original);
  for (double factor : {8.0, 32.0, 4.0, 16.0, 2.0, 64.0})
    for (int64_t original : originals) {
      RopeScalingAttr llama = scaling("llama3", factor, 1.0, 4.0, original);
      for (double theta : usualThetas)
        if (agrees(frequencies, theta, llama))
          return {theta, llama, {}};
    }
  return {10000.0, {}, SmallVector<float>(frequencies.begin(), frequencies.end())};
}
