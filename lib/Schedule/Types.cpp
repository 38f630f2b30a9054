//===- Types.cpp - element types and sizes --------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "drover/Schedule/StepProgram.h"
#include <algorithm>
#include <set>

using namespace drover::schedule;

namespace {
struct DTypeInfo {
  DType dtype;
  const char *name;
  int64_t bytes;
};
constexpr DTypeInfo kDTypes[] = {{DType::F32, "f32", 4}, {DType::BF16, "bf16", 2}, {DType::F16, "f16", 2},
                                 {DType::F64, "f64", 8}, {DType::I64, "i64", 8},   {DType::I32, "i32", 4},
                                 {DType::I8, "i8", 1},   {DType::I1, "i1", 1}};

const DTypeInfo &infoOf(DType dtype) {
  const DTypeInfo *info = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                       [&](const DTypeInfo &candidate) { return candidate.dtype == dtype; });
  assert(info != std::end(kDTypes) && "unknown element type");
  return *info;
}
} // namespace

int64_t drover::schedule::bytesOf(DType dtype) { return infoOf(dtype).bytes; }

const char *drover::schedule::nameOf(DType dtype) { return infoOf(dtype).name; }

std::optional<DType> drover::schedule::parseDType(const std::string &name) {
  for (const DTypeInfo &info : kDTypes)
    if (name == info.name)
      return info.dtype;
  return std::nullopt;
}

namespace {
constexpr const char *kAxisNames[] = {"", "tp", "kv", "replica", "cp", "dp"};
} // namespace

const char *drover::schedule::nameOf(GridAxis axis) { return kAxisNames[static_cast<size_t>(axis)]; }

std::optional<GridAxis> drover::schedule::parseGridAxis(const std::string &name) {
  for (size_t i = 0; i < std::size(kAxisNames); ++i)
    if (name == kAxisNames[i])
      return static_cast<GridAxis>(i);
  return std::nullopt;
}

namespace {
constexpr const char *kCollectiveNames[] = {"all_gather", "reduce_scatter", "all_reduce", "shift"};
} // namespace

const char *drover::schedule::nameOfCollective(int32_t kind) { return kCollectiveNames[kind]; }

std::optional<int32_t> drover::schedule::parseCollective(const std::string &name) {
  for (size_t i = 0; i < std::size(kCollectiveNames); ++i)
    if (name == kCollectiveNames[i])
      return static_cast<int32_t>(i);
  return std::nullopt;
}

int64_t Parameter::elements() const {
  int64_t count = 1;
  for (int64_t size : localShape.empty() ? shape : localShape)
    count *= size;
  return count;
}

std::vector<int32_t> StepProgram::stagesOf(const Bucket &bucket) const {
  std::set<int32_t> stages;
  for (int32_t chunk : bucket.chunks)
    stages.insert(stageOf(static_cast<uint32_t>(chunk)));
  return {stages.begin(), stages.end()};
}

int32_t MicrobatchProgram::numLayers() const {
  int32_t count = 0;
  for (const Call &call : calls)
    count = std::max(count, call.layer + 1);
  return count;
}
