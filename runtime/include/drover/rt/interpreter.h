//===- interpreter.h - runs a step program ----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// docs/step-program.md. One thread issues a rank's actions in order. On the host compute runs in it, and what moves
// data is in flight on its stream until an action that waits for it, or the end of the step. On a GPU all work is put
// on the device's streams, waits are events between them, and the host waits where it needs a number: for the labels,
// for the norm with the loss, and for the end of the step.
#ifndef DROVER_RT_INTERPRETER_H
#define DROVER_RT_INTERPRETER_H

#include "drover/rt/flight_recorder.h"
#include "drover/rt/optimizer.h"
#include "drover/rt/parameter_store.h"
#include "drover/rt/rank_context.h"
#include "drover/rt/rank_device.h"
#include "drover/rt/slot_guard.h"
#include "drover/rt/trace_writer.h"
#include <deque>
#include <functional>
#include <map>

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

/// Shards as the host reads them: where they are, or copies.
struct HostShards {
  std::vector<BucketMemory> buckets;
  std::vector<std::vector<uint8_t>> copies;
};

/// Where the numbers of a step lie that the host exchanges with bodies, beside those in a microbatch's scalar slot.
struct ScalarPlaces {
  ScalarPlaces(int64_t norms, int64_t losses) : norms(norms), losses(losses) {}

  // Of the device: 64 bytes each, as operands are aligned.
  int64_t squares(int64_t norm) const { return norm * 64; }
  int64_t hyper(bool decay) const { return (norms + (decay ? 0 : 1)) * 64; }
  int64_t deviceBytes() const { return (norms + 2) * 64; }
  // Of the host.
  int64_t seed() const { return 0; }
  int64_t marks() const { return 64; } // a word a stream
  int64_t hostHyper(bool decay) const { return decay ? 128 : 192; }
  int64_t hostSquares(int64_t norm) const { return 256 + norm * 8; }
  int64_t loss(int64_t number) const { return hostSquares(norms) + number * 8; }
  int64_t hostBytes() const { return loss(losses); }

  int64_t norms, losses; // the most of a step
};

/// One rank's memory and the loop over its actions.
class Interpreter {
public:
  /// `trace` may be null. Throws Error where memory lacks.
  Interpreter(RankContext &rank, RankDevice &device, drover_pool *pool, FlightRecorder &recorder, TraceWriter *trace,
              const GuardOptions &guards = guardsFromEnvironment());
  ~Interpreter();
  Interpreter(const Interpreter &) = delete;
  Interpreter &operator=(const Interpreter &) = delete;

  StepOutcome run(const StepWork &work);

  /// Calls `fill` with memory of the host for the parameters that this rank starts with: its masters, or in the forward
  /// task all of a bucket.
  void initialize(const std::function<void(const ParameterMemory &)> &fill);
  /// This rank's shards (RankPlan::shard) of masters, or, after the norms of a step, of gradients.
  HostShards masterShards();
  HostShards gradientShards();
  /// The output slot of the forward task; empty where another stage has it.
  std::vector<uint8_t> outputs();
  /// What an operand that `onCall` was told of holds.
  void read(const void *from, int64_t bytes, uint8_t *to);
  /// The index of the first parameter with a gradient in this rank's shards that is not finite, or -1.
  int64_t nonfiniteParameter();
  /// Ends the records of actions that the device is done with.
  void noteProgress();

  int64_t arenaBytes() const { return rank.program.arenaBytes(rank.plan.stage); }
  int64_t workspaceBytes() const { return workspace.size(); }
  void setTracing(bool on) { tracing = on; }
  /// Steps are issued as graphs from the second one of a batch on, but for those that are traced or observed by
  /// StepWork::onCall (docs/cuda.md, Graphs). Throws Error on the host.
  void useGraphs();

private:
  /// An action that was issued. On the host it is done when its operations are, and `finish` has run; on a GPU when the
  /// device has passed its mark.
  struct InFlight {
    std::vector<Request> requests;
    std::function<void()> finish;
    std::vector<ByteRange> ranges; // of the arena, that it reads or writes
    int64_t record = -1, startNs = 0;
    bool pending = false;
    bool awaited = false;   // by an action of another stream
    Event *event = nullptr; // of a GPU, where it is awaited
    uint32_t mark = 0;      // of its stream
  };

  /// What the host has issued once and what a launch issues again: actions between two waits of the host.
  struct StepGraph {
    bool issued = false;                                // its actions, one by one
    std::unique_ptr<Graph> graph;                       // null: not captured yet
    std::vector<std::vector<KeptOperation>> operations; // by action
    // What the step's counters are behind it.
    int64_t losses = 0, norms = 0;
    std::vector<int64_t> gradientPlaces;
  };

  static bool usesRange(const InFlight &flight, ByteRange range);
  bool stopsHost(const drover_action &action) const;
  /// Actions that the host issues without a wait of its own: from `first` on, before `end`.
  void issueStretch(uint32_t first, uint32_t end, const StepWork &work, StepOutcome &outcome);
  void beginStretch();
  void issueAction(uint32_t index, const StepWork &work, StepOutcome &outcome);
  void issueGraph(StepGraph &graph, uint32_t first, uint32_t end, const StepWork &work, StepOutcome &outcome);
  void capture(StepGraph &graph, uint32_t first, uint32_t end, const StepWork &work, StepOutcome &outcome);
  void noteLaunch(const StepGraph &graph, uint32_t first, uint32_t end, const StepWork &work);
  void execute(uint32_t index, const StepWork &work, StepOutcome &outcome);
  void begin(uint32_t index, const StepWork &work);
  void runPhase(const drover_action &action, const StepWork &work);
  void callBody(const CallInfo &call, const drover_action &action, const StepWork &work);
  void callFlat(int64_t body, int64_t size, std::initializer_list<void *> operands,
                drover_stream which = DROVER_STREAM_COMPUTE);
  void sendOrReceive(const drover_action &action, InFlight &flight);
  void claim(const drover_action &action, InFlight &flight, ByteRange range);
  void gather(const drover_action &action, InFlight &flight);
  void castMasters(int64_t bucket, ElementRange part, uint8_t *parameter, drover_stream which);
  void gatherRest();
  void reduce(const drover_action &action, InFlight &flight);
  void count(const StepWork &work, StepOutcome &outcome);
  void addSquares(const drover_action &action);
  void clipGradients(const StepWork &work, StepOutcome &outcome);
  void copyHyper();
  void update(const drover_action &action);
  void release(const drover_action &action);
  void clearRange(const drover_action &action, const BucketRange &range);
  void loadInputs(const drover_action &action, const StepWork &work);

  /// What the action issues from now on begins after another action.
  void follow(const drover_action &action, uint32_t other);
  /// The operation is the action's: later steps of it come behind the operation.
  void keep(const drover_action &action, InFlight &flight, Request request);
  void issued(uint32_t index);
  void ended(uint32_t index);
  void markIssued(uint32_t index);
  void giveBackEvents(uint32_t first, uint32_t end);
  std::string describeStuck(int which) const;
  /// The host goes on when compute is done, and has the step's losses and squares then.
  void finishCompute(StepOutcome &outcome);
  void finishStreams();
  void clearLastingMemory();
  HostShards readable(std::vector<BucketMemory> shards);

  void complete(uint32_t index);
  void completeStream(int stream);
  /// Waits for what is in flight of an action, before its next step can begin.
  static void finishStep(InFlight &flight);

  /// Where a space of a bucket lies for an action: as its binding says, else as the stage does. -1: nowhere.
  int64_t place(const drover_action &action, int64_t bucket, Space space) const;
  uint8_t *at(int64_t offset) const { return arena.data() + offset; }
  double hostNumber(int64_t place) const;
  Stream &streamOf(const drover_action &action) const { return device.stream(action.stream); }
  ParameterMemory parameterMemory() const;
  /// The elements that masters, moments and the reduced gradient have.
  ElementRange stateRange(int64_t bucket) const;
  bool isSharded() const { return rank.program.zero > 0 && rank.plan.fsdpSize > 1; }
  /// A shard in memory that holds `stateRange` from `offset` on.
  BucketMemory shardAt(int64_t bucket, int64_t offset) const;
  int64_t communicatorOf(const drover_action &action) const;
  void traceAction(const drover_action &action, int64_t startNs) const;

  RankContext &rank;
  RankDevice &device;
  const Program &program;
  drover_pool *pool;
  FlightRecorder &recorder;
  TraceWriter *trace;
  bool tracing = false;
  SlotGuard guard;
  std::vector<StageInfo> stages; // of this rank's stage by batch, at their places in the arena
  DeviceMemory arena, workspace;
  DeviceMemory castWorkspace, addWorkspace; // of a GPU, where gathers and reductions call bodies beside others
  ScalarPlaces scalars;
  DeviceMemory stepScalars, hostScalars;      // the latter pinned
  std::vector<DeviceMemory> pinnedInputs;     // by load of the step
  std::vector<std::vector<BucketRange>> gaps; // by bucket: elements between trainable parameters
  std::vector<void *> operands;               // of the call that is made

  // Of the step that runs.
  const StageInfo *stage = nullptr;
  const drover_action *actions = nullptr;
  std::vector<InFlight> inFlight; // by action
  std::array<std::deque<uint32_t>, DROVER_NUM_STREAMS> streams;
  std::vector<int64_t> gradientPlaces; // by bucket, from its norm on
  std::array<uint32_t, DROVER_NUM_STREAMS> marks = {};
  size_t loads = 0;
  int64_t losses = 0, norms = 0;
  bool normKnown = false;
  uint32_t keptFrom = 0; // the first action of the graph that is captured: those before it are over

  bool graphsWanted = false;
  std::map<std::pair<size_t, uint32_t>, StepGraph> graphs; // by batch and first action
};

} // namespace drover::rt

#endif // DROVER_RT_INTERPRETER_H
