//===- DeviceMatmulTest.cpp - matrix products by the stand-in cuBLASLt ----===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "TestDevice.h"
#include "drover/rt/body_device.h"
#include "drover/rt/dtype.h"

using namespace drover::rt;
using namespace drover::rt::test;

namespace {

/// Small integers: every sum is exact, in bf16 too.
double valueAt(int64_t place, int which) { return double((place * 7 + which * 5) % 5 - 2); }

std::vector<uint8_t> matrixOf(int64_t elements, int32_t dtype, int which) {
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < elements; ++i) {
    auto value = float(valueAt(i, which));
    uint16_t narrow = floatToBfloat(value);
    const auto *from =
        dtype == DROVER_BF16 ? reinterpret_cast<uint8_t *>(&narrow) : reinterpret_cast<uint8_t *>(&value);
    bytes.insert(bytes.end(), from, from + byteSize(DType(dtype)));
  }
  return bytes;
}

double loadAt(const uint8_t *bytes, int32_t dtype, int64_t place) {
  if (dtype == DROVER_BF16) {
    uint16_t narrow;
    std::memcpy(&narrow, bytes + place * 2, 2);
    return bfloatToFloat(narrow);
  }
  float value;
  std::memcpy(&value, bytes + place * 4, 4);
  return value;
}

struct Body {
  explicit Body(MatmulAlgorithms::Agree agree = nullptr, int64_t idleSms = 0)
      : device(openStandin()), algorithms(std::move(agree)), body(*device, device->stream(DROVER_STREAM_COMPUTE)) {
    body.openMatmul(algorithms, idleSms, DROVER_STANDIN_CUBLASLT);
    call.device = &body;
  }
  std::unique_ptr<Device> device;
  MatmulAlgorithms algorithms;
  drover_device body;
  drover_call call = {};
};

DeviceMemory onDevice(Body &where, const std::vector<uint8_t> &bytes) {
  DeviceMemory memory = where.device->allocate(int64_t(bytes.size()));
  where.device->copy(memory.data(), bytes.data(), memory.size(), where.body.stream);
  return memory;
}

/// Multiplies, and compares each element with its definition.
void expectProduct(Body &where, drover_matmul d) {
  int64_t aSize = d.stride_a * d.batch, bSize = d.stride_b * d.batch, cSize = d.stride_c * d.batch;
  DeviceMemory a = onDevice(where, matrixOf(aSize, d.dtype_ab, 1)), b = onDevice(where, matrixOf(bSize, d.dtype_ab, 2));
  DeviceMemory c = onDevice(where, matrixOf(cSize, d.dtype_c, 3));
  DeviceMemory seen = where.device->allocatePinned(c.size());
  drover_rt_matmul(&where.call, &d, a.data(), b.data(), c.data());
  where.body.check();
  where.device->copy(seen.data(), c.data(), c.size(), where.body.stream);
  finish(*where.device, where.body.stream);
  bool adds = d.store == DROVER_ADD || (d.store == DROVER_ACCUMULATE && where.call.accumulate);
  for (int64_t which = 0; which < d.batch; ++which)
    for (int64_t i = 0; i < d.m; ++i)
      for (int64_t j = 0; j < d.ldc; ++j) {
        int64_t place = which * d.stride_c + i * d.ldc + j;
        double expected = j < d.n && !adds ? 0 : valueAt(place, 3);
        for (int64_t p = 0; p < d.k && j < d.n; ++p)
          expected += valueAt(which * d.stride_a + (d.trans_a ? p * d.lda + i : i * d.lda + p), 1) *
                      valueAt(which * d.stride_b + (d.trans_b ? j * d.ldb + p : p * d.ldb + j), 2);
        ASSERT_EQ(loadAt(seen.data(), d.dtype_c, place), expected) << which << " " << i << " " << j;
      }
}

drover_matmul product(int32_t ab, int32_t c, int transA, int transB, int store, int64_t pad, int64_t batch) {
  drover_matmul d = {ab, c, transA, transB, store, 0, 5, 7, 3, 0, 0, 7 + pad, batch, 0, 0, 0};
  d.lda = (transA ? d.m : d.k) + pad;
  d.ldb = (transB ? d.k : d.n) + pad;
  d.stride_a = (transA ? d.k : d.m) * d.lda;
  d.stride_b = (transB ? d.n : d.k) * d.ldb;
  d.stride_c = d.m * d.ldc;
  return d;
}

TEST(DeviceMatmul, ProductsAreTheirDefinition) {
  Body where;
  FaultLog log;
  for (int transA : {0, 1})
    for (int transB : {0, 1})
      for (int64_t pad : {0, 2})
        for (auto [ab, c] : {std::pair(DROVER_F32, DROVER_F32), {DROVER_BF16, DROVER_BF16}, {DROVER_BF16, DROVER_F32}})
          expectProduct(where, product(ab, c, transA, transB, DROVER_OVERWRITE, pad, pad ? 3 : 1));
  EXPECT_EQ(log.first(), "");
}

/// The stand-in says in the algorithm how many multiprocessors it was asked for, and takes it for no other number.
TEST(DeviceMatmul, MultiprocessorsAreLeftToOthers) {
  for (int64_t idle : {0, 16}) {
    Body where(nullptr, idle);
    FaultLog log;
    expectProduct(where, product(DROVER_F32, DROVER_F32, 0, 0, DROVER_OVERWRITE, 0, 1));
    EXPECT_EQ(log.first(), "");
    std::string table = where.algorithms.text();
    EXPECT_EQ(table.find(" on 116 SMs, cuBLASLt") != std::string::npos, idle == 16) << table;
    EXPECT_EQ(table.find("0000000000000074") != std::string::npos, idle == 16) << table;
  }
  std::unique_ptr<Device> device = openStandin();
  MatmulAlgorithms algorithms;
  drover_device body(*device, device->stream(DROVER_STREAM_COMPUTE));
  expectError([&] { body.openMatmul(algorithms, 132, DROVER_STANDIN_CUBLASLT); },
              "cuda 0 (emulated GPU, sm_90): the program leaves 132 multiprocessors to NCCL (--communication-sms) of "
              "132 that there are");
}

/// A microbatch's weight gradient, in f32 beside those before it.
TEST(DeviceMatmul, WeightGradientsAccumulate) {
  Body where;
  for (int accumulate : {0, 1}) {
    where.call.accumulate = accumulate;
    expectProduct(where, product(DROVER_BF16, DROVER_F32, 1, 0, DROVER_ACCUMULATE, 0, 1));
    expectProduct(where, product(DROVER_BF16, DROVER_F32, 1, 0, DROVER_ADD, 0, 1));
  }
}

TEST(DeviceMatmul, WhatNobodyWroteOrOrderedIsReported) {
  Body where;
  drover_matmul d = product(DROVER_F32, DROVER_F32, 0, 0, DROVER_OVERWRITE, 0, 1);
  DeviceMemory a = where.device->allocate(60), b = where.device->allocate(84), c = where.device->allocate(140);
  for (uint64_t seed : {0, 1, 2}) {
    FaultLog log;
    drover_standin_set_seed(seed);
    drover_rt_matmul(&where.call, &d, a.data(), b.data(), c.data());
    Stream &other = where.device->stream(DROVER_STREAM_REDUCE);
    where.device->fill(c.data() + 136, 0, 4, other);
    finish(*where.device, other);
    finish(*where.device, where.body.stream);
    std::string all;
    for (uint64_t i = 0; drover_emu_fault(i); ++i)
      all += drover_emu_fault(i) + std::string("\n");
    EXPECT_NE(all.find("reads what nobody wrote in the first matrix"), std::string::npos) << all;
    EXPECT_NE(all.find("race: "), std::string::npos) << all;
  }
  drover_standin_set_seed(0);
}

TEST(DeviceMatmul, AlgorithmsAreAgreedOnAndKept) {
  std::map<std::string, std::string> agreed;
  auto agree = [&](const std::string &key, const std::string &own) { return agreed.emplace(key, own).first->second; };
  Body first(agree), second(agree);
  drover_matmul d = product(DROVER_BF16, DROVER_F32, 0, 0, DROVER_OVERWRITE, 0, 1);
  expectProduct(first, d);
  expectProduct(first, d);
  expectProduct(second, d);
  ASSERT_EQ(agreed.size(), 1u);
  EXPECT_EQ(agreed.begin()->first, "bf16 to f32, 5x7x3, rows of 3 7 7, 1 at 15 21 35; (emulated GPU, sm_90), cuBLASLt "
                                   "130000");
  TemporaryFolder folder;
  first.algorithms.save(folder.path("algorithms"));
  Body third([](const std::string &, const std::string &) -> std::string { throw Error("nobody asks"); });
  third.algorithms.load(folder.path("algorithms"));
  EXPECT_EQ(third.algorithms.size(), 1u);
  expectProduct(third, d);
}

TEST(DeviceMatmul, WhatIsWrongIsNamed) {
  Body where;
  TemporaryFolder folder;
  expectError([&] { where.algorithms.load(folder.path("none")); }, "none: cannot read: No such file");
  expectError([&] { where.algorithms.load(folder.write("bad", "a\t12\n")); },
              "bad: line 1: expected a product, a tab and 128 hexadecimal digits");
  Body odd([](const std::string &, const std::string &) { return std::string("nonsense"); });
  drover_matmul d = product(DROVER_F32, DROVER_F32, 0, 0, DROVER_OVERWRITE, 0, 1);
  drover_rt_matmul(&odd.call, &d, nullptr, nullptr, nullptr);
  expectError([&] { odd.body.check(); }, "another rank says nonsense");
  drover_device closed(*where.device, where.body.stream);
  where.call.device = &closed;
  drover_rt_matmul(&where.call, &d, nullptr, nullptr, nullptr);
  expectError([&] { closed.check(); }, "a body has a matrix product, but cuBLASLt was not opened");
  expectError([&] { closed.openMatmul(where.algorithms, 0, "libnowhere.so.13"); },
              "cublasLt: library not found; it comes with the CUDA toolkit");
}

} // namespace
