//===- TunerRules.cpp - algorithm, protocol, channels by size -------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Derive.h"
#include <algorithm>

using namespace drover;
using namespace drover::nccl;
using cost::Algorithm;
using cost::Protocol;

namespace {
/// Rules are looked for at powers of two from here on.
constexpr int64_t kLeastBytes = 1 << 10;

/// Of one channel, below which NCCL takes fewer: threads times what each is to move (src/include/comm.h and
/// src/graph/tuning.cc: 8, 8 and 64 bytes a thread, of 512, 640 and 512). A ring's LL counts each member's part.
double leastOfChannel(Protocol protocol, Algorithm algorithm, int64_t members) {
  switch (protocol) {
  case Protocol::LL:
    return 8. * 512 * (algorithm == Algorithm::Ring ? static_cast<double>(members) : 1.);
  case Protocol::LL128:
    return 8. * 640;
  case Protocol::Simple:
    break;
  }
  return 64. * 512;
}

std::string ncclName(Algorithm algorithm, bool network) {
  if (algorithm == Algorithm::Nvls)
    return network ? "nvls_tree" : "nvls";
  return cost::nameOf(algorithm);
}

bool isSame(const TunerRule &a, const TunerRule &b) {
  return a.algorithm == b.algorithm && a.protocol == b.protocol && a.channels == b.channels &&
         a.chunkBytes == b.chunkBytes;
}

/// What is fastest for a collective of so many bytes by the formulas of docs/network-costs.md.
TunerRule ruleAt(const cluster::Cluster &cluster, const Lie &lie, const Channels &channels,
                 cost::CollectiveKind collective, int64_t bytes) {
  cost::Choice choice = cost::chooseCollective(cluster, collective, static_cast<double>(bytes), lie.span);
  TunerRule rule;
  rule.collective = collective;
  rule.algorithm = ncclName(choice.algorithm, channels.level > 0);
  rule.protocol = choice.protocol;
  double least = leastOfChannel(choice.protocol, choice.algorithm, lie.span.ranks);
  rule.channels = std::clamp<int64_t>(static_cast<int64_t>(static_cast<double>(bytes) / least), 1, channels.most);
  // A chunk that fills the hop helps where a channel's share of a member's part has at least one of them.
  int64_t share = bytes / (lie.span.ranks * rule.channels);
  if (choice.protocol == Protocol::Simple && channels.chunkBytes > 0 && share >= channels.chunkBytes)
    rule.chunkBytes = channels.chunkBytes;
  rule.reason = timeText(choice.seconds) + " at " + bytesText(static_cast<double>(bytes));
  if (rule.chunkBytes)
    rule.reason += "; a chunk fills a hop of " + timeText(channels.roundTrip / 2);
  return rule;
}
} // namespace

std::vector<TunerRule> nccl::rulesOf(const cluster::Cluster &cluster, const Lie &lie, const Channels &channels,
                                     const Demand &demand) {
  std::vector<TunerRule> rules;
  for (const Use &use : demand.uses) {
    size_t first = rules.size();
    for (int64_t bytes = kLeastBytes;; bytes *= 2) {
      TunerRule rule = ruleAt(cluster, lie, channels, use.collective, bytes);
      // One size stands for all from half of it on.
      if (rules.size() > first && isSame(rules.back(), rule))
        rules.back().upToBytes = bytes;
      else {
        rule.upToBytes = bytes;
        rules.push_back(std::move(rule));
      }
      if (bytes >= use.mostBytes)
        break;
    }
    rules.back().upToBytes.reset();
  }
  return rules;
}
