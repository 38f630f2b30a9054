//===- Projection.h - how long a layout's step takes ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_PLANNER_PROJECTION_H
#define DROVER_PLANNER_PROJECTION_H

#include "drover/Cost/Documents.h"
#include "drover/Cost/Work.h"
#include "drover/Planner/Replay.h"
#include "drover/Schedule/Plan.h"
#include <memory>

namespace drover::planner {

/// A plan and where its axes lie on the network.
struct Layout {
  schedule::Plan plan; // one global batch; `microbatch` and `sequenceLength` set
  cluster::AxisOrder order = cluster::kDefaultOrder;
};

/// What a run's software did and a plan of drover's own cannot choose. The defaults are drover's.
struct Software {
  std::string attention; // kernel generation of the device's file; empty: the plan's, as drover would choose
  bool sequenceParallel = true;
  enum class DpOverlap : uint8_t { None, Gradients, Both } dpOverlap = DpOverlap::Both;
  /// Gradients are reduced in buckets as they appear, parameters gathered as they are needed, within a chunk.
  bool fineBuckets = false;
  bool fusedElementwise = true;
  bool fusedLoss = true; // logits in f32 and one gradient of them; else copies in both formats of both
  bool fp8 = false;
  bool nvls = true;
  bool boosted = false;      // clocks: the device's clockBoost
  int64_t gradientBytes = 4; // of an element, accumulated and exchanged
  int64_t shardRanks = 0;    // ranks that the optimizer's state is spread over, where not all of CP x DP; 0: all
  std::optional<cost::Recompute> recompute; // in place of the plan's
  std::optional<cost::TpOverlap> tpOverlap; // in place of the plan's
  /// With masks by document, whose lengths these are; null: every sequence is one document.
  std::shared_ptr<cost::DocumentLoads> documents;
};

/// Parts of a step of the stage with most work. They add up to it.
struct Breakdown {
  double matmul = 0, attention = 0, memoryBound = 0, head = 0;
  double tpExposed = 0, cpExposed = 0, ppExposed = 0, dpExposed = 0;
  double bubble = 0, optimizer = 0, launch = 0;
  double imbalance = 0; // waiting for the slowest device, and for the rank with the longest documents
  double sharing = 0;   // of cores with other ranks, on a host

  double total() const {
    return matmul + attention + memoryBound + head + tpExposed + cpExposed + ppExposed + dpExposed + bubble +
           optimizer + launch + imbalance + sharing;
  }
};
/// Names and values in a fixed order, for tables and JSON.
std::vector<std::pair<const char *, double>> partsOf(const Breakdown &breakdown);

struct Projection {
  double stepSeconds = 0;
  Breakdown breakdown;
  double causalFlops = 0, fullFlops = 0, hardwareFlops = 0; // of a step, all ranks
  double tokens = 0;                                        // of a step
  int64_t ranks = 1;
  double peak = 0; // FLOP/s of a device in the dense bf16 format
  /// By the schedule alone: DESIGN section 3, chunks of equal cost.
  double bubbleRatio = 0;

  double mfu() const { return causalFlops / perPeak(); }
  double hfu() const { return hardwareFlops / perPeak(); }
  double tokensPerSecondPerGpu() const { return tokens / stepSeconds / static_cast<double>(ranks); }
  double flopsPerSecondPerGpu(cost::FlopsCount count) const;

private:
  double perPeak() const { return stepSeconds * static_cast<double>(ranks) * peak; }
};

/// Seconds of what bodies do in a call, by kind; all but the hidden parts of collectives.
struct BodySeconds {
  double matmul = 0, attention = 0, memoryBound = 0, tpExposed = 0, cpExposed = 0, launch = 0;
  double total() const { return matmul + attention + memoryBound + tpExposed + cpExposed + launch; }
};

/// A layout priced: what its replay needs, and what comes on top of the replay's makespan.
struct LayoutCosts {
  ReplayCosts replay;                             // phases, transfers, and what of DP runs beside them
  std::vector<std::array<BodySeconds, 2>> chunks; // by place in the pipeline, forward and backward: layers
  std::vector<std::array<double, 2>> ends;        // the same: embedding and head
  std::vector<double> layerExchange;              // by chunk, a microbatch: what FSDP shows in its layers
  /// By chunk: a whole gather and a whole reduction that have a lane, of which `replay` has what work does not hide.
  std::vector<std::array<double, 2>> exchange;
  double dpSerial = 0; // beside nothing
  double optimizer = 0;
  double slowest = 0;    // of the slowest device over the mean one, less 1
  double contention = 0; // the device's
  double documents = 0;  // of the DP rank whose microbatches have the longest documents over the mean one
  int64_t microbatches = 0;
  double hardwareFlops = 0; // of a step, all ranks
  ChunkShape shape;

  double stepSeconds(double makespan) const { return makespan * (1 + slowest) + documents + dpSerial + optimizer; }
};
schedule::Result<LayoutCosts> priceLayout(const cost::ModelShape &shape, const cluster::Cluster &cluster,
                                          const Layout &layout, const Software &software = {},
                                          cluster::SpanCache *spans = nullptr);

/// The error says what the cluster, the model or the layout lacks.
schedule::Result<Projection> project(const cost::ModelShape &shape, const cluster::Cluster &cluster,
                                     const Layout &layout, const Software &software = {});

/// The same of a layout that is priced and whose replay program is built.
Projection project(const cost::ModelShape &shape, const cluster::Cluster &cluster, const schedule::Plan &plan,
                   const LayoutCosts &costs, const ReplayProgram &program);

/// What a body's work depends on.
cost::Sizes sizesOf(const schedule::Plan &plan, const Software &software);

/// Layers of each chunk of a plan: as it says, else as even as possible; where embedding and head count as a layer
/// each makes even what is not, the first and last chunk have one fewer.
std::vector<int64_t> layersOfChunks(const cost::ModelShape &shape, const schedule::Plan &plan);

} // namespace drover::planner

#endif // DROVER_PLANNER_PROJECTION_H
