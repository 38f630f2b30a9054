//===- NvtxApi.h - what is used of NVTX 3 -----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// NVTX has no library: a program loads what NVTX_INJECTION64_PATH names and shows it a table, into which that writes
// the functions it implements. Declared here, so that the runtime builds where CUDA is not installed; a test holds it
// against the headers where they are.
#ifndef DROVER_RT_LIB_TRACE_NVTXAPI_H
#define DROVER_RT_LIB_TRACE_NVTXAPI_H

#include <cstddef>
#include <cstdint>

namespace drover::rt::nvtx {

constexpr const char *injectionVariable = "NVTX_INJECTION64_PATH";
constexpr const char *injectionSymbol = "InitializeInjectionNvtx2";
constexpr uint32_t version = 3;

using Function = void (*)();
using Domain = void *;

enum Table : uint32_t { CallbacksTable = 1, VersionTable = 3 };
enum Module : int { Core = 1, Core2 = 5 };
/// Places in the tables of functions by module; place 0 is empty.
constexpr unsigned numFunctions[] = {0, 16, 9, 15, 7, 16, 7};
enum CoreFunction : unsigned { RangePushA = 9, RangePop = 11 };
enum Core2Function : unsigned { DomainRangePushEx = 4, DomainRangePop = 5, DomainCreateA = 12 };

/// nvtxEventAttributes_t
struct Attributes {
  uint16_t version = 3;
  uint16_t size = sizeof(Attributes);
  uint32_t category = 0;
  int32_t colorType = 0;
  uint32_t color = 0;
  int32_t payloadType = 0;
  int32_t reserved = 0;
  uint64_t payload = 0;
  int32_t messageType = 1; // NVTX_MESSAGE_TYPE_ASCII
  const char *message = nullptr;
};

struct Callbacks {
  size_t size;
  int (*moduleFunctions)(int module, Function ***table, unsigned *size);
};
struct VersionInfo {
  size_t size;
  uint32_t version;
  uint32_t reserved;
  void (*setInjectionVersion)(uint32_t version);
};

using ExportTable = const void *(*)(uint32_t table);
using Initialize = int (*)(ExportTable exportTable);

} // namespace drover::rt::nvtx

#endif // DROVER_RT_LIB_TRACE_NVTXAPI_H
