//===- Buckets.cpp - parameters to buckets --------------------------------===//
// Part of drover, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#include "Buckets.h"
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

using namespace drover::schedule;

namespace {

struct ParameterUse {
  std::set<int32_t> chunks;
  bool trained = false;
};

std::vector<ParameterUse> findUses(const MicrobatchProgram &program, const ChunkCut &cut) {
  std::vector<ParameterUse> uses(program.parameters.size());
  for (size_t i = 0; i < program.calls.size(); ++i)
    for (uint32_t operand : program.calls[i].operands) {
      const Value &value = program.values[cut.root[operand]];
      if (value.kind == ValueKind::Accumulator)
        uses[value.index].trained = true;
      if (value.kind == ValueKind::Parameter || value.kind == ValueKind::Accumulator)
        uses[value.index].chunks.insert(static_cast<int32_t>(cut.chunkOfCall[i]));
    }
  for (size_t i = 0; i < uses.size(); ++i) {
    if (!program.train)
      uses[i].trained = true;
    else if (program.parameters[i].frozen)
      uses[i].trained = false;
    if (uses[i].chunks.empty())
      uses[i].chunks.insert(0);
  }
  return uses;
}

/// Parameters of one section are neighbours; those with decay come first.
auto sectionKey(const Parameter &parameter) {
  return std::make_tuple(!parameter.decay, parameter.sum, parameter.replicated);
}

void layOut(Bucket &bucket, int32_t index, const std::vector<size_t> &members, bool trainable, StepProgram &step) {
  for (size_t i : members) {
    PlacedParameter &placed = step.parameters[i];
    const Parameter &parameter = placed.parameter;
    placed.bucket = index;
    placed.offset = bucket.elements;
    bool isNew = bucket.sections.empty();
    if (!isNew) {
      const Section &last = bucket.sections.back();
      isNew = sectionKey(parameter) != std::make_tuple(!last.decay, last.sum, last.replicated);
    }
    if (isNew)
      bucket.sections.push_back({bucket.elements, 0, parameter.decay, trainable, parameter.sum, parameter.replicated});
    int64_t end = alignTo(bucket.elements + parameter.elements(), kBucketAlignment);
    bucket.sections.back().elements += end - bucket.elements;
    bucket.elements = end;
  }
  // Every rank's shard is as long as the others', and aligned.
  int64_t padding = alignTo(bucket.elements, kBucketAlignment * step.grid.fsdp()) - bucket.elements;
  bucket.elements += padding;
  if (!bucket.sections.empty())
    bucket.sections.back().elements += padding;
}

} // namespace

void drover::schedule::layOutBuckets(const MicrobatchProgram &program, const ChunkCut &cut, StepProgram &step) {
  std::vector<ParameterUse> uses = findUses(program, cut);
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    step.parameters.push_back({program.parameters[i], 0, 0});
    step.parameters.back().parameter.frozen = !uses[i].trained;
  }

  // Own buckets are in the order of chunks; the others follow by their chunks.
  std::map<std::pair<bool, std::set<int32_t>>, std::vector<size_t>> others; // (trained, chunks) -> parameters
  std::vector<std::vector<size_t>> own(step.chunks.size());
  for (size_t i = 0; i < uses.size(); ++i)
    if (uses[i].trained && uses[i].chunks.size() == 1)
      own[*uses[i].chunks.begin()].push_back(i);
    else
      others[{uses[i].trained, uses[i].chunks}].push_back(i);

  auto add = [&](std::vector<size_t> &members, std::vector<int32_t> chunks, bool trained) {
    std::sort(members.begin(), members.end(), [&](size_t a, size_t b) {
      auto keyOf = [&](size_t i) { return std::make_pair(sectionKey(program.parameters[i]), i); };
      return keyOf(a) < keyOf(b);
    });
    Bucket bucket;
    bucket.chunks = std::move(chunks);
    layOut(bucket, static_cast<int32_t>(step.buckets.size()), members, trained, step);
    step.buckets.push_back(std::move(bucket));
  };
  for (size_t chunk = 0; chunk < own.size(); ++chunk) {
    step.chunks[chunk].bucket = static_cast<int32_t>(chunk);
    add(own[chunk], {static_cast<int32_t>(chunk)}, /*trained=*/true);
  }
  for (auto &[key, members] : others)
    add(members, {key.second.begin(), key.second.end()}, key.first);
}
