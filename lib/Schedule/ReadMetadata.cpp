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
  Grid grid(const Json &json);
  std::array<std::string, 4> order(const Json &json);
  Communicator communicator(const Json &json);
  GridAxis axis(const Json &json, const char *key);
  std::vector<DimCut> cut(const Json &json);
  PlacedTensor tensor(const Json &json);
  Bucket bucket(const Json &json);
  BodyOperand operandType(const Json &json);
  Body body(const Json &json);
  StepChunk chunk(const Json &json);
  PlacedParameter parameter(const Json &json);
  StepCall call(const Json &json);
  Binding binding(const Json &json);
  Binding places(const Json &json);
  Stage stage(const Json &json);
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
  readInteger("communication_sms", plan.communicationSms);
  if (json.contains("order"))
    plan.order = order(json);
  return plan;
}

std::array<std::string, 4> Reader::order(const Json &json) {
  std::array<std::string, 4> order;
  const Json &names = array(json, "order");
  if (names.size() != order.size())
    fail("field 'order' has not four axes");
  else
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = names[i].is_string() ? names[i].get<std::string>() : "";
  return order;
}

Grid Reader::grid(const Json &json) {
  Grid grid;
  grid.tp = integer(json, "tp");
  grid.cp = integer(json, "cp");
  grid.pp = integer(json, "pp");
  grid.dp = integer(json, "dp");
  if (json.contains("kv"))
    grid.kv = integer(json, "kv");
  grid.order = order(json);
  if (grid.tp < 1 || grid.cp < 1 || grid.pp < 1 || grid.dp < 1)
    fail("a grid has not four axes of 1 or more ranks");
  return grid;
}

Communicator Reader::communicator(const Json &json) {
  Communicator communicator;
  communicator.id = static_cast<uint32_t>(integer(json, "id"));
  communicator.isTie = text(json, "kind") == "tie";
  if (communicator.isTie) {
    for (int64_t stage : integers(array(json, "stages")))
      communicator.stages.push_back(static_cast<int32_t>(stage));
    return communicator;
  }
  communicator.from = static_cast<int32_t>(integer(json, "from"));
  communicator.to = static_cast<int32_t>(integer(json, "to"));
  communicator.forward = text(json, "direction") == "forward";
  return communicator;
}

GridAxis Reader::axis(const Json &json, const char *key) {
  if (!json.contains(key))
    return GridAxis::None;
  std::optional<GridAxis> axis = parseGridAxis(text(json, key));
  if (!axis)
    fail(std::string("field '") + key + "' is no axis of the grid");
  return axis.value_or(GridAxis::None);
}

std::vector<DimCut> Reader::cut(const Json &json) {
  std::vector<DimCut> cuts;
  for (const Json &entry : array(json, "cut")) {
    DimCut cut{integer(entry, "dim"), axis(entry, "axis"), {}};
    if (entry.contains("segments"))
      for (const Json &segment : array(entry, "segments")) {
        std::vector<int64_t> fields = integers(segment);
        if (fields.size() == 4)
          cut.segments.push_back({fields[0], fields[1], fields[2], fields[3]});
        else
          fail("a segment is not [groups, valid, padded, total]");
      }
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

PlacedTensor Reader::tensor(const Json &json) {
  return {text(json, "name"), dtype(json, "dtype"), integers(array(json, "shape")), integer(json, "offset"), {}};
}

Bucket Reader::bucket(const Json &json) {
  Bucket bucket;
  bucket.elements = integer(json, "elements");
  for (int64_t chunk : integers(array(json, "chunks")))
    bucket.chunks.push_back(static_cast<int32_t>(chunk));
  if (bucket.chunks.empty())
    fail("a bucket belongs to no chunk");
  for (const Json &section : array(json, "sections"))
    bucket.sections.push_back({integer(section, "first"), integer(section, "elements"), boolean(section, "decay"),
                               boolean(section, "trainable"), axis(section, "sum"), axis(section, "replicated")});
  return bucket;
}

BodyOperand Reader::operandType(const Json &json) {
  BodyOperand operand;
  operand.dtype = dtype(json, "dtype");
  operand.shape = integers(array(json, "shape"));
  if (json.contains("cut"))
    operand.cut = cut(json);
  if (json.contains("partial"))
    for (const Json &name : array(json, "partial")) {
      std::optional<GridAxis> axis = parseGridAxis(name.is_string() ? name.get<std::string>() : "");
      if (!axis)
        fail("field 'partial' has an entry that is no axis of the grid");
      operand.partial.push_back(axis.value_or(GridAxis::None));
    }
  operand.isResult = json.contains("result") && boolean(json, "result");
  return operand;
}

Body Reader::body(const Json &json) {
  Body body;
  body.name = text(json, "name");
  body.flops = static_cast<uint64_t>(integer(json, "flops"));
  body.bytes = static_cast<uint64_t>(integer(json, "bytes"));
  body.workspaceBytes = integer(json, "workspace_bytes");
  if (json.contains("operands"))
    for (const Json &entry : array(json, "operands"))
      body.operands.push_back(operandType(entry));
  if (!json.contains("collectives"))
    return body;
  for (const Json &entry : array(json, "collectives")) {
    BodyCollective collective;
    collective.communicator = static_cast<uint32_t>(integer(entry, "communicator"));
    std::optional<int32_t> kind = parseCollective(text(entry, "kind"));
    if (!kind)
      fail("field 'kind' is none of all_gather, reduce_scatter, all_reduce, shift");
    collective.kind = kind.value_or(DROVER_ALL_REDUCE);
    collective.dtype = dtype(entry, "dtype");
    collective.bytes = integer(entry, "bytes");
    collective.reduction = integer(entry, "reduction");
    body.collectives.push_back(collective);
  }
  return body;
}

PlacedParameter Reader::parameter(const Json &json) {
  PlacedParameter placed;
  Parameter &parameter = placed.parameter;
  parameter.name = text(json, "name");
  parameter.shape = integers(array(json, "shape"));
  if (json.contains("cut")) {
    parameter.localShape = integers(array(json, "local_shape"));
    parameter.cut = cut(json);
  }
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

StepChunk Reader::chunk(const Json &json) {
  StepChunk chunk;
  chunk.bucket = static_cast<int32_t>(integer(json, "bucket"));
  const Json &bytes = at(json, "bytes");
  chunk.stashBytes = integer(bytes, "stash");
  chunk.keptBytes = integer(bytes, "kept");
  chunk.handedBytes = integer(bytes, "handed");
  chunk.xBytes = integer(bytes, "x");
  chunk.yBytes = integer(bytes, "y");
  chunk.dyBytes = integer(bytes, "dy");
  chunk.dxBytes = integer(bytes, "dx");
  std::vector<int64_t> scratch = integers(array(bytes, "scratch"));
  const Json &phases = array(json, "phases");
  if (scratch.size() != chunk.scratchBytes.size() || phases.size() != chunk.phases.size()) {
    fail("a chunk has not three phases");
    return chunk;
  }
  for (size_t phase = 0; phase < phases.size(); ++phase) {
    chunk.scratchBytes[phase] = scratch[phase];
    for (const Json &entry : array(phases[phase], "calls"))
      chunk.phases[phase].push_back(call(entry));
  }
  return chunk;
}

Binding Reader::binding(const Json &json) {
  Binding binding;
  std::vector<int64_t> fields = integers(json);
  for (size_t i = 0; i + 1 < fields.size(); i += 2)
    if (fields[i] >= 0 && fields[i] < static_cast<int64_t>(kNumSpaces))
      binding.offsets[fields[i]] = fields[i + 1];
    else
      fail("a binding names space " + std::to_string(fields[i]) + " of " + std::to_string(kNumSpaces));
  if (fields.size() % 2)
    fail("a binding is not pairs of a space and an offset");
  return binding;
}

Binding Reader::places(const Json &json) {
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

Stage Reader::stage(const Json &json) {
  Stage stage;
  stage.firstAction = static_cast<uint64_t>(integer(json, "first_action"));
  stage.numActions = static_cast<uint64_t>(integer(json, "num_actions"));
  for (const Json &entry : array(json, "bindings"))
    stage.bindings.push_back(binding(entry));
  for (const Json &entry : array(json, "buckets"))
    stage.buckets.push_back(places(entry));
  for (int64_t wait : integers(array(json, "waits")))
    stage.waits.push_back(static_cast<uint32_t>(wait));
  stage.arenaBytes = integer(json, "arena_bytes");
  const Json &memory = at(json, "memory");
  stage.memory = {integer(memory, "parameters"), integer(memory, "gradients"), integer(memory, "optimizer"),
                  integer(memory, "stash"),      integer(memory, "boundary"),  integer(memory, "scratch"),
                  integer(memory, "workspace"),  integer(memory, "inputs"),    integer(memory, "logits")};
  return stage;
}

Batch Reader::batch(const Json &json) {
  Batch batch;
  batch.globalBatch = integer(json, "global_batch");
  batch.microbatches = integer(json, "microbatches");
  batch.groups = integers(array(json, "groups"));
  for (const Json &entry : array(json, "stages"))
    batch.stages.push_back(stage(entry));
  return batch;
}

} // namespace

/// A field that is misspelled would be an option that is not followed.
static std::string findUnknownField(const Json &plan) {
  Json known = Json::parse(serializePlan(Plan()));
  known["hash"] = ""; // names the plan; what is read is what counts
  for (const auto &[name, value] : plan.items())
    if (!known.contains(name)) {
      std::string accepted;
      for (const auto &[field, unused] : known.items())
        accepted += (accepted.empty() ? "" : ", ") + field;
      return "unknown field '" + name + "': expected " + accepted;
    }
  return "";
}

Result<Plan> drover::schedule::readPlan(const std::string &text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return Error{"not a JSON object"};
  // What `plan --json` prints: all plans, the best first, and each with more than its options.
  if (json.contains("plans") && json["plans"].is_array() && !json["plans"].empty())
    json = Json(json["plans"].front());
  if (json.contains("plan") && json["plan"].is_object())
    json = json["plan"];
  std::string error = findUnknownField(json);
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
  if (int64_t format = reader.integer(json, "format"); error.empty() && format != 2)
    return Error{"format " + std::to_string(format) + ": expected 2"};
  step.train = reader.text(json, "task") == "train";
  step.computeType = reader.dtype(json, "compute_dtype");
  step.plan = reader.plan(reader.at(json, "plan"));
  step.grid = reader.grid(reader.at(json, "grid"));
  for (const Json &communicator : reader.array(json, "communicators"))
    step.communicators.push_back(reader.communicator(communicator));
  const Json &model = reader.at(json, "model");
  step.model = {reader.text(model, "file"), reader.text(model, "sha256"), reader.text(model, "kind")};
  step.tokensPerMicrobatch = reader.integer(json, "tokens_per_microbatch");
  step.flopsPerToken = reader.number(json, "flops_per_token");
  step.vocabulary = reader.integer(json, "vocabulary");
  for (const Json &input : reader.array(json, "inputs")) {
    PlacedTensor tensor = reader.tensor(input);
    step.inputInfo.push_back({tensor.name, tensor.dtype, tensor.shape, reader.text(input, "role"),
                              reader.text(input, "fill"),
                              input.contains("cut") ? reader.integer(input["cut"], "dim") : -1});
    step.inputs.push_back(std::move(tensor));
  }
  step.inputBytes = reader.integer(json, "input_bytes");
  for (const Json &output : reader.array(json, "outputs")) {
    step.outputs.push_back(reader.tensor(output));
    if (output.contains("cut"))
      step.outputs.back().cut = reader.cut(output);
  }
  step.outputBytes = reader.integer(json, "output_bytes");
  for (const Json &parameter : reader.array(json, "parameters"))
    step.parameters.push_back(reader.parameter(parameter));
  for (const Json &bucket : reader.array(json, "buckets"))
    step.buckets.push_back(reader.bucket(bucket));
  for (const Json &body : reader.array(json, "bodies"))
    step.bodies.push_back(reader.body(body));
  step.updateBody = static_cast<int32_t>(reader.integer(json, "update_body"));
  step.normBody = static_cast<int32_t>(reader.integer(json, "norm_body"));
  step.castBody = static_cast<int32_t>(reader.integer(json, "cast_body"));
  if (json.contains("add_body"))
    step.addBody = static_cast<int32_t>(reader.integer(json, "add_body"));
  step.lossChunk = static_cast<int32_t>(reader.integer(json, "loss_chunk"));
  for (const Json &chunk : reader.array(json, "chunks"))
    step.chunks.push_back(reader.chunk(chunk));
  for (const Json &batch : reader.array(json, "batches"))
    step.batches.push_back(reader.batch(batch));
  if (!error.empty())
    return Error{error};
  return step;
}
