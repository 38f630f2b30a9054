//===- InterpreterGraphs.cpp - a step's actions as graphs of a GPU --------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// docs/cuda.md, Graphs. A graph is captured and launched while the device is idle, so that marks can begin again and
// nothing of it has to be ordered against what was issued before; behind it the host waits before it issues anything.
#include "drover/rt/error.h"
#include "drover/rt/interpreter.h"
#include "drover/rt/nvtx.h"

namespace drover::rt {

void Interpreter::useGraphs() {
  if (device.isHost())
    fail("--cuda-graphs: expected a program for a GPU; the host does at once what it is asked to");
  graphsWanted = true;
}

void Interpreter::issueGraph(StepGraph &graph, uint32_t first, uint32_t end, const StepWork &work,
                             StepOutcome &outcome) {
  device.wait([&] { return device.device().isIdle(); },
              [&] {
                noteProgress();
                return describeStuck(DROVER_STREAM_COMPUTE);
              });
  noteProgress();
  marks = {};
  for (int which = 0; which < DROVER_NUM_STREAMS; ++which)
    __atomic_store_n(reinterpret_cast<uint32_t *>(hostScalars.data() + scalars.marks()) + which, 0, __ATOMIC_RELEASE);
  rank.world.restartMarks();
  if (graph.graph)
    noteLaunch(graph, first, end, work);
  else
    capture(graph, first, end, work, outcome);
  NvtxRange range([&] { return concat("graph of actions ", first, " to ", end - 1); });
  device.device().launch(*graph.graph, device.stream(DROVER_STREAM_COMPUTE));
}

/// Issuing the actions fills the memory that inputs come from and notes them, as it does without a graph.
void Interpreter::capture(StepGraph &graph, uint32_t first, uint32_t end, const StepWork &work, StepOutcome &outcome) {
  keptFrom = first;
  device.device().beginGraph();
  rank.world.keepOperations();
  try {
    beginStretch();
    for (uint32_t i = first; i < end; ++i) {
      issueAction(i, work, outcome);
      for (const KeptOperation &operation : graph.operations.emplace_back(rank.world.takeKept()))
        operation.communicator->issueAgain(operation);
    }
    rank.world.keepNone();
    graph.graph = device.device().endGraph();
  } catch (const Error &) {
    rank.world.keepNone();
    device.device().dropGraph();
    throw;
  }
  keptFrom = 0;
  giveBackEvents(first, end); // what waited for them is in the graph
  graph.losses = losses;
  graph.norms = norms;
  graph.gradientPlaces = gradientPlaces;
}

/// What issuing the actions would do on the host.
void Interpreter::noteLaunch(const StepGraph &graph, uint32_t first, uint32_t end, const StepWork &work) {
  for (uint32_t i = first; i < end; ++i) {
    const drover_action &action = actions[i];
    if (action.kind == DROVER_RUN && action.flags & DROVER_ACTION_LOAD)
      work.fillInputs(action.microbatch, pinnedInputs[loads++].data());
    begin(i, work);
    for (const KeptOperation &operation : graph.operations[i - first])
      operation.communicator->issueAgain(operation);
    inFlight[i].pending = true;
    inFlight[i].mark = ++marks[action.stream];
    streams[action.stream].push_back(i);
  }
  losses = graph.losses;
  norms = graph.norms;
  gradientPlaces = graph.gradientPlaces;
}

} // namespace drover::rt
