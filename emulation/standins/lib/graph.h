//===- graph.h - work that is kept and launched -----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// What is put on a stream that captures is kept, with what orders it: each stream of the capture is a lane, on which
// the graph's edges are its order, and the events between lanes. A launch puts the lanes on streams of the graph's own,
// which begin after what is on the stream that it was launched on and which that stream then waits for: so the clocks
// of the work have the graph's edges, and nothing else.
#ifndef DROVER_STANDINS_GRAPH_H
#define DROVER_STANDINS_GRAPH_H

#include "engine.h"

namespace drover::standin {

struct Graph {
  struct Step {
    enum class Kind { Work, Record, Wait, Call } kind = Kind::Work;
    size_t lane = 0;
    std::string what;                          // Work
    std::function<void(const Work &)> perform; // Work
    size_t record = 0;                         // Record and Wait: which of the graph's records
    std::function<void(Stream &)> call;        // Call: at each launch, with the lane's stream
  };
  std::vector<Step> steps; // in the order of the calls
  size_t lanes = 0, records = 0;
};

/// A graph that is being captured.
struct Capture {
  Graph graph;
  const Stream *origin = nullptr;
  std::string problem;            // the first wrong use
  std::vector<std::string> names; // of the lanes
  std::vector<uint64_t> ticks;    // by lane: its steps
  std::vector<Clock> before;      // by lane: what its next step comes after
  std::vector<Clock> recorded;    // by record
};

/// A graph that can be launched.
struct GraphInstance {
  Graph graph;
  std::vector<std::shared_ptr<Stream>> lanes;
};

} // namespace drover::standin

#endif // DROVER_STANDINS_GRAPH_H
