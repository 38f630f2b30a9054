//===- Kernels.h - seconds of kernels ---------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_COST_KERNELS_H
#define DROVER_COST_KERNELS_H

#include "drover/Cluster/Cluster.h"

namespace drover::cost {

/// An m x n product with inner size k, as the device's library reaches it.
double matmulSeconds(const cluster::Device &device, cluster::Precision precision, double m, double n, double k);

enum class AttentionPhase : uint8_t { Forward, Backward };

/// What one rank's attention does. Masks, documents and CP's share are in `pairs`.
struct AttentionShape {
  double rows = 0;  // queries
  double pairs = 0; // of a query and a key that it attends to, of all rows and one head
  int64_t heads = 0;
  int64_t headSize = 0;

  /// A multiply-add for each of the two products counts two (docs/tfm.md); the backward twice as much.
  double flops(AttentionPhase phase) const {
    return 4 * pairs * static_cast<double>(heads * headSize) * (phase == AttentionPhase::Forward ? 1 : 2);
  }
};

/// `rates` is one of the device's.
double attentionSeconds(const cluster::Device &device, const cluster::AttentionRates &rates,
                        cluster::Precision precision, AttentionPhase phase, const AttentionShape &shape);

/// A pass over memory: bytes read and written.
double memorySeconds(const cluster::Device &device, double bytes);

} // namespace drover::cost

#endif // DROVER_COST_KERNELS_H
