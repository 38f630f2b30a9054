//===- TestData.h - random tensors for the kernels' tests -------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_UNITTESTS_RUNTIME_KERNELS_TESTDATA_H
#define DROVER_UNITTESTS_RUNTIME_KERNELS_TESTDATA_H

#include "drover/rt/abi.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace drover::rt::test {

inline float bf16ToFloat(uint16_t value) {
  const uint32_t bits = uint32_t(value) << 16;
  float result;
  std::memcpy(&result, &bits, 4);
  return result;
}

/// Round to nearest even, by comparing the two neighbours.
inline uint16_t floatToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (std::isnan(value))
    return (bits >> 16) | 0x40;
  const uint32_t low = bits & 0xffff;
  uint16_t result = bits >> 16;
  if (low > 0x8000 || (low == 0x8000 && (result & 1)))
    ++result;
  return result;
}

/// A buffer of f32 or bf16 elements, read and written as numbers.
class Tensor {
public:
  explicit Tensor(int32_t dtype = DROVER_F32, int64_t size = 0)
      : dtype(dtype), bytes(size * (dtype == DROVER_BF16 ? 2 : 4)) {}

  void *data() { return bytes.data(); }
  const void *data() const { return bytes.data(); }
  int64_t size() const { return bytes.size() / (dtype == DROVER_BF16 ? 2 : 4); }
  int32_t type() const { return dtype; }

  double operator[](int64_t i) const {
    if (dtype == DROVER_BF16)
      return bf16ToFloat(reinterpret_cast<const uint16_t *>(bytes.data())[i]);
    return reinterpret_cast<const float *>(bytes.data())[i];
  }
  void set(int64_t i, float value) {
    if (dtype == DROVER_BF16)
      reinterpret_cast<uint16_t *>(bytes.data())[i] = floatToBf16(value);
    else
      reinterpret_cast<float *>(bytes.data())[i] = value;
  }
  void fill(float value) {
    for (int64_t i = 0; i < size(); ++i)
      set(i, value);
  }
  void randomize(std::mt19937 &random, float spread = 1.0f) {
    std::normal_distribution<float> normal(0.0f, spread);
    for (int64_t i = 0; i < size(); ++i)
      set(i, normal(random));
  }
  bool sameBits(const Tensor &other) const { return bytes == other.bytes; }

private:
  int32_t dtype;
  std::vector<unsigned char> bytes;
};

inline int64_t pick(std::mt19937 &random, std::initializer_list<int64_t> values) {
  return values.begin()[random() % values.size()];
}

} // namespace drover::rt::test

#endif // DROVER_UNITTESTS_RUNTIME_KERNELS_TESTDATA_H
