//===- DeviceAttentionTest.cpp - attention by cuDNN, as far as it goes without a GPU ---===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "device/DeviceAttention.h"
#include "TestDevice.h"
#include "drover/rt/body_device.h"

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

TEST(DeviceAttention, SaysWhatIsMissing) {
  std::unique_ptr<Device> device = openStandin();
  drover_device body(*device, device->stream(DROVER_STREAM_COMPUTE));
  expectError([&] { body.openAttention("libnowhere.so"); },
              "attention by cuDNN: library not found; drover builds it where the headers of cuDNN are");
}

TEST(DeviceAttention, ABodyOpensItTheFirstTime) {
  std::unique_ptr<Device> device = openStandin();
  drover_device body(*device, device->stream(DROVER_STREAM_COMPUTE));
  drover_call call = {};
  call.device = &body;
  drover_attention d = {};
  setenv("DROVER_RT_CUDNN", "/none/libnone.so", 1);
  drover_rt_attention(&call, &d, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                      nullptr);
  expectError([&] { body.check(); }, "/none/libnone.so");
  drover_rt_attention_grad(&call, &d, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                           nullptr, nullptr, nullptr, nullptr, nullptr);
  expectError([&] { body.check(); }, "/none/libnone.so");
  unsetenv("DROVER_RT_CUDNN");
}

#ifdef DROVER_CUDNN_LIBRARY
/// Grouped queries in packed rows, as a body has them.
drover_attention description(int32_t causal, int64_t queries, int64_t keys) {
  drover_attention d = {};
  d.dtype = d.dtype_kv_grad = DROVER_BF16;
  d.causal = causal;
  d.batch = 2;
  d.queries = queries;
  d.keys = keys;
  d.heads = 8;
  d.kv_heads = 2;
  d.head_size = d.value_head_size = 64;
  d.query_stride = d.key_stride = d.value_stride = (8 + 2 + 2) * 64;
  d.result_stride = d.gradient_stride = d.query_grad_stride = 8 * 64;
  d.key_grad_stride = d.value_grad_stride = 2 * 64;
  d.scale = 0.125;
  return d;
}

TEST(DeviceAttention, SaysWhereCudnnIsLookedFor) {
  CudnnLibrary library(DROVER_CUDNN_LIBRARY);
  drover_cudnn *opened = nullptr;
  const char *message = library.open("libnowhere.so.9", &opened);
  ASSERT_TRUE(message);
  EXPECT_NE(std::string(message).find("cuDNN is not found: libnowhere.so.9"), std::string::npos) << message;
  EXPECT_NE(std::string(message).find("LD_LIBRARY_PATH"), std::string::npos) << message;
  EXPECT_FALSE(opened);
}

TEST(DeviceAttention, GraphsAreValid) {
  CudnnLibrary library(DROVER_CUDNN_LIBRARY);
  drover_cudnn *opened = nullptr;
  const char *message = nullptr;
  for (const char *name : {"", "/usr/local/cuda/lib64/libcudnn.so.9", "/usr/local/cuda/lib/libcudnn.so.9"})
    if (!opened)
      message = library.open(name, &opened);
  if (!opened)
    GTEST_SKIP() << message;
  for (int backward : {0, 1}) {
    for (auto [causal, queries, keys] : {std::tuple(0, 100, 70), {1, 128, 128}, {2, 65, 192}}) {
      drover_attention d = description(causal, queries, keys);
      message = library.validate(opened, &d, backward);
      EXPECT_FALSE(message) << message;
    }
    drover_attention odd = description(1, 128, 128);
    odd.query_stride += 1;
    message = library.validate(opened, &odd, backward);
    ASSERT_TRUE(message);
    EXPECT_NE(std::string(message).find("769 elements apart, no multiple of 8"), std::string::npos) << message;
  }
  library.close(opened);
}
#endif

} // namespace
