//===- Metadata.cpp - reading a program's metadata ------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/json_reader.h"
#include "drover/rt/program.h"
#include "drover/rt/text.h"

namespace drover::rt {

static constexpr const char *spaceNames[numSpaces] = {"input",  "parameter", "accumulator", "stash",   "x",
                                                      "y",      "dy",        "dx",          "scratch", "scalar",
                                                      "master", "moment1",   "moment2",     "output",  "gradient"};

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

static TensorInfo readTensor(const JsonReader &json) {
  TensorInfo tensor{json.at("name").text(),      readDType(json.at("dtype")),  json.at("shape").integers(),
                    json.at("offset").integer(), json.textOr("role", "other"), json.textOr("fill", "")};
  product(tensor.shape, json.at("shape"));
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

/// Pairs of a space and an offset.
static Binding readCompactBinding(const JsonReader &json) {
  Binding binding;
  std::vector<int64_t> fields = json.integers();
  if (fields.size() % 2)
    json.failed("pairs of a space and an offset");
  for (size_t i = 0; i < fields.size(); i += 2) {
    if (fields[i] >= numSpaces)
      json.failed(concat("spaces below ", numSpaces));
    binding.offsets[fields[i]] = fields[i + 1];
  }
  return binding;
}

static Binding readBinding(const JsonReader &json) {
  Binding binding;
  for (const auto &[name, offset] : json.members()) {
    if (name == "workspace") {
      binding.workspace = offset.integer();
      continue;
    }
    int space = 0;
    while (space < numSpaces && name != spaceNames[space])
      ++space;
    if (space == numSpaces)
      offset.failed("the name of a space");
    binding.offsets[space] = offset.integer();
  }
  return binding;
}

static BucketInfo readBucket(const JsonReader &json) {
  BucketInfo bucket = {json.at("elements").integer(), 0, 0, 0};
  if (!json.has("sections")) {
    bucket.decayElements = json.at("decay_elements").integer(0, bucket.elements);
    bucket.trainableElements = json.integerOr("trainable_elements", bucket.elements);
    bucket.chunk = json.at("chunk").integer();
    return bucket;
  }
  // Sections with decay come first, and all or none are trainable.
  for (const JsonReader &section : json.at("sections").elements()) {
    int64_t elements = section.at("elements").integer(0, bucket.elements);
    bool trainable = section.at("trainable").boolean();
    bucket.trainableElements += trainable ? elements : 0;
    bucket.decayElements += trainable && section.at("decay").boolean() ? elements : 0;
  }
  std::vector<int64_t> chunks = json.at("chunks").integers();
  if (chunks.empty())
    json.at("chunks").failed("a chunk at least");
  bucket.chunk = chunks.front();
  return bucket;
}

static BatchInfo readBatch(const JsonReader &batchJson) {
  BatchInfo batch;
  batch.globalBatch = batchJson.at("global_batch").integer(1);
  batch.microbatches = batchJson.at("microbatches").integer(1);
  bool byStage = batchJson.has("stages");
  if (byStage && batchJson.at("stages").elements().empty())
    batchJson.at("stages").failed("a stage at least");
  JsonReader json = byStage ? batchJson.at("stages").elements().front() : batchJson;
  batch.firstAction = json.at("first_action").integer();
  batch.numActions = json.at("num_actions").integer();
  batch.arenaBytes = json.at("arena_bytes").integer();
  for (const JsonReader &binding : json.at("bindings").elements())
    batch.bindings.push_back(byStage ? readCompactBinding(binding) : readBinding(binding));
  if (json.has("buckets"))
    for (const JsonReader &binding : json.at("buckets").elements())
      batch.buckets.push_back(readBinding(binding));
  if (json.has("memory"))
    for (const auto &[name, bytes] : json.at("memory").members())
      batch.memory.emplace(name, bytes.integer());
  return batch;
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
          else if (space == Space::Accumulator || (space >= Space::Master && space <= Space::Moment2) ||
                   space == Space::Gradient)
            operand.offset *= 4;
        }
}

void Program::readMetadata(const char *text, uint64_t bytes) {
  nlohmann::json document = nlohmann::json::parse(text, text + bytes, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded())
    fail("program metadata: not valid JSON");
  JsonReader json(document, "program metadata");
  if (int64_t format = json.at("format").integer(); format != 1 && format != 2)
    fail("program metadata: format ", format, ", this runtime reads formats 1 and 2");
  task = json.at("task").text();
  computeDType = readDType(json.at("compute_dtype"));
  JsonReader plan = json.at("plan");
  optimizer = plan.textOr("optimizer", "adamw");
  mask = plan.textOr("mask", "model");
  for (const char *axis : {"tp", "cp", "pp", "dp"})
    ranks *= plan.has(axis) ? plan.at(axis).integer(1, 1 << 20) : 1;
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
    bodies.push_back({body.at("name").text(), body.integerOr("workspace_bytes", 0)});
  auto bodyIndex = [&](const char *key) { return json.has(key) ? json.at(key).integer(-1) : -1; };
  updateBody = bodyIndex("update_body");
  normBody = bodyIndex("norm_body");
  castBody = bodyIndex("cast_body");
  for (const JsonReader &chunk : json.at("chunks").elements()) {
    ChunkInfo info;
    for (const JsonReader &phase : chunk.at("phases").elements()) {
      info.phases.emplace_back();
      for (const JsonReader &call : phase.at("calls").elements())
        info.phases.back().push_back(readCall(call));
    }
    chunks.push_back(std::move(info));
  }
  scaleOperands(chunks, computeDType);
  for (const JsonReader &batch : json.at("batches").elements())
    batches.push_back(readBatch(batch));
}

} // namespace drover::rt
