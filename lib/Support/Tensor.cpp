//===- Tensor.cpp - dense tensors on the host -------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Support/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/ErrorHandling.h"
#include <cmath>

using namespace drover;
using namespace llvm;

unsigned drover::bitWidth(ElementKind kind) {
  switch (kind) {
  case ElementKind::I1:
    return 1;
  case ElementKind::I8:
    return 8;
  case ElementKind::I16:
  case ElementKind::F16:
  case ElementKind::BF16:
    return 16;
  case ElementKind::I32:
  case ElementKind::F32:
    return 32;
  case ElementKind::I64:
  case ElementKind::F64:
    return 64;
  }
  llvm_unreachable("every kind is handled");
}

unsigned drover::byteWidth(ElementKind kind) { return (bitWidth(kind) + 7) / 8; }

StringRef drover::name(ElementKind kind) {
  switch (kind) {
  case ElementKind::I1:
    return "i1";
  case ElementKind::I8:
    return "i8";
  case ElementKind::I16:
    return "i16";
  case ElementKind::I32:
    return "i32";
  case ElementKind::I64:
    return "i64";
  case ElementKind::F16:
    return "f16";
  case ElementKind::BF16:
    return "bf16";
  case ElementKind::F32:
    return "f32";
  case ElementKind::F64:
    return "f64";
  }
  llvm_unreachable("every kind is handled");
}

/// Rounds a finite double to `mantissa` stored bits, with subnormals below 2^minExponent and infinity from 2^overflow.
/// Rounding happens once: going through f32 would round twice.
static double roundOnce(double value, int mantissa, int minExponent, int overflow) {
  if (!std::isfinite(value))
    return value;
  int exponent = value == 0 ? minExponent : std::max(std::ilogb(value), minExponent);
  double quantum = std::ldexp(1.0, exponent - mantissa);
  double rounded = std::nearbyint(value / quantum) * quantum; // exact but for the rounding: powers of two
  return std::fabs(rounded) >= std::ldexp(1.0, overflow) ? std::copysign(INFINITY, value) : rounded;
}

double drover::roundTo(double value, ElementKind kind) {
  switch (kind) {
  case ElementKind::F16:
    return roundOnce(value, 10, -14, 16);
  case ElementKind::BF16:
    return roundOnce(value, 7, -126, 128);
  case ElementKind::F32:
    return static_cast<float>(value);
  default:
    return value;
  }
}

int64_t drover::wrapTo(int64_t value, ElementKind kind) {
  switch (kind) {
  case ElementKind::I1:
    return value & 1;
  case ElementKind::I8:
    return static_cast<int8_t>(value);
  case ElementKind::I16:
    return static_cast<int16_t>(value);
  case ElementKind::I32:
    return static_cast<int32_t>(value);
  default:
    return value;
  }
}

Tensor::Tensor(ElementKind kind, ArrayRef<int64_t> shape) : kind(kind), shape(shape) {
  int64_t count = countElements(shape);
  assert(count >= 0 && "a shape of negative or absurd sizes");
  if (isFloat(kind))
    floats.resize(count);
  else
    ints.resize(count);
}

int64_t drover::countElements(ArrayRef<int64_t> shape, int64_t limit) {
  if (llvm::any_of(shape, [](int64_t size) { return size < 0; }))
    return -1;
  if (llvm::is_contained(shape, 0))
    return 0;
  int64_t count = 1;
  for (int64_t size : shape) {
    if (count > limit / size)
      return -1;
    count *= size;
  }
  return count;
}

SmallVector<int64_t> drover::stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0; stride *= shape[dim])
    strides[dim] = stride;
  return strides;
}

/// IEEE half precision, bit by bit: the host may have no such type.
static double halfToDouble(uint16_t bits) {
  int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  double magnitude = exponent == 31  ? (mantissa ? NAN : INFINITY)
                     : exponent == 0 ? std::ldexp(mantissa, -24)
                                     : std::ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

static uint16_t doubleToHalf(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  value = std::fabs(roundTo(value, ElementKind::F16));
  if (std::isnan(value))
    return sign | 0x7e00;
  if (std::isinf(value))
    return sign | 0x7c00;
  if (value < std::ldexp(1.0, -14))
    return sign | static_cast<uint16_t>(std::ldexp(value, 24));
  int exponent = std::ilogb(value);
  return sign | static_cast<uint16_t>(((exponent + 15) << 10) + std::ldexp(value, 10 - exponent) - 1024);
}

void drover::decode(ArrayRef<char> bytes, Tensor &tensor) {
  const char *data = bytes.data();
  int64_t count = tensor.size(), width = byteWidth(tensor.kind);
  assert(static_cast<int64_t>(bytes.size()) >= count * width && "too few bytes");
  for (int64_t i = 0; i < count; ++i, data += width) {
    switch (tensor.kind) {
    case ElementKind::I1:
      tensor.ints[i] = *data != 0;
      break;
    case ElementKind::I8:
      tensor.ints[i] = static_cast<int8_t>(*data);
      break;
    case ElementKind::I16:
      tensor.ints[i] = static_cast<int16_t>(support::endian::read16le(data));
      break;
    case ElementKind::I32:
      tensor.ints[i] = static_cast<int32_t>(support::endian::read32le(data));
      break;
    case ElementKind::I64:
      tensor.ints[i] = static_cast<int64_t>(support::endian::read64le(data));
      break;
    case ElementKind::F16:
      tensor.floats[i] = halfToDouble(support::endian::read16le(data));
      break;
    case ElementKind::BF16:
      tensor.floats[i] = bit_cast<float>(static_cast<uint32_t>(support::endian::read16le(data)) << 16);
      break;
    case ElementKind::F32:
      tensor.floats[i] = bit_cast<float>(support::endian::read32le(data));
      break;
    case ElementKind::F64:
      tensor.floats[i] = bit_cast<double>(support::endian::read64le(data));
      break;
    }
  }
}

std::vector<char> drover::encode(const Tensor &tensor) {
  int64_t count = tensor.size(), width = byteWidth(tensor.kind);
  std::vector<char> bytes(count * width);
  char *data = bytes.data();
  for (int64_t i = 0; i < count; ++i, data += width) {
    switch (tensor.kind) {
    case ElementKind::I1:
    case ElementKind::I8:
      *data = static_cast<char>(tensor.ints[i]);
      break;
    case ElementKind::I16:
      support::endian::write16le(data, tensor.ints[i]);
      break;
    case ElementKind::I32:
      support::endian::write32le(data, tensor.ints[i]);
      break;
    case ElementKind::I64:
      support::endian::write64le(data, tensor.ints[i]);
      break;
    case ElementKind::F16:
      support::endian::write16le(data, doubleToHalf(tensor.floats[i]));
      break;
    case ElementKind::BF16:
      support::endian::write16le(
          data, bit_cast<uint32_t>(static_cast<float>(roundTo(tensor.floats[i], ElementKind::BF16))) >> 16);
      break;
    case ElementKind::F32:
      support::endian::write32le(data, bit_cast<uint32_t>(static_cast<float>(tensor.floats[i])));
      break;
    case ElementKind::F64:
      support::endian::write64le(data, bit_cast<uint64_t>(tensor.floats[i]));
      break;
    }
  }
  return bytes;
}
