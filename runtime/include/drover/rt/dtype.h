//===- dtype.h - element types and their conversions ------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_RT_DTYPE_H
#define DROVER_RT_DTYPE_H

#include "drover/rt/abi.h"
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace drover::rt {

using DType = drover_dtype;

int64_t byteSize(DType type);
bool isFloat(DType type);

/// The spelling of the program's metadata: f32, bf16, f16, f64, i64, i32, i8, i1.
const char *dtypeName(DType type);
std::optional<DType> dtypeFromName(std::string_view name);

inline float bitsToFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
inline uint32_t floatToBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float bfloatToFloat(uint16_t bits) { return bitsToFloat(uint32_t(bits) << 16); }
float halfToFloat(uint16_t bits);

/// Rounds to nearest even; a NaN stays one.
uint16_t floatToBfloat(float value);

/// `count` values of a float type at `source` (any alignment) as f32.
void toFloat(const void *source, DType type, int64_t count, float *result);

} // namespace drover::rt

#endif // DROVER_RT_DTYPE_H
