//===- CudaApi.h - what is used of the CUDA driver --------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Declared here, so that the runtime builds where CUDA is not installed; a test holds it against cuda.h where that is.
// Handles are pointers; enumerations are ints, as the driver's C ABI has them.
#ifndef DROVER_RT_LIB_DEVICE_CUDAAPI_H
#define DROVER_RT_LIB_DEVICE_CUDAAPI_H

#include <cstddef>
#include <cstdint>

namespace drover::rt::cuda {

using Handle = void *;
using Address = unsigned long long; // CUdeviceptr

enum Result : int {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  NoDevice = 100,
  InvalidDevice = 101,
  InvalidImage = 200,
  InvalidContext = 201,
  NoBinaryForGpu = 209,
  InvalidPtx = 218,
  UnsupportedPtxVersion = 222,
  InvalidHandle = 400,
  NotFound = 500,
  NotReady = 600,
  LaunchFailed = 719,
  StreamCaptureUnsupported = 900,
  StreamCaptureInvalidated = 901,
  CapturedEvent = 907,
};

enum DeviceAttribute : int {
  MultiprocessorCount = 16,
  ComputeCapabilityMajor = 75,
  ComputeCapabilityMinor = 76,
  MaxSharedMemoryPerBlockOptin = 97,
};

enum FunctionAttribute : int { StaticSharedBytes = 1, MaxDynamicSharedBytes = 8 };
enum JitOption : int { JitErrorLogBuffer = 5, JitErrorLogBufferBytes = 6 };
enum MemoryType : int { UnifiedMemory = 4 };
enum CaptureMode : int { CaptureThreadLocal = 1 }; // what cannot be captured is forbidden to the thread that captures
constexpr unsigned hostAllocPortable = 1;          // pinned for all contexts
constexpr unsigned streamNonBlocking = 1;          // not ordered against the default stream
constexpr unsigned eventDisableTiming = 2;

/// CUDA_MEMCPY2D_v2
struct Copy2D {
  size_t sourceX, sourceY;
  int sourceType;
  const void *sourceHost;
  Address source;
  Handle sourceArray;
  size_t sourcePitch;
  size_t destinationX, destinationY;
  int destinationType;
  void *destinationHost;
  Address destination;
  Handle destinationArray;
  size_t destinationPitch;
  size_t widthBytes, height;
};

/// X(member, symbol, parameters) for each function; all return a Result.
#define DROVER_CUDA_FUNCTIONS(X)                                                                                       \
  X(init, cuInit, (unsigned))                                                                                          \
  X(driverGetVersion, cuDriverGetVersion, (int *))                                                                     \
  X(getErrorName, cuGetErrorName, (int, const char **))                                                                \
  X(getErrorString, cuGetErrorString, (int, const char **))                                                            \
  X(deviceGetCount, cuDeviceGetCount, (int *))                                                                         \
  X(deviceGet, cuDeviceGet, (int *, int))                                                                              \
  X(deviceGetName, cuDeviceGetName, (char *, int, int))                                                                \
  X(deviceGetAttribute, cuDeviceGetAttribute, (int *, int, int))                                                       \
  X(primaryContextRetain, cuDevicePrimaryCtxRetain, (::drover::rt::cuda::Handle *, int))                               \
  X(primaryContextRelease, cuDevicePrimaryCtxRelease_v2, (int))                                                        \
  X(contextSetCurrent, cuCtxSetCurrent, (::drover::rt::cuda::Handle))                                                  \
  X(streamPriorityRange, cuCtxGetStreamPriorityRange, (int *, int *))                                                  \
  X(memGetInfo, cuMemGetInfo_v2, (size_t *, size_t *))                                                                 \
  X(memAlloc, cuMemAlloc_v2, (::drover::rt::cuda::Address *, size_t))                                                  \
  X(memFree, cuMemFree_v2, (::drover::rt::cuda::Address))                                                              \
  X(memHostAlloc, cuMemHostAlloc, (void **, size_t, unsigned))                                                         \
  X(memFreeHost, cuMemFreeHost, (void *))                                                                              \
  X(memcpyAsync, cuMemcpyAsync,                                                                                        \
    (::drover::rt::cuda::Address, ::drover::rt::cuda::Address, size_t, ::drover::rt::cuda::Handle))                    \
  X(memcpy2DAsync, cuMemcpy2DAsync_v2, (const ::drover::rt::cuda::Copy2D *, ::drover::rt::cuda::Handle))               \
  X(memsetAsync, cuMemsetD8Async, (::drover::rt::cuda::Address, unsigned char, size_t, ::drover::rt::cuda::Handle))    \
  X(streamCreate, cuStreamCreateWithPriority, (::drover::rt::cuda::Handle *, unsigned, int))                           \
  X(streamDestroy, cuStreamDestroy_v2, (::drover::rt::cuda::Handle))                                                   \
  X(streamQuery, cuStreamQuery, (::drover::rt::cuda::Handle))                                                          \
  X(streamWaitEvent, cuStreamWaitEvent, (::drover::rt::cuda::Handle, ::drover::rt::cuda::Handle, unsigned))            \
  X(streamWriteValue32, cuStreamWriteValue32_v2,                                                                       \
    (::drover::rt::cuda::Handle, ::drover::rt::cuda::Address, unsigned, unsigned))                                     \
  X(eventCreate, cuEventCreate, (::drover::rt::cuda::Handle *, unsigned))                                              \
  X(eventDestroy, cuEventDestroy_v2, (::drover::rt::cuda::Handle))                                                     \
  X(eventRecord, cuEventRecord, (::drover::rt::cuda::Handle, ::drover::rt::cuda::Handle))                              \
  X(eventQuery, cuEventQuery, (::drover::rt::cuda::Handle))                                                            \
  X(streamBeginCapture, cuStreamBeginCapture_v2, (::drover::rt::cuda::Handle, int))                                    \
  X(streamEndCapture, cuStreamEndCapture, (::drover::rt::cuda::Handle, ::drover::rt::cuda::Handle *))                  \
  X(graphInstantiate, cuGraphInstantiateWithFlags,                                                                     \
    (::drover::rt::cuda::Handle *, ::drover::rt::cuda::Handle, unsigned long long))                                    \
  X(graphLaunch, cuGraphLaunch, (::drover::rt::cuda::Handle, ::drover::rt::cuda::Handle))                              \
  X(graphDestroy, cuGraphDestroy, (::drover::rt::cuda::Handle))                                                        \
  X(graphExecDestroy, cuGraphExecDestroy, (::drover::rt::cuda::Handle))                                                \
  X(moduleLoadData, cuModuleLoadDataEx, (::drover::rt::cuda::Handle *, const void *, unsigned, int *, void **))        \
  X(moduleUnload, cuModuleUnload, (::drover::rt::cuda::Handle))                                                        \
  X(moduleGetFunction, cuModuleGetFunction, (::drover::rt::cuda::Handle *, ::drover::rt::cuda::Handle, const char *))  \
  X(functionGetAttribute, cuFuncGetAttribute, (int *, int, ::drover::rt::cuda::Handle))                                \
  X(functionSetAttribute, cuFuncSetAttribute, (::drover::rt::cuda::Handle, int, int))                                  \
  X(launchKernel, cuLaunchKernel,                                                                                      \
    (::drover::rt::cuda::Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,                 \
     ::drover::rt::cuda::Handle, void **, void **))

} // namespace drover::rt::cuda

#endif // DROVER_RT_LIB_DEVICE_CUDAAPI_H
