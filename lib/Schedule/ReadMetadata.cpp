//===- ReadMetadata.cpp - metadata and plans from JSON --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/Serialize.h"
#include <nlohmann/json.hpp>

using namespace drover::schedule;
using Json = nlohmann::json;

namespace {

/// Fields of a JSON object with types checked; the first error is kept and later reads give defaults.
class Reader {
public:
  explicit Reader(std::string &error) : error(error) {}

  const Json &at(const Json &json, const char *key) {
    static const Json nothing;
    if (json.is_object() && json.contains(key))
      return json[key];
    fail(std::string("field '") + key + "' is missing");
    return nothing;
  }
  int64_t integer(const Json &json, const char *key) {
    const Json &value = at(json, key);
    if (value.is_number_integer())
      return value.get<int64_t>();
    fail(std::string("field '") + key + "' is no integer");
    return 0;
  }
  double number(const Json &json, const char *key) {
    const Json &value = at(json, key);
    if (value.is_number())
      return value.get<double>();
    fail(std::string("field '") + key + "' is no number");
    return 0;
  }
  bool boolean(const Json &json, const char *key) {
    const Json &value = at(json, key);
    if (value.is_boolean())
      return value.get<bool>();
    fail(std::string("field '") + key + "' is no boolean");
    return false;
  }
  std::string text(const Json &json, const char *key) {
    const Json &value = at(json, key);
    if (value.is_string())
      return value.get<std::string>();
    fail(std::string("field '") + key + "' is no string");
    return "";
  }
  const Json &array(const Json &json, const char *key) {
    static const Json nothing = Json::array();
    const Json &value = at(json, key);
    if (value.is_array())
      return value;
    fail(std::string("field '") + key + "' is no list");
    return nothing;
  }
  std::vector<int64_t> integers(const Json &list) {
    std::vector<int64_t> values;
    for (const Json &value : list) {
      if (!value.is_number_integer()) {
        fail("a list has an entry that is no integer");
        return values;
      }
      values.push_back(value.get<int64_t>());
    }
    return values;
  }
  DType dtype(const Json &json, const char *key) {
    std::optional<DType> dtype = parseDType(text(json, key));
    if (!dtype)
      fail(std::string("field '") + key + "' is no element type");
    return dtype.value_or(DType::F32);
  }
  void fail(const std::string &message) {
    if (error.empty())
      error = message;
  }

  Plan plan(const Json &json);
  PlacedTensor tensor(const Json &json);
  PlacedParameter parameter(const Json &json);
  StepCall call(const Json &json);
  Binding binding(const Json &json);
  Batch batch(const Json &json);

private:
  std::string &error;
};

Plan Reader::plan(const Json &json) {
  Plan plan;
  auto readInteger = [&](const char *key, int64_t &value) {
    if (json.contains(key))
      value = integer(json, key);
  };
  auto readText = [&](const char *key, std::string &value) {
    if (json.contains(key))
      value = text(json, key);
  };
  // A list option may be one number.
  auto readList = [&](const char *key, std::vector<int64_t> &value) {
    if (json.contains(key))
      value = json[key].is_array() ? integers(json[key]) : std::vector<int64_t>{integer(json, key)};
  };
  readInteger("tp", plan.tp);
  readInteger("cp", plan.cp);
  readInteger("pp", plan.pp);
  readInteger("dp", plan.dp);
  readInteger("chunks", plan.chunks);
  readList("run", plan.run);
  readInteger("microbatch", plan.microbatch);
  readList("global_batch", plan.globalBatches);
  readInteger("seq_len", plan.sequenceLength);
  if (json.contains("schedule")) {
    plan.kind = parseScheduleKind(text(json, "schedule"));
    if (!plan.kind)
      fail("field 'schedule' is none of 1f1b, interleaved, bfs, zb-h1");
  }
  readList("layers_per_chunk", plan.layersPerChunk);
  readText("recompute", plan.recompute);
  readText("rebuild", plan.rebuild);
  readInteger("zero", plan.zero);
  readText("reduce_every", plan.reduceEvery);
  readText("compute_dtype", plan.computeType);
  readText("mask", plan.mask);
  readText("optimizer", plan.optimizer);
  readText("tp_overlap", plan.tpOverlap);
  readText("freeze", plan.freeze);
  readText("attention", plan.attention);
  return plan;
}

PlacedTensor Reader::tensor(const Json &json) {
  return {text(json, "name"), dtype(json, "dtype"), integers(array(json, "shape")), integer(json, "offset")};
}

PlacedParameter Reader::parameter(const Json &json) {
  PlacedParameter placed;
  Parameter &parameter = placed.parameter;
  parameter.name = text(json, "name");
  parameter.shape = integers(array(json, "shape"));
  placed.bucket = static_cast<int32_t>(integer(json, "bucket"));
  placed.offset = integer(json, "offset");
  parameter.decay = boolean(json, "decay");
  parameter.frozen = boolean(json, "frozen");
  const Json &init = at(json, "init");
  parameter.initNormal = text(init, "kind") == "normal";
  parameter.initValue = number(init, parameter.initNormal ? "std" : "value");
  if (json.contains("aliases"))
    for (const Json &alias : json["aliases"])
      parameter.aliases.push_back(alias.is_string() ? alias.get<std::string>() : "");
  if (json.contains("source")) {
    const Json &source = json["source"];
    parameter.source = Source{text(source, "file"),
                              static_cast<uint64_t>(integer(source, "offset")),
                              static_cast<uint64_t>(integer(source, "bytes")),
                              dtype(source, "dtype"),
                              boolean(source, "transposed"),
                              number(source, "plus")};
  }
  return placed;
}

StepCall Reader::call(const Json &json) {
  StepCall call;
  call.body = static_cast<uint32_t>(integer(json, "body"));
  if (json.contains("layer"))
    call.layer = static_cast<int32_t>(integer(json, "layer"));
  for (const Json &operand : array(json, "operands")) {
    std::vector<int64_t> fields = integers(operand);
    if (fields.size() < 2 || fields.size() > 3 || fields[0] < 0 || fields[0] >= static_cast<int64_t>(kNumSpaces)) {
      fail("an operand is not [space, offset] or [space, offset, bucket]");
      return call;
    }
    call.operands.push_back(
        {static_cast<Space>(fields[0]), fields[1], fields.size() == 3 ? static_cast<int32_t>(fields[2]) : -1});
  }
  call.alwaysAccumulate = json.contains("accumulate") && boolean(json, "accumulate");
  if (json.contains("clears"))
    for (const Json &range : array(json, "clears")) {
      std::vector<int64_t> fields = integers(range);
      if (fields.size() == 3)
        call.clears.push_back({static_cast<int32_t>(fields[0]), fields[1], fields[2]});
      else
        fail("a range to clear is not [bucket, offset, elements]");
    }
  return call;
}

Binding Reader::binding(const Json &json) {
  Binding binding;
  for (const auto &[key, offset] : json.items()) {
    size_t space = 0;
    while (space < kNumSpaces && key != nameOf(static_cast<Space>(space)))
      ++space;
    if (space == kNumSpaces || !offset.is_number_integer())
      fail("a binding has the unknown entry '" + key + "'");
    else
      binding.offsets[space] = offset.get<int64_t>();
  }
  return binding;
}

Batch Reader::batch(const Json &json) {
  Batch batch;
  batch.globalBatch = integer(json, "global_batch");
  batch.microbatches = integer(json, "microbatches");
  batch.groups = integers(array(json, "groups"));
  batch.firstAction = static_cast<uint64_t>(integer(json, "first_action"));
  batch.numActions = static_cast<uint64_t>(integer(json, "num_actions"));
  for (const Json &entry : array(json, "bindings"))
    batch.bindings.push_back(binding(entry));
  for (const Json &entry : array(json, "buckets"))
    batch.buckets.push_back(binding(entry));
  for (int64_t wait : integers(array(json, "waits")))
    batch.waits.push_back(static_cast<uint32_t>(wait));
  batch.arenaBytes = integer(json, "arena_bytes");
  const Json &memory = at(json, "memory");
  batch.memory = {integer(memory, "parameters"), integer(memory, "gradients"), integer(memory, "optimizer"),
                  integer(memory, "stash"),      integer(memory, "boundary"),  integer(memory, "scratch"),
                  integer(memory, "workspace"),  integer(memory, "inputs"),    integer(memory, "logits")};
  return batch;
}

} // namespace

Result<Plan> drover::schedule::readPlan(const std::string &text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return Error{"not a JSON object"};
  // What `plan --json` prints for one plan holds more than the options.
  if (json.contains("plan") && json["plan"].is_object())
    json = json["plan"];
  std::string error;
  Plan plan = Reader(error).plan(json);
  if (!error.empty())
    return Error{error};
  return plan;
}

Result<StepProgram> drover::schedule::readMetadata(const std::string &text, std::vector<drover_action> actions) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return Error{"not a JSON object"};
  std::string error;
  Reader reader(error);
  StepProgram step;
  step.actions = std::move(actions);
  if (int64_t format = reader.integer(json, "format"); error.empty() && format != 1)
    return Error{"format " + std::to_string(format) + ": expected 1"};
  step.train = reader.text(json, "task") == "train";
  step.computeType = reader.dtype(json, "compute_dtype");
  step.plan = reader.plan(reader.at(json, "plan"));
  const Json &model = reader.at(json, "model");
  step.model = {reader.text(model, "file"), reader.text(model, "sha256"), reader.text(model, "kind")};
  step.tokensPerMicrobatch = reader.integer(json, "tokens_per_microbatch");
  step.flopsPerToken = reader.number(json, "flops_per_token");
  step.vocabulary = reader.integer(json, "vocabulary");
  for (const Json &input : reader.array(json, "inputs")) {
    PlacedTensor tensor = reader.tensor(input);
    step.inputInfo.push_back(
        {tensor.name, tensor.dtype, tensor.shape, reader.text(input, "role"), reader.text(input, "fill")});
    step.inputs.push_back(std::move(tensor));
  }
  step.inputBytes = reader.integer(json, "input_bytes");
  for (const Json &output : reader.array(json, "outputs"))
    step.outputs.push_back(reader.tensor(output));
  step.outputBytes = reader.integer(json, "output_bytes");
  for (const Json &parameter : reader.array(json, "parameters"))
    step.parameters.push_back(reader.parameter(parameter));
  for (const Json &bucket : reader.array(json, "buckets"))
    step.buckets.push_back({reader.integer(bucket, "decay_elements"), reader.integer(bucket, "trainable_elements"),
                            reader.integer(bucket, "elements"), static_cast<int32_t>(reader.integer(bucket, "chunk"))});
  for (const Json &body : reader.array(json, "bodies"))
    step.bodies.push_back({reader.text(body, "name"), static_cast<uint64_t>(reader.integer(body, "flops")),
                           static_cast<uint64_t>(reader.integer(body, "bytes")),
                           reader.integer(body, "workspace_bytes")});
  step.updateBody = static_cast<int32_t>(reader.integer(json, "update_body"));
  step.normBody = static_cast<int32_t>(reader.integer(json, "norm_body"));
  step.castBody = static_cast<int32_t>(reader.integer(json, "cast_body"));
  step.lossChunk = static_cast<int32_t>(reader.integer(json, "loss_chunk"));
  for (const Json &chunk : reader.array(json, "chunks")) {
    StepChunk result;
    size_t phase = 0;
    for (const Json &calls : reader.array(chunk, "phases")) {
      if (phase == result.phases.size()) {
        reader.fail("a chunk has more than three phases");
        break;
      }
      for (const Json &call : reader.array(calls, "calls"))
        result.phases[phase].push_back(reader.call(call));
      ++phase;
    }
    step.chunks.push_back(std::move(result));
  }
  for (const Json &batch : reader.array(json, "batches"))
    step.batches.push_back(reader.batch(batch));
  if (!error.empty())
    return Error{error};
  return step;
}
