//===- ToyProgram.cpp - a hand-made step program --------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "ToyProgram.h"
#include "ToyBodies.h"
#include "drover/rt/dtype.h"
#include "drover/rt/error.h"
#include "drover/rt/thread_pool.h"
#include <cmath>
#include <stdexcept>

namespace drover::rt::test {

//===----------------------------------------------------------------------===//
// Bodies. Sizes are constants of a compiled body; here they are the options' defaults.
//===----------------------------------------------------------------------===//

static constexpr int64_t vocabulary = 7, rows = 2 * 4;

template <typename T> static float load(const void *data, int64_t i) {
  if constexpr (sizeof(T) == 2)
    return bfloatToFloat(static_cast<const uint16_t *>(data)[i]);
  else
    return static_cast<const float *>(data)[i];
}

/// ids, table, bias -> logits
template <typename T> static void logitsBody(void *const *operands, void *, const drover_call *call) {
  const auto *ids = static_cast<const int64_t *>(operands[0]);
  auto *logits = static_cast<float *>(operands[3]);
  call->pool->parallelFor(rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t v = 0; v < vocabulary; ++v)
        logits[row * vocabulary + v] = load<T>(operands[1], ids[row] * vocabulary + v) + load<T>(operands[2], v);
  });
}

/// labels, logits -> probabilities (stash), loss
static void lossBody(void *const *operands, void *workspace, const drover_call *call) {
  const auto *labels = static_cast<const int64_t *>(operands[0]);
  const auto *logits = static_cast<const float *>(operands[1]);
  auto *probabilities = static_cast<float *>(operands[2]);
  auto *losses = static_cast<double *>(workspace);
  call->pool->parallelFor(rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float *x = logits + row * vocabulary;
      float *p = probabilities + row * vocabulary;
      double sum = 0;
      for (int64_t v = 0; v < vocabulary; ++v)
        sum += std::exp(double(x[v]));
      for (int64_t v = 0; v < vocabulary; ++v)
        p[v] = float(std::exp(double(x[v])) / sum);
      losses[row] = labels[row] < 0 ? 0 : std::log(sum) - double(x[labels[row]]);
    }
  });
  double loss = 0;
  for (int64_t row = 0; row < rows; ++row)
    loss += losses[row];
  *static_cast<double *>(operands[3]) = loss;
}

/// ids, labels, probabilities, seed, table accumulator, bias accumulator (null operand index 5 absent: frozen)
template <bool withBias> static void backwardBody(void *const *operands, void *, const drover_call *call) {
  const auto *ids = static_cast<const int64_t *>(operands[0]), *labels = static_cast<const int64_t *>(operands[1]);
  const auto *p = static_cast<const float *>(operands[2]);
  float seed = *static_cast<const float *>(operands[3]);
  auto *table = static_cast<float *>(operands[4]);
  auto *bias = withBias ? static_cast<float *>(operands[5]) : nullptr;
  if (!call->accumulate) {
    std::fill_n(table, vocabulary * vocabulary, 0.0f);
    if (withBias)
      std::fill_n(bias, vocabulary, 0.0f);
  }
  for (int64_t row = 0; row < rows; ++row) {
    if (labels[row] < 0)
      continue;
    for (int64_t v = 0; v < vocabulary; ++v) {
      float gradient = seed * (p[row * vocabulary + v] - float(v == labels[row]));
      table[ids[row] * vocabulary + v] += gradient;
      if (withBias)
        bias[v] += gradient;
    }
  }
}

static void sgdBody(void *const *operands, void *, const drover_call *call) {
  auto *p = static_cast<float *>(operands[0]);
  const auto *gradient = static_cast<const float *>(operands[1]), *hyper = static_cast<const float *>(operands[2]);
  for (int64_t i = 0; i < call->size; ++i)
    p[i] = p[i] * (1 - hyper[0] * hyper[1]) - hyper[0] * hyper[7] * gradient[i];
}

static void castBody(void *const *operands, void *, const drover_call *call) {
  for (int64_t i = 0; i < call->size; ++i)
    static_cast<uint16_t *>(operands[1])[i] = floatToBfloat(static_cast<const float *>(operands[0])[i]);
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

// The bucket: 49 elements of the table, a gap to 64, 7 of the bias, a gap to 96.
static constexpr int64_t bucketElements = 96, decayElements = 64;
static constexpr int64_t inputBytes = 256, stashBytes = 256, scalarBytes = 192;

/// Slots of a batch, in order; the outputs or the stash share the end.
static int64_t place(int64_t &next, int64_t bytes) {
  int64_t offset = next;
  next += (bytes + 63) / 64 * 64;
  return offset;
}

void ToyProgram::addBatch(const ToyOptions &options, int64_t globalBatch, std::string &json) {
  int64_t next = 0, width = options.bfloat ? 2 : 4;
  int64_t parameter = -1, lasting = 0;
  std::string bucket;
  if (options.forward) {
    parameter = place(next, bucketElements * width);
    bucket = concat("\"parameter\": ", parameter);
  } else {
    lasting = place(next, bucketElements * 4);
    int64_t moment1 = place(next, bucketElements * 4), moment2 = place(next, bucketElements * 4);
    parameter = options.bfloat ? place(next, bucketElements * width) : lasting;
    int64_t accumulator = place(next, bucketElements * 4);
    bucket = concat("\"parameter\": ", parameter, ", \"master\": ", lasting, ", \"moment1\": ", moment1,
                    ", \"moment2\": ", moment2, ", \"accumulator\": ", accumulator);
  }
  int64_t scalar = place(next, scalarBytes), input = place(next, inputBytes), scratch = place(next, stashBytes),
          stash = place(next, stashBytes), output = place(next, stashBytes);
  int64_t microbatches = globalBatch / options.microbatchSize, first = int64_t(actions.size());
  auto add = [&](int kind, int phase, int64_t microbatch, uint16_t flags) {
    drover_action action = {};
    action.kind = uint8_t(kind);
    action.phase = uint16_t(phase);
    action.flags = flags;
    action.microbatch = uint32_t(microbatch);
    action.sequence = uint32_t(actions.size());
    actions.push_back(action);
  };
  if (options.bfloat && !options.forward)
    add(DROVER_GATHER, 0, 0, 0);
  for (int64_t m = 0; m < microbatches; ++m) {
    add(DROVER_RUN, 0, m, DROVER_ACTION_LOAD);
    if (!options.forward)
      add(DROVER_RUN, 1, m, m == 0 ? DROVER_ACTION_FIRST : 0);
  }
  if (!options.forward) {
    add(DROVER_NORM, 0, 0, 0);
    add(DROVER_UPDATE, 0, 0, 0);
  }
  std::string binding = concat("[1, ", parameter, ", 9, ", scalar, ", 0, ", input, ", 8, ", scratch, ", 3, ", stash,
                               ", 13, ", output, "]");
  json += concat(json.empty() ? "" : ", ", "{\"global_batch\": ", globalBatch, ", \"microbatches\": ", microbatches,
                 ", \"stages\": [{\"first_action\": ", first, ", \"num_actions\": ", int64_t(actions.size()) - first,
                 ", \"arena_bytes\": ", next, ", \"waits\": [], \"memory\": {\"parameters\": ", bucketElements * 4,
                 ", \"stash\": ", stashBytes, "}, \"buckets\": [{", bucket, "}], \"bindings\": [", binding, "]}]}");
}

static std::string inputsJson(const ToyOptions &options) {
  std::string shape = concat("\"shape\": [", options.microbatchSize, ", ", options.length, "]");
  std::string json = concat("{\"name\": \"input_ids\", \"dtype\": \"i64\", ", shape,
                            ", \"offset\": 0, \"role\": \"tokens\", \"fill\": \"tokens\"}");
  if (!options.forward)
    json += concat(", {\"name\": \"labels\", \"dtype\": \"i64\", ", shape,
                   ", \"offset\": 64, \"role\": \"labels\", \"fill\": \"labels\"}");
  if (options.positionsInput)
    json += concat(", {\"name\": \"position_ids\", \"dtype\": \"i64\", ", shape,
                   ", \"offset\": 128, \"role\": \"positions\", \"fill\": \"arange\"}");
  if (options.mask == "documents")
    json += concat(", {\"name\": \"document_ids\", \"dtype\": \"i32\", ", shape,
                   ", \"offset\": 192, \"role\": \"documents\", \"fill\": \"documents\"}");
  return json;
}

ToyProgram::ToyProgram(const ToyOptions &options) {
  if (options.vocabulary != vocabulary || options.microbatchSize * options.length != rows)
    throw std::invalid_argument("the bodies have the sizes of the default options");
  std::string batches;
  for (int64_t globalBatch : options.globalBatches)
    addBatch(options, globalBatch, batches);
  // Scratch: the logits. Space numbers: docs/step-program.md.
  std::string forwardCalls = options.forward ? "{\"body\": 0, \"operands\": [[0, 0], [1, 0], [1, 64], [13, 0]]}"
                                             : "{\"body\": 0, \"operands\": [[0, 0], [1, 0], [1, 64], [8, 0]]}, "
                                               "{\"body\": 1, \"operands\": [[0, 64], [8, 0], [3, 0], [9, 8]]}";
  std::string backwardCalls = concat("{\"body\": 2, \"operands\": [[0, 0], [0, 64], [3, 0], [9, 0], [2, 0]",
                                     options.freezeBias ? "" : ", [2, 64]", "]}");
  auto source = [](const std::string &json) { return json.empty() ? "" : ", \"source\": " + json; };
  metadata = concat(
      "{\"format\": 2, \"grid\": {\"tp\": 1, \"cp\": 1, \"pp\": 1, \"dp\": 1}, \"task\": \"",
      options.forward ? "forward" : "train", "\", \"compute_dtype\": \"", options.bfloat ? "bf16" : "f32",
      "\", \"plan\": {\"tp\": 1, \"cp\": 1, \"pp\": 1, \"dp\": 1, \"optimizer\": \"", options.sgd ? "sgd" : "adamw",
      "\", \"mask\": \"", options.mask, "\"}, \"model\": {\"file\": \"", options.modelFile, "\", \"sha256\": \"",
      options.modelSha256, "\", \"kind\": \"onnx\"}, ", "\"tokens_per_microbatch\": ", rows,
      ", \"flops_per_token\": 100, \"vocabulary\": ", vocabulary, ", \"inputs\": [", inputsJson(options),
      "], \"input_bytes\": ", inputBytes, ", \"outputs\": [",
      options.forward ? "{\"name\": \"logits\", \"dtype\": \"f32\", \"shape\": [2, 4, 7], \"offset\": 0}" : "",
      "], \"output_bytes\": ", stashBytes,
      ", \"parameters\": [{\"name\": \"model.table.weight\", \"shape\": [7, 7], \"bucket\": 0, \"offset\": 0, "
      "\"decay\": true, \"frozen\": false, \"init\": {\"kind\": \"normal\", \"std\": 0.5}, "
      "\"aliases\": [\"head.weight\"]",
      source(options.tableSource),
      "}, {\"name\": \"model.bias\", \"shape\": [7], \"bucket\": 0, \"offset\": 64, \"decay\": false, \"frozen\": ",
      options.freezeBias ? "true" : "false", ", \"init\": {\"kind\": \"constant\", \"value\": 0.25}",
      source(options.biasSource), "}], \"buckets\": [{\"elements\": ", bucketElements,
      ", \"chunks\": [0], \"sections\": [{\"first\": 0, \"elements\": ", decayElements,
      ", \"decay\": true, \"trainable\": true}, {\"first\": ", decayElements,
      ", \"elements\": ", bucketElements - decayElements,
      ", \"decay\": false, \"trainable\": ", options.freezeBias ? "false" : "true",
      "}]}], \"bodies\": [{\"name\": \"logits\", \"index\": 0}, {\"name\": \"loss\", \"index\": 1, "
      "\"workspace_bytes\": 64}, {\"name\": \"backward\", \"index\": 2}, {\"name\": \"update\", \"index\": 3}, "
      "{\"name\": \"norm\", \"index\": 4}, {\"name\": \"cast\", \"index\": 5}], ",
      options.forward ? "" : "\"update_body\": 3, \"norm_body\": 4, ",
      "\"cast_body\": ", options.bfloat && !options.forward ? 5 : -1,
      ", \"chunks\": [{\"bucket\": 0, \"bytes\": {\"stash\": ", stashBytes, ", \"scratch\": [", stashBytes,
      "]}, \"phases\": [{\"calls\": [", forwardCalls, "]}, {\"calls\": [", options.forward ? "" : backwardCalls,
      "]}]}], \"batches\": [", batches, "]}");
  bodies = {options.bfloat ? logitsBody<uint16_t> : logitsBody<float>,
            lossBody,
            options.freezeBias ? backwardBody<false> : backwardBody<true>,
            options.sgd ? sgdBody : adamwBody,
            squaresBody,
            castBody};
  finish();
}

void ToyProgram::finish() {
  embedded = {DROVER_PROGRAM_VERSION,
              uint32_t(bodies.size()),
              metadata.data(),
              metadata.size(),
              actions.data(),
              actions.size(),
              bodies.data(),
              nullptr,
              0,
              nullptr,
              0};
}

void ToyProgram::replace(const std::string &from, const std::string &to) {
  size_t found = metadata.find(from);
  if (found == std::string::npos)
    throw std::invalid_argument("not in the metadata: " + from);
  metadata.replace(found, from.size(), to);
  finish();
}

} // namespace drover::rt::test
