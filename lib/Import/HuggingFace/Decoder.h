//===- Decoder.h - what a configuration says of a decoder -------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_IMPORT_HUGGINGFACE_DECODER_H
#define DROVER_LIB_IMPORT_HUGGINGFACE_DECODER_H

#include "Config.h"
#include "drover/Dialect/Tfm/IR/Tfm.h"

namespace drover::huggingface {

enum class Activation { Silu, GeluErf, GeluTanh };

/// A decoder-only transformer as its configuration describes it, families apart only where their
/// computation differs.
struct Decoder {
  enum class Family { Llama, Gpt2, GptNeox };
  Family family = Family::Llama;

  int64_t vocab = 0, hidden = 0, layers = 0, heads = 0, kvHeads = 0, headSize = 0, intermediate = 0;
  int64_t positions = 0; ///< rows of the position table (gpt2)
  double normEps = 0, initializerRange = 0.02;
  Activation activation = Activation::Silu;
  bool tied = false;
  /// Names under which checkpoints hold the output head, the model's own first.
  llvm::SmallVector<llvm::StringRef, 2> headNames{"lm_head.weight"};

  // Rotary embedding.
  double theta = 10000.0;
  int64_t rotarySize = 0;
  tfm::RopeScalingAttr scaling;

  // The llama family's switches.
  bool qkvBias = false, outputBias = false, mlpBias = false;
  bool queryKeyNorm = false;        ///< qwen3: RMSNorm over each head of q and k
  bool packed = false;              ///< phi3: one projection for q, k, v and one for gate and up
  double weightOffset = 0;          ///< gemma: norms use 1 + w
  double embeddingScale = 1;        ///< gemma: sqrt(hidden)
  std::optional<int64_t> window;    ///< sliding window of every layer
  llvm::SmallVector<bool> windowed; ///< which layers have it; empty: all

  // gpt2 and gpt_neox.
  bool scaleByLayer = false, scaleWeights = true;
  bool parallelResidual = false, attentionBias = true;
};

/// How a family's configuration names its rotary settings, and what its code does with them.
struct RopeKeys {
  llvm::StringRef theta = "rope_theta", fraction = "partial_rotary_factor";
  double fractionDefault = 1;
  bool isPartial = false; ///< reads the fraction
  bool scales = true;     ///< takes kinds beside default
};

/// Reads theta, the rotary channels and the scaling; the head size is known.
void readRope(Config &config, Decoder &decoder, mlir::MLIRContext *context, const RopeKeys &keys);

/// Reads a decoder; errors are recorded in `config`.
Decoder readDecoder(Config &config, mlir::MLIRContext *context);

/// Builds the program.
mlir::OwningOpRef<mlir::ModuleOp> buildDecoder(const Decoder &decoder, mlir::Location loc);

} // namespace drover::huggingface

#endif // DROVER_LIB_IMPORT_HUGGINGFACE_DECODER_H
