//===- Parts.cpp - the parts of a cut tensor, and their sums --------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "comm/Parts.h"
#include "drover/rt/error.h"
#include <cmath>

namespace drover::rt {

/// memcpy takes no null pointer, and no overlap, not even of a range with itself.
static void copyBytes(void *to, const void *from, int64_t bytes) {
  if (bytes > 0 && to != from)
    std::memcpy(to, from, size_t(bytes));
}

void packPart(const TensorCut &cut, int members, int member, int64_t begin, int64_t end, int64_t elementBytes,
              const void *whole, void *packed) {
  forEachRun(cut, members, member, begin, end, [&](int64_t inWhole, int64_t inPart, int64_t count) {
    copyBytes(static_cast<uint8_t *>(packed) + (inPart - begin) * elementBytes,
              static_cast<const uint8_t *>(whole) + inWhole * elementBytes, count * elementBytes);
  });
}

void unpackPart(const TensorCut &cut, int members, int member, int64_t begin, int64_t end, int64_t elementBytes,
                const void *packed, void *whole) {
  forEachRun(cut, members, member, begin, end, [&](int64_t inWhole, int64_t inPart, int64_t count) {
    copyBytes(static_cast<uint8_t *>(whole) + inWhole * elementBytes,
              static_cast<const uint8_t *>(packed) + (inPart - begin) * elementBytes, count * elementBytes);
  });
}

bool canReduce(DType dtype) {
  return dtype == DROVER_F32 || dtype == DROVER_BF16 || dtype == DROVER_F64 || dtype == DROVER_I64;
}

namespace {
/// Elements that are summed at a time: the sums stay in the first cache.
constexpr int64_t blockElements = 1024;

/// How a dtype is stored and summed.
template <typename Stored, typename Summed> struct Plain {
  using Value = Stored;
  using Sum = Summed;
  static Sum load(Stored value) { return value; }
  static Stored store(Sum value) { return value; }
};
struct Bfloat {
  using Value = uint16_t;
  using Sum = float;
  static float load(uint16_t value) { return bfloatToFloat(value); }
  static uint16_t store(float value) { return floatToBfloat(value); }
};
} // namespace

/// A NaN stays: the larger of it and anything is NaN, whichever comes first.
template <typename T> static T larger(T left, T right) { return right > left || right != right ? right : left; }

static int64_t addWrapping(int64_t left, int64_t right) { return int64_t(uint64_t(left) + uint64_t(right)); }
template <typename T> static T addWrapping(T left, T right) { return left + right; }

template <typename Type>
static void reduceAs(ReduceOp op, const std::vector<const void *> &sources, int64_t count,
                     const std::vector<void *> &results) {
  using Value = typename Type::Value;
  using Sum = typename Type::Sum;
  Sum sums[blockElements];
  Value rounded[blockElements];
  for (int64_t begin = 0; begin < count; begin += blockElements) {
    int64_t size = std::min(blockElements, count - begin);
    const auto *first = static_cast<const Value *>(sources[0]) + begin;
    for (int64_t i = 0; i < size; ++i)
      sums[i] = Type::load(first[i]);
    for (size_t source = 1; source < sources.size(); ++source) {
      const auto *values = static_cast<const Value *>(sources[source]) + begin;
      if (op == ReduceOp::Sum)
        for (int64_t i = 0; i < size; ++i)
          sums[i] = addWrapping(sums[i], Type::load(values[i]));
      else
        for (int64_t i = 0; i < size; ++i)
          sums[i] = larger(sums[i], Type::load(values[i]));
    }
    for (int64_t i = 0; i < size; ++i)
      rounded[i] = Type::store(sums[i]);
    for (void *result : results)
      std::memcpy(static_cast<Value *>(result) + begin, rounded, size_t(size) * sizeof(Value));
  }
}

void reduceInOrder(DType dtype, ReduceOp op, const std::vector<const void *> &sources, int64_t count,
                   const std::vector<void *> &results) {
  switch (dtype) {
  case DROVER_F32:
    return reduceAs<Plain<float, float>>(op, sources, count, results);
  case DROVER_BF16:
    return reduceAs<Bfloat>(op, sources, count, results);
  case DROVER_F64:
    return reduceAs<Plain<double, double>>(op, sources, count, results);
  case DROVER_I64:
    return reduceAs<Plain<int64_t, int64_t>>(op, sources, count, results);
  default:
    fail("no sums of ", dtypeName(dtype), ", expected f32, bf16, f64 or i64");
  }
}

} // namespace drover::rt
