//===- Plan.h - plan options ------------------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_SCHEDULE_PLAN_H
#define DROVER_SCHEDULE_PLAN_H

#include "drover/Schedule/PipelineOrder.h"
#include "drover/Schedule/Types.h"
#include <array>
#include <vector>

namespace drover::schedule {

/// Every plan option of DESIGN section 6, with its default for one rank on the host.
struct Plan {
  int64_t tp = 1, cp = 1, pp = 1, dp = 1;
  int64_t chunks = 1;                  // V, per pipeline rank
  std::vector<int64_t> run;            // N, or the sizes of the groups; empty: N = PP
  int64_t microbatch = 0;              // B; 0: the model's, else 1
  std::vector<int64_t> globalBatches;  // G; empty: B * DP * PP
  int64_t sequenceLength = 0;          // S; 0: the model's
  std::optional<ScheduleKind> kind;    // absent: interleaved when V > 1, else 1f1b
  std::vector<int64_t> layersPerChunk; // empty: as even as possible
  std::string recompute = "none";
  std::string rebuild = "auto";
  int64_t zero = 2;
  std::string reduceEvery = "step";
  std::string computeType; // empty: f32 on the host, bf16 on CUDA
  std::string mask = "model";
  std::string optimizer = "adamw";
  std::string tpOverlap = "none";
  std::string freeze; // regular expression over parameter names
  std::string attention = "auto";
  int64_t communicationSms = 0; // multiprocessors of a GPU that products leave to NCCL; 0: they take all
  std::array<std::string, 4> order = {"tp", "cp", "pp", "dp"}; // of rank numbers, innermost axis first

  /// Whether optimizer state and reduced gradients are shards over CP and DP, rather than whole.
  bool isSharded() const { return zero > 0 && cp * dp > 1; }
  ScheduleKind schedule() const {
    return kind ? *kind : chunks > 1 ? ScheduleKind::Interleaved : ScheduleKind::OneForwardOneBackward;
  }
};

/// The most multiprocessors that can be left to NCCL: more than its communicators take (nccl.h, maxCTAs), and some of
/// every GPU's are left to products.
constexpr int64_t kMostCommunicationSms = 64;

/// Parses the value of --layers-per-chunk: `a,x*n,..`, where x*n repeats x n times.
Result<std::vector<int64_t>> parseLayersPerChunk(const std::string &text);

/// Layers of each of `numChunks` chunks, as even as possible: the first ones get one more.
std::vector<int64_t> spreadLayers(int64_t numLayers, int64_t numChunks);

/// Microbatches of a global batch: G / (B * DP), or why that is not a number.
Result<int64_t> countMicrobatches(const Plan &plan, int64_t globalBatch);

/// Sizes of the groups of microbatches that a global batch runs in (DESIGN section 3, PP).
Result<std::vector<int64_t>> groupsOf(const Plan &plan, int64_t microbatches);

/// Holds the plan's own constraints: those that need no model. `std::nullopt` when all hold.
std::optional<Error> checkPlan(const Plan &plan);

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_PLAN_H
