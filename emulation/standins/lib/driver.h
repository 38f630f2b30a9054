//===- driver.h - handles of the stand-in driver ----------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// What a CUstream or CUevent points to; the other stand-in libraries get them from the runtime.
#ifndef DROVER_STANDINS_DRIVER_H
#define DROVER_STANDINS_DRIVER_H

#include "device/CudaApi.h"
#include "tracked_memory.h"

/// What is defined here has to be what the runtime declares.
#define DROVER_DECLARE(member, symbol, parameters) extern "C" int symbol parameters;
DROVER_CUDA_FUNCTIONS(DROVER_DECLARE)
#undef DROVER_DECLARE

namespace drover::standin {

struct StreamHandle {
  std::shared_ptr<Stream> stream;
};
struct EventHandle {
  Event event;
  int device;
};

/// The device of the calling thread's context, or -1.
int currentDevice();
int deviceCount();
/// Null, with a line in the log, where it is no stream of the calling thread's device.
Stream *streamOf(void *handle, const char *call);
/// Success, or the code of a call that a thread may not make while it captures a graph, with a line in the log.
int refuseInCapture(const char *call);
/// "stream 3 of device 0"
std::string describe(const Stream &stream);

} // namespace drover::standin

#endif // DROVER_STANDINS_DRIVER_H
