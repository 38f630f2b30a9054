//===- GridRunOptions.h - a run of the grid's model -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_RUNTIME_GRID_GRIDRUNOPTIONS_H
#define DROVER_UNITTESTS_RUNTIME_GRID_GRIDRUNOPTIONS_H

#include "../TestFiles.h"
#include "GridProgram.h"
#include "drover/rt/executable.h"

namespace drover::rt::test {

/// 400 tokens.
inline std::string gridText() {
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += char((i * i + i / 5) % gridVocabulary);
  return text;
}

/// From random weights on `gridText`; log, weights and flight recorder go into `folder`.
inline TrainOptions gridRunOptions(const TemporaryFolder &folder) {
  TrainOptions options;
  options.data = folder.write("tokens", gridText());
  options.init = "random";
  options.learningRate = 0.05;
  options.gradientClip = 0.5;
  options.epsilon = 1e-3;
  options.threads = 1;
  options.log = folder.path("log.jsonl");
  options.saveWeights = folder.path("weights.safetensors");
  options.flightRecorder = folder.path("flight.json");
  options.deadlines = {20, 20, 20};
  return options;
}

} // namespace drover::rt::test

#endif // DROVER_UNITTESTS_RUNTIME_GRID_GRIDRUNOPTIONS_H
