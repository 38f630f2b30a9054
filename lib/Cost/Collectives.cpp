//===- Collectives.cpp - seconds of collectives and messages --------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cost/Collectives.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace drover;
using namespace drover::cost;
using cluster::Cluster;
using cluster::Span;

namespace {
// The protocols of NCCL and their constants (NVIDIA/nccl, src/graph/tuning.cc). A level's `latency` is a hop with LL;
// the other protocols add the same on every cluster, more where a network card is in between.
struct ProtocolCosts {
  double base;         // seconds before the first hop: ring
  double treeBase;     // the same: tree
  double linkExtra;    // seconds a hop over LL, within a server
  double networkExtra; // the same, across
  double fraction;     // of the bandwidth, within one server: the rest is flags
  double networkFraction;
};
// Hops: LL 0.6 and 2.7 us, LL128 1.9 and 4.0, Simple 3.4 and 14. LL's share: 141 of the 370 GB/s that rings reach on
// an H100, and a quarter across servers; LL128's: 120 of 128 bytes, of which 0.92 are reached.
constexpr ProtocolCosts kProtocols[] = {{6.6e-6, 6.8e-6, 0, 0, 0.38, 0.25},
                                        {14.0e-6, 14.0e-6, 1.3e-6, 1.3e-6, 0.92, 0.92},
                                        {8.4e-6, 8.4e-6, 2.8e-6, 11.3e-6, 1, 1}};
constexpr const ProtocolCosts &kSimple = kProtocols[2];
/// A tree's hop across servers costs more than a ring's: 5.0, 8.5 and 14 us against 2.7, 4.0 and 14 (same source).
constexpr double kTreeNetworkFactor = 1.9;
/// Latency of NVLS in one server (same source).
constexpr double kNvlsLatency = 25e-6;
/// Of a ring's bandwidth (same source).
constexpr double kTreeFraction = 0.9;
/// From 4 KiB a rank on, a ring with Simple takes 1.9 times its latency: slots of the buffers fill before the first
/// comes round (same source, "plateau"). Tables of single servers show the same for rings and NVLS.
constexpr double kPlateau = 1.9, kPlateauBytesPerRank = 4096;

/// Seconds with the protocol that is fastest.
struct Timed {
  double seconds = std::numeric_limits<double>::infinity();
  Protocol protocol = Protocol::Simple;

  void take(const ProtocolCosts &costs, double other) {
    if (other >= seconds)
      return;
    seconds = other;
    protocol = static_cast<Protocol>(&costs - kProtocols);
  }
};

double hop(const cluster::Level &level, const ProtocolCosts &protocol, bool network) {
  return level.latency + (network ? protocol.networkExtra : protocol.linkExtra);
}

/// Ranks of a group in one innermost unit: one ring a network card, and a card belongs to a GPU.
int64_t ranksInServer(const Span &span) { return span.ranksIn[0]; }

/// Innermost units that a group spans.
int64_t serversOf(const Span &span) { return (span.ranks + ranksInServer(span) - 1) / ranksInServer(span); }

/// Bytes/s a group gets over the narrowest level it crosses: the bus bandwidth of nccl-tests.
double busBandwidth(const Cluster &cluster, const Span &span) {
  double least = std::numeric_limits<double>::infinity();
  if (span.crosses(0))
    least = cluster.levels[0].effectiveBandwidth();
  for (int level = 1; level <= span.outermost; ++level)
    least = std::min(least, groupBandwidth(cluster, level, ranksInServer(span), span.sharing[level]));
  return least;
}

/// Rounds of a ring, and the part of the tensor that each rank sends in all of them.
struct RingShape {
  double rounds; // over the ring
  double share;  // of the tensor
};
RingShape ringShape(CollectiveKind kind, int64_t ranks) {
  double part = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  switch (kind) {
  case CollectiveKind::AllReduce:
    return {2, 2 * part};
  case CollectiveKind::Broadcast:
    return {1, 1};
  case CollectiveKind::AllGather:
  case CollectiveKind::ReduceScatter:
    return {1, part};
  }
  return {1, part};
}

/// Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, 2009: n - 1 steps a round, each to the next rank. The
/// ring leaves a unit of level l-1 once for each unit it visits, so it has as many hops across l as units there.
Timed ringSeconds(const Cluster &cluster, CollectiveKind kind, double bytes, const Span &span) {
  RingShape shape = ringShape(kind, span.ranks);
  double bandwidth = busBandwidth(cluster, span);
  Timed best;
  bool network = span.outermost > 0;
  for (const ProtocolCosts &protocol : kProtocols) {
    double latency = 0, steps = static_cast<double>(span.ranks - 1), units = 1;
    for (int level = span.outermost; level >= 0; --level) {
      double crossing = units * static_cast<double>(span.fanout[level]) - (level == span.outermost ? 1 : units);
      crossing = std::min(crossing, steps);
      latency += crossing * hop(cluster.levels[level], protocol, level > 0);
      steps -= crossing;
      units *= static_cast<double>(span.fanout[level]);
    }
    latency = protocol.base + shape.rounds * latency;
    if (&protocol == &kSimple && bytes >= kPlateauBytesPerRank * static_cast<double>(span.ranks))
      latency *= kPlateau;
    double fraction = network ? protocol.networkFraction : protocol.fraction;
    best.take(protocol, latency + shape.share * bytes / (bandwidth * fraction));
  }
  return best;
}

/// Levels of a binary tree over the units of every level above the innermost.
double treeHops(const Cluster &cluster, const Span &span, const ProtocolCosts &protocol) {
  double latency = 0;
  for (int level = 1; level <= span.outermost; ++level)
    latency += std::log2(static_cast<double>(span.fanout[level])) *
               (kTreeNetworkFactor * cluster.levels[level].latency + protocol.networkExtra);
  return latency;
}

/// Sanders, Speck and Traff, Two-tree algorithms for full bandwidth broadcast, reduction and scan, 2009; within a
/// server NCCL chains (tuning.cc: 2 ((ranks/nodes - 1) link + log2(nodes) network)).
Timed treeSeconds(const Cluster &cluster, double bytes, const Span &span) {
  double bandwidth = kTreeFraction * busBandwidth(cluster, span);
  Timed best;
  for (const ProtocolCosts &protocol : kProtocols) {
    double chain = static_cast<double>(ranksInServer(span) - 1) * hop(cluster.levels[0], protocol, false);
    double latency = protocol.treeBase + 2 * (chain + treeHops(cluster, span, protocol));
    double fraction = span.outermost > 0 ? protocol.networkFraction : protocol.fraction;
    best.take(protocol, latency + 2 * bytes / (bandwidth * fraction));
  }
  return best;
}

/// Switches add what GPUs send and spread the sum: a GPU sends its tensor once and the n-th part of the sum, in place
/// of 2 (n-1)/n of it (NVLink SHARP; Klenk et al., An in-network architecture for accelerating shared-memory
/// multiprocessor collectives, 2020). Across levels without such switches the servers are joined by trees.
double nvlsSeconds(const Cluster &cluster, double bytes, const Span &span) {
  double n = static_cast<double>(ranksInServer(span));
  const cluster::Level &server = cluster.levels[0];
  double seconds = bytes * (1 + 1 / n) / (server.bandwidth * server.inNetwork);
  double latency = kNvlsLatency + 2 * treeHops(cluster, span, kSimple);
  if (bytes >= kPlateauBytesPerRank * static_cast<double>(span.ranks))
    latency *= kPlateau;
  // A server sends up one of two trees and down the other's children: twice the tensor, once where there are two
  // servers.
  double treeShare = serversOf(span) > 2 ? 2 : 1;
  for (int level = 1; level <= span.outermost; ++level) {
    const cluster::Level &across = cluster.levels[level];
    double share = treeShare;
    double bandwidth = groupBandwidth(cluster, level, ranksInServer(span), span.sharing[level]);
    if (across.inNetwork > 0) {
      share = 1;
      bandwidth *= across.inNetwork / across.achieved;
    }
    seconds = std::max(seconds, share * bytes / bandwidth);
  }
  return latency + seconds;
}

/// What was measured over so many ranks of a server, where something was: between two sizes of group in proportion,
/// beyond the largest as many times as long as it is larger. On shared cores the ranks of a measured group got in each
/// other's way; that is taken out here, since the projection adds it for all ranks at work (lib/Planner/SharedCores).
std::optional<double> measuredSeconds(const Cluster &cluster, const char *kind, double bytes, int64_t ranks) {
  const cluster::Level &server = cluster.levels.front();
  const cluster::MeasuredCollective *below = nullptr, *above = nullptr;
  for (const cluster::MeasuredCollective &measured : server.collectives) {
    if (measured.backend != server.backend || measured.kind != kind)
      continue;
    if (measured.ranks <= ranks)
      below = &measured;
    else if (!above)
      above = &measured;
  }
  if (!below && !above)
    return std::nullopt;
  auto secondsOf = [&](const cluster::MeasuredCollective &measured) {
    double alone = 1;
    if (int64_t cores = cluster.device.sharedCores; cores > 0)
      alone = std::min(1.0, static_cast<double>(cores) / static_cast<double>(measured.ranks));
    return (measured.latency + bytes / measured.bandwidth) * alone;
  };
  if (!below)
    return secondsOf(*above);
  if (!above)
    return secondsOf(*below) * static_cast<double>(ranks) / static_cast<double>(below->ranks);
  double between = static_cast<double>(ranks - below->ranks) / static_cast<double>(above->ranks - below->ranks);
  return secondsOf(*below) * (1 - between) + secondsOf(*above) * between;
}

/// Bytes/s of each rank while all ranks of a group exchange across `level`, each with its counterpart in the other
/// units.
double bandwidthOfEach(const Cluster &cluster, const Span &span, int level) {
  if (level == 0)
    return cluster.levels[0].effectiveBandwidth();
  double least = std::numeric_limits<double>::infinity();
  for (int crossed = 1; crossed <= level; ++crossed) {
    int64_t ranks = span.ranksIn[crossed - 1];
    least =
        std::min(least, groupBandwidth(cluster, crossed, ranks, span.sharing[crossed]) / static_cast<double>(ranks));
  }
  return least;
}

/// Level by level: each with the part of the tensor that the levels inside leave to a rank, over the links of all ranks
/// (Cho et al., BlueConnect, 2019).
double hierarchicalSeconds(const Cluster &cluster, CollectiveKind kind, double bytes, const Span &span) {
  double rounds = ringShape(kind, span.ranks).rounds, best = std::numeric_limits<double>::infinity();
  for (const ProtocolCosts &protocol : kProtocols) {
    double seconds = protocol.base, part = bytes;
    for (int level = 0; level <= span.outermost; ++level) {
      if (!span.crosses(level))
        continue;
      double fanout = static_cast<double>(span.fanout[level]);
      double bandwidth =
          bandwidthOfEach(cluster, span, level) * (level > 0 ? protocol.networkFraction : protocol.fraction);
      seconds += rounds * ((fanout - 1) * hop(cluster.levels[level], protocol, level > 0) +
                           part * (fanout - 1) / fanout / bandwidth);
      part /= fanout;
    }
    best = std::min(best, seconds);
  }
  return best;
}
} // namespace

const char *cost::nameOf(CollectiveKind kind) {
  constexpr const char *names[] = {"all_gather", "reduce_scatter", "all_reduce", "broadcast"};
  return names[static_cast<size_t>(kind)];
}

const char *cost::nameOf(Protocol protocol) {
  constexpr const char *names[] = {"ll", "ll128", "simple"};
  return names[static_cast<size_t>(protocol)];
}

double cost::hopSeconds(const Cluster &cluster, size_t level, Protocol protocol) {
  return hop(cluster.levels[level], kProtocols[static_cast<size_t>(protocol)], level > 0);
}

const char *cost::nameOf(Algorithm algorithm) {
  constexpr const char *names[] = {"auto", "auto without nvls", "ring", "tree", "nvls", "hierarchical"};
  return names[static_cast<size_t>(algorithm)];
}

bool cost::supports(const Cluster &cluster, CollectiveKind kind, const Span &span, Algorithm algorithm) {
  switch (algorithm) {
  case Algorithm::Auto:
  case Algorithm::AutoNoNvls:
  case Algorithm::Ring:
    return true;
  case Algorithm::Tree:
    return kind == CollectiveKind::AllReduce;
  case Algorithm::Nvls:
    return kind == CollectiveKind::AllReduce && span.crosses(0) && cluster.levels[0].inNetwork > 0;
  case Algorithm::Hierarchical:
    return kind != CollectiveKind::Broadcast;
  }
  return false;
}

double cost::collectiveSeconds(const Cluster &cluster, CollectiveKind kind, double bytes, const Span &span,
                               Algorithm algorithm) {
  assert(supports(cluster, kind, span, algorithm) && "the algorithm does not do this");
  if (span.ranks <= 1 || bytes <= 0)
    return 0;
  if (span.outermost == 0)
    if (std::optional<double> seconds = measuredSeconds(cluster, nameOf(kind), bytes, span.ranks))
      return *seconds;
  if (algorithm == Algorithm::Hierarchical)
    return hierarchicalSeconds(cluster, kind, bytes, span);
  return chooseCollective(cluster, kind, bytes, span, algorithm).seconds;
}

cost::Choice cost::chooseCollective(const Cluster &cluster, CollectiveKind kind, double bytes, const Span &span,
                                    Algorithm allowed) {
  assert(span.ranks > 1 && bytes > 0 && allowed != Algorithm::Hierarchical && "nothing to choose");
  Choice best = {Algorithm::Ring, Protocol::Simple, std::numeric_limits<double>::infinity()};
  auto consider = [&](Algorithm algorithm, auto price) {
    bool any = allowed == Algorithm::Auto || (allowed == Algorithm::AutoNoNvls && algorithm != Algorithm::Nvls);
    if ((!any && allowed != algorithm) || !supports(cluster, kind, span, algorithm))
      return;
    if (Timed timed = price(); timed.seconds < best.seconds)
      best = {algorithm, timed.protocol, timed.seconds};
  };
  consider(Algorithm::Ring, [&] { return ringSeconds(cluster, kind, bytes, span); });
  consider(Algorithm::Tree, [&] { return treeSeconds(cluster, bytes, span); });
  consider(Algorithm::Nvls, [&] { return Timed{nvlsSeconds(cluster, bytes, span), Protocol::Simple}; });
  return best;
}

double cost::messageSeconds(const Cluster &cluster, double bytes, int level, int64_t senders) {
  if (level < 0 || bytes <= 0)
    return 0;
  if (level == 0)
    if (std::optional<double> seconds = measuredSeconds(cluster, "message", bytes, 2))
      return *seconds;
  double bandwidth = level ? std::numeric_limits<double>::infinity() : cluster.levels[0].effectiveBandwidth();
  for (int crossed = 1; crossed <= level; ++crossed)
    bandwidth =
        std::min(bandwidth, groupBandwidth(cluster, crossed, 1, std::min(senders, cluster.gpusIn(crossed - 1))));
  return kSimple.base + hop(cluster.levels[level], kSimple, level > 0) + bytes / bandwidth;
}

double cost::groupBandwidth(const Cluster &cluster, size_t level, int64_t ranks, int64_t groups) {
  const cluster::Level &crossed = cluster.levels[level];
  double each = crossed.effectiveBandwidth();
  if (level == 0)
    return each * static_cast<double>(ranks);
  double upward = static_cast<double>(cluster.gpusIn(level - 1)) * each / crossed.oversubscription;
  return std::min(each * static_cast<double>(ranks), upward / static_cast<double>(std::max<int64_t>(1, groups)));
}
