//===- Settings.cpp - from cluster and placement to NCCL's settings -------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Derive.h"
#include "drover/Cluster/Quantity.h"
#include <algorithm>
#include <cmath>

using namespace drover;
using namespace drover::nccl;
using cluster::Cluster;

namespace {
/// What a channel, a thread block with its buffers, is counted on for. Within a server: NCCL has 24 for the 450 GB/s of
/// an H100's NVLink. Across: its search (src/graph/search.cc, sm90SpeedArrayInter) takes 48 GB/s of a 400 Gb/s adapter
/// at most and makes each channel double, 24 each.
constexpr double kLinkChannel = 450e9 / 24, kNetworkChannel = 24e9;
/// The most that ncclConfig_t takes (nccl.h, maxCTAs).
constexpr int64_t kMostCtas = 32;
/// Defaults of NCCL: NCCL_BUFFSIZE, in eight steps of which a chunk of gathers and reduce-scatters takes two;
/// NCCL_P2P_NET_CHUNKSIZE, eight of which are on their way.
constexpr int64_t kBuffer = 4 << 20, kMessageChunk = 128 << 10, kSteps = 8, kChunksOfBuffer = 4;
constexpr int64_t kMostBuffer = 64 << 20;
/// ncclConfig_t's default on sm_90 and later.
constexpr int64_t kCga = 4;
/// NCCL_IB_QPS_PER_CONNECTION
constexpr int64_t kMostQueuePairs = 128;
/// NCCL_CTA_POLICY_EFFICIENCY and _ZERO
constexpr int64_t kEfficiency = 1, kZero = 2;

std::string leftReason(int64_t ctas) {
  return "--communication-sms leaves " + std::to_string(ctas) + " multiprocessors to NCCL";
}

int64_t ceilingOf(double value) { return static_cast<int64_t>(std::ceil(value - 1e-9)); }

bool hasThreadBlockClusters(const cluster::Device &device) {
  return device.kind.rfind("H", 0) == 0 || device.kind.rfind("B", 0) == 0 || device.kind.rfind("G", 0) == 0;
}

/// Where one dimension lies and what follows from that.
struct Placed {
  const Demand *demand;
  Lie lie;
  Channels channels;

  bool isUsed() const { return !demand->uses.empty() || demand->messageBytes > 0; }
  bool crossesNetwork() const { return channels.level > 0 && isUsed(); }
};

class Derivation {
public:
  Derivation(const Cluster &cluster, const cluster::Grid &grid, int64_t kv, const std::vector<Demand> &demands,
             int64_t mostCtas)
      : cluster(cluster), placement(cluster, grid) {
    for (const Demand &demand : demands) {
      Lie lie = lieOf(placement, kv, demand);
      Channels channels = channelsOf(cluster, lie);
      if (mostCtas && channels.most > mostCtas) {
        channels.reason = leftReason(mostCtas) + "; " + std::to_string(channels.most) + " would pay";
        channels.most = mostCtas;
      }
      placed.push_back({&demand, std::move(lie), std::move(channels)});
    }
  }

  Settings run() {
    Settings settings;
    settings.cluster = cluster.name;
    for (size_t level = 0; level < cluster.levels.size(); ++level)
      settings.levels.push_back({cluster.levels[level].name, cluster.gpusIn(level)});
    for (const Placed &each : placed)
      settings.dimensions.push_back(dimensionOf(each));
    setEnvironment(settings.environment);
    return settings;
  }

private:
  Dimension dimensionOf(const Placed &each) const {
    const Demand &demand = *each.demand;
    Dimension dimension{demand.name, demand.ids, demand.members, each.lie.groups, each.lie.units, {}, {}};
    dimension.rules = rulesOf(cluster, each.lie, each.channels, demand);
    setCtas(each, dimension);
    setPolicy(each, dimension.settings);
    setNetwork(each, dimension.settings);
    return dimension;
  }

  /// No more than the largest collective fills.
  void setCtas(const Placed &each, Dimension &dimension) const {
    std::vector<Setting> &settings = dimension.settings;
    int64_t most = each.channels.most, filled = 0, bytes = 0;
    for (const TunerRule &rule : dimension.rules)
      filled = std::max(filled, rule.channels);
    for (const Use &use : each.demand->uses)
      bytes = std::max(bytes, use.mostBytes);
    std::string reason = each.channels.reason;
    if (each.demand->messageBytes == 0 && filled > 0 && filled < most) {
      most = filled;
      reason = "as many as the largest collective, " + bytesText(static_cast<double>(bytes)) + ", fills";
    }
    if (!each.isUsed()) {
      most = 1;
      reason = "no more than its handshake goes over it";
    }
    settings.push_back({"min_ctas", 1, "NCCL takes fewer where messages are small"});
    settings.push_back({"max_ctas", most, reason});
    int64_t together = kCga;
    while (most % together)
      together /= 2;
    if (together != kCga && hasThreadBlockClusters(cluster.device))
      settings.push_back({"cga_cluster_size", together,
                          "the default of " + std::to_string(kCga) +
                              " thread blocks that start together does not divide " + std::to_string(most)});
  }

  void setPolicy(const Placed &each, std::vector<Setting> &settings) const {
    const Demand &demand = *each.demand;
    bool gathers = std::any_of(demand.uses.begin(), demand.uses.end(),
                               [](const Use &use) { return use.collective == cost::CollectiveKind::AllGather; });
    if (gathers && each.channels.level == 0) {
      settings.push_back({"cta_policy", kZero,
                          "all members are in one " + cluster.levels[0].name +
                              ": gathers of registered windows are copies, without a CTA"});
      settings.push_back({"windows", 1,
                          "gathers within a " + cluster.levels[0].name +
                              " go by copy engines where both buffers lie in a registered window"});
    } else if (demand.beside && each.crossesNetwork()) {
      settings.push_back({"cta_policy", kEfficiency, "runs beside compute, which wants the SMs"});
    }
  }

  void setNetwork(const Placed &each, std::vector<Setting> &settings) const {
    const Demand &demand = *each.demand;
    if (!each.crossesNetwork())
      return;
    if (demand.messageBytes > 0)
      settings.push_back({"channels_per_net_peer", each.channels.perPeer,
                          rateText(networkRate(each.channels.level)) + " between two GPUs across a " +
                              cluster.levels[static_cast<size_t>(each.channels.level)].name + ", " +
                              rateText(kNetworkChannel) + " a channel"});
    if (!cluster.trafficClasses)
      return;
    bool bulk = demand.beside;
    settings.push_back(
        {"traffic_class", bulk ? cluster.trafficClasses->bulk : cluster.trafficClasses->urgent,
         bulk ? "runs beside compute: the cluster's bulk class" : "compute waits for it: the cluster's urgent class"});
  }

  double networkRate(int level) const {
    double rate = cluster.levels[1].effectiveBandwidth();
    for (int crossed = 1; crossed <= level; ++crossed)
      rate = std::min(rate, cluster.levels[static_cast<size_t>(crossed)].effectiveBandwidth());
    return rate;
  }

  void setEnvironment(std::vector<Variable> &environment) const {
    setQueuePairs(environment);
    if (cluster.trafficClasses && crossesAnywhere())
      environment.push_back({"NCCL_IB_FIFO_TC", std::to_string(cluster.trafficClasses->control),
                             "the cluster's control class: a message that a buffer is free does not wait behind data"});
    setBuffers(environment);
  }

  bool crossesAnywhere() const {
    return std::any_of(placed.begin(), placed.end(), [](const Placed &each) { return each.crossesNetwork(); });
  }

  /// One queue pair of one channel is one flow: a switch hashes it onto one path.
  void setQueuePairs(std::vector<Variable> &environment) const {
    int64_t flows = 0, fewest = kMostCtas;
    std::string whose, where;
    for (const Placed &each : placed)
      for (int level = 1; each.crossesNetwork() && level <= each.channels.level; ++level) {
        const cluster::Level &crossed = cluster.levels[static_cast<size_t>(level)];
        if (crossed.flows == 0)
          continue;
        if (crossed.flows > flows)
          where = crossed.name;
        flows = std::max(flows, crossed.flows);
        if (each.channels.perPeer < fewest)
          whose = each.demand->name;
        fewest = std::min(fewest, each.channels.perPeer);
      }
    if (flows == 0)
      return;
    int64_t pairs = std::min(kMostQueuePairs, (flows + fewest - 1) / fewest);
    environment.push_back({"NCCL_IB_QPS_PER_CONNECTION", std::to_string(pairs),
                           std::to_string(flows) + " flows per pair of GPUs across a " + where + ", over " +
                               std::to_string(fewest) + (fewest == 1 ? " channel (" : " channels (") + whose + ")"});
  }

  void setBuffers(std::vector<Variable> &environment) const {
    int64_t buffer = kBuffer, chunk = kMessageChunk;
    std::string whose, whoseMessages;
    double trip = 0;
    for (const Placed &each : placed) {
      if (!each.crossesNetwork())
        continue;
      if (!each.demand->uses.empty() && each.channels.chunkBytes * kChunksOfBuffer >= buffer) {
        buffer = std::min(kMostBuffer, each.channels.chunkBytes * kChunksOfBuffer);
        whose = each.demand->name + " across a " + levelName(each);
      }
      double inFlight = each.channels.channelBytes * each.channels.roundTrip;
      int64_t needed = roundUpToPowerOfTwo(inFlight / static_cast<double>(kSteps));
      if (each.demand->messageBytes > 0 && needed >= chunk) {
        chunk = std::min(kMostBuffer / kSteps, needed);
        whoseMessages = each.demand->name + " across a " + levelName(each);
        trip = each.channels.roundTrip;
      }
    }
    if (!whose.empty())
      environment.push_back({"NCCL_BUFFSIZE", std::to_string(buffer),
                             std::to_string(kChunksOfBuffer) + " chunks of what a channel sends in one hop (" + whose +
                                 "), at least NCCL's " + bytesText(static_cast<double>(kBuffer))});
    if (!whoseMessages.empty())
      environment.push_back({"NCCL_P2P_NET_CHUNKSIZE", std::to_string(chunk),
                             std::to_string(kSteps) + " chunks are on their way in a round trip of " + timeText(trip) +
                                 " (" + whoseMessages + "), at least NCCL's " +
                                 bytesText(static_cast<double>(kMessageChunk))});
  }

  std::string levelName(const Placed &each) const {
    return cluster.levels[static_cast<size_t>(each.channels.level)].name;
  }

  const Cluster &cluster;
  cluster::Placement placement;
  std::vector<Placed> placed;
};

/// With one axis the plan's grid is the placement's.
cluster::Grid gridOf(const schedule::Grid &grid) {
  cluster::Grid result;
  result.sizes = {grid.tp, grid.cp, grid.pp, grid.dp};
  for (size_t i = 0; i < cluster::kNumAxes; ++i)
    if (std::optional<cluster::Axis> axis = cluster::parseAxis(grid.order[i]))
      result.order[i] = *axis;
  return result;
}
} // namespace

const Setting *Dimension::find(const std::string &setting) const {
  auto found =
      std::find_if(settings.begin(), settings.end(), [&](const Setting &each) { return each.name == setting; });
  return found == settings.end() ? nullptr : &*found;
}

const Dimension *Settings::find(const std::string &name) const {
  auto found =
      std::find_if(dimensions.begin(), dimensions.end(), [&](const Dimension &each) { return each.name == name; });
  return found == dimensions.end() ? nullptr : &*found;
}

const Variable *Settings::findVariable(const std::string &name) const {
  auto found =
      std::find_if(environment.begin(), environment.end(), [&](const Variable &each) { return each.name == name; });
  return found == environment.end() ? nullptr : &*found;
}

int64_t nccl::roundUpToPowerOfTwo(double value) {
  int64_t result = 1;
  while (static_cast<double>(result) < value)
    result *= 2;
  return result;
}

Channels nccl::channelsOf(const Cluster &cluster, const Lie &lie) {
  Channels channels;
  channels.level = lie.span.outermost;
  if (channels.level <= 0) {
    double rate = cluster.levels[0].bandwidth;
    channels.most = std::clamp<int64_t>(ceilingOf(rate / kLinkChannel), 1, kMostCtas);
    channels.channelBytes = rate / static_cast<double>(channels.most);
    channels.reason =
        rateText(rate) + " of a GPU within a " + cluster.levels[0].name + ", " + rateText(kLinkChannel) + " a channel";
    return channels;
  }
  // A ring leaves a server by one adapter a channel, and every GPU there passes on what all channels carry.
  int64_t ranks = lie.span.ranksIn[0];
  double rate = static_cast<double>(ranks) * cluster.levels[1].effectiveBandwidth();
  std::string narrowest = cluster.levels[1].name;
  for (int level = 1; level <= channels.level; ++level) {
    auto crossed = static_cast<size_t>(level);
    double bound = cost::groupBandwidth(cluster, crossed, ranks, lie.span.sharing[crossed]);
    if (bound < rate)
      narrowest = cluster.levels[crossed].name;
    rate = std::min(rate, bound);
  }
  channels.perPeer = std::max<int64_t>(1, ceilingOf(rate / static_cast<double>(ranks) / kNetworkChannel));
  channels.most = std::min(kMostCtas, channels.perPeer * ranks);
  channels.channelBytes = rate / static_cast<double>(channels.most);
  auto outermost = static_cast<size_t>(channels.level);
  double hop = cost::hopSeconds(cluster, outermost, cost::Protocol::Simple);
  channels.roundTrip = 2 * hop;
  channels.chunkBytes = std::min(kMostBuffer / kChunksOfBuffer, roundUpToPowerOfTwo(channels.channelBytes * hop));
  channels.reason = rateText(rate) + " of " + std::to_string(ranks) + (ranks == 1 ? " GPU" : " GPUs") + " a " +
                    cluster.levels[0].name + " across a " + narrowest + ", " + rateText(kNetworkChannel) + " a channel";
  return channels;
}

std::string nccl::bytesText(double bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit)
    bytes /= 1024;
  return cluster::printQuantity(std::round(bytes * 10) / 10, cluster::Quantity::Number) + " " + units[unit];
}

std::string nccl::rateText(double bytesPerSecond) {
  return cluster::printQuantity(std::round(bytesPerSecond / 1e8) / 10, cluster::Quantity::Number) + " GB/s";
}

std::string nccl::timeText(double seconds) {
  bool isLong = seconds >= 1e-3;
  return cluster::printQuantity(std::round(seconds * (isLong ? 1e4 : 1e7)) / 10, cluster::Quantity::Number) +
         (isLong ? " ms" : " us");
}

Settings nccl::deriveSettings(const Cluster *cluster, const cluster::Grid &grid, int64_t kv,
                              const std::vector<Demand> &demands, int64_t mostCtas) {
  if (cluster && cluster->device.kind != "host")
    return Derivation(*cluster, grid, kv, demands, mostCtas).run();
  Settings settings;
  settings.note = cluster ? "NCCL's defaults: cluster '" + cluster->name + "' has no GPUs"
                          : "NCCL's defaults: compiled without --cluster=";
  std::vector<Setting> bound;
  if (mostCtas) {
    bound.push_back({"max_ctas", std::min(mostCtas, kMostCtas), leftReason(mostCtas)});
    settings.note += ", but for max_ctas of --communication-sms";
  }
  for (const Demand &demand : demands)
    settings.dimensions.push_back({demand.name, demand.ids, demand.members, countGroups(grid, demand), {}, bound, {}});
  return settings;
}

Settings nccl::deriveSettings(const Cluster *cluster, const schedule::StepProgram &step) {
  return deriveSettings(cluster, gridOf(step.grid), step.grid.kv, demandsOf(step), step.plan.communicationSms);
}
