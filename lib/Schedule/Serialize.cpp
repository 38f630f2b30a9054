//===- Serialize.cpp - metadata as JSON -----------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/Serialize.h"
#include <nlohmann/json.hpp>

using namespace drover::schedule;
using Json = nlohmann::ordered_json;

namespace {
constexpr const char *kSpaceNames[kNumSpaces] = {"input",  "parameter", "accumulator", "stash",   "x",
                                                 "y",      "dy",        "dx",          "scratch", "scalar",
                                                 "master", "moment1",   "moment2",     "output"};

Json operandJson(const Operand &operand) {
  Json json = {static_cast<int>(operand.space), operand.offset};
  if (operand.bucket >= 0)
    json.push_back(operand.bucket);
  return json;
}

Json callJson(const StepCall &call) {
  Json json = {{"body", call.body}};
  if (call.layer >= 0)
    json["layer"] = call.layer;
  json["operands"] = Json::array();
  for (const Operand &operand : call.operands)
    json["operands"].push_back(operandJson(operand));
  if (call.alwaysAccumulate)
    json["accumulate"] = true;
  for (const BucketRange &range : call.clears)
    json["clears"].push_back({range.bucket, range.offset, range.elements});
  return json;
}

Json tensorJson(const PlacedTensor &tensor) {
  return {{"name", tensor.name}, {"dtype", nameOf(tensor.dtype)}, {"shape", tensor.shape}, {"offset", tensor.offset}};
}

Json parameterJson(const PlacedParameter &placed) {
  const Parameter &parameter = placed.parameter;
  Json json = {{"name", parameter.name},  {"shape", parameter.shape}, {"bucket", placed.bucket},
               {"offset", placed.offset}, {"decay", parameter.decay}, {"frozen", parameter.frozen}};
  json["init"] = parameter.initNormal ? Json{{"kind", "normal"}, {"std", parameter.initValue}}
                                      : Json{{"kind", "constant"}, {"value", parameter.initValue}};
  if (!parameter.aliases.empty())
    json["aliases"] = parameter.aliases;
  if (parameter.source) {
    const Source &source = *parameter.source;
    json["source"] = {{"file", source.file},           {"offset", source.offset},         {"bytes", source.bytes},
                      {"dtype", nameOf(source.dtype)}, {"transposed", source.transposed}, {"plus", source.plus}};
  }
  return json;
}

Json bindingJson(const Binding &binding) {
  Json json = Json::object();
  for (size_t space = 0; space < kNumSpaces; ++space)
    if (binding.offsets[space] >= 0)
      json[kSpaceNames[space]] = binding.offsets[space];
  return json;
}

Json memoryJson(const Memory &memory) {
  return {{"parameters", memory.parameters}, {"gradients", memory.gradients}, {"optimizer", memory.optimizer},
          {"stash", memory.stash},           {"boundary", memory.boundary},   {"scratch", memory.scratch},
          {"workspace", memory.workspace},   {"inputs", memory.inputs},       {"logits", memory.logits}};
}

Json batchJson(const Batch &batch) {
  Json json = {{"global_batch", batch.globalBatch},
               {"microbatches", batch.microbatches},
               {"groups", batch.groups},
               {"first_action", batch.firstAction},
               {"num_actions", batch.numActions}};
  json["bindings"] = Json::array();
  for (const Binding &binding : batch.bindings)
    json["bindings"].push_back(bindingJson(binding));
  json["buckets"] = Json::array();
  for (const Binding &binding : batch.buckets)
    json["buckets"].push_back(bindingJson(binding));
  json["waits"] = batch.waits;
  json["arena_bytes"] = batch.arenaBytes;
  json["memory"] = memoryJson(batch.memory);
  return json;
}

Json planJson(const Plan &plan) {
  return {{"tp", plan.tp},
          {"cp", plan.cp},
          {"pp", plan.pp},
          {"dp", plan.dp},
          {"chunks", plan.chunks},
          {"run", plan.run},
          {"microbatch", plan.microbatch},
          {"global_batch", plan.globalBatches},
          {"seq_len", plan.sequenceLength},
          {"schedule", nameOf(plan.schedule())},
          {"layers_per_chunk", plan.layersPerChunk},
          {"recompute", plan.recompute},
          {"rebuild", plan.rebuild},
          {"zero", plan.zero},
          {"reduce_every", plan.reduceEvery},
          {"compute_dtype", plan.computeType},
          {"mask", plan.mask},
          {"optimizer", plan.optimizer},
          {"tp_overlap", plan.tpOverlap},
          {"freeze", plan.freeze},
          {"attention", plan.attention}};
}
} // namespace

const char *drover::schedule::nameOf(Space space) { return kSpaceNames[static_cast<size_t>(space)]; }

std::string drover::schedule::serializePlan(const Plan &plan) { return planJson(plan).dump(2) + "\n"; }

std::string drover::schedule::serializeMetadata(const StepProgram &step) {
  Json json = {{"format", 1},
               {"task", step.train ? "train" : "forward"},
               {"compute_dtype", nameOf(step.computeType)},
               {"plan", planJson(step.plan)},
               {"model", {{"file", step.model.file}, {"sha256", step.model.sha256}, {"kind", step.model.kind}}},
               {"tokens_per_microbatch", step.tokensPerMicrobatch},
               {"flops_per_token", step.flopsPerToken},
               {"vocabulary", step.vocabulary}};
  json["inputs"] = Json::array();
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    Json input = tensorJson(step.inputs[i]);
    input["role"] = step.inputInfo[i].role;
    input["fill"] = step.inputInfo[i].fill;
    json["inputs"].push_back(input);
  }
  json["input_bytes"] = step.inputBytes;
  json["outputs"] = Json::array();
  for (const PlacedTensor &output : step.outputs)
    json["outputs"].push_back(tensorJson(output));
  json["output_bytes"] = step.outputBytes;
  json["parameters"] = Json::array();
  for (const PlacedParameter &parameter : step.parameters)
    json["parameters"].push_back(parameterJson(parameter));
  json["buckets"] = Json::array();
  for (const Bucket &bucket : step.buckets)
    json["buckets"].push_back({{"elements", bucket.elements},
                               {"decay_elements", bucket.decayElements},
                               {"trainable_elements", bucket.trainableElements},
                               {"chunk", bucket.chunk}});
  json["bodies"] = Json::array();
  for (size_t i = 0; i < step.bodies.size(); ++i) {
    const Body &body = step.bodies[i];
    json["bodies"].push_back({{"name", body.name},
                              {"index", i},
                              {"workspace_bytes", body.workspaceBytes},
                              {"flops", body.flops},
                              {"bytes", body.bytes}});
  }
  json["update_body"] = step.updateBody;
  json["norm_body"] = step.normBody;
  json["cast_body"] = step.castBody;
  json["loss_chunk"] = step.lossChunk;
  json["chunks"] = Json::array();
  for (const StepChunk &chunk : step.chunks) {
    Json phases = Json::array();
    for (const std::vector<StepCall> &phase : chunk.phases) {
      Json calls = Json::array();
      for (const StepCall &call : phase)
        calls.push_back(callJson(call));
      phases.push_back({{"calls", calls}});
    }
    json["chunks"].push_back({{"phases", phases}});
  }
  json["batches"] = Json::array();
  for (const Batch &batch : step.batches)
    json["batches"].push_back(batchJson(batch));
  // Names come from users' files: what is no UTF-8 is replaced, not refused.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
