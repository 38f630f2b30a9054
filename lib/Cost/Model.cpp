//===- Model.cpp - the shape of a decoder ---------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Cost/Model.h"

using namespace drover;
using namespace drover::cost;

std::optional<FlopsCount> cost::parseFlopsCount(const std::string &name) {
  if (name == "causal")
    return FlopsCount::Causal;
  if (name == "full")
    return FlopsCount::Full;
  if (name == "hardware")
    return FlopsCount::Hardware;
  return std::nullopt;
}

int64_t ModelShape::layerMatmulParameters() const {
  return hidden * (2 * queryWidth() + 2 * kvWidth()) + hidden * ffnHidden * (gated ? 3 : 2);
}

int64_t ModelShape::layerParameters() const {
  int64_t norms = 2 * finalNormParameters();
  int64_t bias = biases ? queryWidth() + 2 * kvWidth() + 2 * hidden + ffnHidden * (gated ? 2 : 1) : 0;
  return layerMatmulParameters() + norms + bias;
}

int64_t ModelShape::parameters() const {
  return embeddingParameters() + layers * layerParameters() + finalNormParameters() + (tied ? 0 : vocabulary * hidden);
}

double ModelShape::flopsPerToken(int64_t sequence, FlopsCount count) const {
  double keys = count == FlopsCount::Causal ? (static_cast<double>(sequence) + 1) / 2 : static_cast<double>(sequence);
  double forward = 2 * static_cast<double>(layers * layerMatmulParameters() + vocabulary * hidden) +
                   4 * static_cast<double>(layers * queryWidth()) * keys;
  return 3 * forward;
}

std::optional<schedule::Error> cost::checkShape(const ModelShape &shape) {
  auto number = [](int64_t value) { return std::to_string(value); };
  for (auto [name, value] : {std::pair<const char *, int64_t>{"layers", shape.layers},
                             {"hidden size", shape.hidden},
                             {"heads", shape.heads},
                             {"kv heads", shape.kvHeads},
                             {"head size", shape.headSize},
                             {"ffn size", shape.ffnHidden},
                             {"vocabulary", shape.vocabulary}})
    if (value <= 0)
      return schedule::Error{"the model's number of " + std::string(name) + " is " + number(value) +
                             ": expected a positive one"};
  if (shape.heads % shape.kvHeads != 0)
    return schedule::Error{"the model's kv heads (" + number(shape.kvHeads) + ") do not divide its heads (" +
                           number(shape.heads) + ")"};
  return std::nullopt;
}
