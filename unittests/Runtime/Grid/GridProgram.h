//===- GridProgram.h - a small model over many ranks ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// A residual network with a tied table: x = table[ids]; layers x += (tanh(x M) N) * scale; logits = x table^T, softmax
// cross-entropy. TP cuts the table's rows (padded), M's columns and N's rows; the bodies are C++ functions that use the
// C ABI's collectives. The step program around them is built by drover::schedule.
#ifndef DROVER_UNITTESTS_RUNTIME_GRID_GRIDPROGRAM_H
#define DROVER_UNITTESTS_RUNTIME_GRID_GRIDPROGRAM_H

#include "drover/Schedule/BuildStepProgram.h"
#include <string>

namespace drover::rt::test {

constexpr int64_t gridVocabulary = 7, gridLength = 4, gridWidth = 6, gridHidden = 4;

struct GridOptions {
  schedule::Plan plan; // tp, cp, pp, dp, chunks, zero, ..; batches default to 8 sequences
  int32_t layers = 3;
  bool train = true;
};

class GridProgram {
public:
  explicit GridProgram(GridOptions options);

  const drover_program &program() const { return embedded; }
  schedule::MicrobatchProgram microbatch;
  schedule::StepProgram step;

  /// After `step` was changed.
  void finish();

private:
  void describeOperands();

  std::string metadata;
  std::vector<drover_body_fn> bodies;
  drover_program embedded;
};

} // namespace drover::rt::test

#endif // DROVER_UNITTESTS_RUNTIME_GRID_GRIDPROGRAM_H
