//===- Memory.h - what a layout's ranks hold --------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_PLANNER_MEMORY_H
#define DROVER_PLANNER_MEMORY_H

#include "drover/Planner/Projection.h"

namespace drover::planner {

/// Peak bytes of a rank of one pipeline stage by category, as the executable has them (docs/step-program.md, Memory).
struct StageMemory {
  double weights = 0;   // parameters in the compute dtype that stay
  double gathered = 0;  // those that come and go (zero 3)
  double gradients = 0; // accumulators and reduced shards
  double optimizer = 0; // masters and moments
  double stash = 0;     // between a forward and its backward, or the parts of this; without logits
  double logits = 0;
  double buffers = 0;   // boundary tensors, sent and received
  double workspace = 0; // inside bodies, with what collectives gather, and between bodies
  double inputs = 0;
  double gaps = 0; // slots of several sizes do not fill each other's places; less than none where peaks fall apart

  double total() const {
    return weights + gathered + gradients + optimizer + stash + logits + buffers + workspace + inputs + gaps;
  }
};
/// Names and values in a fixed order, for tables and JSON.
std::vector<std::pair<const char *, double>> partsOf(const StageMemory &memory);

/// One rank's part of a model's tensors: heads, widths and vocabulary padded as the partitioner pads them (DESIGN
/// section 3, TP).
struct LocalWidths {
  double query = 0, keyValue = 0, heads = 0, ffn = 0, vocabulary = 0;
};
LocalWidths localWidths(const cost::ModelShape &shape, int64_t tp);

/// Layers and parameters of each chunk on one rank. Expects `layersPerChunk` set, or cuts evenly.
ChunkShape chunkShapeOf(const cost::ModelShape &shape, const schedule::Plan &plan);

/// Bytes of an element in a plan's compute dtype.
inline double elementBytes(const schedule::Plan &plan) { return plan.computeType == "f32" ? 4 : 2; }

/// By stage. `program` is the plan's; `microbatch` and `sequenceLength` are set. `software`: what is held otherwise
/// where a run was not drover's.
std::vector<StageMemory> memoryOf(const cost::ModelShape &shape, const schedule::Plan &plan,
                                  const ReplayProgram &program, const Software &software = {});

/// A lower bound of the fullest stage's peak without the order: what lasts, and the stash of the forwards that every
/// stage runs before its first backward. With the plan's program, what that says of boundaries and buckets is in it.
double leastMemoryOf(const cost::ModelShape &shape, const schedule::Plan &plan, const std::vector<int64_t> &groups,
                     const ReplayProgram *program = nullptr);

} // namespace drover::planner

#endif // DROVER_PLANNER_MEMORY_H
