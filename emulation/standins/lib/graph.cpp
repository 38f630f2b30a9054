//===- graph.cpp - work that is kept and launched -------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "graph.h"

namespace drover::standin {

static std::string nameOf(const Stream &stream) {
  return "stream " + std::to_string(stream.actor) + " of device " + std::to_string(stream.device);
}

/// The stream is a lane of the capture from now on.
static void addLane(const std::shared_ptr<Capture> &capture, Stream &stream) {
  stream.capture = capture;
  stream.lane = capture->graph.lanes++;
  capture->names.push_back(nameOf(stream));
  capture->ticks.push_back(0);
  capture->before.emplace_back();
}

static Graph::Step &addStep(Capture &capture, size_t lane, Graph::Step::Kind kind) {
  if (kind != Graph::Step::Kind::Wait && kind != Graph::Step::Kind::Record)
    capture.before[lane].set(uint32_t(lane), ++capture.ticks[lane]);
  capture.graph.steps.emplace_back();
  Graph::Step &step = capture.graph.steps.back();
  step.kind = kind;
  step.lane = lane;
  return step;
}

bool Engine::beginCapture(Stream &stream) {
  std::lock_guard<std::mutex> guard(mutex);
  if (stream.capture)
    return false;
  auto capture = std::make_shared<Capture>();
  capture->origin = &stream;
  addLane(capture, stream);
  return true;
}

bool Engine::isCapturing(const Stream &stream) {
  std::lock_guard<std::mutex> guard(mutex);
  return stream.capture != nullptr;
}

bool Engine::isCaptured(const Event &event) {
  std::lock_guard<std::mutex> guard(mutex);
  return event.capture != nullptr;
}

void Engine::invalidate(Stream &stream, const std::string &why) {
  std::lock_guard<std::mutex> guard(mutex);
  if (stream.capture && stream.capture->problem.empty())
    stream.capture->problem = why;
}

bool Engine::keep(Stream &stream, const std::string &what, const std::function<void(const Work &)> &perform) {
  std::lock_guard<std::mutex> guard(mutex);
  if (!stream.capture)
    return false;
  Graph::Step &step = addStep(*stream.capture, stream.lane, Graph::Step::Kind::Work);
  step.what = what;
  step.perform = perform;
  return true;
}

bool Engine::keepCall(Stream &stream, const std::function<void(Stream &)> &call) {
  std::lock_guard<std::mutex> guard(mutex);
  if (!stream.capture)
    return false;
  addStep(*stream.capture, stream.lane, Graph::Step::Kind::Call).call = call;
  return true;
}

bool Engine::keepRecord(Stream &stream, Event &event) {
  std::lock_guard<std::mutex> guard(mutex);
  event.capture = stream.capture;
  if (!stream.capture)
    return false;
  event.record = nullptr;
  event.number = stream.capture->graph.records++;
  stream.capture->recorded.push_back(stream.capture->before[stream.lane]);
  addStep(*stream.capture, stream.lane, Graph::Step::Kind::Record).record = event.number;
  return true;
}

/// A stream that waits for an event of a capture is one of its lanes.
bool Engine::keepWait(Stream &stream, const Event &event) {
  std::lock_guard<std::mutex> guard(mutex);
  if (!event.capture && !stream.capture)
    return false;
  if (!event.capture) {
    if (event.record && stream.capture->problem.empty())
      stream.capture->problem = nameOf(stream) + " waits for an event of before the capture";
    return true;
  }
  if (!stream.capture && event.capture->origin)
    addLane(event.capture, stream);
  if (stream.capture != event.capture) {
    Capture &wrong = stream.capture ? *stream.capture : *event.capture;
    if (wrong.problem.empty())
      wrong.problem = nameOf(stream) + " waits for an event of another capture, or of one that has ended";
    return true;
  }
  Capture &capture = *stream.capture;
  capture.before[stream.lane].join(capture.recorded[event.number]);
  addStep(capture, stream.lane, Graph::Step::Kind::Wait).record = event.number;
  return true;
}

std::string Engine::endCapture(Stream &stream, Graph &graph) {
  std::lock_guard<std::mutex> guard(mutex);
  std::shared_ptr<Capture> capture = stream.capture;
  if (!capture)
    return nameOf(stream) + " does not capture";
  if (capture->origin != &stream)
    return "the capture of " + capture->names.front() + " is ended on " + nameOf(stream);
  for (const std::shared_ptr<Stream> &other : streams)
    if (other->capture == capture)
      other->capture = nullptr;
  capture->origin = nullptr;
  for (size_t lane = 0; lane < capture->graph.lanes; ++lane)
    if (capture->before[0].at(uint32_t(lane)) < capture->ticks[lane] && capture->problem.empty())
      capture->problem = capture->names.front() + " does not wait for what was captured on " + capture->names[lane];
  graph = std::move(capture->graph);
  return capture->problem;
}

std::unique_ptr<GraphInstance> Engine::instantiate(const Graph &graph, int device) {
  auto instance = std::make_unique<GraphInstance>();
  instance->graph = graph;
  for (size_t lane = 0; lane < graph.lanes; ++lane) {
    instance->lanes.push_back(createStream(device));
    instance->lanes.back()->ofGraph = true;
  }
  return instance;
}

void Engine::launch(GraphInstance &instance, Stream &stream) {
  Event begin;
  record(stream, begin);
  for (const std::shared_ptr<Stream> &lane : instance.lanes)
    waitFor(*lane, begin);
  std::vector<Event> records(instance.graph.records);
  for (const Graph::Step &step : instance.graph.steps) {
    Stream &lane = *instance.lanes[step.lane];
    switch (step.kind) {
    case Graph::Step::Kind::Work:
      enqueue(lane, step.what, step.perform);
      break;
    case Graph::Step::Kind::Record:
      record(lane, records[step.record]);
      break;
    case Graph::Step::Kind::Wait:
      waitFor(lane, records[step.record]);
      break;
    case Graph::Step::Kind::Call:
      step.call(lane);
      break;
    }
  }
  for (const std::shared_ptr<Stream> &lane : instance.lanes) {
    Event end;
    record(*lane, end);
    waitFor(stream, end);
  }
}

} // namespace drover::standin
