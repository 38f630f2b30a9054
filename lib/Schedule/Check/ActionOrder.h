//===- ActionOrder.h - what happens before what -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_LIB_SCHEDULE_CHECK_ACTIONORDER_H
#define DROVER_LIB_SCHEDULE_CHECK_ACTIONORDER_H

#include "Faults.h"

namespace drover::schedule {

/// The happens-before relation of a batch. An action starts and completes; its start follows the completion of the
/// action before it on its stream and of those it waits for; a send completes after its receive has started and the
/// other way round; an operation of several stages completes after all of them have started.
class ActionOrder {
public:
  ActionOrder(const StepProgram &step, const Batch &batch, Faults &faults, CheckWork &work);

  /// Matches messages and operations of several stages, and finds the order. False where something was reported: then
  /// there is no order to ask.
  bool build();

  /// Whether action `first` of a stage is complete before action `second` of it starts, on every device.
  bool completesBefore(size_t stage, uint64_t first, uint64_t second) const {
    return clocks[node(stage, second) * numStreams() + streamOf(stage, first)] > position[node(stage, first)];
  }

  /// The stream of an action, 0 .. DROVER_NUM_STREAMS-1.
  size_t stream(size_t stage, uint64_t index) const { return action(stage, index).stream; }

private:
  struct Edge {
    uint32_t to;   // event: 2 * node for a start, 2 * node + 1 for a completion
    bool isOnHost; // holds where one thread issues in order, and is no promise of a device
  };

  size_t numStreams() const { return batch.stages.size() * DROVER_NUM_STREAMS; }
  uint64_t node(size_t stage, uint64_t index) const { return firstNode[stage] + index; }
  const drover_action &action(size_t stage, uint64_t index) const {
    return step.actions[batch.stages[stage].firstAction + index];
  }
  size_t streamOf(size_t stage, uint64_t index) const {
    return stage * DROVER_NUM_STREAMS + action(stage, index).stream;
  }
  bool checkFields();
  void matchMessages();
  void matchGroups();
  void rendezvous(const std::vector<std::pair<size_t, uint64_t>> &members, int32_t source);
  void addStageEdges();
  void addEdge(uint64_t from, uint64_t to, bool isOnHost) {
    edges.push_back({from, {static_cast<uint32_t>(to), isOnHost}});
  }
  bool propagate();
  void reportCycle(const std::vector<uint32_t> &missing);

  const StepProgram &step;
  const Batch &batch;
  Faults &faults;
  CheckWork &work;
  std::vector<uint64_t> firstNode; // by stage
  uint64_t numNodes = 0;
  std::vector<std::pair<uint64_t, Edge>> edges; // from an event
  std::vector<uint32_t> position;               // by node: place on its stream
  std::vector<uint32_t> clocks;                 // by node and stream: actions complete before its start
};

} // namespace drover::schedule

#endif // DROVER_LIB_SCHEDULE_CHECK_ACTIONORDER_H
