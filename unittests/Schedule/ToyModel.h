//===- ToyModel.h - a microbatch program made by hand -----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_SCHEDULE_TOYMODEL_H
#define DROVER_UNITTESTS_SCHEDULE_TOYMODEL_H

#include "drover/Schedule/BuildStepProgram.h"

namespace drover::schedule::test {

/// An embedding with a tied table and learned positions, `layers` layers of one matrix and one norm, a head with
/// loss; forward and backward as the compiler's differentiation would call them. 100 f32 per activation. With `split`
/// a backward is two calls: the weight gradient reads what the input gradient hands over, an input and the gradient,
/// and of a layer what its forward keeps for both.
inline MicrobatchProgram makeToyModel(int32_t layers, bool train = true, bool split = false) {
  MicrobatchProgram program;
  program.train = train;
  program.tokensPerMicrobatch = 10;
  program.vocabulary = 50;
  program.bodies = {
      {"embed", 0, 10, 64, {}},      {"layer", 1000, 10, 256, {}},       {"head", 500, 10, 0, {}},
      {"head_grad", 1000, 5, 0, {}}, {"layer_grad", 2000, 10, 1024, {}}, {"embed_grad", 0, 10, 0, {}},
      {"adamw_update", 0, 0, 0, {}}, {"sum_of_squares", 0, 0, 0, {}},    {"weight_grad", 1000, 10, 0, {}}};
  program.inputs = {{"input_ids", DType::I64, {1, 10}, "tokens", "tokens", -1}};
  if (train)
    program.inputs.push_back({"labels", DType::I64, {1, 10}, "labels", "labels", -1});

  auto value = [&](ValueKind kind, int32_t index, int64_t bytes) {
    program.values.push_back({kind, index, DType::F32, bytes, false});
    return static_cast<uint32_t>(program.values.size() - 1);
  };
  auto parameter = [&](const std::string &name, std::vector<int64_t> shape) {
    Parameter result;
    result.name = name;
    result.decay = shape.size() > 1;
    result.shape = std::move(shape);
    result.initNormal = result.decay;
    result.initValue = result.decay ? 0.02 : 1;
    program.parameters.push_back(result);
    return value(ValueKind::Parameter, static_cast<int32_t>(program.parameters.size() - 1), result.elements() * 4);
  };
  uint32_t ids = value(ValueKind::Input, 0, 80);
  uint32_t labels = train ? value(ValueKind::Input, 1, 80) : 0;
  uint32_t table = parameter("table", {50, 10}), positions = parameter("positions", {10, 10});
  std::vector<uint32_t> matrices, norms;
  for (int32_t i = 0; i < layers; ++i) {
    matrices.push_back(parameter("layer." + std::to_string(i) + ".matrix", {10, 10}));
    norms.push_back(parameter("layer." + std::to_string(i) + ".norm", {10}));
  }
  auto call = [&](uint32_t body, int32_t layer, bool backward, std::vector<uint32_t> operands,
                  std::vector<uint32_t> results) {
    std::vector<int32_t> inPlace(results.size(), -1);
    program.calls.push_back(
        {body, layer, backward, std::move(operands), std::move(results), std::move(inPlace), false});
  };
  auto activation = [&] { return value(ValueKind::Result, -1, 400); };

  uint32_t x = activation();
  call(0, -1, false, {ids, table, positions}, {x});
  std::vector<uint32_t> layerInputs, stashes, kept;
  for (int32_t i = 0; i < layers; ++i) {
    uint32_t y = activation(), stash = value(ValueKind::Result, -1, 800);
    std::vector<uint32_t> results = train ? std::vector<uint32_t>{y, stash} : std::vector<uint32_t>{y};
    if (split)
      results.push_back(kept.emplace_back(value(ValueKind::Result, -1, 640)));
    call(1, i, false, {x, matrices[i], norms[i]}, std::move(results));
    layerInputs.push_back(x);
    stashes.push_back(stash);
    x = y;
  }
  uint32_t logits = value(ValueKind::Result, -1, 2000);
  program.values[logits].logits = true;
  if (!train) {
    call(2, -1, false, {x, table}, {logits});
    program.outputs = {{"logits", logits, {1, 10, 50}, {}}};
    return program;
  }
  uint32_t loss = value(ValueKind::Result, -1, 8), seed = value(ValueKind::Seed, -1, 4);
  program.loss = loss;
  call(2, -1, false, {x, table, labels}, {logits, loss});

  auto accumulator = [&](uint32_t of) {
    return value(ValueKind::Accumulator, program.values[of].index, program.values[of].bytes);
  };
  // In place: the result is a new value in the accumulator's memory.
  auto accumulate = [&](uint32_t body, int32_t layer, std::vector<uint32_t> operands, std::vector<uint32_t> fresh,
                        std::vector<uint32_t *> accumulators) {
    Call result{body, layer, true, std::move(operands), std::move(fresh), {}, false};
    if (split && !result.results.empty()) {
      uint32_t handedOver = activation(), read = result.operands.front(), gradientRead = result.operands.back();
      result.results.push_back(handedOver);
      result.inPlace.assign(result.results.size(), -1);
      program.calls.push_back(result);
      result = Call{8, layer, true, {handedOver, read, gradientRead}, {}, {}, false};
      if (layer >= 0)
        result.operands.push_back(kept[layer]);
    }
    result.weightGradient = split;
    result.inPlace.assign(result.results.size(), -1);
    for (uint32_t *sum : accumulators) {
      result.inPlace.push_back(static_cast<int32_t>(result.operands.size()));
      result.operands.push_back(*sum);
      *sum = value(ValueKind::Result, -1, program.values[*sum].bytes);
      result.results.push_back(*sum);
    }
    program.calls.push_back(result);
  };
  uint32_t tableSum = accumulator(table), positionSum = accumulator(positions);
  uint32_t gradient = activation();
  accumulate(3, -1, {x, table, labels, logits, seed}, {gradient}, {&tableSum});
  for (int32_t i = layers - 1; i >= 0; --i) {
    uint32_t next = activation(), matrixSum = accumulator(matrices[i]), normSum = accumulator(norms[i]);
    std::vector<uint32_t> operands = {layerInputs[i], stashes[i], matrices[i], norms[i]};
    if (split)
      operands.push_back(kept[i]);
    operands.push_back(gradient);
    accumulate(4, i, std::move(operands), {next}, {&matrixSum, &normSum});
    gradient = next;
  }
  accumulate(5, -1, {ids, gradient}, {}, {&tableSum, &positionSum});
  program.updateBody = 6;
  program.normBody = 7;
  return program;
}

inline Plan makePlan(int64_t chunks, std::vector<int64_t> globalBatches) {
  Plan plan;
  plan.chunks = chunks;
  plan.microbatch = 1;
  plan.globalBatches = std::move(globalBatches);
  plan.sequenceLength = 10;
  plan.computeType = "f32";
  return plan;
}

} // namespace drover::schedule::test

#endif // DROVER_UNITTESTS_SCHEDULE_TOYMODEL_H
