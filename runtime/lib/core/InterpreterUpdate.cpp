//===- InterpreterUpdate.cpp - from gradients to parameters ---------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/interpreter.h"
#include <cmath>
#include <cstring>

namespace drover::rt {

/// One over the number of labels of the world; where none counts, every gradient is zero.
void Interpreter::count(const StepWork &work, StepOutcome &outcome) {
  outcome.labels = rank.sum(work.labels);
  float seed = outcome.labels ? float(1.0 / double(outcome.labels)) : 0.0f;
  std::memcpy(hostScalars.data() + scalars.seed(), &seed, sizeof(seed));
}

/// Squares of the elements that no other rank counts: this rank's shard of the sections that are not replicated, or of
/// which it is replica 0.
void Interpreter::addSquares(const drover_action &action) {
  int64_t bucket = action.chunk;
  int64_t offset = place(action, bucket, Space::Gradient);
  if (offset < 0)
    offset = place(action, bucket, Space::Accumulator);
  gradientPlaces[size_t(bucket)] = offset;
  BucketMemory shard = shardAt(bucket, offset);
  if (!rank.plan.owns(program, bucket))
    return;
  for (const SectionInfo &section : program.buckets[size_t(bucket)].sections) {
    bool counts = section.replicatedAxis < 0 || rank.plan.place[size_t(section.replicatedAxis)] == 0;
    ElementRange part = shard.range.intersect({section.first, section.elements});
    if (!section.trainable || !counts || part.elements == 0)
      continue;
    uint8_t *sum = stepScalars.data() + scalars.squares(norms);
    callFlat(program.normBody, part.elements, {shard.data + (part.first - shard.range.first) * 4, sum});
    device.device().copy(hostScalars.data() + scalars.hostSquares(norms++), sum, sizeof(double), streamOf(action));
  }
}

void Interpreter::clipGradients(const StepWork &work, StepOutcome &outcome) {
  normKnown = true;
  finishCompute(outcome);
  double sums[2] = {0, outcome.lossSum};
  for (int64_t i = 0; i < norms; ++i)
    sums[0] += hostNumber(scalars.hostSquares(i));
  if (Communicator *world = rank.worldGroup())
    world->allReduce(sums, sums, 2, DROVER_F64, ReduceOp::Sum).wait();
  outcome.gradNorm = std::sqrt(sums[0]);
  outcome.lossSum = sums[1];
  if (work.onGradients)
    work.onGradients();
  outcome.updated = outcome.labels > 0 && std::isfinite(outcome.gradNorm);
  double clip = clipCoefficient(work.optimizer, outcome.gradNorm);
  for (bool decay : {true, false}) {
    std::array<float, 8> hyper = hyperScalars(work.optimizer, work.learningRate, work.t, clip, decay);
    std::memcpy(hostScalars.data() + scalars.hostHyper(decay), hyper.data(), sizeof(hyper));
  }
}

void Interpreter::copyHyper() {
  for (bool decay : {true, false})
    device.device().copy(stepScalars.data() + scalars.hyper(decay), hostScalars.data() + scalars.hostHyper(decay),
                         8 * sizeof(float), device.stream(DROVER_STREAM_COMPUTE));
}

void Interpreter::update(const drover_action &action) {
  int64_t bucket = action.chunk;
  if (!rank.plan.owns(program, bucket))
    return;
  ElementRange state = stateRange(bucket);
  for (const SectionInfo &section : program.buckets[size_t(bucket)].sections) {
    ElementRange part = state.intersect({section.first, section.elements});
    if (!section.trainable || part.elements == 0)
      continue;
    uint8_t *hyper = stepScalars.data() + scalars.hyper(section.decay);
    auto range = [&](int64_t offset) { return at(offset) + (part.first - state.first) * 4; };
    auto of = [&](Space space) { return range(place(action, bucket, space)); };
    uint8_t *gradient = range(gradientPlaces[size_t(bucket)]);
    if (program.optimizer == "sgd")
      callFlat(program.updateBody, part.elements, {of(Space::Master), gradient, hyper});
    else
      callFlat(program.updateBody, part.elements,
               {of(Space::Master), of(Space::Moment1), of(Space::Moment2), gradient, hyper});
  }
}

} // namespace drover::rt
