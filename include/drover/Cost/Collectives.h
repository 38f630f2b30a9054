//===- Collectives.h - seconds of collectives and messages ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_COST_COLLECTIVES_H
#define DROVER_COST_COLLECTIVES_H

#include "drover/Cluster/Placement.h"

/// Seconds of one thing on a cluster. No IR; every formula carries its source.
namespace drover::cost {

enum class CollectiveKind : uint8_t { AllGather, ReduceScatter, AllReduce, Broadcast };
const char *nameOf(CollectiveKind kind);

enum class Algorithm : uint8_t {
  Auto,        // the fastest of ring, tree and NVLS, as NCCL's tuner means to choose
  AutoNoNvls,  // of ring and tree: where a run's software has in-network reductions off
  Ring,        // one cycle that leaves every unit once
  Tree,        // all-reduce only: chains in the innermost level, double binary trees across
  Nvls,        // all-reduce only: switches reduce where they can, trees across the others
  Hierarchical // level by level: each adds its own time, with few hops
};
const char *nameOf(Algorithm algorithm);

/// NCCL's protocols: flags beside every 8 bytes or every 120, or a synchronization a chunk.
enum class Protocol : uint8_t { LL, LL128, Simple };
const char *nameOf(Protocol protocol);

/// Whether an algorithm does this kind over this span: trees only reduce to all, NVLS needs switches that reduce.
bool supports(const cluster::Cluster &cluster, CollectiveKind kind, const cluster::Span &span, Algorithm algorithm);

/// Seconds of a collective over a group of this span, every group of its axes at work at once. `bytes` is the whole
/// tensor: what an all-gather ends with, what a reduce-scatter starts from. 0 for groups of one rank. `algorithm` must
/// be supported.
double collectiveSeconds(const cluster::Cluster &cluster, CollectiveKind kind, double bytes, const cluster::Span &span,
                         Algorithm algorithm = Algorithm::Auto);

/// The fastest of the algorithms and protocols of formulas, whatever was measured: ring, tree or NVLS where `allowed`
/// is Auto. `bytes` must be above 0, the group of two ranks or more.
struct Choice {
  Algorithm algorithm;
  Protocol protocol;
  double seconds;
};
Choice chooseCollective(const cluster::Cluster &cluster, CollectiveKind kind, double bytes, const cluster::Span &span,
                        Algorithm allowed = Algorithm::Auto);

/// Seconds of one hop of a ring across a level, in this protocol.
double hopSeconds(const cluster::Cluster &cluster, size_t level, Protocol protocol);

/// Seconds of a message between two GPUs whose innermost common unit is of `level`, while `senders` GPUs of each unit
/// of level-1 send upward at once.
double messageSeconds(const cluster::Cluster &cluster, double bytes, int level, int64_t senders = 1);

/// The bandwidth part of a message or ring alone: bytes/s that a group gets across `level` when it uses the links of
/// `ranks` of its GPUs in each unit below and `groups` groups of as many share them.
double groupBandwidth(const cluster::Cluster &cluster, size_t level, int64_t ranks, int64_t groups);

} // namespace drover::cost

#endif // DROVER_COST_COLLECTIVES_H
