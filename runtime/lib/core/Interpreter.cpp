//===- Interpreter.cpp - runs a step program ------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/interpreter.h"
#include "drover/rt/error.h"
#include <algorithm>
#include <cmath>

namespace drover::rt {

/// The place of the only rank.
static constexpr int32_t origin[DROVER_NUM_AXES] = {};

/// The elements of a bucket's trainable range that no parameter owns.
static std::vector<BucketRange> findGaps(const Program &program, int64_t bucket) {
  std::vector<std::pair<int64_t, int64_t>> owned;
  for (const ParameterInfo &parameter : program.parameters)
    if (parameter.bucket == bucket && !parameter.frozen)
      owned.emplace_back(parameter.offset, parameter.offset + parameter.elements);
  std::sort(owned.begin(), owned.end());
  int64_t end = program.buckets[bucket].trainableElements, place = 0;
  owned.emplace_back(end, end);
  std::vector<BucketRange> gaps;
  for (auto [first, last] : owned) {
    if (first > place)
      gaps.push_back({bucket, place, first - place});
    place = std::max(place, last);
  }
  return gaps;
}

Interpreter::Interpreter(const Program &program, drover_pool *pool, FlightRecorder &recorder, TraceWriter *trace)
    : program(program), pool(pool), recorder(recorder), trace(trace), arena(program.arenaBytes()),
      workspace(program.workspaceBytes()) {
  for (size_t bucket = 0; bucket < program.buckets.size(); ++bucket)
    gaps.push_back(findGaps(program, int64_t(bucket)));
}

StepOutcome Interpreter::run(const StepWork &work) {
  StepOutcome outcome;
  squares = 0;
  normKnown = false;
  gatherRest(*work.batch);
  const drover_action *actions = program.actions(*work.batch);
  for (int64_t i = 0; i < work.batch->numActions; ++i) {
    int64_t id = recorder.begin(work.step, work.batch->firstAction + i, actions[i]);
    int64_t startNs = tracing ? monotonicNs() : 0;
    execute(actions[i], work, outcome);
    recorder.end(id);
    if (tracing)
      traceAction(actions[i], startNs);
  }
  return outcome;
}

void Interpreter::execute(const drover_action &action, const StepWork &work, StepOutcome &outcome) {
  switch (action.kind) {
  case DROVER_RUN:
    return runPhase(action, work, outcome);
  case DROVER_GATHER:
    return gather(action.chunk, *work.batch);
  case DROVER_NORM:
    return addSquares(action, *work.batch);
  case DROVER_UPDATE:
    if (!normKnown)
      finishNorm(work, outcome);
    if (outcome.updated)
      update(action, work);
    return;
  default: // a slot that is free needs nothing on the host; other kinds were refused at load
    return;
  }
}

void Interpreter::runPhase(const drover_action &action, const StepWork &work, StepOutcome &outcome) {
  const Binding &binding = work.batch->bindings[action.binding];
  if (action.flags & DROVER_ACTION_LOAD)
    work.fillInputs(action.microbatch, arena.data() + binding[Space::Input]);
  bool hasScalars = binding[Space::Scalar] >= 0;
  uint8_t *scalars = arena.data() + binding[Space::Scalar];
  double loss = 0;
  if (hasScalars) {
    std::memcpy(scalars + seedOffset, &work.seed, sizeof(float));
    std::memcpy(scalars + lossOffset, &loss, sizeof(double));
  }
  bool first = action.flags & DROVER_ACTION_FIRST;
  for (size_t bucket = 0; first && bucket < program.buckets.size(); ++bucket)
    if (program.buckets[bucket].chunk == action.chunk)
      for (const BucketRange &gap : gaps[bucket])
        clearRange(*work.batch, gap);
  for (const CallInfo &call : program.chunks[action.chunk].phases[action.phase])
    callBody(call, action, *work.batch);
  if (hasScalars && action.phase == 0) {
    std::memcpy(&loss, scalars + lossOffset, sizeof(double));
    outcome.lossSum += loss;
  }
}

void Interpreter::callBody(const CallInfo &call, const drover_action &action, const BatchInfo &batch) {
  bool first = action.flags & DROVER_ACTION_FIRST;
  if (first)
    for (const BucketRange &range : call.clears)
      clearRange(batch, range);
  const Binding &binding = batch.bindings[action.binding];
  operands.clear();
  for (const OperandInfo &operand : call.operands) {
    int64_t base = operand.bucket >= 0 ? batch.buckets[operand.bucket][operand.space] : binding[operand.space];
    operands.push_back(arena.data() + base + operand.offset);
  }
  drover_call context = {pool, 0, call.alwaysAccumulate || !first, 0, origin, nullptr};
  void *scratch = binding.workspace >= 0 ? arena.data() + binding.workspace : workspace.data();
  int64_t startNs = tracing ? monotonicNs() : 0;
  program.body(call.body)(operands.data(), scratch, &context);
  if (tracing)
    trace->event(TraceWriter::Bodies, program.bodies[call.body].name, startNs, monotonicNs(),
                 concat("\"layer\": ", call.layer, ", \"microbatch\": ", action.microbatch));
}

void Interpreter::callFlat(int64_t body, int64_t size, std::initializer_list<void *> flatOperands) {
  operands = flatOperands;
  drover_call context = {pool, size, 0, 0, origin, nullptr};
  program.body(body)(operands.data(), workspace.data(), &context);
}

void Interpreter::clearRange(const BatchInfo &batch, const BucketRange &range) {
  std::memset(bucketMemory(batch, range.bucket, Space::Accumulator) + range.offset * 4, 0, size_t(range.elements) * 4);
}

/// The bucket in the compute dtype, from its masters.
void Interpreter::gather(int64_t bucket, const BatchInfo &batch) {
  int64_t elements = program.buckets[bucket].elements;
  const Binding &place = batch.buckets[bucket];
  if (elements == 0 || place[Space::Master] < 0 || place[Space::Master] == place[Space::Parameter])
    return;
  uint8_t *master = bucketMemory(batch, bucket, Space::Master), *result = bucketMemory(batch, bucket, Space::Parameter);
  if (program.castBody >= 0)
    callFlat(program.castBody, elements, {master, result});
  else
    std::memcpy(result, master, size_t(elements) * 4);
}

/// Gathers the buckets that no action gathers.
void Interpreter::gatherRest(const BatchInfo &batch) {
  std::vector<bool> gathered(program.buckets.size());
  const drover_action *actions = program.actions(batch);
  for (int64_t i = 0; i < batch.numActions; ++i)
    if (actions[i].kind == DROVER_GATHER)
      gathered[actions[i].chunk] = true;
  for (size_t bucket = 0; bucket < gathered.size(); ++bucket)
    if (!gathered[bucket])
      gather(int64_t(bucket), batch);
}

void Interpreter::addSquares(const drover_action &action, const BatchInfo &batch) {
  int64_t bucket = action.chunk;
  uint8_t *result = arena.data() + batch.bindings[action.binding][Space::Scalar] + normOffset;
  callFlat(program.normBody, program.buckets[bucket].trainableElements,
           {bucketMemory(batch, bucket, Space::Accumulator), result});
  double sum;
  std::memcpy(&sum, result, sizeof(sum));
  squares += sum;
}

void Interpreter::finishNorm(const StepWork &work, StepOutcome &outcome) {
  normKnown = true;
  outcome.gradNorm = std::sqrt(squares);
  if (work.onGradients)
    work.onGradients();
  outcome.updated = std::isfinite(outcome.gradNorm);
  clip = clipCoefficient(work.optimizer, outcome.gradNorm);
}

void Interpreter::update(const drover_action &action, const StepWork &work) {
  int64_t bucket = action.chunk;
  const BucketInfo &info = program.buckets[bucket];
  uint8_t *scalars = arena.data() + work.batch->bindings[action.binding][Space::Scalar];
  auto updateRange = [&](int64_t first, int64_t last, int64_t hyperPlace, bool decay) {
    if (first == last)
      return;
    std::array<float, 8> hyper = hyperScalars(work.optimizer, work.learningRate, work.t, clip, decay);
    std::memcpy(scalars + hyperPlace, hyper.data(), sizeof(hyper));
    auto at = [&](Space space) { return bucketMemory(*work.batch, bucket, space) + first * 4; };
    if (program.optimizer == "sgd")
      callFlat(program.updateBody, last - first, {at(Space::Master), at(Space::Accumulator), scalars + hyperPlace});
    else
      callFlat(
          program.updateBody, last - first,
          {at(Space::Master), at(Space::Moment1), at(Space::Moment2), at(Space::Accumulator), scalars + hyperPlace});
  };
  updateRange(0, info.decayElements, hyperOffset, true);
  updateRange(info.decayElements, info.trainableElements, hyperNoDecayOffset, false);
}

const uint8_t *Interpreter::outputs(const BatchInfo &batch) const {
  for (const Binding &binding : batch.bindings)
    if (binding[Space::Output] >= 0)
      return arena.data() + binding[Space::Output];
  fail("program: no slot for the outputs");
}

std::string Interpreter::nonfiniteParameter(const BatchInfo &batch) const {
  for (const ParameterInfo &parameter : program.parameters) {
    if (parameter.frozen)
      continue;
    const auto *gradient =
        reinterpret_cast<const float *>(bucketMemory(batch, parameter.bucket, Space::Accumulator)) + parameter.offset;
    if (!std::all_of(gradient, gradient + parameter.elements, [](float value) { return std::isfinite(value); }))
      return parameter.name;
  }
  return "";
}

void Interpreter::traceAction(const drover_action &action, int64_t startNs) const {
  static constexpr const char *phases[] = {"forward", "backward", "weight gradient"};
  static constexpr const char *kinds[] = {"run", "send", "receive", "gather", "reduce", "norm", "update", "free"};
  const char *name = action.kind == DROVER_RUN && action.phase < 3 ? phases[action.phase] : kinds[action.kind];
  trace->event(TraceWriter::Actions, concat(name, " ", action.chunk), startNs, monotonicNs(),
               concat("\"chunk\": ", action.chunk, ", \"microbatch\": ", action.microbatch,
                      ", \"sequence\": ", action.sequence));
}

} // namespace drover::rt
