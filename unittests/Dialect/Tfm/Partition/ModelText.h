//===- ModelText.h - small transformers as text -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_DIALECT_TFM_PARTITION_MODELTEXT_H
#define DROVER_UNITTESTS_DIALECT_TFM_PARTITION_MODELTEXT_H

#include <cstdint>
#include <string>

/// What a test model is made of.
struct ModelShape {
  int64_t batch = 1, length = 16, layers = 2;
  int64_t heads = 4, kvHeads = 2, headSize = 4, width = 12, vocabulary = 16;
  bool layerNorm = false, bias = false, tied = false, fusedQkv = false, fusedGateUp = false, qkNorm = false;
  bool positionTable = false;   ///< instead of rope
  bool parallel = false;        ///< attention and MLP read the same norm's input
  bool scaledEmbedding = false; ///< times a constant, as Gemma's
  bool positionInput = false, keyMask = false, floatMask = false;
  enum class Activation { Swiglu, Gelu, Exp } activation = Activation::Swiglu;
  std::string type = "f32";

  int64_t hidden() const { return heads * headSize + 2; }
};

/// `@model`, raised, with static sizes, that returns logits.
std::string modelText(const ModelShape &shape);

#endif // DROVER_UNITTESTS_DIALECT_TFM_PARTITION_MODELTEXT_H
