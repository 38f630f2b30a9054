//===- DeviceAttention.h - attention by cuDNN -------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_LIB_DEVICE_DEVICEATTENTION_H
#define DROVER_RT_LIB_DEVICE_DEVICEATTENTION_H

#include "device/SharedLibrary.h"
#include "drover/rt/cudnn_attention.h"
#include "drover/rt/device.h"

namespace drover::rt {

class CudnnLibrary : public SharedLibrary {
public:
  /// Opens `asked`, else $DROVER_RT_CUDNN, else libdrover-cudnn.so beside the executable. Throws Error.
  explicit CudnnLibrary(const std::string &asked);

  decltype(drover_cudnn_open) *open = nullptr;
  decltype(drover_cudnn_close) *close = nullptr;
  decltype(drover_cudnn_validate) *validate = nullptr;
  decltype(drover_cudnn_forward) *forward = nullptr;
  decltype(drover_cudnn_backward) *backward = nullptr;
};

/// The attention of one stream. Throws Error where cuDNN is missing or refuses.
class DeviceAttention {
public:
  DeviceAttention(Device &device, Stream &stream, const std::string &library);
  ~DeviceAttention();

  /// As drover_rt_attention and drover_rt_attention_grad, of what whyNotCudnn has no objection to.
  void forward(const drover_attention &description, const void *query, const void *key, const void *value, void *result,
               void *logSumExp, void *workspace);
  void backward(const drover_attention &description, const void *query, const void *key, const void *value,
                const void *result, const void *logSumExp, const void *gradient, void *queryGrad, void *keyGrad,
                void *valueGrad, void *workspace);

private:
  void check(const char *message) const;

  Device &device;
  Stream &stream;
  CudnnLibrary library;
  drover_cudnn *cudnn = nullptr;
};

} // namespace drover::rt

#endif // DROVER_RT_LIB_DEVICE_DEVICEATTENTION_H
