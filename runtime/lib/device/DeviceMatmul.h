//===- DeviceMatmul.h - matrix products by cuBLASLt -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_LIB_DEVICE_DEVICEMATMUL_H
#define DROVER_RT_LIB_DEVICE_DEVICEMATMUL_H

#include "device/CublasLtApi.h"
#include "device/SharedLibrary.h"
#include "drover/rt/device.h"
#include "drover/rt/matmul_algorithms.h"
#include <map>

namespace drover::rt {

class CublasLtLibrary : public SharedLibrary {
public:
  /// Opens `asked`, else $DROVER_RT_CUBLASLT, else libcublasLt.so.13. Throws Error.
  explicit CublasLtLibrary(const std::string &asked);

#define DROVER_MEMBER(result, member, symbol, parameters) result(*member) parameters = nullptr;
  DROVER_CUBLASLT_FUNCTIONS(DROVER_MEMBER)
#undef DROVER_MEMBER
};

/// The products of one stream, which share a workspace. What a product needs is made once.
class DeviceMatmul {
public:
  DeviceMatmul(Device &device, Stream &stream, MatmulAlgorithms &algorithms, int64_t idleSms,
               const std::string &library);
  ~DeviceMatmul();

  /// As drover_rt_matmul; `add` to what c holds.
  void run(const drover_matmul &description, const void *a, const void *b, void *c, bool add);

private:
  struct Plan {
    cublaslt::Handle product = nullptr, first = nullptr, second = nullptr, result = nullptr;
    cublaslt::Algorithm algorithm = {};
  };
  Plan &planOf(const drover_matmul &description);
  void makeLayouts(const drover_matmul &description, Plan &plan);
  cublaslt::Algorithm propose(const Plan &plan, const std::string &what);
  void check(int status, const char *call, const std::string &what) const;

  Device &device;
  Stream &stream;
  MatmulAlgorithms &algorithms;
  CublasLtLibrary library;
  cublaslt::Handle handle = nullptr;
  int32_t sms = 0; // that products are made for; 0: all
  DeviceMemory workspace;
  std::map<std::string, Plan> plans;
};

} // namespace drover::rt

#endif // DROVER_RT_LIB_DEVICE_DEVICEMATMUL_H
