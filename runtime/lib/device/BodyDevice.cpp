//===- BodyDevice.cpp - the device as a body sees it ----------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "device/DeviceAttention.h"
#include "device/DeviceMatmul.h"
#include "drover/rt/body_device.h"
#include "drover/rt/error.h"
#include "drover/rt/fatal.h"
#include <cstring>

using namespace drover::rt;

static constexpr int64_t errorBytes = 16;

drover_device::drover_device(Device &device, Stream &stream)
    : device(device), stream(stream), words(device.allocate(errorBytes)), fetched(device.allocatePinned(errorBytes)) {
  std::memset(fetched.data(), 0, size_t(errorBytes));
  device.fill(words.data(), 0, errorBytes, stream);
}

void drover_device::launch(const drover_gpu_kernel &description, int64_t blocks, void **arguments) {
  guarded([&] {
    Kernel *&kernel = kernels[&description];
    if (!kernel)
      kernel = &device.kernel(description);
    auto number = int64_t(reinterpret_cast<uintptr_t>(&description));
    void *errors = words.data();
    if (description.check) {
      arguments[description.num_arguments] = &number;
      arguments[description.num_arguments + 1] = &errors;
    }
    device.launch(*kernel, blocks, arguments, stream);
  });
}

drover_device::~drover_device() = default;

void drover_device::openMatmul(MatmulAlgorithms &algorithms, int64_t idleSms, const std::string &library) {
  products = std::make_unique<DeviceMatmul>(device, stream, algorithms, idleSms, library);
}

void drover_device::matmul(const drover_matmul &description, const void *a, const void *b, void *c, bool add) {
  guarded([&] {
    if (!products)
      fail(device.describe(), ": a body has a matrix product, but cuBLASLt was not opened");
    products->run(description, a, b, c, add);
  });
}

void drover_device::openAttention(const std::string &library) {
  attentions = std::make_unique<DeviceAttention>(device, stream, library);
}

void drover_device::attention(const drover_attention &description, const void *query, const void *key,
                              const void *value, void *result, void *logSumExp, void *workspace) {
  guarded([&] {
    if (!attentions)
      openAttention();
    attentions->forward(description, query, key, value, result, logSumExp, workspace);
  });
}

void drover_device::attentionGrad(const drover_attention &description, const void *query, const void *key,
                                  const void *value, const void *result, const void *logSumExp, const void *gradient,
                                  void *queryGrad, void *keyGrad, void *valueGrad, void *workspace) {
  guarded([&] {
    if (!attentions)
      openAttention();
    attentions->backward(description, query, key, value, result, logSumExp, gradient, queryGrad, keyGrad, valueGrad,
                         workspace);
  });
}

void drover_device::check() {
  if (failure.empty())
    return;
  std::string message = std::exchange(failure, {});
  throw Error(message);
}

void drover_device::fetchIndexErrors() { device.copy(fetched.data(), words.data(), errorBytes, stream); }

void drover_device::checkIndices() const {
  int64_t values[2];
  std::memcpy(values, fetched.data(), sizeof(values));
  if (values[0] == 0)
    return;
  const auto *kernel = reinterpret_cast<const drover_gpu_kernel *>(uintptr_t(values[0])); // NOLINT: it was a pointer
  fail(device.describe(), ": ", kernel->check, ": index ", values[1], " is out of range");
}

extern "C" void drover_rt_gpu_launch(const drover_call *call, const drover_gpu_kernel *kernel, int64_t blocks,
                                     void **arguments) {
  if (!call->device)
    fatal("kernel %s is for a GPU, but the rank computes on the host", kernel->name);
  call->device->launch(*kernel, blocks, arguments);
}
