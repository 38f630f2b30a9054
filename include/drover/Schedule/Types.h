//===- Types.h - element types and results ----------------------*- C++ -*-===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef DROVER_SCHEDULE_TYPES_H
#define DROVER_SCHEDULE_TYPES_H

#include "drover/rt/abi.h"
#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace drover::schedule {

/// Element types, numbered as in the runtime's ABI.
enum class DType : int32_t {
  F32 = DROVER_F32,
  BF16 = DROVER_BF16,
  F16 = DROVER_F16,
  F64 = DROVER_F64,
  I64 = DROVER_I64,
  I32 = DROVER_I32,
  I8 = DROVER_I8,
  I1 = DROVER_I1
};

/// Size of an element in memory.
int64_t bytesOf(DType dtype);
const char *nameOf(DType dtype);
std::optional<DType> parseDType(const std::string &name);

/// Alignment of every slot and of every tensor in it, in bytes.
constexpr int64_t kSlotAlignment = 64;
/// Alignment of a parameter in its bucket, in elements: 64 bytes in the narrowest compute dtype.
constexpr int64_t kBucketAlignment = 32;

inline int64_t alignTo(int64_t value, int64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

/// A message that says why there is no value.
struct Error {
  std::string message;
};

/// A value, or the error that prevented it. The library uses neither exceptions nor LLVM.
template <typename T> class Result {
public:
  Result(T value) : value(std::move(value)) {}
  Result(Error error) : message(std::move(error.message)) {}

  explicit operator bool() const { return value.has_value(); }
  T &operator*() {
    assert(value && "no value");
    return *value;
  }
  const T &operator*() const {
    assert(value && "no value");
    return *value;
  }
  T *operator->() { return &**this; }
  const T *operator->() const { return &**this; }
  const std::string &error() const { return message; }

private:
  std::optional<T> value;
  std::string message;
};

} // namespace drover::schedule

#endif // DROVER_SCHEDULE_TYPES_H
