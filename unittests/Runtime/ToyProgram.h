//===- ToyProgram.h - a hand-made step program ------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A bigram model, small enough to differentiate by hand: logits[t] = table[token t] + bias, softmax cross-entropy. The
// table [V, V] decays, the bias [V] does not. One chunk; the bodies are C++ functions.
#ifndef DROVER_UNITTESTS_RUNTIME_TOYPROGRAM_H
#define DROVER_UNITTESTS_RUNTIME_TOYPROGRAM_H

#include "drover/rt/abi.h"
#include <cstdint>
#include <string>
#include <vector>

namespace drover::rt::test {

struct ToyOptions {
  int64_t vocabulary = 7, microbatchSize = 2, length = 4;
  std::vector<int64_t> globalBatches = {4}; // multiples of the microbatch size
  bool forward = false;
  bool bfloat = false;
  bool sgd = false;
  bool freezeBias = false;
  bool positionsInput = false; // an input that no body reads
  std::string mask = "model";
  std::string tableSource, biasSource; // JSON of `source`
  std::string modelFile, modelSha256;
};

class ToyProgram {
public:
  explicit ToyProgram(const ToyOptions &options = {});

  const drover_program &program() const { return embedded; }
  /// Replaces the first occurrence in the metadata, to damage it.
  void replace(const std::string &from, const std::string &to);
  std::vector<drover_action> actions;

private:
  void addBatch(const ToyOptions &options, int64_t globalBatch, std::string &json);
  void finish();

  std::string metadata;
  std::vector<drover_body_fn> bodies;
  drover_program embedded;
};

} // namespace drover::rt::test

#endif // DROVER_UNITTESTS_RUNTIME_TOYPROGRAM_H
