//===- Derive.h - parts of the derivation -----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_NCCL_DERIVE_H
#define DROVER_LIB_NCCL_DERIVE_H

#include "Groups.h"

namespace drover::nccl {

/// What a channel carries in a dimension, and how many there are to be.
struct Channels {
  int64_t most = 1;        // CTAs of a rank
  int64_t perPeer = 1;     // channels between two ranks across the network
  double channelBytes = 0; // per second
  int level = -1;          // outermost level that is crossed
  double roundTrip = 0;    // seconds, Simple, over that level
  int64_t chunkBytes = 0;  // that keep a channel busy over a hop; 0 within a server
  std::string reason;      // of `most`
};
Channels channelsOf(const cluster::Cluster &cluster, const Lie &lie);

/// The smallest power of two of at least so many.
int64_t roundUpToPowerOfTwo(double value);

std::vector<TunerRule> rulesOf(const cluster::Cluster &cluster, const Lie &lie, const Channels &channels,
                               const Demand &demand);

/// "1.5 MiB", "24 GB/s", "41.3 us"
std::string bytesText(double bytes);
std::string rateText(double bytesPerSecond);
std::string timeText(double seconds);

} // namespace drover::nccl

#endif // DROVER_LIB_NCCL_DERIVE_H
