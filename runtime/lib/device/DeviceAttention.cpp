//===- DeviceAttention.cpp - attention by cuDNN ---------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "device/DeviceAttention.h"
#include "device/CudaDevice.h"
#include "drover/rt/error.h"
#include <filesystem>

namespace drover::rt {

static LibraryNames libraryNames() {
  constexpr const char *name = "libdrover-cudnn.so";
  std::error_code code;
  std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", code).parent_path();
  return {"attention by cuDNN",
          "DROVER_RT_CUDNN",
          {(folder / name).string(), name},
          "drover builds it where the headers of cuDNN are (docs/cuda.md), and puts it beside the executable"};
}

CudnnLibrary::CudnnLibrary(const std::string &asked) : SharedLibrary(libraryNames(), asked) {
  resolve(open, "drover_cudnn_open");
  resolve(close, "drover_cudnn_close");
  resolve(validate, "drover_cudnn_validate");
  resolve(forward, "drover_cudnn_forward");
  resolve(backward, "drover_cudnn_backward");
}

DeviceAttention::DeviceAttention(Device &device, Stream &stream, const std::string &library)
    : device(device), stream(stream), library(library) {
  check(this->library.open("", &cudnn));
}

DeviceAttention::~DeviceAttention() {
  if (cudnn)
    library.close(cudnn);
}

void DeviceAttention::check(const char *message) const {
  if (message)
    fail(device.describe(), ": attention by cuDNN: ", message);
}

void DeviceAttention::forward(const drover_attention &description, const void *query, const void *key,
                              const void *value, void *result, void *logSumExp, void *workspace) {
  check(library.forward(cudnn, &description, CudaDevice::handleOf(stream), query, key, value, result, logSumExp,
                        workspace));
}

void DeviceAttention::backward(const drover_attention &description, const void *query, const void *key,
                               const void *value, const void *result, const void *logSumExp, const void *gradient,
                               void *queryGrad, void *keyGrad, void *valueGrad, void *workspace) {
  check(library.backward(cudnn, &description, CudaDevice::handleOf(stream), query, key, value, result, logSumExp,
                         gradient, queryGrad, keyGrad, valueGrad, workspace));
}

} // namespace drover::rt
