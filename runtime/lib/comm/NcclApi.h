//===- NcclApi.h - what is used of NCCL -------------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Declared here, so that the runtime builds where NCCL is not installed; a test holds it against nccl.h where that is.
#ifndef DROVER_RT_LIB_COMM_NCCLAPI_H
#define DROVER_RT_LIB_COMM_NCCLAPI_H

#include <climits>
#include <cstddef>

namespace drover::rt::nccl {

using Handle = void *;

enum Result : int {
  Success = 0,
  UnhandledCudaError = 1,
  SystemError = 2,
  InternalError = 3,
  InvalidArgument = 4,
  InvalidUsage = 5,
  RemoteError = 6,
  InProgress = 7,
};
enum DataType : int { Int8 = 0, Int32 = 2, Int64 = 4, Float16 = 6, Float32 = 7, Float64 = 8, Bfloat16 = 9 };
enum ReduceOperation : int { Sum = 0, Max = 2 };

struct UniqueId {
  char bytes[128];
};

constexpr int undefined = INT_MIN;

/// ncclConfig_t of 2.28; a library takes as much of it as it knows.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 22809;
  int blocking = undefined;
  int cgaClusterSize = undefined;
  int minCtas = undefined;
  int maxCtas = undefined;
  const char *netName = nullptr;
  int splitShare = undefined;
  int trafficClass = undefined;
  const char *commName = nullptr;
  int collnetEnable = undefined;
  int ctaPolicy = undefined;
  int shrinkShare = undefined;
  int nvlsCtas = undefined;
  int channelsPerNetPeer = undefined;
  int nvlinkCentricSched = undefined;
};

/// X(result, member, symbol, parameters) for each function.
#define DROVER_NCCL_FUNCTIONS(X)                                                                                       \
  X(int, getVersion, ncclGetVersion, (int *))                                                                          \
  X(int, getUniqueId, ncclGetUniqueId, (::drover::rt::nccl::UniqueId *))                                               \
  X(const char *, getErrorString, ncclGetErrorString, (int))                                                           \
  X(const char *, getLastError, ncclGetLastError, (::drover::rt::nccl::Handle))                                        \
  X(int, commInit, ncclCommInitRankConfig,                                                                             \
    (::drover::rt::nccl::Handle *, int, ::drover::rt::nccl::UniqueId, int, ::drover::rt::nccl::Config *))              \
  X(int, commFinalize, ncclCommFinalize, (::drover::rt::nccl::Handle))                                                 \
  X(int, commDestroy, ncclCommDestroy, (::drover::rt::nccl::Handle))                                                   \
  X(int, commAbort, ncclCommAbort, (::drover::rt::nccl::Handle))                                                       \
  X(int, commGetAsyncError, ncclCommGetAsyncError, (::drover::rt::nccl::Handle, int *))                                \
  X(int, allGather, ncclAllGather,                                                                                     \
    (const void *, void *, size_t, int, ::drover::rt::nccl::Handle, ::drover::rt::nccl::Handle))                       \
  X(int, reduceScatter, ncclReduceScatter,                                                                             \
    (const void *, void *, size_t, int, int, ::drover::rt::nccl::Handle, ::drover::rt::nccl::Handle))                  \
  X(int, allReduce, ncclAllReduce,                                                                                     \
    (const void *, void *, size_t, int, int, ::drover::rt::nccl::Handle, ::drover::rt::nccl::Handle))                  \
  X(int, broadcast, ncclBroadcast,                                                                                     \
    (const void *, void *, size_t, int, int, ::drover::rt::nccl::Handle, ::drover::rt::nccl::Handle))                  \
  X(int, send, ncclSend, (const void *, size_t, int, int, ::drover::rt::nccl::Handle, ::drover::rt::nccl::Handle))     \
  X(int, receive, ncclRecv, (void *, size_t, int, int, ::drover::rt::nccl::Handle, ::drover::rt::nccl::Handle))        \
  X(int, groupStart, ncclGroupStart, ())                                                                               \
  X(int, groupEnd, ncclGroupEnd, ())

/// Of NCCL 2.27 and later: memory in which gathers need no multiprocessor.
constexpr int windowsSince = 22700;
constexpr int windowIsSymmetric = 1; // at one offset on all ranks
#define DROVER_NCCL_WINDOW_FUNCTIONS(X)                                                                                \
  X(int, memAlloc, ncclMemAlloc, (void **, size_t))                                                                    \
  X(int, memFree, ncclMemFree, (void *))                                                                               \
  X(int, windowRegister, ncclCommWindowRegister,                                                                       \
    (::drover::rt::nccl::Handle, void *, size_t, ::drover::rt::nccl::Handle *, int))                                   \
  X(int, windowDeregister, ncclCommWindowDeregister, (::drover::rt::nccl::Handle, ::drover::rt::nccl::Handle))

} // namespace drover::rt::nccl

#endif // DROVER_RT_LIB_COMM_NCCLAPI_H
