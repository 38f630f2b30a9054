//===- body_device.h - the device as a body sees it -------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_BODY_DEVICE_H
#define DROVER_RT_BODY_DEVICE_H

#include "drover/rt/device.h"
#include "drover/rt/matmul_algorithms.h"
#include <unordered_map>

namespace drover::rt {
class DeviceAttention;
class DeviceMatmul;
} // namespace drover::rt

/// drover_call.device: where a body's kernels go. Nothing can be thrown through a body: after a failure its launches do
/// nothing, and the caller of the body asks check(). One thread.
struct drover_device final {
public:
  /// Bodies issue on `stream`.
  drover_device(drover::rt::Device &device, drover::rt::Stream &stream);
  ~drover_device();

  /// Opens cuBLASLt (`library`, else DROVER_RT_CUBLASLT, else its usual names), which bodies with products need.
  /// `idleSms`: multiprocessors that products leave to others. Throws Error where there is none, or not as many.
  void openMatmul(drover::rt::MatmulAlgorithms &algorithms, int64_t idleSms = 0, const std::string &library = "");
  void matmul(const drover_matmul &description, const void *a, const void *b, void *c, bool add);

  /// Opens libdrover-cudnn.so (`library`, else DROVER_RT_CUDNN names another), else the first attention does. Throws
  /// Error where it or cuDNN is missing.
  void openAttention(const std::string &library = "");
  void attention(const drover_attention &description, const void *query, const void *key, const void *value,
                 void *result, void *logSumExp, void *workspace);
  void attentionGrad(const drover_attention &description, const void *query, const void *key, const void *value,
                     const void *result, const void *logSumExp, const void *gradient, void *queryGrad, void *keyGrad,
                     void *valueGrad, void *workspace);

  void launch(const drover_gpu_kernel &description, int64_t blocks, void **arguments);
  /// Calls `issue`, unless something failed before, and keeps what it throws.
  template <typename Fn> void guarded(Fn &&issue) {
    if (!failure.empty())
      return;
    try {
      issue();
    } catch (const std::exception &error) {
      failure = error.what();
    }
  }

  /// Throws Error where something failed since the last call.
  void check();
  /// Starts to bring the error words to the host, after what is on the stream.
  void fetchIndexErrors();
  /// Once the stream is idle after fetchIndexErrors: throws Error where a kernel has read a bad index.
  void checkIndices() const;

  drover::rt::Device &device;
  drover::rt::Stream &stream;

private:
  std::unordered_map<const drover_gpu_kernel *, drover::rt::Kernel *> kernels;
  drover::rt::DeviceMemory words, fetched; // two of 8 bytes: the kernel's drover_gpu_kernel, the index
  std::unique_ptr<drover::rt::DeviceMatmul> products;
  std::unique_ptr<drover::rt::DeviceAttention> attentions;
  std::string failure;
};

#endif // DROVER_RT_BODY_DEVICE_H
