//===- Kernels.cpp - seconds of kernels -----------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cost/Kernels.h"
#include <algorithm>
#include <cmath>

using namespace drover;
using namespace drover::cluster;

namespace {
double bytesOf(Precision precision) { return precision == Precision::F32 ? 4 : precision == Precision::FP8 ? 1 : 2; }

/// Of the SMs' time, what tiles of this size keep busy: the last wave may be short (NVIDIA, Matrix Multiplication
/// Background User's Guide, "wave quantization"), and tiles at the edges are cut.
double waveEfficiency(const Device &device, double m, double n, double tileM, double tileN) {
  double tiles = std::ceil(m / tileM) * std::ceil(n / tileN), sms = static_cast<double>(device.sms);
  return m * n / (std::ceil(tiles / sms) * sms * tileM * tileN);
}
} // namespace

double cost::matmulSeconds(const Device &device, Precision precision, double m, double n, double k) {
  const MatmulRates &rates = device.matmulOf(precision);
  auto tileM = static_cast<double>(rates.tileM), tileN = static_cast<double>(rates.tileN);
  // Libraries have tiles of both orientations, and smaller ones, which read each operand more often.
  constexpr double kSmallTile = 0.9;
  double waves = std::max({waveEfficiency(device, m, n, tileM, tileN), waveEfficiency(device, m, n, tileN, tileM),
                           kSmallTile * waveEfficiency(device, m, n, tileM, tileN / 2),
                           kSmallTile * kSmallTile * waveEfficiency(device, m, n, tileM / 2, tileN / 2)});
  // A tile fills its pipeline and writes its result once for k steps: time is a + b k, the rate k / (k + a/b).
  double ramp = k / (k + rates.halfK);
  double compute = 2 * m * n * k / (device.peakOf(precision) * rates.fraction * ramp * waves);
  // No faster than its operands and result pass through memory (Williams et al., Roofline, 2009).
  return std::max(compute, memorySeconds(device, bytesOf(precision) * (m * k + n * k) + 2 * m * n));
}

double cost::attentionSeconds(const Device &device, const AttentionRates &rates, Precision precision,
                              AttentionPhase phase, const AttentionShape &shape) {
  if (shape.pairs <= 0)
    return 0;
  double rate = device.peakOf(precision) * rates.forward * (phase == AttentionPhase::Backward ? rates.backward : 1);
  // Twice the mean of keys a query: the length of a causal sequence. Published curves over it: dao-ailab's assets.
  double sequence = 2 * shape.pairs / shape.rows;
  double ramp = sequence / (sequence + rates.halfSequence);
  // Tiles are as wide as the next head size that the kernel is built for.
  double odd = shape.headSize % rates.headSizeMultiple == 0 ? 1 : rates.oddHeadPenalty;
  return shape.flops(phase) * odd / (rate * ramp);
}

double cost::memorySeconds(const Device &device, double bytes) {
  return bytes / (device.memoryBandwidth * device.memoryFraction);
}
