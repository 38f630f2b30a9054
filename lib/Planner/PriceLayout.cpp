//===- PriceLayout.cpp - seconds of a layout's parts ----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Planner/Projection.h"
#include <algorithm>
#include <cmath>

using namespace drover;
using namespace drover::planner;
using namespace drover::cost;
using cluster::Axis;
using cluster::Precision;
using schedule::Error;
using schedule::Result;

namespace {

/// Kernels that drover or a source's software would take, the best first.
const cluster::AttentionRates *chooseAttention(const cluster::Device &device, const std::string &name) {
  if (name == "unfused" || name == "triton" || name == "flash2" || name == "generated")
    return device.findAttention(name);
  for (const char *kernel : {"flash3", "flash2", "generated"})
    if (const cluster::AttentionRates *rates = device.findAttention(kernel))
      return rates;
  return device.attention.empty() ? nullptr : &device.attention.front();
}

class LayoutPricer {
public:
  LayoutPricer(const ModelShape &shape, const cluster::Cluster &cluster, const Layout &layout, const Software &software,
               const cluster::Grid &grid, const Sizes &sizes, Precision precision,
               const cluster::AttentionRates &attention, cluster::SpanCache *spans)
      : shape(shape), cluster(cluster), device(cluster.device), plan(layout.plan), software(software), sizes(sizes),
        precision(precision), attention(attention), placement(cluster, grid, spans), tpSpan(placement.spanOf(Axis::TP)),
        cpSpan(placement.spanOf(Axis::CP)), shardSpan(placement.spanOf({Axis::CP, Axis::DP})),
        algorithm(software.nvls ? Algorithm::Auto : Algorithm::AutoNoNvls) {
    if (software.documents)
      documents = software.documents->of(plan.sequenceLength, plan.cp, plan.microbatch);
  }

  LayoutCosts price(int64_t microbatches);

private:
  BodySeconds secondsOf(const Work &work) const;
  double collective(const Collective &what) const;
  double besideSeconds(const Work &work, size_t place, const Collective &what) const;
  double matmul(const Matmul &what) const {
    Precision format = what.fp8 && device.peakOf(Precision::FP8) > 0 ? Precision::FP8 : precision;
    return matmulSeconds(device, format, what.m, what.n, what.k) / (software.boosted ? 1 + device.clockBoost : 1);
  }
  void priceChunks(LayoutCosts &costs) const;
  void priceTransfers(LayoutCosts &costs) const;
  void priceExchange(LayoutCosts &costs) const;
  void priceOptimizer(LayoutCosts &costs) const;
  double exchangeSeconds(CollectiveKind kind, double elements, double bytesOfElement) const;
  bool shardsParameters() const { return plan.zero == 3; }

  const ModelShape &shape;
  const cluster::Cluster &cluster;
  const cluster::Device &device;
  const schedule::Plan &plan;
  const Software &software;
  const Sizes &sizes;
  Precision precision;
  const cluster::AttentionRates &attention;
  cluster::Placement placement;
  cluster::Span tpSpan, cpSpan, shardSpan;
  Algorithm algorithm;
  DocumentLoad documents;
};

double LayoutPricer::collective(const Collective &what) const {
  return collectiveSeconds(cluster, what.kind, what.bytes, what.axis == Axis::TP ? tpSpan : cpSpan, algorithm);
}

/// Of the matmul that a collective may run beside; 0 where there is none.
double LayoutPricer::besideSeconds(const Work &work, size_t place, const Collective &what) const {
  if (what.beside == Beside::Nothing)
    return 0;
  int step = what.beside == Beside::NextMatmul ? 1 : -1;
  for (auto i = static_cast<int64_t>(place) + step; i >= 0 && i < static_cast<int64_t>(work.size()); i += step)
    if (const auto *product = std::get_if<Matmul>(&work[static_cast<size_t>(i)].what))
      return matmul(*product);
  return 0;
}

BodySeconds LayoutPricer::secondsOf(const Work &work) const {
  BodySeconds seconds;
  double eager = sizes.fusedElementwise ? 1 : device.eagerTraffic;
  for (size_t i = 0; i < work.size(); ++i) {
    const Op &op = work[i];
    if (const auto *product = std::get_if<Matmul>(&op.what)) {
      seconds.matmul += matmul(*product);
      seconds.launch += device.launchSeconds;
    } else if (const auto *attended = std::get_if<Attention>(&op.what)) {
      seconds.attention +=
          documents.cpImbalance * attentionSeconds(device, attention, precision, attended->phase, attended->shape);
      seconds.launch += device.launchSeconds;
    } else if (const auto *pass = std::get_if<Pass>(&op.what)) {
      seconds.memoryBound += eager * device.passCost * memorySeconds(device, pass->bytes);
      seconds.launch += device.launchSeconds;
    } else if (const auto *exchange = std::get_if<Collective>(&op.what)) {
      double all = collective(*exchange), room = besideSeconds(work, i, *exchange);
      double hidden = std::min(all * device.ringHidden, room);
      (exchange->axis == Axis::TP ? seconds.tpExposed : seconds.cpExposed) += all - hidden + device.contention * hidden;
    }
  }
  return seconds;
}

BodySeconds times(const BodySeconds &one, double count) {
  return {one.matmul * count,    one.attention * count, one.memoryBound * count,
          one.tpExposed * count, one.cpExposed * count, one.launch * count};
}

void LayoutPricer::priceChunks(LayoutCosts &costs) const {
  constexpr BodyPhase kPhases[] = {BodyPhase::Forward, BodyPhase::Backward};
  bool split = plan.schedule() == schedule::ScheduleKind::ZeroBubbleH1;
  std::vector<int64_t> layers = layersOfChunks(shape, plan);
  size_t chunks = layers.size();
  costs.chunks.resize(chunks);
  costs.ends.resize(chunks);
  costs.layerExchange.assign(chunks, 0);
  costs.replay.phases.resize(chunks);
  costs.shape.layers = layers;
  double layerFlops = 0, endFlops = 0;
  std::array<BodySeconds, 2> layer;
  std::array<double, 2> embed{}, head{}, exchange{};
  for (size_t phase = 0; phase < 2; ++phase) {
    Work work = workOf(shape, sizes, BodyKind::Layer, kPhases[phase]);
    layer[phase] = secondsOf(work);
    layerFlops += flopsOf(work);
    for (auto [body, seconds] : {std::pair{BodyKind::Embed, &embed}, std::pair{BodyKind::Head, &head}}) {
      Work end = workOf(shape, sizes, body, kPhases[phase]);
      (*seconds)[phase] = secondsOf(end).total();
      endFlops += flopsOf(end);
    }
  }
  if (shardsParameters() && software.fineBuckets) {
    // Each layer gathers its parameters for the forward and again for the backward, and reduces, beside the layer
    // before (arXiv 2304.11277, section 3.3): what is longer shows.
    auto elements = static_cast<double>(shape.layerParameters()) / static_cast<double>(plan.tp);
    double gather = exchangeSeconds(CollectiveKind::AllGather, elements, 2);
    double reduce =
        exchangeSeconds(CollectiveKind::ReduceScatter, elements, static_cast<double>(software.gradientBytes));
    for (size_t phase = 0; phase < 2; ++phase) {
      double all = phase ? gather + reduce : gather;
      double hidden = std::min(all, layer[phase].total());
      exchange[phase] = all - hidden + device.contention * hidden;
    }
  }
  double flops = 0;
  double weightShare = 0;
  if (split) {
    double gradient = secondsOf(workOf(shape, sizes, BodyKind::Layer, BodyPhase::WeightGradient)).total();
    weightShare = gradient / layer[1].total();
  }
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    auto count = static_cast<double>(layers[chunk]);
    double all[2];
    for (size_t phase = 0; phase < 2; ++phase) {
      costs.chunks[chunk][phase] = times(layer[phase], count);
      costs.ends[chunk][phase] = (chunk == 0 ? embed[phase] : 0) + (chunk + 1 == chunks ? head[phase] : 0);
      costs.layerExchange[chunk] += exchange[phase] * count;
      all[phase] = costs.chunks[chunk][phase].total() + costs.ends[chunk][phase] + exchange[phase] * count;
    }
    costs.replay.phases[chunk] = {all[0], all[1] * (1 - weightShare), all[1] * weightShare};
    flops += layerFlops * count;
  }
  costs.hardwareFlops =
      (flops + endFlops) * static_cast<double>(costs.microbatches) * static_cast<double>(plan.tp * plan.cp * plan.dp);
}

void LayoutPricer::priceTransfers(LayoutCosts &costs) const {
  if (plan.pp == 1)
    return;
  double bytes = sizes.tokens() * static_cast<double>(shape.hidden * schedule::bytesOf(sizes.dtype)) /
                 static_cast<double>(plan.tp);
  costs.replay.transfers.resize(static_cast<size_t>(plan.pp));
  for (int64_t stage = 0; stage < plan.pp; ++stage) {
    auto rankOf = [&](int64_t at) { return placement.rankAt({0, 0, at % plan.pp, 0}); };
    for (int direction = 0; direction < 2; ++direction) {
      int64_t to = direction ? stage + plan.pp - 1 : stage + 1;
      int level = placement.levelBetween(rankOf(stage), rankOf(to));
      costs.replay.transfers[static_cast<size_t>(stage)][direction] =
          messageSeconds(cluster, bytes, level, level > 0 ? cluster.gpusIn(static_cast<size_t>(level) - 1) : 1);
    }
  }
}

double LayoutPricer::exchangeSeconds(CollectiveKind kind, double elements, double bytesOfElement) const {
  return collectiveSeconds(cluster, kind, elements * bytesOfElement, shardSpan, algorithm);
}

/// Gathers and reductions by chunk, on their lanes where software runs them beside work.
void LayoutPricer::priceExchange(LayoutCosts &costs) const {
  size_t chunks = costs.chunks.size();
  costs.shape.elements.resize(chunks);
  costs.exchange.assign(chunks + 1, {0, 0});
  std::vector<double> serial(static_cast<size_t>(plan.pp), 0);
  costs.replay.gathers.assign(chunks + 1, 0);
  costs.replay.reductions.assign(chunks + 1, 0);
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    int64_t own = costs.shape.layers[chunk] * shape.layerParameters();
    if (chunk == 0)
      own += shape.embeddingParameters();
    if (chunk + 1 == chunks)
      own += shape.finalNormParameters() + (shape.tied && chunks == 1 ? 0 : shape.vocabulary * shape.hidden);
    costs.shape.elements[chunk] = own / plan.tp;
  }
  if (shardSpan.ranks == 1)
    return;
  bool inLayers = shardsParameters() && software.fineBuckets;
  size_t reductions = 1; // of a chunk, in a step
  if (plan.zero > 0 && plan.reduceEvery == "run") {
    Result<std::vector<int64_t>> groups = schedule::groupsOf(plan, costs.microbatches);
    assert(groups && "microbatches of a plan that was checked");
    reductions = groups->size();
  }
  double gather = 0, reduce = 0, known = -1; // of a chunk with so many elements: neighbours have often as many
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    auto elements = static_cast<double>(costs.shape.elements[chunk]);
    auto layers = static_cast<double>(costs.shape.layers[chunk]);
    if (inLayers) // the rest are embedding and head, gathered and reduced for every microbatch
      elements -= layers * static_cast<double>(shape.layerParameters()) / static_cast<double>(plan.tp);
    auto gradient = static_cast<double>(software.gradientBytes);
    if (elements == known) {
      // as before
    } else if (plan.zero == 0 || software.shardRanks > 0) {
      reduce = exchangeSeconds(CollectiveKind::AllReduce, elements, gradient);
      if (plan.zero > 0)
        gather = collectiveSeconds(cluster, CollectiveKind::AllGather, elements * 2,
                                   spanOfNeighbours(cluster, software.shardRanks * plan.tp), algorithm);
    } else {
      reduce = exchangeSeconds(CollectiveKind::ReduceScatter, elements, gradient);
      gather = exchangeSeconds(CollectiveKind::AllGather, elements, 2);
    }
    known = elements;
    size_t stage = chunk % static_cast<size_t>(plan.pp);
    if (inLayers) {
      // The first and the last bucket have nothing to hide behind; their reductions do, but for the embedding's.
      serial[stage] += gather + reduce;
      continue;
    }
    double buckets = software.fineBuckets ? std::max(1.0, layers) : 1;
    double beside[2] = {0, 0};
    if (software.fineBuckets)
      for (int phase = 0; phase < 2; ++phase)
        beside[phase] = costs.chunks[chunk][phase].total() + costs.ends[chunk][phase];
    auto shown = [&](double all, double room) { return std::max(all - room, all / buckets); };
    if (software.dpOverlap == Software::DpOverlap::Both) {
      costs.replay.gathers[chunk] = shown(gather, beside[0]);
      costs.exchange[chunk][0] = gather;
    } else {
      serial[stage] += gather;
    }
    if (software.dpOverlap != Software::DpOverlap::None) {
      costs.replay.reductions[chunk] = shown(reduce, beside[1]);
      costs.exchange[chunk][1] = reduce;
    } else {
      serial[stage] += reduce * static_cast<double>(reductions);
    }
  }
  costs.dpSerial = *std::max_element(serial.begin(), serial.end());
}

/// In f32: master, AdamW's two moments and the gradient read, the first three and the parameter written, the gradient
/// read once more for its norm.
void LayoutPricer::priceOptimizer(LayoutCosts &costs) const {
  int64_t shards = plan.zero == 0 ? 1 : software.shardRanks > 0 ? software.shardRanks : plan.cp * plan.dp;
  std::vector<double> elements(static_cast<size_t>(plan.pp), 0);
  for (size_t chunk = 0; chunk < costs.chunks.size(); ++chunk)
    elements[chunk % static_cast<size_t>(plan.pp)] += static_cast<double>(costs.shape.elements[chunk]);
  double most = *std::max_element(elements.begin(), elements.end()) / static_cast<double>(shards);
  double state = plan.optimizer == "adamw" ? 12 : 4;
  costs.optimizer = memorySeconds(device, most * (2 * state + 2 + 2 * static_cast<double>(software.gradientBytes)));
}

LayoutCosts LayoutPricer::price(int64_t microbatches) {
  LayoutCosts costs;
  costs.microbatches = microbatches;
  costs.contention = device.contention;
  priceChunks(costs);
  priceTransfers(costs);
  priceExchange(costs);
  priceOptimizer(costs);
  // The mean of the largest of n normal values (Cramer, Mathematical Methods of Statistics, 1946, section 28.6).
  auto ranks = static_cast<double>(plan.tp * plan.cp * plan.pp * plan.dp);
  auto largestOf = [](double count) { return std::sqrt(2 * std::log(std::max(1.0, count))); };
  costs.slowest = device.spread * largestOf(ranks);
  // A rank's microbatches are independent draws; ranks of DP wait for each other once a step.
  std::vector<double> attended(static_cast<size_t>(plan.pp), 0);
  for (size_t chunk = 0; chunk < costs.chunks.size(); ++chunk)
    attended[chunk % attended.size()] += costs.chunks[chunk][0].attention + costs.chunks[chunk][1].attention;
  auto count = static_cast<double>(microbatches);
  costs.documents = *std::max_element(attended.begin(), attended.end()) * count * documents.deviation /
                    std::sqrt(count) * largestOf(static_cast<double>(plan.dp));
  return costs;
}

TpOverlap overlapOf(const std::string &name) {
  return name == "ring" ? TpOverlap::Ring : name == "bulk" ? TpOverlap::Bulk : TpOverlap::None;
}

Recompute recomputeOf(const std::string &name) {
  return name == "full" ? Recompute::Full : name == "selective" ? Recompute::Selective : Recompute::None;
}
} // namespace

std::vector<int64_t> planner::layersOfChunks(const ModelShape &shape, const schedule::Plan &plan) {
  if (!plan.layersPerChunk.empty())
    return plan.layersPerChunk;
  int64_t chunks = plan.pp * plan.chunks;
  if (shape.layers % chunks == 0 || (shape.layers + 2) % chunks != 0)
    return schedule::spreadLayers(shape.layers, chunks);
  std::vector<int64_t> layers(static_cast<size_t>(chunks), (shape.layers + 2) / chunks);
  --layers.front();
  --layers.back();
  return layers;
}

Sizes planner::sizesOf(const schedule::Plan &plan, const Software &software) {
  Sizes sizes;
  sizes.tp = plan.tp, sizes.cp = plan.cp, sizes.microbatch = plan.microbatch, sizes.sequence = plan.sequenceLength;
  sizes.dtype = plan.computeType == "f32" ? schedule::DType::F32 : schedule::DType::BF16;
  sizes.recompute = software.recompute ? *software.recompute : recomputeOf(plan.recompute);
  sizes.tpOverlap = software.tpOverlap ? *software.tpOverlap : overlapOf(plan.tpOverlap);
  sizes.sequenceParallel = software.sequenceParallel;
  sizes.fp8 = software.fp8;
  sizes.fusedElementwise = software.fusedElementwise;
  sizes.fusedLoss = software.fusedElementwise || software.fusedLoss;
  sizes.gradientBytes = software.gradientBytes;
  if (software.documents)
    // As long as a token attends to so many keys in the mean.
    sizes.documentLength = 2 * software.documents->of(plan.sequenceLength, plan.cp, plan.microbatch).keys - 1;
  return sizes;
}

Result<LayoutCosts> planner::priceLayout(const ModelShape &shape, const cluster::Cluster &cluster, const Layout &layout,
                                         const Software &software, cluster::SpanCache *spans) {
  if (std::optional<Error> error = checkShape(shape))
    return *error;
  const schedule::Plan &plan = layout.plan;
  if (std::optional<Error> error = schedule::checkPlan(plan))
    return *error;
  if (plan.microbatch <= 0 || plan.sequenceLength <= 0 || plan.globalBatches.empty())
    return Error{"a projection needs the microbatch, the sequence length and the global batch"};
  Result<int64_t> microbatches = countMicrobatches(plan, plan.globalBatches.front());
  if (!microbatches)
    return Error{microbatches.error()};
  if (software.documents && plan.cp > 1 && plan.sequenceLength % (2 * plan.cp) != 0)
    return Error{"the sequence length " + std::to_string(plan.sequenceLength) + " is no multiple of 2 * cp (" +
                 std::to_string(2 * plan.cp) + ")"};
  cluster::Grid grid;
  grid.sizes = {plan.tp, plan.cp, plan.pp, plan.dp};
  grid.order = layout.order;
  if (std::optional<Error> error = cluster::checkGrid(cluster, grid))
    return *error;
  std::string kernel = software.attention.empty() ? plan.attention : software.attention;
  const cluster::AttentionRates *attention = chooseAttention(cluster.device, kernel);
  if (!attention)
    return Error{"the device '" + cluster.device.name + "' lists no rates for the attention kernel '" + kernel + "'"};
  Precision precision = plan.computeType == "f32"   ? Precision::F32
                        : plan.computeType == "f16" ? Precision::F16
                                                    : Precision::BF16;
  if (!(cluster.device.peakOf(precision) > 0))
    return Error{"the device '" + cluster.device.name + "' lists no peak for " + cluster::nameOf(precision)};

  Sizes sizes = sizesOf(plan, software);
  sizes.unfusedAttention = attention->kernel == "unfused";
  if (cluster.device.sharedCores > 0) {
    // Rates are those of a core; a rank may have several.
    cluster::Cluster host = cluster;
    double speed = host.device.speedOf(host.device.threadsOf(plan.tp * plan.cp * plan.pp * plan.dp));
    for (double &peak : host.device.peak)
      peak *= speed;
    host.device.memoryBandwidth *= speed;
    return LayoutPricer(shape, host, layout, software, grid, sizes, precision, *attention, spans).price(*microbatches);
  }
  return LayoutPricer(shape, cluster, layout, software, grid, sizes, precision, *attention, spans).price(*microbatches);
}
