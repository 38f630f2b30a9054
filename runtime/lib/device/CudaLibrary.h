//===- CudaLibrary.h - the CUDA driver, opened at run time ------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_LIB_DEVICE_CUDALIBRARY_H
#define DROVER_RT_LIB_DEVICE_CUDALIBRARY_H

#include "device/CudaApi.h"
#include "device/SharedLibrary.h"

namespace drover::rt {

class CudaLibrary : public SharedLibrary {
public:
  /// Opens `asked`, else $DROVER_RT_CUDA, else libcuda.so.1, and initializes the driver. Throws Error.
  explicit CudaLibrary(const std::string &asked);

#define DROVER_MEMBER(member, symbol, parameters) int(*member) parameters = nullptr;
  DROVER_CUDA_FUNCTIONS(DROVER_MEMBER)
#undef DROVER_MEMBER

  /// "CUDA_ERROR_INVALID_VALUE (invalid argument)"
  std::string describe(int code) const;
  /// "13.0"
  std::string version() const;
};

} // namespace drover::rt

#endif // DROVER_RT_LIB_DEVICE_CUDALIBRARY_H
