//===- ValidateProgram.cpp - what the interpreter relies on ---------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/error.h"
#include "drover/rt/parameter_layout.h"
#include "drover/rt/program.h"
#include "drover/rt/text.h"
#include <algorithm>
#include <set>

namespace drover::rt {

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
    checkCuts(grid, parameter.shape, parameter.localShape, parameter.cuts, where);
    const BucketInfo &bucket = buckets[size_t(parameter.bucket)];
    auto holds = [&](const SectionInfo &section) {
      bool alike = !isTraining() ||
                   (section.trainable != parameter.frozen && (parameter.frozen || section.decay == parameter.decay));
      return alike && parameter.offset >= section.first && parameter.offset <= section.first + section.elements &&
             parameter.localElements <= section.first + section.elements - parameter.offset;
    };
    if (std::none_of(bucket.sections.begin(), bucket.sections.end(), holds))
      fail(where, ": elements ", parameter.offset, " to ", parameter.offset + parameter.localElements,
           " are in no section of bucket ", parameter.bucket, " for such a parameter");
  }
}

void Program::validateBuckets() const {
  int64_t shards = grid.size(DROVER_AXIS_CP) * grid.size(DROVER_AXIS_DP);
  for (size_t i = 0; i < buckets.size(); ++i) {
    const BucketInfo &bucket = buckets[i];
    int64_t place = 0;
    for (const SectionInfo &section : bucket.sections) {
      if (section.first != place)
        fail("program: a section of bucket ", i, " begins at element ", section.first, ", expected ", place);
      place += section.elements;
    }
    if (place != bucket.elements || bucket.elements % shards)
      fail("program: the sections of bucket ", i, " end at element ", place, " of ", bucket.elements, ", which ",
           shards, " ranks share");
    for (int64_t chunk : bucket.chunks)
      if (chunk >= int64_t(chunks.size()))
        fail("program: bucket ", i, " of chunk ", chunk, " of ", chunks.size());
    if (bucket.chunks.empty())
      fail("program: bucket ", i, " is of no chunk");
  }
}

void Program::validateChunks() const {
  for (const ChunkInfo &chunk : chunks) {
    if (chunk.bucket >= int64_t(buckets.size()))
      fail("program: a chunk with bucket ", chunk.bucket, " of ", buckets.size());
    for (const std::vector<CallInfo> &phase : chunk.phases)
      for (const CallInfo &call : phase) {
        if (call.body >= int64_t(bodies.size()))
          fail("program: call of body ", call.body, " of ", bodies.size());
        for (const OperandInfo &operand : call.operands)
          if (operand.bucket >= int64_t(buckets.size()))
            fail("program: operand in bucket ", operand.bucket, " of ", buckets.size());
        for (const BucketRange &range : call.clears)
          if (range.bucket >= int64_t(buckets.size()) || range.offset > buckets[size_t(range.bucket)].elements ||
              range.elements > buckets[size_t(range.bucket)].elements - range.offset)
            fail("program: a range to clear lies outside of bucket ", range.bucket);
      }
  }
}

void Program::validate() {
  if (task != "train" && task != "forward")
    fail("program: task '", task, "', expected train or forward");
  if (computeDType != DROVER_F32 && computeDType != DROVER_BF16)
    fail("program: compute dtype ", dtypeName(computeDType), ", expected f32 or bf16");
  if (optimizer != "adamw" && optimizer != "sgd")
    fail("program: optimizer '", optimizer, "', expected adamw or sgd");
  if (bodies.size() != numBodies)
    fail("program: ", bodies.size(), " bodies in the metadata, ", numBodies, " in the object");
  if (batches.empty())
    fail("program: no batch");
  for (auto [index, needed] :
       {std::pair(updateBody, isTraining()), std::pair(normBody, isTraining()),
        std::pair(castBody, isTraining() && computeDType != DROVER_F32), std::pair(addBody, false)})
    if (index >= int64_t(bodies.size()) || (needed && index < 0))
      fail("program: update, norm, cast or add body ", index, " of ", bodies.size());
  validateBuckets();
  validateParameters();
  checkTensors(inputs, inputBytes, "input");
  checkTensors(outputs, outputBytes, "output");
  validateChunks();
  int64_t stages = grid.size(DROVER_AXIS_PP);
  std::set<int32_t> ids;
  for (const ListedCommunicator &listed : communicators) {
    if (!ids.insert(listed.id).second)
      fail("program: two communicators with id ", listed.id);
    for (int64_t stage : listed.stages)
      if (stage >= stages)
        fail("program: communicator ", listed.id, " of stage ", stage, " of ", stages);
  }
  if (isTraining()) {
    if (vocabulary <= 0)
      fail("program metadata: no 'vocabulary'");
    const TensorInfo *tokens = inputWithRole("tokens");
    if (!tokens || tokens->shape.size() != 2 || tokens->shape[0] < 1 || tokens->shape[1] < 1)
      fail("program: training needs an input of role tokens and shape [sequences, length]");
    if (grid.ranks() > 1 && (lossChunk < 0 || lossChunk >= int64_t(chunks.size())))
      fail("program: loss_chunk ", lossChunk, " of ", chunks.size());
  }
  for (const BatchInfo &batch : batches) {
    if (int64_t(batch.stages.size()) != stages)
      fail("program: batch ", batch.globalBatch, " has ", batch.stages.size(), " of ", stages, " stages");
    for (int64_t stage = 0; stage < stages; ++stage)
      validateStage(batch, stage);
  }
}

namespace {
/// Checks the list of one stage.
class StageValidator {
public:
  StageValidator(const Program &program, const BatchInfo &batch, int64_t stage, int64_t numActions);

  void run();

private:
  void checkBuckets() const;
  void checkAction(int64_t index, const drover_action &action);
  void checkRun(const drover_action &action);
  void checkBucketAction(const drover_action &action) const;
  void checkMessage(const drover_action &action) const;
  bool fits(int64_t offset, int64_t bytes) const { return offset >= 0 && bytes <= info.arenaBytes - offset; }

  const Program &program;
  const BatchInfo &batch;
  int64_t stage;
  const StageInfo &info;
  std::string where;
  std::set<std::tuple<uint16_t, uint16_t, uint32_t>> checkedRuns; // (chunk, phase, binding)
  std::vector<bool> normed;
  int64_t counts = 0, clips = 0;
};
} // namespace

StageValidator::StageValidator(const Program &program, const BatchInfo &batch, int64_t stage, int64_t numActions)
    : program(program), batch(batch), stage(stage), info(batch.stages[size_t(stage)]),
      where(concat("program: batch ", batch.globalBatch, ", stage ", stage)), normed(program.buckets.size()) {
  if (info.firstAction > numActions || info.numActions > numActions - info.firstAction)
    fail(where, ": its actions end beyond the ", numActions, " there are");
}

void StageValidator::checkBuckets() const {
  if (info.buckets.size() != program.buckets.size())
    fail(where, " places ", info.buckets.size(), " of ", program.buckets.size(), " buckets");
  for (size_t i = 0; i < info.buckets.size(); ++i) {
    const Binding &binding = info.buckets[i];
    for (int space = 0; space < numSpaces; ++space) {
      bool lasts = Space(space) >= Space::Master && Space(space) <= Space::Moment2;
      if (lasts &&
          binding.offsets[size_t(space)] != program.batches[0].stages[size_t(stage)].buckets[i].offsets[size_t(space)])
        fail(where, ": the ", spaceName(Space(space)), " of bucket ", i, " is elsewhere than in batch ",
             program.batches[0].globalBatch);
      if (binding.offsets[size_t(space)] >= 0 && isBucketSpace(Space(space)) &&
          !fits(binding.offsets[size_t(space)], program.bucketSpaceBytes(int64_t(i), Space(space))))
        fail(where, ": the ", spaceName(Space(space)), " of bucket ", i, " ends beyond the arena of ", info.arenaBytes,
             " bytes");
    }
    bool owned = program.ownerStage(int64_t(i)) == stage;
    Space needed = program.isTraining() ? Space::Master : Space::Parameter;
    if (owned && program.buckets[i].elements && binding[needed] < 0)
      fail(where, " does not say where the ", spaceName(needed), " of bucket ", i, " lies");
  }
}

void StageValidator::checkRun(const drover_action &action) {
  const ChunkInfo &chunk = program.chunks[action.chunk];
  const Binding &binding = info.bindings[action.binding];
  if (action.phase >= chunk.phases.size() || action.microbatch >= batch.microbatches)
    fail(where, ": phase ", action.phase, ", microbatch ", action.microbatch, " of ", batch.microbatches);
  if ((action.flags & DROVER_ACTION_LOAD) && !fits(binding[Space::Input], program.inputBytes))
    fail(where, ": no slot for the inputs");
  if (!checkedRuns.emplace(action.chunk, action.phase, action.binding).second)
    return;
  auto check = [&](Space space, int64_t bucket, int64_t offset, const char *body) {
    int64_t place = bucket >= 0 ? info.buckets[size_t(bucket)][space] : binding[space];
    if (place < 0 && bucket < 0 && chunk.bucket >= 0)
      place = info.buckets[size_t(chunk.bucket)][space];
    if (place < 0)
      fail(where, ": no ", spaceName(space), " slot for body '", body, "'");
    if (!fits(place, offset))
      fail(where, ": operand of body '", body, "' beyond the arena");
  };
  for (const CallInfo &call : chunk.phases[action.phase]) {
    const char *body = program.bodies[size_t(call.body)].name.c_str();
    for (const OperandInfo &operand : call.operands)
      check(operand.space, operand.bucket, operand.offset, body);
    for (const BucketRange &range : call.clears)
      check(Space::Accumulator, range.bucket == chunk.bucket ? -1 : range.bucket, (range.offset + range.elements) * 4,
            body);
  }
}

void StageValidator::checkBucketAction(const drover_action &action) const {
  int64_t bucket = action.chunk;
  auto place = [&](Space space) {
    int64_t own = action.binding == UINT32_MAX ? -1 : info.bindings[action.binding][space];
    return own >= 0 ? own : info.buckets[size_t(bucket)][space];
  };
  auto need = [&](Space space) {
    if (!fits(place(space), program.bucketSpaceBytes(bucket, space)))
      fail(where, ": no ", spaceName(space), " of bucket ", bucket);
  };
  if (program.buckets[size_t(bucket)].elements == 0)
    return;
  Space gradient = place(Space::Gradient) >= 0 ? Space::Gradient : Space::Accumulator;
  switch (action.kind) {
  case DROVER_GATHER:
    return need(Space::Parameter);
  case DROVER_REDUCE:
    need(Space::Accumulator);
    return need(gradient);
  case DROVER_UPDATE:
    need(Space::Master);
    if (program.optimizer == "adamw") {
      need(Space::Moment1);
      need(Space::Moment2);
    }
    [[fallthrough]];
  default:
    return need(gradient);
  }
}

void StageValidator::checkMessage(const drover_action &action) const {
  bool forward = action.stream == DROVER_STREAM_FORWARD_SEND || action.stream == DROVER_STREAM_FORWARD_RECEIVE;
  bool sends = action.kind == DROVER_SEND;
  Space space = sends ? (forward ? Space::Y : Space::Dx) : (forward ? Space::X : Space::Dy);
  auto listed = std::find_if(program.communicators.begin(), program.communicators.end(),
                             [&](const ListedCommunicator &other) { return uint32_t(other.id) == action.peer; });
  if (listed == program.communicators.end() || listed->stages.size() != 2 || listed->stages[sends ? 0 : 1] != stage)
    fail(where, ": a message on communicator ", action.peer, ", which is no edge of the stage");
  if (!fits(info.bindings[action.binding][space], program.chunks[action.chunk].bytes[size_t(space)]))
    fail(where, ": no ", spaceName(space), " slot for a message");
}

void StageValidator::checkAction(int64_t index, const drover_action &action) {
  bool bucketAction = drover_action_is_of_bucket(action.kind);
  bool global = action.kind == DROVER_COUNT || action.kind == DROVER_CLIP;
  if (action.kind > DROVER_CLIP || action.stream >= DROVER_NUM_STREAMS)
    fail(where, ": kind ", int(action.kind), " on stream ", int(action.stream));
  if (bucketAction && action.chunk >= program.buckets.size())
    fail(where, ": bucket ", action.chunk, " of ", program.buckets.size());
  if (!bucketAction && !global && (action.chunk >= program.chunks.size() || program.stageOf(action.chunk) != stage))
    fail(where, ": chunk ", action.chunk, " of ", program.chunks.size());
  bool bound = action.binding < info.bindings.size();
  if (!bound && !global && !(bucketAction && action.binding == UINT32_MAX))
    fail(where, ": binding ", action.binding, " of ", info.bindings.size());
  if (action.first_wait > info.waits.size() || action.num_waits > info.waits.size() - action.first_wait)
    fail(where, ": waits beyond the ", info.waits.size(), " there are");
  for (uint32_t i = 0; i < action.num_waits; ++i)
    if (info.waits[action.first_wait + i] >= index)
      fail(where, ": waits for action ", info.waits[action.first_wait + i], ", which is not before it");
  if (action.kind == DROVER_RUN)
    checkRun(action);
  else if (action.kind == DROVER_SEND || action.kind == DROVER_RECEIVE)
    checkMessage(action);
  else if (bucketAction)
    checkBucketAction(action);
  if (action.kind == DROVER_NORM)
    normed[action.chunk] = true;
  if (action.kind == DROVER_UPDATE && !normed[action.chunk])
    fail(where, ": update of bucket ", action.chunk, " before its norm");
  counts += action.kind == DROVER_COUNT;
  clips += action.kind == DROVER_CLIP;
}

void StageValidator::run() {
  checkBuckets();
  for (const Binding &binding : info.bindings)
    for (int64_t offset : binding.offsets)
      if (offset > info.arenaBytes)
        fail(where, ": a slot at byte ", offset, " of an arena of ", info.arenaBytes, " bytes");
  for (int64_t i = 0; i < info.numActions; ++i) {
    try {
      checkAction(i, program.actions(info)[i]);
    } catch (const Error &error) {
      fail(error.what(), " (action ", i, ")");
    }
  }
  if (program.isTraining() && program.grid.ranks() > 1 && (counts != 1 || clips != 1))
    fail(where, ": ", counts, " counts of labels and ", clips, " clips, expected one of each");
}

void Program::validateStage(const BatchInfo &batch, int64_t stage) const {
  StageValidator(*this, batch, stage, int64_t(allActions.size())).run();
}

} // namespace drover::rt
