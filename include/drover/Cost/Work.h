//===- Work.h - what a body does on one rank --------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_COST_WORK_H
#define DROVER_COST_WORK_H

#include "drover/Cost/Collectives.h"
#include "drover/Cost/Kernels.h"
#include "drover/Cost/Model.h"
#include <variant>
#include <vector>

namespace drover::cost {

enum class Recompute : uint8_t {
  None,        // no matmul or attention runs twice
  Selective,   // attention
  Full,        // a layer keeps its input: all but its last matmul; the head too (DESIGN section 3)
  Layers,      // the whole forward of a layer, as checkpointing libraries do; the head is kept
  HalfMatmuls, // every second matmul and what is memory-bound (torchtitan's selective "op")
  HalfLayers   // every second layer as Layers (torchtitan's selective "layer")
};

/// What of TP's collectives runs beside matmuls.
enum class TpOverlap : uint8_t {
  None,
  Bulk, // in the backward: the input's gather beside the data gradient, its reduction beside the weight gradient
  Ring  // every one, in pieces, beside the matmul that feeds it or that it feeds
};

/// Everything about a layout and its software that a body's work depends on.
struct Sizes {
  int64_t tp = 1, cp = 1;
  int64_t microbatch = 1, sequence = 0;
  schedule::DType dtype = schedule::DType::BF16;
  Recompute recompute = Recompute::None;
  TpOverlap tpOverlap = TpOverlap::None;
  bool sequenceParallel = true;
  bool fp8 = false;              // layers' matmuls take fp8 operands, cast before; the head's do not
  bool fusedElementwise = true;  // compiled or hand-fused, not one kernel an operator
  bool fusedLoss = true;         // likewise
  bool unfusedAttention = false; // batched matmuls around a softmax: all pairs, whose scores go through memory
  int64_t gradientBytes = 4;     // of an element of the gradient accumulators
  double documentLength = 0;     // mean over tokens of their document's length; 0: whole sequences

  double tokens() const {
    return static_cast<double>(microbatch) * static_cast<double>(sequence) / static_cast<double>(cp);
  }
};

enum class BodyKind : uint8_t { Embed, Layer, Head };
enum class BodyPhase : uint8_t { Forward, Backward, InputGradient, WeightGradient };

struct Matmul {
  double m = 0, n = 0, k = 0;
  bool fp8 = false;
  double flops() const { return 2 * m * n * k; }
};
struct Attention {
  AttentionPhase phase = AttentionPhase::Forward;
  AttentionShape shape;
};
struct Pass {
  double bytes = 0;
};
/// Beside which neighbour of the list a collective may run.
enum class Beside : uint8_t { Nothing, NextMatmul, PreviousMatmul };
struct Collective {
  cluster::Axis axis = cluster::Axis::TP;
  CollectiveKind kind = CollectiveKind::AllGather;
  schedule::DType dtype = schedule::DType::BF16;
  double bytes = 0; // of the whole tensor
  Beside beside = Beside::Nothing;
};

struct Op {
  std::variant<Matmul, Attention, Pass, Collective> what;
  bool again = false; // the forward run a second time
};

/// One call on one rank, in the order of issue.
using Work = std::vector<Op>;
Work workOf(const ModelShape &shape, const Sizes &sizes, BodyKind body, BodyPhase phase);

/// FLOPs as `drover check` counts them. `again` false leaves out what runs a second time.
double flopsOf(const Work &work, bool again = true);
/// What a rank sends of these collectives, as `drover check` counts it: a ring's share.
double sentBytes(const Work &work, cluster::Axis axis, CollectiveKind kind, int64_t ranks);

} // namespace drover::cost

#endif // DROVER_COST_WORK_H
