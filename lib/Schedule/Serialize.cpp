//===- Serialize.cpp - metadata as JSON -----------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/Serialize.h"
#include <nlohmann/json.hpp>

using namespace drover::schedule;
using Json = nlohmann::ordered_json;

namespace {
constexpr const char *kSpaceNames[kNumSpaces] = {"input",   "parameter", "accumulator", "stash",  "x",      "y",
                                                 "dy",      "dx",        "scratch",     "scalar", "master", "moment1",
                                                 "moment2", "output",    "gradient",    "kept",   "handed"};

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

Json cutJson(const std::vector<DimCut> &cuts) {
  Json json = Json::array();
  for (const DimCut &cut : cuts) {
    Json entry = {{"dim", cut.dim}, {"axis", nameOf(cut.axis)}};
    for (const Segment &segment : cut.segments)
      entry["segments"].push_back({segment.groups, segment.valid, segment.padded, segment.total});
    json.push_back(entry);
  }
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
  if (!parameter.cut.empty()) {
    json["local_shape"] = parameter.localShape.empty() ? parameter.shape : parameter.localShape;
    json["cut"] = cutJson(parameter.cut);
  }
  if (!parameter.aliases.empty())
    json["aliases"] = parameter.aliases;
  if (parameter.source) {
    const Source &source = *parameter.source;
    json["source"] = {{"file", source.file},           {"offset", source.offset},         {"bytes", source.bytes},
                      {"dtype", nameOf(source.dtype)}, {"transposed", source.transposed}, {"plus", source.plus}};
  }
  return json;
}

Json gridJson(const Grid &grid) {
  Json json = {{"tp", grid.tp}, {"cp", grid.cp}, {"pp", grid.pp}, {"dp", grid.dp}};
  if (grid.kv > 0)
    json["kv"] = grid.kv;
  json["order"] = grid.order;
  return json;
}

Json communicatorJson(const Communicator &communicator) {
  Json json = {{"id", communicator.id}, {"kind", communicator.isTie ? "tie" : "edge"}};
  if (communicator.isTie) {
    json["stages"] = communicator.stages;
    return json;
  }
  json["from"] = communicator.from;
  json["to"] = communicator.to;
  json["direction"] = communicator.forward ? "forward" : "backward";
  return json;
}

Json bucketJson(const Bucket &bucket) {
  Json json = {{"elements", bucket.elements}, {"chunks", bucket.chunks}, {"sections", Json::array()}};
  for (const Section &section : bucket.sections) {
    Json entry = {{"first", section.first},
                  {"elements", section.elements},
                  {"decay", section.decay},
                  {"trainable", section.trainable}};
    if (section.sum != GridAxis::None)
      entry["sum"] = nameOf(section.sum);
    if (section.replicated != GridAxis::None)
      entry["replicated"] = nameOf(section.replicated);
    json["sections"].push_back(entry);
  }
  return json;
}

Json bodyJson(const Body &body, size_t index) {
  Json json = {{"name", body.name},
               {"index", index},
               {"workspace_bytes", body.workspaceBytes},
               {"flops", body.flops},
               {"bytes", body.bytes}};
  for (const BodyCollective &collective : body.collectives)
    json["collectives"].push_back({{"communicator", collective.communicator},
                                   {"kind", nameOfCollective(collective.kind)},
                                   {"dtype", nameOf(collective.dtype)},
                                   {"bytes", collective.bytes},
                                   {"reduction", collective.reduction}});
  for (const BodyOperand &operand : body.operands) {
    Json entry = {{"dtype", nameOf(operand.dtype)}, {"shape", operand.shape}};
    if (!operand.cut.empty())
      entry["cut"] = cutJson(operand.cut);
    for (GridAxis axis : operand.partial)
      entry["partial"].push_back(nameOf(axis));
    if (operand.isResult)
      entry["result"] = true;
    json["operands"].push_back(entry);
  }
  return json;
}

Json chunkJson(const StepChunk &chunk) {
  Json phases = Json::array();
  for (const std::vector<StepCall> &phase : chunk.phases) {
    Json calls = Json::array();
    for (const StepCall &call : phase)
      calls.push_back(callJson(call));
    phases.push_back({{"calls", calls}});
  }
  return {{"bucket", chunk.bucket},
          {"bytes",
           {{"stash", chunk.stashBytes},
            {"kept", chunk.keptBytes},
            {"handed", chunk.handedBytes},
            {"x", chunk.xBytes},
            {"y", chunk.yBytes},
            {"dy", chunk.dyBytes},
            {"dx", chunk.dxBytes},
            {"scratch", chunk.scratchBytes}}},
          {"phases", phases}};
}

/// Numbers alone: a large program has many thousands of bindings.
Json bindingJson(const Binding &binding) {
  Json json = Json::array();
  for (size_t space = 0; space < kNumSpaces; ++space)
    if (binding.offsets[space] >= 0) {
      json.push_back(space);
      json.push_back(binding.offsets[space]);
    }
  return json;
}

Json placesJson(const Binding &binding) {
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

Json stageJson(const Stage &stage) {
  Json json = {{"first_action", stage.firstAction}, {"num_actions", stage.numActions}};
  json["bindings"] = Json::array();
  for (const Binding &binding : stage.bindings)
    json["bindings"].push_back(bindingJson(binding));
  json["buckets"] = Json::array();
  for (const Binding &binding : stage.buckets)
    json["buckets"].push_back(placesJson(binding));
  json["waits"] = stage.waits;
  json["arena_bytes"] = stage.arenaBytes;
  json["memory"] = memoryJson(stage.memory);
  return json;
}

Json batchJson(const Batch &batch) {
  Json json = {{"global_batch", batch.globalBatch}, {"microbatches", batch.microbatches}, {"groups", batch.groups}};
  json["stages"] = Json::array();
  for (const Stage &stage : batch.stages)
    json["stages"].push_back(stageJson(stage));
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
          {"attention", plan.attention},
          {"communication_sms", plan.communicationSms},
          {"order", plan.order}};
}
} // namespace

const char *drover::schedule::nameOf(Space space) { return kSpaceNames[static_cast<size_t>(space)]; }

std::string drover::schedule::printLayersPerChunk(const std::vector<int64_t> &layers) {
  std::string text;
  for (size_t i = 0; i < layers.size();) {
    size_t j = i;
    while (j < layers.size() && layers[j] == layers[i])
      ++j;
    text += (text.empty() ? "" : ",") + std::to_string(layers[i]) + (j - i > 1 ? "*" + std::to_string(j - i) : "");
    i = j;
  }
  return text;
}

std::string drover::schedule::serializePlan(const Plan &plan) { return planJson(plan).dump(2) + "\n"; }

std::string drover::schedule::serializeMetadata(const StepProgram &step, const std::string &ncclSettings) {
  Json json = {{"format", 2},
               {"task", step.train ? "train" : "forward"},
               {"compute_dtype", nameOf(step.computeType)},
               {"plan", planJson(step.plan)},
               {"model", {{"file", step.model.file}, {"sha256", step.model.sha256}, {"kind", step.model.kind}}},
               {"tokens_per_microbatch", step.tokensPerMicrobatch},
               {"flops_per_token", step.flopsPerToken},
               {"vocabulary", step.vocabulary}};
  if (!ncclSettings.empty())
    json["nccl"] = Json::parse(ncclSettings);
  json["grid"] = gridJson(step.grid);
  json["communicators"] = Json::array();
  for (const Communicator &communicator : step.communicators)
    json["communicators"].push_back(communicatorJson(communicator));
  json["inputs"] = Json::array();
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    Json input = tensorJson(step.inputs[i]);
    input["role"] = step.inputInfo[i].role;
    input["fill"] = step.inputInfo[i].fill;
    if (step.inputInfo[i].cutDim >= 0)
      input["cut"] = {{"dim", step.inputInfo[i].cutDim}};
    json["inputs"].push_back(input);
  }
  json["input_bytes"] = step.inputBytes;
  json["outputs"] = Json::array();
  for (const PlacedTensor &output : step.outputs) {
    json["outputs"].push_back(tensorJson(output));
    if (!output.cut.empty())
      json["outputs"].back()["cut"] = cutJson(output.cut);
  }
  json["output_bytes"] = step.outputBytes;
  json["parameters"] = Json::array();
  for (const PlacedParameter &parameter : step.parameters)
    json["parameters"].push_back(parameterJson(parameter));
  json["buckets"] = Json::array();
  for (const Bucket &bucket : step.buckets)
    json["buckets"].push_back(bucketJson(bucket));
  json["bodies"] = Json::array();
  for (size_t i = 0; i < step.bodies.size(); ++i)
    json["bodies"].push_back(bodyJson(step.bodies[i], i));
  json["update_body"] = step.updateBody;
  json["norm_body"] = step.normBody;
  json["cast_body"] = step.castBody;
  if (step.addBody >= 0)
    json["add_body"] = step.addBody;
  json["loss_chunk"] = step.lossChunk;
  json["chunks"] = Json::array();
  for (const StepChunk &chunk : step.chunks)
    json["chunks"].push_back(chunkJson(chunk));
  json["batches"] = Json::array();
  for (const Batch &batch : step.batches)
    json["batches"].push_back(batchJson(batch));
  // Names come from users' files: what is no UTF-8 is replaced, not refused.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
