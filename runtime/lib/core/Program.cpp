//===- Program.cpp - the step program that an executable embeds -----------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/program.h"
#include "drover/rt/error.h"
#include "drover/rt/sha256.h"
#include "drover/rt/text.h"
#include <algorithm>
#include <set>

namespace drover::rt {

int64_t TensorInfo::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Program::Program(const drover_program &embedded)
    : allActions(static_cast<const drover_action *>(embedded.actions)), numActions(embedded.num_actions),
      bodyFunctions(embedded.bodies), numBodies(embedded.num_bodies) {
  if (embedded.version != DROVER_PROGRAM_VERSION)
    fail("program of version ", embedded.version, ", this runtime runs version ", DROVER_PROGRAM_VERSION);
  readMetadata(embedded.metadata, embedded.metadata_bytes);
  validate();
  for (BatchInfo &batch : batches)
    bindBuckets(batch);
  for (const BatchInfo &batch : batches)
    validateActions(batch);
  Sha256 digest;
  digest.update(embedded.metadata, embedded.metadata_bytes);
  digest.update(allActions, numActions * sizeof(drover_action));
  hash = digest.finish().substr(0, 16);
}

int64_t Program::bucketOf(int64_t chunk) const {
  for (size_t i = 0; i < buckets.size(); ++i)
    if (buckets[i].chunk == chunk)
      return int64_t(i);
  return -1;
}

int64_t Program::arenaBytes() const {
  int64_t bytes = 0;
  for (const BatchInfo &batch : batches)
    bytes = std::max(bytes, batch.arenaBytes);
  return bytes;
}

int64_t Program::workspaceBytes() const {
  int64_t bytes = 0;
  for (const BodyInfo &body : bodies)
    bytes = std::max(bytes, body.workspaceBytes);
  return bytes;
}

const BatchInfo *Program::findBatch(int64_t globalBatch) const {
  for (const BatchInfo &batch : batches)
    if (batch.globalBatch == globalBatch)
      return &batch;
  return nullptr;
}

std::string Program::batchesText() const {
  std::string text;
  for (const BatchInfo &batch : batches)
    text += (text.empty() ? "" : ", ") + std::to_string(batch.globalBatch);
  return text;
}

const TensorInfo *Program::inputWithRole(const std::string &role) const {
  for (const TensorInfo &input : inputs)
    if (input.role == role)
      return &input;
  return nullptr;
}

static void checkTensors(const std::vector<TensorInfo> &tensors, int64_t bytes, const char *what) {
  std::set<std::string> names;
  for (const TensorInfo &tensor : tensors) {
    if (!names.insert(tensor.name).second)
      fail("program: two ", what, "s named '", tensor.name, "'");
    if (tensor.offset > bytes || tensor.bytes() > bytes - tensor.offset)
      fail("program: ", what, " '", tensor.name, "' ends beyond its space of ", bytes, " bytes");
  }
}

void Program::validateParameters() const {
  std::set<std::string> names;
  for (const ParameterInfo &parameter : parameters) {
    const std::string where = "program: parameter '" + parameter.name + "'";
    if (!names.insert(parameter.name).second)
      fail(where, " is there twice");
    if (parameter.bucket >= int64_t(buckets.size()))
      fail(where, ": bucket ", parameter.bucket, " of ", buckets.size());
    const BucketInfo &bucket = buckets[parameter.bucket];
    int64_t begin = 0, end = bucket.elements;
    if (isTraining()) {
      begin = parameter.frozen ? bucket.trainableElements : parameter.decay ? 0 : bucket.decayElements;
      end = parameter.frozen ? bucket.elements : parameter.decay ? bucket.decayElements : bucket.trainableElements;
    }
    if (parameter.offset < begin || parameter.offset > end || parameter.elements > end - parameter.offset)
      fail(where, ": elements ", parameter.offset, " to ", parameter.offset + parameter.elements,
           " are outside of its range of the bucket, ", begin, " to ", end);
  }
}

void Program::validate() {
  if (task != "train" && task != "forward")
    fail("program: task '", task, "', expected train or forward");
  if (computeDType != DROVER_F32 && computeDType != DROVER_BF16)
    fail("program: compute dtype ", dtypeName(computeDType), ", expected f32 or bf16");
  if (optimizer != "adamw" && optimizer != "sgd")
    fail("program: optimizer '", optimizer, "', expected adamw or sgd");
  if (ranks != 1)
    fail("program: compiled for ", ranks, " ranks, this runtime runs one");
  if (bodies.size() != numBodies)
    fail("program: ", bodies.size(), " bodies in the metadata, ", numBodies, " in the object");
  if (batches.empty())
    fail("program: no batch");
  for (auto [index, needed] : {std::pair(updateBody, isTraining()), std::pair(normBody, isTraining()),
                               std::pair(castBody, isTraining() && computeDType != DROVER_F32)})
    if (index >= int64_t(bodies.size()) || (needed && index < 0))
      fail("program: update, norm or cast body ", index, " of ", bodies.size());
  for (const BucketInfo &bucket : buckets)
    if (bucket.trainableElements > bucket.elements || bucket.decayElements > bucket.trainableElements ||
        bucket.chunk >= int64_t(chunks.size()))
      fail("program: a bucket of ", bucket.elements, " elements with ", bucket.trainableElements, " trainable and ",
           bucket.decayElements, " decaying ones in chunk ", bucket.chunk, " of ", chunks.size());
  validateParameters();
  checkTensors(inputs, inputBytes, "input");
  checkTensors(outputs, outputBytes, "output");
  for (const ChunkInfo &chunk : chunks)
    for (const std::vector<CallInfo> &phase : chunk.phases)
      for (const CallInfo &call : phase) {
        if (call.body >= int64_t(bodies.size()))
          fail("program: call of body ", call.body, " of ", bodies.size());
        for (const OperandInfo &operand : call.operands)
          if (operand.bucket >= int64_t(buckets.size()))
            fail("program: operand in bucket ", operand.bucket, " of ", buckets.size());
        for (const BucketRange &range : call.clears)
          if (range.bucket >= int64_t(buckets.size()) || range.offset > buckets[range.bucket].elements ||
              range.elements > buckets[range.bucket].elements - range.offset)
            fail("program: a range to clear lies outside of bucket ", range.bucket);
      }
  if (!isTraining())
    return;
  if (vocabulary <= 0)
    fail("program metadata: no 'vocabulary'");
  const TensorInfo *tokens = inputWithRole("tokens");
  if (!tokens || tokens->shape.size() != 2 || tokens->shape[0] < 1 || tokens->shape[1] < 1)
    fail("program: training needs an input of role tokens and shape [sequences, length]");
}

/// A bucket's lasting ranges are those of the first action that names them.
void Program::bindBuckets(BatchInfo &batch) const {
  if (batch.firstAction > int64_t(numActions) || batch.numActions > int64_t(numActions) - batch.firstAction)
    fail("program: actions of batch ", batch.globalBatch, " end beyond the ", numActions, " there are");
  if (!batch.buckets.empty()) {
    if (batch.buckets.size() != buckets.size())
      fail("program: batch ", batch.globalBatch, " places ", batch.buckets.size(), " of ", buckets.size(), " buckets");
  } else {
    batch.buckets.resize(buckets.size());
    for (int64_t i = 0; i < batch.numActions; ++i) {
      const drover_action &action = actions(batch)[i];
      int64_t bucket = action.kind == DROVER_RUN ? bucketOf(action.chunk) : action.chunk;
      if (bucket < 0 || bucket >= int64_t(buckets.size()) || action.binding >= batch.bindings.size())
        continue;
      for (Space space : {Space::Parameter, Space::Accumulator, Space::Master, Space::Moment1, Space::Moment2})
        if (batch.buckets[bucket][space] < 0)
          batch.buckets[bucket][space] = batch.bindings[action.binding][space];
    }
  }
  for (size_t i = 0; i < buckets.size(); ++i) {
    const Binding &binding = batch.buckets[i];
    for (Space space : {Space::Parameter, Space::Master, Space::Moment1, Space::Moment2}) {
      if (space != Space::Parameter && binding[space] != batches[0].buckets[i][space])
        fail("program: the ", spaceName(space), " of bucket ", i, " moves from batch ", batches[0].globalBatch,
             " to batch ", batch.globalBatch);
      int64_t width = space == Space::Parameter ? byteSize(computeDType) : 4;
      int64_t elements =
          space == Space::Moment1 || space == Space::Moment2 ? buckets[i].trainableElements : buckets[i].elements;
      if (binding[space] >= 0 &&
          (binding[space] > batch.arenaBytes || elements > (batch.arenaBytes - binding[space]) / width))
        fail("program: the ", spaceName(space), " of bucket ", i, " ends beyond the arena of ", batch.arenaBytes,
             " bytes");
    }
    bool placed = binding[Space::Parameter] >= 0 && (!isTraining() || binding[Space::Master] >= 0);
    if (buckets[i].elements && !placed)
      fail("program: batch ", batch.globalBatch, " does not say where bucket ", i, " lies");
  }
}

void Program::validateActions(const BatchInfo &batch) const {
  std::vector<bool> normed(buckets.size());
  for (const Binding &binding : batch.bindings)
    for (int64_t offset : binding.offsets)
      if (offset > batch.arenaBytes)
        fail("program: a slot at byte ", offset, " of an arena of ", batch.arenaBytes, " bytes");
  for (int64_t i = 0; i < batch.numActions; ++i) {
    const drover_action &action = actions(batch)[i];
    const std::string where = "program: action " + std::to_string(batch.firstAction + i);
    bool isOfBucket = action.kind == DROVER_GATHER || action.kind == DROVER_NORM || action.kind == DROVER_UPDATE;
    if (action.chunk >= (isOfBucket ? buckets.size() : chunks.size()) || action.binding >= batch.bindings.size())
      fail(where, ": chunk or bucket ", action.chunk, " of ", isOfBucket ? buckets.size() : chunks.size(), ", binding ",
           action.binding, " of ", batch.bindings.size());
    const Binding &binding = batch.bindings[action.binding];
    switch (action.kind) {
    case DROVER_RUN:
      if (action.phase >= chunks[action.chunk].phases.size() || action.microbatch >= batch.microbatches)
        fail(where, ": phase ", action.phase, ", microbatch ", action.microbatch, " of ", batch.microbatches);
      if ((action.flags & DROVER_ACTION_LOAD) &&
          (binding[Space::Input] < 0 || inputBytes > batch.arenaBytes - binding[Space::Input]))
        fail(where, ": no slot for the inputs");
      for (const CallInfo &call : chunks[action.chunk].phases[action.phase])
        for (const OperandInfo &operand : call.operands) {
          const Binding &owner = operand.bucket >= 0 ? batch.buckets[operand.bucket] : binding;
          if (owner[operand.space] < 0)
            fail(where, ": no ", spaceName(operand.space), " slot for body '", bodies[call.body].name, "'");
          if (operand.offset > batch.arenaBytes - owner[operand.space])
            fail(where, ": operand of body '", bodies[call.body].name, "' beyond the arena");
        }
      break;
    case DROVER_NORM:
    case DROVER_UPDATE:
      if (batch.buckets[action.chunk][Space::Accumulator] < 0 || binding[Space::Scalar] < 0)
        fail(where, ": bucket ", action.chunk, " has no gradients");
      if (action.kind == DROVER_NORM)
        normed[action.chunk] = true;
      else if (!normed[action.chunk])
        fail(where, ": update of bucket ", action.chunk, " before its norm");
      break;
    case DROVER_GATHER:
    case DROVER_FREE:
      break;
    default:
      fail(where, ": kind ", int(action.kind), " needs more than one rank");
    }
  }
}

} // namespace drover::rt
