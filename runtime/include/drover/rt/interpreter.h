//===- interpreter.h - runs a step program ----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// docs/step-program.md. One thread issues a rank's actions in order. Compute runs in it; what moves data is in flight
// on its stream until an action that waits for it, or the end of the step.
#ifndef DROVER_RT_INTERPRETER_H
#define DROVER_RT_INTERPRETER_H

#include "drover/rt/arena.h"
#include "drover/rt/flight_recorder.h"
#include "drover/rt/optimizer.h"
#include "drover/rt/parameter_store.h"
#include "drover/rt/rank_context.h"
#include "drover/rt/slot_guard.h"
#include "drover/rt/trace_writer.h"
#include <deque>
#include <functional>

namespace drover::rt {

/// What one pass over a batch's actions works on.
struct StepWork {
  int64_t step = 1;
  size_t batch = 0; // of the program
  /// Writes the inputs of a microbatch into its slot.
  std::function<void(int64_t microbatch, uint8_t *slot)> fillInputs;
  /// Training only: labels that count and that no other rank counts; settings; learning rate; t, counted from 1.
  int64_t labels = 0;
  OptimizerSettings optimizer = {};
  double learningRate = 0;
  int64_t t = 1;
  /// Called when all gradients are there, before clipping.
  std::function<void()> onGradients;
  /// Called after a body of a phase, with its operands.
  std::function<void(const drover_action &action, const CallInfo &call, const std::vector<void *> &operands)> onCall;
};

struct StepOutcome {
  double lossSum = 0; // over the world
  int64_t labels = 0; // over the world
  double gradNorm = 0;
  bool updated = false; // false: the norm was not finite, or no label counted, and nothing has changed
};

/// One rank's memory and the loop over its actions.
class Interpreter {
public:
  /// `trace` may be null. Throws Error where memory lacks.
  Interpreter(RankContext &rank, drover_pool *pool, FlightRecorder &recorder, TraceWriter *trace,
              const GuardOptions &guards = guardsFromEnvironment());

  StepOutcome run(const StepWork &work);

  /// The parameters that this rank starts with: its masters, or in the forward task all of a bucket.
  ParameterMemory parameterMemory() const;
  /// This rank's shards (RankPlan::shard) of masters, or, after the norms of a step, of gradients.
  std::vector<BucketMemory> masterShards() const;
  std::vector<BucketMemory> gradientShards() const;
  /// The output slot of the forward task; null where another stage has it.
  const uint8_t *outputs() const;
  /// The index of the first parameter with a gradient in this rank's shards that is not finite, or -1.
  int64_t nonfiniteParameter() const;

  const uint8_t *memory() const { return arena.data(); }
  int64_t arenaBytes() const { return rank.program.arenaBytes(rank.plan.stage); }
  int64_t workspaceBytes() const { return workspace.size(); }
  void setTracing(bool on) { tracing = on; }

private:
  /// An action that moves data: done when its operations are, and `finish` has run.
  struct InFlight {
    std::vector<Request> requests;
    std::function<void()> finish;
    std::vector<ByteRange> ranges; // of the arena, that it reads or writes
    int64_t record = -1, startNs = 0;
    bool pending = false;
  };

  static bool usesRange(const InFlight &flight, ByteRange range);
  void execute(uint32_t index, const StepWork &work, StepOutcome &outcome);
  void runPhase(const drover_action &action, const StepWork &work, StepOutcome &outcome);
  void callBody(const CallInfo &call, const drover_action &action, const StepWork &work);
  void callFlat(int64_t body, int64_t size, std::initializer_list<void *> operands);
  void sendOrReceive(const drover_action &action, InFlight &flight);
  void claim(const drover_action &action, InFlight &flight, ByteRange range);
  void gather(const drover_action &action, InFlight &flight);
  void castMasters(int64_t bucket, ElementRange part, uint8_t *parameter);
  void gatherRest();
  void reduce(const drover_action &action, InFlight &flight);
  void count(const StepWork &work, StepOutcome &outcome);
  void addSquares(const drover_action &action);
  void clipGradients(const StepWork &work, StepOutcome &outcome);
  void update(const drover_action &action, const StepWork &work);
  void release(const drover_action &action);
  void clearRange(const drover_action &action, const BucketRange &range);

  void complete(uint32_t index);
  void completeStream(int stream);
  /// Waits for what is in flight of an action, before its next step can begin.
  static void finishStep(InFlight &flight);

  /// Where a space of a bucket lies for an action: as its binding says, else as the stage does. -1: nowhere.
  int64_t place(const drover_action &action, int64_t bucket, Space space) const;
  uint8_t *at(int64_t offset) const { return arena.data() + offset; }
  /// The elements that masters, moments and the reduced gradient have.
  ElementRange stateRange(int64_t bucket) const;
  bool isSharded() const { return rank.program.zero > 0 && rank.plan.fsdpSize > 1; }
  /// A shard in memory that holds `stateRange` from `offset` on.
  BucketMemory shardAt(int64_t bucket, int64_t offset) const;
  int64_t communicatorOf(const drover_action &action) const;
  void traceAction(const drover_action &action, int64_t startNs) const;

  RankContext &rank;
  const Program &program;
  drover_pool *pool;
  FlightRecorder &recorder;
  TraceWriter *trace;
  bool tracing = false;
  SlotGuard guard;
  std::vector<StageInfo> stages; // of this rank's stage by batch, at their places in the arena
  Arena arena, workspace;
  std::vector<std::vector<BucketRange>> gaps; // by bucket: elements between trainable parameters
  std::vector<void *> operands;               // of the call that is made

  // Of the step that runs.
  const StageInfo *stage = nullptr;
  const drover_action *actions = nullptr;
  std::vector<InFlight> inFlight; // by action
  std::array<std::deque<uint32_t>, DROVER_NUM_STREAMS> streams;
  std::vector<int64_t> gradientPlaces; // by bucket, from its norm on
  float seed = 0;
  double squares = 0, clip = 1;
  bool normKnown = false;
};

} // namespace drover::rt

#endif // DROVER_RT_INTERPRETER_H
