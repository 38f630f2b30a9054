//===- Calibrate.h - a cluster's constants from measurements ----*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The formulas of Kernels.h and Collectives.h turned round: what constants make them say what was measured
// (docs/calibrate.md).
#ifndef DROVER_COST_CALIBRATE_H
#define DROVER_COST_CALIBRATE_H

#include "drover/Cost/Collectives.h"
#include "drover/Cost/Kernels.h"

namespace drover::cost {

struct MeasuredMatmul {
  cluster::Precision precision = cluster::Precision::F32;
  double m = 0, n = 0, k = 0, seconds = 0;
};

/// Causal, of one sequence.
struct MeasuredAttention {
  AttentionPhase phase = AttentionPhase::Forward;
  double length = 0;
  int64_t heads = 0, headSize = 0;
  double seconds = 0;
};

struct MeasuredPass {
  double bytes = 0, seconds = 0;
};

struct MeasuredExchange {
  std::string backend, kind;
  int64_t ranks = 0;
  double bytes = 0, seconds = 0;
};

/// What a host does, each of its cores at work with one thread; exchanges by the clock.
struct Measurements {
  int64_t cores = 1;
  int64_t ranks = 1; // that exchanges were measured up to
  double totalBytes = 0, availableBytes = 0, contextBytes = 0;
  std::vector<MeasuredMatmul> matmuls;
  std::vector<MeasuredAttention> attention;
  std::vector<MeasuredPass> passes;
  std::vector<MeasuredExchange> exchanges;
  double emptyCallSeconds = 0;
  std::vector<double> sameOnEachCore; // seconds of one product
};

/// The host as a cluster of one server whose devices are ranks that share its cores. `backend` is the one whose
/// collectives count. The error says what was not measured.
schedule::Result<cluster::Cluster> fitCluster(const Measurements &measurements, const std::string &backend);

/// Standard deviation of log(projected / measured), by what the constants say of what they were fitted to.
struct FitQuality {
  double matmul = 0, attention = 0, collectives = 0;
};
FitQuality qualityOf(const cluster::Cluster &cluster, const Measurements &measurements);

} // namespace drover::cost

#endif // DROVER_COST_CALIBRATE_H
