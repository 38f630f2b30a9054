//===- interpreter.h - runs a step program ----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_INTERPRETER_H
#define DROVER_RT_INTERPRETER_H

#include "drover/rt/arena.h"
#include "drover/rt/flight_recorder.h"
#include "drover/rt/optimizer.h"
#include "drover/rt/program.h"
#include "drover/rt/trace_writer.h"
#include <functional>

namespace drover::rt {

/// What one pass over a batch's actions works on.
struct StepWork {
  int64_t step = 1;
  const BatchInfo *batch = nullptr;
  /// Writes the inputs of a microbatch into its slot.
  std::function<void(int64_t microbatch, uint8_t *slot)> fillInputs;
  /// Training only: 1 / number of labels that count; settings; learning rate; t, counted from 1.
  float seed = 0;
  OptimizerSettings optimizer = {};
  double learningRate = 0;
  int64_t t = 1;
  /// Called when all gradients are there, before clipping.
  std::function<void()> onGradients;
};

struct StepOutcome {
  double lossSum = 0;
  double gradNorm = 0;
  bool updated = false; // false: the norm was not finite, and nothing has changed
};

/// One rank's memory and the loop over its actions.
class Interpreter {
public:
  /// `trace` may be null. Throws Error where memory lacks.
  Interpreter(const Program &program, drover_pool *pool, FlightRecorder &recorder, TraceWriter *trace);

  StepOutcome run(const StepWork &work);

  /// Where a space of a bucket lies, in a batch.
  uint8_t *bucketMemory(const BatchInfo &batch, int64_t bucket, Space space) const {
    return arena.data() + batch.buckets[bucket][space];
  }
  /// The output slot of the forward task.
  const uint8_t *outputs(const BatchInfo &batch) const;
  /// The first parameter with a gradient that is not finite, or empty.
  std::string nonfiniteParameter(const BatchInfo &batch) const;

  int64_t arenaBytes() const { return arena.size(); }
  int64_t workspaceBytes() const { return workspace.size(); }
  void setTracing(bool on) { tracing = on; }

private:
  void execute(const drover_action &action, const StepWork &work, StepOutcome &outcome);
  void runPhase(const drover_action &action, const StepWork &work, StepOutcome &outcome);
  void callBody(const CallInfo &call, const drover_action &action, const BatchInfo &batch);
  void callFlat(int64_t body, int64_t size, std::initializer_list<void *> operands);
  void gather(int64_t bucket, const BatchInfo &batch);
  void gatherRest(const BatchInfo &batch);
  void addSquares(const drover_action &action, const BatchInfo &batch);
  void finishNorm(const StepWork &work, StepOutcome &outcome);
  void update(const drover_action &action, const StepWork &work);
  void clearRange(const BatchInfo &batch, const BucketRange &range);
  void traceAction(const drover_action &action, int64_t startNs) const;

  const Program &program;
  drover_pool *pool;
  FlightRecorder &recorder;
  TraceWriter *trace;
  bool tracing = false;
  Arena arena, workspace;
  std::vector<std::vector<BucketRange>> gaps; // by bucket: elements between trainable parameters
  std::vector<void *> operands;               // of the call that is made
  double squares = 0;
  bool normKnown = false;
  double clip = 1;
};

} // namespace drover::rt

#endif // DROVER_RT_INTERPRETER_H
