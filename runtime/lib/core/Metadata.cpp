//===- Metadata.cpp - reading a program's metadata ------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/json_reader.h"
#include "drover/rt/program.h"
#include "drover/rt/text.h"
#include <algorithm>

namespace drover::rt {

static constexpr const char *spaceNames[numSpaces] = {
    "input",  "parameter", "accumulator", "stash",   "x",      "y",        "dy",   "dx",    "scratch",
    "scalar", "master",    "moment1",     "moment2", "output", "gradient", "kept", "handed"};

const char *spaceName(Space space) { return spaceNames[size_t(space)]; }

static int64_t product(const std::vector<int64_t> &shape, const JsonReader &where) {
  int64_t result = 1;
  for (int64_t size : shape)
    if (__builtin_mul_overflow(result, size, &result) || result > INT64_MAX / 8)
      where.failed("a shape with fewer elements, not " + formatShape(shape));
  return result;
}

static DType readDType(const JsonReader &json) {
  std::optional<DType> type = dtypeFromName(json.text());
  if (!type)
    json.failed("f32, bf16, f16, f64, i64, i32, i8 or i1, not '" + json.text() + "'");
  return *type;
}

static int readAxis(const JsonReader &json) {
  std::optional<int> axis = axisFromName(json.text());
  if (!axis)
    json.failed("tp, cp, pp, dp, kv or replica, not '" + json.text() + "'");
  return *axis;
}

static CutInfo readCut(const JsonReader &json, size_t rank) {
  CutInfo cut{json.at("dim").integer(0, int64_t(rank) - 1), DROVER_AXIS_CP, {}};
  if (json.has("axis"))
    cut.axis = readAxis(json.at("axis"));
  if (json.has("segments"))
    for (const JsonReader &segment : json.at("segments").elements()) {
      std::vector<int64_t> fields = segment.integers();
      if (fields.size() != 4 || fields[2] < 1 || fields[1] > fields[2] || fields[0] > fields[3] ||
          fields[3] > INT64_MAX / 8 / fields[2])
        segment.failed("[groups, valid, padded, total] with valid <= padded and groups <= total");
      cut.segments.push_back({fields[0], fields[1], fields[2], fields[3]});
    }
  return cut;
}

/// One cut, as inputs have it, or a list.
static std::vector<CutInfo> readCuts(const JsonReader &json, size_t rank) {
  std::vector<CutInfo> cuts;
  if (!json.has("cut"))
    return cuts;
  JsonReader cut = json.at("cut");
  if (cut.isObject())
    return {readCut(cut, rank)};
  for (const JsonReader &element : cut.elements())
    cuts.push_back(readCut(element, rank));
  return cuts;
}

static TensorInfo readTensor(const JsonReader &json) {
  TensorInfo tensor{json.at("name").text(),
                    readDType(json.at("dtype")),
                    json.at("shape").integers(),
                    json.at("offset").integer(),
                    json.textOr("role", "other"),
                    json.textOr("fill", ""),
                    {}};
  product(tensor.shape, json.at("shape"));
  tensor.cuts = readCuts(json, tensor.shape.size());
  return tensor;
}

static ParameterSource readSource(const JsonReader &json) {
  ParameterSource source{json.at("file").text(),
                         uint64_t(json.at("offset").integer()),
                         uint64_t(json.at("bytes").integer()),
                         readDType(json.at("dtype")),
                         json.has("transposed") && json.at("transposed").boolean(),
                         json.has("plus") ? json.at("plus").number() : 0.0};
  if (!isFloat(source.dtype))
    json.at("dtype").failed(concat("a float type, not ", dtypeName(source.dtype)));
  return source;
}

static ParameterInfo readParameter(const JsonReader &json) {
  ParameterInfo parameter;
  parameter.name = json.at("name").text();
  parameter.shape = json.at("shape").integers();
  parameter.elements = product(parameter.shape, json.at("shape"));
  parameter.localShape = json.has("local_shape") ? json.at("local_shape").integers() : parameter.shape;
  parameter.localElements = product(parameter.localShape, json);
  parameter.cuts = readCuts(json, parameter.shape.size());
  parameter.bucket = json.at("bucket").integer();
  parameter.offset = json.at("offset").integer();
  parameter.decay = json.has("decay") && json.at("decay").boolean();
  parameter.frozen = json.has("frozen") && json.at("frozen").boolean();
  JsonReader init = json.at("init");
  std::string kind = init.at("kind").text();
  if (kind != "normal" && kind != "constant")
    init.at("kind").failed("normal or constant, not '" + kind + "'");
  parameter.normal = kind == "normal";
  parameter.initValue = init.at(parameter.normal ? "std" : "value").number();
  if (json.has("aliases"))
    for (const JsonReader &alias : json.at("aliases").elements())
      parameter.aliases.push_back(alias.text());
  if (json.has("source"))
    parameter.source = readSource(json.at("source"));
  return parameter;
}

static OperandInfo readOperand(const JsonReader &json) {
  std::vector<int64_t> fields = json.integers();
  if (fields.size() < 2 || fields.size() > 3 || fields[0] >= numSpaces)
    json.failed(concat("[space below ", numSpaces, ", offset] or [space, offset, bucket]"));
  if (fields[1] > INT64_MAX / 8)
    json.failed("an offset that memory can hold");
  return {Space(fields[0]), fields[1], fields.size() == 3 ? fields[2] : -1};
}

static CallInfo readCall(const JsonReader &json) {
  CallInfo call;
  call.body = json.at("body").integer();
  call.layer = json.has("layer") ? json.at("layer").integer(-1) : -1;
  for (const JsonReader &operand : json.at("operands").elements())
    call.operands.push_back(readOperand(operand));
  call.alwaysAccumulate = json.has("accumulate") && json.at("accumulate").boolean();
  if (json.has("clears")) {
    for (const JsonReader &range : json.at("clears").elements()) {
      std::vector<int64_t> fields = range.integers();
      if (fields.size() != 3)
        range.failed("[bucket, offset, elements]");
      call.clears.push_back({fields[0], fields[1], fields[2]});
    }
  }
  return call;
}

/// Where a bucket's spaces lie, by name.
static Binding readPlaces(const JsonReader &json) {
  Binding binding;
  for (const auto &[name, offset] : json.members()) {
    size_t space = 0;
    while (space < numSpaces && name != spaceNames[space])
      ++space;
    if (space == numSpaces)
      offset.failed("the name of a space");
    binding.offsets[space] = offset.integer();
  }
  return binding;
}

/// Pairs of a space and an offset.
static Binding readBinding(const JsonReader &json) {
  Binding binding;
  std::vector<int64_t> fields = json.integers();
  if (fields.size() % 2)
    json.failed("pairs of a space and an offset");
  for (size_t i = 0; i < fields.size(); i += 2) {
    if (fields[i] >= numSpaces)
      json.failed(concat("spaces below ", numSpaces));
    binding.offsets[size_t(fields[i])] = fields[i + 1];
  }
  return binding;
}

static StageInfo readStage(const JsonReader &json) {
  StageInfo stage;
  stage.firstAction = json.at("first_action").integer();
  stage.numActions = json.at("num_actions").integer();
  stage.arenaBytes = json.at("arena_bytes").integer();
  for (const JsonReader &binding : json.at("bindings").elements())
    stage.bindings.push_back(readBinding(binding));
  for (const JsonReader &binding : json.at("buckets").elements())
    stage.buckets.push_back(readPlaces(binding));
  for (int64_t wait : json.at("waits").integers())
    stage.waits.push_back(uint32_t(std::min<int64_t>(wait, UINT32_MAX)));
  if (json.has("memory"))
    for (const auto &[name, bytes] : json.at("memory").members())
      stage.memory.emplace(name, bytes.integer());
  return stage;
}

static BatchInfo readBatch(const JsonReader &json) {
  BatchInfo batch;
  batch.globalBatch = json.at("global_batch").integer(1);
  batch.microbatches = json.at("microbatches").integer(1);
  for (const JsonReader &stage : json.at("stages").elements())
    batch.stages.push_back(readStage(stage));
  return batch;
}

static SectionInfo readSection(const JsonReader &json) {
  auto axisOr = [&](const char *key) { return json.has(key) ? readAxis(json.at(key)) : -1; };
  return {json.at("first").integer(),
          json.at("elements").integer(),
          json.at("decay").boolean(),
          json.at("trainable").boolean(),
          axisOr("sum"),
          axisOr("replicated")};
}

static BucketInfo readBucket(const JsonReader &json) {
  BucketInfo bucket{json.at("elements").integer(), json.at("chunks").integers(), {}};
  for (const JsonReader &section : json.at("sections").elements())
    bucket.sections.push_back(readSection(section));
  return bucket;
}

static BodyInfo readBody(const JsonReader &json) {
  BodyInfo body{json.at("name").text(), json.integerOr("workspace_bytes", 0), {}};
  if (!json.has("operands"))
    return body;
  for (const JsonReader &operand : json.at("operands").elements()) {
    OperandType type{readDType(operand.at("dtype")), operand.at("shape").integers(), {}, {}, false};
    product(type.shape, operand.at("shape"));
    type.cuts = readCuts(operand, type.shape.size());
    if (operand.has("partial"))
      for (const JsonReader &axis : operand.at("partial").elements())
        type.partial.push_back(readAxis(axis));
    type.result = operand.has("result") && operand.at("result").boolean();
    body.operands.push_back(std::move(type));
  }
  return body;
}

static ChunkInfo readChunk(const JsonReader &json) {
  ChunkInfo chunk;
  chunk.bucket = json.has("bucket") ? json.at("bucket").integer(-1) : -1;
  for (const JsonReader &phase : json.at("phases").elements()) {
    chunk.phases.emplace_back();
    for (const JsonReader &call : phase.at("calls").elements())
      chunk.phases.back().push_back(readCall(call));
  }
  if (!json.has("bytes"))
    return chunk;
  for (Space space : {Space::Stash, Space::Kept, Space::Handed, Space::X, Space::Y, Space::Dy, Space::Dx})
    chunk.bytes[size_t(space)] = json.at("bytes").integerOr(spaceName(space), 0);
  if (json.at("bytes").has("scratch")) {
    std::vector<int64_t> scratch = json.at("bytes").at("scratch").integers();
    for (size_t phase = 0; phase < std::min(scratch.size(), chunk.scratchBytes.size()); ++phase)
      chunk.scratchBytes[phase] = scratch[phase];
  }
  return chunk;
}

static Grid readGrid(const JsonReader &json) {
  std::array<int64_t, numGridAxes> sizes;
  int64_t ranks = 1;
  for (int axis = 0; axis < numGridAxes; ++axis) {
    sizes[size_t(axis)] = json.at(axisName(axis)).integer(1, 1 << 20);
    ranks *= sizes[size_t(axis)];
    if (ranks > 1 << 24)
      json.failed("at most 2^24 ranks");
  }
  int64_t kv = json.integerOr("kv", 0);
  if (kv && sizes[DROVER_AXIS_TP] % kv)
    json.at("kv").failed("a divisor of tp");
  std::array<int, numGridAxes> order = {0, 1, 2, 3};
  if (json.has("order")) {
    std::vector<JsonReader> names = json.at("order").elements();
    std::array<int, numGridAxes> sorted;
    for (size_t i = 0; i < numGridAxes; ++i)
      order[i] = i < names.size() ? readAxis(names[i]) : -1;
    sorted = order;
    std::sort(sorted.begin(), sorted.end());
    if (names.size() != numGridAxes || sorted != std::array<int, numGridAxes>{0, 1, 2, 3})
      json.at("order").failed("tp, cp, pp and dp in some order");
  }
  return Grid(sizes, order, kv);
}

static ListedCommunicator readCommunicator(const JsonReader &json) {
  ListedCommunicator listed{int32_t(json.at("id").integer(DROVER_COMM_FIRST_LISTED, 1 << 24)), "", {}};
  std::string kind = json.at("kind").text();
  if (kind == "edge") {
    listed.stages = {json.at("from").integer(), json.at("to").integer()};
    listed.name = concat("edge ", listed.stages[0], " to ", listed.stages[1], " ", json.at("direction").text());
  } else if (kind == "tie") {
    listed.stages = json.at("stages").integers();
    listed.name = concat("tie ", listed.id);
  } else
    json.at("kind").failed("edge or tie, not '" + kind + "'");
  return listed;
}

/// Offsets in a bucket are in elements; from here on they are in bytes.
static void scaleOperands(std::vector<ChunkInfo> &chunks, DType computeDType) {
  for (ChunkInfo &chunk : chunks)
    for (std::vector<CallInfo> &phase : chunk.phases)
      for (CallInfo &call : phase)
        for (OperandInfo &operand : call.operands) {
          Space space = operand.space;
          if (space == Space::Parameter)
            operand.offset *= byteSize(computeDType);
          else if (isBucketSpace(space))
            operand.offset *= 4;
        }
}

void Program::readMetadata(const char *text, uint64_t bytes) {
  nlohmann::json document = nlohmann::json::parse(text, text + bytes, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded())
    fail("program metadata: not valid JSON");
  JsonReader json(document, "program metadata");
  if (int64_t format = json.at("format").integer(); format != 2)
    fail("program metadata: format ", format, ", this runtime reads format 2");
  task = json.at("task").text();
  computeDType = readDType(json.at("compute_dtype"));
  JsonReader plan = json.at("plan");
  optimizer = plan.textOr("optimizer", "adamw");
  mask = plan.textOr("mask", "model");
  zero = plan.integerOr("zero", 2);
  communicationSms = plan.integerOr("communication_sms", 0);
  grid = readGrid(json.at("grid"));
  if (json.has("communicators"))
    for (const JsonReader &communicator : json.at("communicators").elements())
      communicators.push_back(readCommunicator(communicator));
  if (json.has("nccl"))
    ncclSettings = json.at("nccl").raw().dump();
  if (json.has("model")) {
    modelFile = json.at("model").textOr("file", "");
    modelSha256 = json.at("model").textOr("sha256", "");
  }
  tokensPerMicrobatch = json.integerOr("tokens_per_microbatch", 0);
  flopsPerToken = json.has("flops_per_token") ? json.at("flops_per_token").number() : 0;
  vocabulary = json.integerOr("vocabulary", 0);
  for (const JsonReader &input : json.at("inputs").elements())
    inputs.push_back(readTensor(input));
  inputBytes = json.at("input_bytes").integer();
  if (json.has("outputs"))
    for (const JsonReader &output : json.at("outputs").elements())
      outputs.push_back(readTensor(output));
  outputBytes = json.integerOr("output_bytes", 0);
  for (const JsonReader &parameter : json.at("parameters").elements())
    parameters.push_back(readParameter(parameter));
  for (const JsonReader &bucket : json.at("buckets").elements())
    buckets.push_back(readBucket(bucket));
  for (const JsonReader &body : json.at("bodies").elements())
    bodies.push_back(readBody(body));
  auto indexOr = [&](const char *key) { return json.has(key) ? json.at(key).integer(-1) : -1; };
  updateBody = indexOr("update_body");
  normBody = indexOr("norm_body");
  castBody = indexOr("cast_body");
  addBody = indexOr("add_body");
  lossChunk = indexOr("loss_chunk");
  for (const JsonReader &chunk : json.at("chunks").elements())
    chunks.push_back(readChunk(chunk));
  scaleOperands(chunks, computeDType);
  for (const JsonReader &batch : json.at("batches").elements())
    batches.push_back(readBatch(batch));
}

} // namespace drover::rt
