//===- engine.h - streams, events and the work on them ----------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// The part of the stand-in driver that the other stand-in libraries use too. Work on a stream is done in its order and
// after the events that the stream waits for, at once or later, as the seed has it (DROVER_EMU_SEED: 0 at once, on the
// thread that enqueues; else by a thread in the background, in an order drawn from the seed). What is ordered before
// what is kept as vector clocks, which work gets from what it was enqueued after, from events that it waits for, and
// from what other devices send: they do not depend on the schedule, and so a race is found whatever that was.
#ifndef DROVER_STANDINS_ENGINE_H
#define DROVER_STANDINS_ENGINE_H

#include "clock.h"
#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace drover::standin {

/// A piece of work, or an access by the host.
struct Work {
  std::string what; // "fill", "kernel NAME", for messages
  uint32_t actor = 0;
  uint64_t tick = 0;
  Clock clock; // until it is done: of who enqueued it, and of what it waits for. Then its own tick is in it
  int device = -1;
  Clock after; // what is on its stream behind it comes after this, too
};

/// A recorded event: done when what was before it on its stream is.
struct Record {
  bool done = false;
  Clock clock;
};

struct Capture;
struct Graph;
struct GraphInstance;
struct Stream;
/// Whether work that is first in its stream can be done now; then its clock has what it waited for. Called often, under
/// the engine's lock; may not enqueue.
using Ready = std::function<bool(const Stream &stream, Work &work)>;

struct Stream {
  int device = 0;
  uint32_t actor = 0;
  uint64_t tick = 0;
  Clock clock; // of the last piece of work that was done
  bool busy = false;
  std::shared_ptr<Capture> capture; // of a graph: what is put on the stream is kept (graph.h)
  size_t lane = 0;                  // of the capture
  bool ofGraph = false;             // stands for a lane in the launches of a graph

  struct Item {
    Work work;
    Ready ready;                               // null: at once
    std::function<void(const Work &)> perform; // without the lock
  };
  std::deque<Item> items;
};

struct Event {
  std::shared_ptr<Record> record;
  std::shared_ptr<Capture> capture; // last recorded in one: as its record `number`
  size_t number = 0;
};

class Engine {
public:
  static Engine &instance();

  std::shared_ptr<Stream> createStream(int device);

  void enqueue(Stream &stream, std::string what, std::function<void(const Work &)> perform, Ready ready = nullptr);
  void record(Stream &stream, Event &event);
  void waitFor(Stream &stream, const Event &event);
  /// Nothing left to do: what was on the stream is ordered before what this thread does next.
  bool isIdle(Stream &stream);
  bool isDone(const Event &event);
  /// What is put on the stream, and on those that wait for events of the capture, is kept from now on. False where it
  /// is already.
  bool beginCapture(Stream &stream);
  /// What was kept; what is wrong with it, or nothing.
  std::string endCapture(Stream &stream, Graph &graph);
  bool isCapturing(const Stream &stream);
  bool isCaptured(const Event &event);
  /// The stream's capture fails at its end.
  void invalidate(Stream &stream, const std::string &why);
  /// Where the stream captures: `call` is done at each launch, on this thread, with the stream that stands for this
  /// one.
  bool keepCall(Stream &stream, const std::function<void(Stream &)> &call);
  std::unique_ptr<GraphInstance> instantiate(const Graph &graph, int device);
  void launch(GraphInstance &instance, Stream &stream);
  /// An access by this thread of the host now.
  Work hostWork(std::string what, int device);
  /// Something outside the streams has changed that work may be ready for.
  void wake();
  /// From a `ready`: what it did may make other work ready.
  void noteProgress() { ++progress; }

  /// For what `ready` functions read.
  std::mutex &lock() { return mutex; }
  /// True once in `one`, never where work is done at once.
  bool draw(unsigned one);
  uint64_t drawSeed();
  /// Another seed from now on (drover_standin_set_seed).
  void setSeed(uint64_t seed);

private:
  Engine();
  Clock &hostClock();
  // False where nothing captures.
  bool keep(Stream &stream, const std::string &what, const std::function<void(const Work &)> &perform);
  bool keepRecord(Stream &stream, Event &event);
  bool keepWait(Stream &stream, const Event &event);
  std::vector<std::shared_ptr<Stream>> ableStreams();
  bool runOne(std::unique_lock<std::mutex> &lock);
  void drain(std::unique_lock<std::mutex> &lock);
  void background();

  std::mutex mutex;
  std::vector<std::shared_ptr<Stream>> streams;
  uint64_t seedValue = 0;
  std::mt19937_64 random;
  bool hasWorkers = false;
  uint64_t progress = 0;
  std::array<std::mutex, 64> devices;
};

} // namespace drover::standin

#endif // DROVER_STANDINS_ENGINE_H
