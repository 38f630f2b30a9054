//===- Model.h - the shape of a decoder -------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_COST_MODEL_H
#define DROVER_COST_MODEL_H

#include "drover/Schedule/Types.h"

namespace drover::cost {

/// How a source counts the FLOPs of attention, and whether what runs twice counts.
enum class FlopsCount : uint8_t { Causal, Full, Hardware };
std::optional<FlopsCount> parseFlopsCount(const std::string &name);

/// A dense decoder, as far as time and memory depend on it.
struct ModelShape {
  int64_t layers = 0, hidden = 0;
  int64_t heads = 0, kvHeads = 0, headSize = 0;
  int64_t ffnHidden = 0; // of one projection
  int64_t vocabulary = 0;
  int64_t positionRows = 0; // of a learned position table; 0: rotary
  bool gated = false;       // two projections up, one multiplied into the other
  bool tied = false;        // the head's table is the embedding's
  bool layerNorm = false;   // with a bias; else RMS norm
  bool biases = false;      // of every linear but the head

  int64_t queryWidth() const { return heads * headSize; }
  int64_t kvWidth() const { return kvHeads * headSize; }
  /// Weights of a layer's matmuls.
  int64_t layerMatmulParameters() const;
  int64_t layerParameters() const;
  int64_t embeddingParameters() const { return (vocabulary + positionRows) * hidden; }
  int64_t finalNormParameters() const { return hidden * (layerNorm ? 2 : 1); }
  int64_t parameters() const;

  /// Model FLOPs of a training step per token of sequences of this length: three times the forward's. Causal counts
  /// the pairs that attend, (S + 1) / 2 a token, Full all S (docs/projection.md).
  double flopsPerToken(int64_t sequence, FlopsCount count) const;
};

/// What must hold of any shape.
std::optional<schedule::Error> checkShape(const ModelShape &shape);

} // namespace drover::cost

#endif // DROVER_COST_MODEL_H
