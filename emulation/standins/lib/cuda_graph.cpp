//===- cuda_graph.cpp - the stand-in driver: graphs -----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "driver.h"
#include "graph.h"

using namespace drover::standin;
using namespace drover::rt::cuda;

/// Captures that the thread has begun, all of CU_STREAM_CAPTURE_MODE_THREAD_LOCAL.
static thread_local std::vector<Stream *> captures;

int drover::standin::refuseInCapture(const char *call) {
  if (captures.empty())
    return Success;
  std::string why = std::string(call) + " while the thread captures a graph";
  report("driver: " + why);
  for (Stream *stream : captures)
    Engine::instance().invalidate(*stream, why);
  return StreamCaptureUnsupported;
}

extern "C" {

int cuStreamBeginCapture_v2(Handle handle, int mode) {
  Stream *stream = streamOf(handle, "cuStreamBeginCapture");
  if (!stream)
    return InvalidHandle;
  if (mode != CaptureThreadLocal) {
    report("driver: a capture that forbids other threads their calls, or allows all");
    return InvalidValue;
  }
  if (!Engine::instance().beginCapture(*stream))
    return StreamCaptureUnsupported;
  captures.push_back(stream);
  return Success;
}

int cuStreamEndCapture(Handle handle, Handle *graph) {
  Stream *stream = streamOf(handle, "cuStreamEndCapture");
  if (!stream)
    return InvalidHandle;
  *graph = nullptr;
  auto captured = std::make_unique<Graph>();
  std::string problem = Engine::instance().endCapture(*stream, *captured);
  auto begun = std::find(captures.begin(), captures.end(), stream);
  if (begun == captures.end())
    problem = "a capture that another thread has begun";
  else
    captures.erase(begun);
  if (!problem.empty()) {
    report("driver: capture of a graph: " + problem);
    return StreamCaptureInvalidated;
  }
  *graph = captured.release();
  return Success;
}

int cuGraphInstantiateWithFlags(Handle *instance, Handle graph, unsigned long long flags) {
  if (!graph || flags || currentDevice() < 0)
    return InvalidValue;
  *instance = Engine::instance().instantiate(*static_cast<Graph *>(graph), currentDevice()).release();
  return Success;
}

int cuGraphLaunch(Handle instance, Handle handle) {
  Stream *stream = streamOf(handle, "cuGraphLaunch");
  if (!stream || !instance)
    return InvalidHandle;
  if (int code = refuseInCapture("cuGraphLaunch"))
    return code;
  Engine::instance().launch(*static_cast<GraphInstance *>(instance), *stream);
  return Success;
}

int cuGraphDestroy(Handle graph) {
  delete static_cast<Graph *>(graph);
  return Success;
}

int cuGraphExecDestroy(Handle instance) {
  delete static_cast<GraphInstance *>(instance);
  return Success;
}

} // extern "C"
