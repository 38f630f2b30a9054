//===- DType.cpp - element types and their conversions --------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/rt/dtype.h"
#include "drover/rt/error.h"

namespace drover::rt {

namespace {
struct TypeInfo {
  DType type;
  const char *name;
  int bytes;
};
} // namespace

static constexpr TypeInfo infos[] = {{DROVER_F32, "f32", 4}, {DROVER_BF16, "bf16", 2}, {DROVER_F16, "f16", 2},
                                     {DROVER_F64, "f64", 8}, {DROVER_I64, "i64", 8},   {DROVER_I32, "i32", 4},
                                     {DROVER_I8, "i8", 1},   {DROVER_I1, "i1", 1}};

int64_t byteSize(DType type) { return infos[type].bytes; }
const char *dtypeName(DType type) { return infos[type].name; }
bool isFloat(DType type) { return type <= DROVER_F64; }

std::optional<DType> dtypeFromName(std::string_view name) {
  for (const TypeInfo &info : infos)
    if (name == info.name)
      return info.type;
  return std::nullopt;
}

float halfToFloat(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
  if (exponent == 0x1f) // infinity or NaN
    return bitsToFloat(sign | 0x7f800000 | mantissa << 13);
  if (exponent) // 112 is the difference of the two exponent biases
    return bitsToFloat(sign | (exponent + 112) << 23 | mantissa << 13);
  float value = float(mantissa) * 0x1p-24f;
  return sign ? -value : value;
}

uint16_t floatToBfloat(float value) {
  uint32_t bits = floatToBits(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void toFloat(const void *source, DType type, int64_t count, float *result) {
  const auto *bytes = static_cast<const uint8_t *>(source);
  switch (type) {
  case DROVER_F32:
    std::memcpy(result, bytes, size_t(count) * 4);
    return;
  case DROVER_BF16:
  case DROVER_F16:
    for (int64_t i = 0; i < count; ++i) {
      uint16_t bits;
      std::memcpy(&bits, bytes + 2 * i, 2);
      result[i] = type == DROVER_F16 ? halfToFloat(bits) : bfloatToFloat(bits);
    }
    return;
  case DROVER_F64:
    for (int64_t i = 0; i < count; ++i) {
      double value;
      std::memcpy(&value, bytes + 8 * i, 8);
      result[i] = float(value);
    }
    return;
  default:
    fail("no conversion from ", dtypeName(type), " to f32");
  }
}

} // namespace drover::rt
